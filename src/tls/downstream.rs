//! The certificates of the listeners, which change while they are in use.
//!
//! # Design
//!
//! The whole configuration of handshakes is swapped, not single certificates in it: sessions that an old one began end
//! with it, so that an authority of clients which was taken away cannot be used any more. Connections that are open go on.

use std::{
    sync::{Arc, PoisonError, RwLock, RwLockWriteGuard},
    time::{Duration, SystemTime},
};

use rustls::ServerConfig;

use super::{
    ServerTls,
    files::{FileError, Pair, Validity},
    server::server_config,
    stamp::FileStamp,
};

/// What listeners answer handshakes with.
#[derive(Debug)]
pub struct Downstream(RwLock<CertificateState>);

#[derive(Debug)]
struct CertificateState {
    settings: ServerTls,
    /// The files as they were when they were last read.
    read: FileStamp,
    /// The files as they were when they were last looked at.
    seen: FileStamp,
    handshakes: Arc<ServerConfig>,
}

impl CertificateState {
    fn load(settings: ServerTls) -> Result<Self, FileError> {
        // Before they are read: what is written meanwhile is seen the next time.
        let read = FileStamp::of(settings.files());
        let handshakes = Arc::new(server_config(&settings)?);
        warn_of_invalid(&settings);
        Ok(Self { settings, seen: read.clone(), read, handshakes })
    }
}

impl Downstream {
    /// Reads all files.
    pub fn load(settings: &ServerTls) -> Result<Self, FileError> {
        Ok(Self(RwLock::new(CertificateState::load(settings.clone())?)))
    }

    /// Goes over to other settings, or to the files of the same settings as they are now; from the next handshake on.
    /// After an error everything is as it was.
    pub fn replace(&self, settings: &ServerTls) -> Result<(), FileError> {
        let next = CertificateState::load(settings.clone())?;
        *self.write() = next;
        Ok(())
    }

    /// Looks for changed files again and again, for ever, and goes over to those that can be used.
    pub async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.read(|state| state.settings.reload_interval)).await;
            let watched = Arc::clone(&self);
            // A disk that does not answer holds up nothing but this. A panic there would end only this one look.
            let _ = tokio::task::spawn_blocking(move || watched.look()).await;
        }
    }

    /// Goes over to files that were changed, and not again since the last look: a certificate and its key are not
    /// written in one step. Those that cannot be used are told of once.
    fn look(&self) {
        let (settings, read) = self.read(|state| (state.settings.clone(), state.read.clone()));
        let now = FileStamp::of(settings.files());
        let seen = std::mem::replace(&mut self.write().seen, now.clone());
        if now == read || now != seen {
            return;
        }
        match self.replace(&settings) {
            Ok(()) => tracing::info!("certificates were changed: new connections get the new ones"),
            Err(error) => {
                tracing::error!(%error, hint = error.hint(), "changed certificates cannot be used: the old ones stay");
                self.write().read = now;
            }
        }
    }

    /// What the next handshake is made with.
    pub(crate) fn handshakes(&self) -> Arc<ServerConfig> {
        self.read(|state| Arc::clone(&state.handshakes))
    }

    /// How long a handshake may take.
    pub(crate) fn handshake_timeout(&self) -> Duration {
        self.read(|state| state.settings.handshake_timeout)
    }

    fn write(&self) -> RwLockWriteGuard<'_, CertificateState> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, of: impl FnOnce(&CertificateState) -> T) -> T {
        of(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A certificate that has run out is served all the same: some clients may go on, and all learn why the others do not.
fn warn_of_invalid(settings: &ServerTls) {
    for files in &settings.certificates {
        let Ok(pair) = Pair::load(&files.certificate, &files.key) else { continue };
        let file = files.certificate.display();
        match pair.validity(SystemTime::now()) {
            Validity::Valid => {}
            Validity::Expired(since) => tracing::warn!(%file, since, "a certificate has expired"),
            Validity::NotYet(from) => tracing::warn!(%file, from, "a certificate is not valid yet"),
        }
    }
}
