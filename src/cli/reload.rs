//! `ifmatch reload`: requests that a running process load its configuration again, and reports the result.

use std::{path::Path, process::ExitCode};

use super::{Exit, ReloadOptions, give_up, print, report};
use crate::{
    config,
    reload::control::{self, ControlAnswer},
};

pub(super) fn execute(options: &ReloadOptions) -> ExitCode {
    let file = options.file.as_deref().unwrap_or(Path::new(super::DEFAULT_FILE));
    let socket = match &options.socket {
        Some(socket) => socket.clone(),
        None => match config::load(file) {
            Err(problems) => return report(&problems),
            Ok(loaded) => {
                let Some(socket) = loaded.config.server.control_socket else {
                    let line = format_args!(
                        "ifmatch: {} names no server.control_socket: set it and start the process again, or send it SIGHUP",
                        file.display()
                    );
                    return give_up(line, Exit::Configuration);
                };
                socket
            }
        },
    };
    match control::ask(&socket, options.force) {
        Ok(ControlAnswer::Done(text)) => {
            print(text);
            ExitCode::SUCCESS
        }
        Ok(ControlAnswer::Problems(text)) => give_up(text, Exit::Configuration),
        Ok(ControlAnswer::Refused(text)) => {
            give_up(format_args!("ifmatch: not reloaded, the old configuration stays: {text}"), Exit::Runtime)
        }
        Err(error) => {
            give_up(format_args!("ifmatch: no process answers at {}: {error}", socket.display()), Exit::Unavailable)
        }
    }
}
