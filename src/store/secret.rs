//! The passwords of stores: never in the configuration itself, never in a log.

use std::{env, fs};

use super::OpenError;
use crate::config::Login;

/// Where a password is looked for that no file has.
pub const PASSWORD_VARIABLE: &str = "IFMATCH_STORE_PASSWORD";

/// The password of a login, without the end of the line that editors put behind it.
pub(super) fn password(login: &Login) -> Result<String, OpenError> {
    let text = match &login.password_file {
        Some(path) => fs::read_to_string(path).map_err(|error| OpenError::File { path: path.clone(), error })?,
        None => env::var(PASSWORD_VARIABLE).map_err(|_error| OpenError::NoPassword)?,
    };
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
