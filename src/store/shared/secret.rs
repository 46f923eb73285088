//! The passwords of stores. They are never in the configuration itself, and never in a log.

use std::{env, fs};

use crate::{
    config::Login,
    store::{OpenError, PASSWORD_VARIABLE},
};

/// Returns the password of a login, without the line ending that editors append. `None` if neither a file nor the
/// environment holds one: the store may know its user by something else.
pub(super) fn password(login: &Login) -> Result<Option<String>, OpenError> {
    let text = match &login.password_file {
        Some(path) => fs::read_to_string(path).map_err(|error| OpenError::File { path: path.clone(), error })?,
        None => match env::var(PASSWORD_VARIABLE) {
            Ok(text) => text,
            Err(_) => return Ok(None),
        },
    };
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}
