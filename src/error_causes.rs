//! An error and its causes.

use std::{error::Error, iter::successors};

/// Returns an error, and then each of its causes.
pub fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// Returns what an error says, and then what each of its causes says, as one line for people.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
