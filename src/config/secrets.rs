//! Files with secrets that every user of the machine can read.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use super::check::Check;
use super::written::Text;

/// The permission of all users to read.
const READABLE_BY_ALL: u32 = 0o004;

/// Warns if the file that a key names exists, and all users can read it.
pub(super) fn warn_if_open(check: &mut Check<'_>, key: &str, text: &Text) {
    let path = Path::new(text.get_ref());
    let mode = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| found.mode() & 0o777);
    if let Some(mode) = mode.filter(|mode| mode & READABLE_BY_ALL != 0) {
        let message = format!("{key}: every user of this machine can read {} (mode {mode:04o})", path.display());
        check.warn(text.span(), message, "remove that permission (chmod o-rwx): the file holds secrets");
    }
}
