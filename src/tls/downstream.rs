//! The certificates of the listeners, which can change while in use.
//!
//! # Design
//!
//! The whole handshake configuration is swapped, not single certificates in it, and with it the keys of sessions
//! ([`super::sessions`]). Open connections continue.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::RwLock;
use rustls::ServerConfig;

use super::{
    ServerTls,
    files::{FileError, Pair, Validity},
    server::server_config,
    sessions::Sessions,
    stamp::FileStamp,
};

/// The configuration with which listeners answer handshakes.
#[derive(Debug)]
pub struct Downstream(RwLock<LoadedFiles>);

/// A certificate of the listeners, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateExpiry {
    /// The path of its file, as in the configuration.
    pub file: String,
    /// The Unix time at which it expires, in seconds.
    pub expires_at: u64,
}

#[derive(Debug)]
struct LoadedFiles {
    settings: ServerTls,
    /// The state of the files when they were last read.
    read: FileStamp,
    /// The state of the files when they were last checked.
    seen: FileStamp,
    handshakes: Arc<ServerConfig>,
    sessions: Sessions,
    certificates: Vec<CertificateExpiry>,
}

impl LoadedFiles {
    /// Reads all files. Sessions from before go on if they may.
    fn load(settings: ServerTls, before: Option<&Sessions>) -> Result<Self, FileError> {
        // Taken before the files are read: a change made meanwhile is noticed at the next check.
        let read = FileStamp::of(settings.files());
        let (handshakes, sessions) = server_config(&settings, before)?;
        let certificates = inspect(&settings);
        Ok(Self { settings, seen: read.clone(), read, handshakes: Arc::new(handshakes), sessions, certificates })
    }
}

impl Downstream {
    /// Reads all files.
    pub fn load(settings: &ServerTls) -> Result<Self, FileError> {
        Ok(Self(RwLock::new(LoadedFiles::load(settings.clone(), None)?)))
    }

    /// Switches to other settings, or to the current files of the same settings, from the next handshake on. An error
    /// leaves everything unchanged.
    pub fn replace(&self, settings: &ServerTls) -> Result<(), FileError> {
        let before = self.read(|state| state.sessions.clone());
        let next = LoadedFiles::load(settings.clone(), Some(&before))?;
        *self.0.write() = next;
        Ok(())
    }

    /// Checks for changed files at each interval, forever, and switches to those that can be used.
    pub async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.read(|state| state.settings.reload_interval)).await;
            let watched = Arc::clone(&self);
            // A disk that does not answer blocks only this task. A panic there would end only this one check.
            let _ = tokio::task::spawn_blocking(move || watched.look()).await;
        }
    }

    /// Switches to files that have changed, but not again since the last check: a certificate and its key are not
    /// written in one step. Unusable files are reported once.
    fn look(&self) {
        let (settings, read) = self.read(|state| (state.settings.clone(), state.read.clone()));
        let now = FileStamp::of(settings.files());
        let seen = std::mem::replace(&mut self.0.write().seen, now.clone());
        if now == read || now != seen {
            return;
        }
        match self.replace(&settings) {
            Ok(()) => tracing::info!("certificates have changed: new connections use the new ones"),
            Err(error) => {
                tracing::error!(%error, hint = error.hint(), "changed certificates cannot be used: the old ones stay");
                self.0.write().read = now;
            }
        }
    }

    /// The certificates in use.
    pub fn certificates(&self) -> Vec<CertificateExpiry> {
        self.read(|state| state.certificates.clone())
    }

    /// The configuration for the next handshake.
    pub(crate) fn handshakes(&self) -> Arc<ServerConfig> {
        self.read(|state| Arc::clone(&state.handshakes))
    }

    /// How long a handshake may take.
    pub(crate) fn handshake_timeout(&self) -> Duration {
        self.read(|state| state.settings.handshake_timeout)
    }

    fn read<T>(&self, of: impl FnOnce(&LoadedFiles) -> T) -> T {
        of(&self.0.read())
    }
}

/// Returns when the certificates expire. Warns of those that have expired or are not yet valid. They are served anyway:
/// some clients may still accept them, and the others learn why they fail.
fn inspect(settings: &ServerTls) -> Vec<CertificateExpiry> {
    let mut found = Vec::new();
    for files in &settings.certificates {
        let Ok(pair) = Pair::load(&files.certificate, &files.key) else { continue };
        let file = files.certificate.display();
        found.extend(pair.expires_at().map(|expires_at| CertificateExpiry { file: file.to_string(), expires_at }));
        match pair.validity(SystemTime::now()) {
            Validity::Valid => {}
            Validity::Expired(since) => tracing::warn!(%file, since, "a certificate has expired"),
            Validity::NotYet(from) => tracing::warn!(%file, from, "a certificate is not valid yet"),
        }
    }
    found
}
