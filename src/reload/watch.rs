//! Reloads when the configuration file changes (`server.watch`).
//!
//! *Why does it look at the file instead of asking the system for events?* A file in a Kubernetes `ConfigMap` is a link to a
//! link that is replaced, and on a network file system no event comes. A look once a second costs one system call.

use std::{iter, path::PathBuf, sync::Arc, time::Duration};

use tokio::task::spawn_blocking;

use super::Reloader;
use crate::tls::stamp::FileStamp;

/// The pause between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reloads whenever the file has changed, for as long as the current runtime runs. While `server.watch` is false, changes
/// are left to the next request for a reload.
pub async fn reload_on_change(reloader: Arc<Reloader>) {
    let Some(file) = reloader.file.clone() else { return };
    let mut loaded = stamp(file.clone()).await;
    let mut seen = loaded.clone();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = stamp(file.clone()).await;
        if !reloader.live.serving().config.server.watch {
            loaded.clone_from(&now);
        } else if now != loaded && now == seen {
            // A file is not written in one step: it is complete when two looks see the same.
            loaded.clone_from(&now);
            // The result is in the log.
            let _ = reloader.reload(false).await;
        }
        seen = now;
    }
}

/// Returns the state of the file, or `None` if the thread that looks at it has ended.
async fn stamp(file: PathBuf) -> Option<FileStamp> {
    spawn_blocking(move || FileStamp::of(iter::once(&file))).await.ok()
}
