//! The passwords of stores. They are never in the configuration itself, and never in a log.

use std::{env, fs};

use crate::{
    config::Login,
    store::{OpenError, PASSWORD_VARIABLE},
};

/// Returns the password of a login, without the line ending that editors append.
pub(super) fn password(login: &Login) -> Result<String, OpenError> {
    let text = match &login.password_file {
        Some(path) => fs::read_to_string(path).map_err(|error| OpenError::File { path: path.clone(), error })?,
        None => env::var(PASSWORD_VARIABLE).map_err(|_error| OpenError::NoPassword)?,
    };
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
