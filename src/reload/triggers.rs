//! The reasons for a reload beside the request of an operator: SIGHUP, and a change of the configuration file
//! (`server.watch`).
//!
//! # Design
//!
//! *Why does it look at the file instead of asking the system for events?* A file in a Kubernetes `ConfigMap` is a link to a
//! link that is replaced, and on a network file system no event comes. A look once a second costs one system call.

use std::{io, iter, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::spawn_blocking,
};

use super::Reloader;
use crate::tls::stamp::FileStamp;

/// The pause between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(1);

/// The SIGHUP signals to this process. One that arrives before a task waits for it is not lost, and does not end the
/// process.
#[derive(Debug)]
pub struct Hangups(Signal);

impl Hangups {
    /// Watches for the signals from now on. Must be called on a runtime.
    pub fn watch() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }
}

/// Reloads on each SIGHUP, for as long as the current runtime runs. A signal that arrives during a reload is handled
/// after it.
pub async fn reload_on_hangup(mut hangups: Hangups, reloader: Arc<Reloader>) {
    while hangups.0.recv().await.is_some() {
        // The result is in the log; a signal has no answer.
        let _ = reloader.reload(false).await;
    }
}

/// Reloads whenever the file has changed, for as long as the current runtime runs. `loaded` is the state of the file
/// before it was loaded at the start. While `server.watch` is false, changes are left to the next request for a reload.
pub(crate) async fn reload_on_change(reloader: Arc<Reloader>, file: PathBuf, loaded: FileStamp) {
    let mut loaded = Some(loaded);
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

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::{
        clock::BootClock,
        generation::{Live, Serving},
        guard::{Guard, StartHold},
        store::{
            Incarnation, Store,
            memory::{MemoryStore, Room},
        },
        testing::{config, route},
    };

    const HOUR: Duration = Duration::from_secs(3600);

    /// Between the load of the file and the first look at it lie the opening of the store and of the listeners.
    #[tokio::test(start_paused = true)]
    async fn a_change_before_the_first_look_is_loaded() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("ifmatch.toml");
        fs::write(&file, "").expect("a file");
        let stamp = FileStamp::of(iter::once(&file));
        let text = "[upstreams.api]\nservers = [\"127.0.0.1:9\"]\n\n[[routes]]\nname = \"changed\"\npath = \"/{*rest}\"\n\
                    upstream = \"api\"\npolicy = \"optimistic\"\n";
        fs::write(&file, text).expect("a file");

        let mut before = config(vec![route("/doc", None, &[])]);
        before.server.watch = true;
        let room = Room { records: 10, bytes: 1 << 20 };
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(BootClock), Incarnation(7), room, HOUR));
        let before = Arc::new(before);
        let serving = Serving::new(Arc::clone(&before), |table| {
            Guard::new(&before, table, Arc::default(), Arc::clone(&store), 1, StartHold::none())
        });
        let live = Arc::new(Live::new(serving));
        let reloader = Arc::new(Reloader::new(Arc::clone(&live), store, None, Some(file.clone())));
        let changed = async {
            while live.serving().config.routes.iter().all(|route| route.name != "changed") {
                sleep(INTERVAL).await;
            }
        };
        let watching = reload_on_change(reloader, file, stamp);
        let loaded = async {
            tokio::select! { () = watching => false, () = changed => true }
        };
        assert_eq!(timeout(HOUR, loaded).await, Ok(true));
    }
}
