//! The admin listener of `ifmatch run`, opened before anything is served, so that a problem with it is reported at
//! once.

use std::{error::Error, io, thread};

use super::Exit;
use crate::{
    admin::{self, AdminSocket, Subject, Token},
    config::{self, Config},
};

/// A bound listener with its token.
pub(super) struct BoundAdmin {
    socket: AdminSocket,
    settings: config::Admin,
    token: Option<Token>,
}

impl BoundAdmin {
    /// Opens the listener that a configuration names. The error comes with the exit code of the process.
    pub(super) fn open(config: &Config) -> Result<Option<Self>, (Box<dyn Error>, Exit)> {
        let Some(settings) = config.admin.clone() else { return Ok(None) };
        let token = Token::read(&settings).map_err(|error| (error.into(), Exit::Configuration))?;
        let socket = AdminSocket::bind(&settings.listen).map_err(|error| (error.into(), Exit::Unavailable))?;
        Ok(Some(Self { socket, settings, token }))
    }

    /// Serves on its own thread for as long as the process lives: it answers even while the other threads are busy.
    pub(super) fn serve(self, subject: Subject) -> io::Result<()> {
        tracing::info!(listen = self.socket.address(), "admin listener");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("ifmatch-admin".to_owned()).spawn(move || {
            let served = runtime.block_on(admin::serve(self.socket, &self.settings, self.token, subject));
            if let Err(error) = served {
                tracing::error!(%error, "the admin listener cannot serve");
            }
        })?;
        Ok(())
    }
}
