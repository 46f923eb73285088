//! The files that say who may use a store: passwords, certificates, keys. Passwords are never in the configuration itself,
//! and never in a log.

use std::{env, fs, io, path::Path};

use crate::{
    config::Login,
    store::{OpenError, PASSWORD_VARIABLE},
};

/// Returns the password of a login, without the line ending that editors append. `None` if neither a file nor the
/// environment holds one: the store may know its user by something else.
pub(super) fn password(login: &Login) -> Result<Option<String>, OpenError> {
    let text = match &login.password_file {
        Some(path) => fs::read_to_string(path).map_err(|error| unreadable(path, error))?,
        None => match env::var(PASSWORD_VARIABLE) {
            Ok(text) => text,
            Err(_) => return Ok(None),
        },
    };
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Reads a certificate or a key.
pub(super) fn file(path: &Path) -> Result<Vec<u8>, OpenError> {
    fs::read(path).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: io::Error) -> OpenError {
    OpenError::File { path: path.to_owned(), error }
}
