//! An error with its causes, as one line for people.

use std::{error::Error, iter::successors};

/// Returns what an error says, and then what each of its causes says.
pub fn with_causes(error: &dyn Error) -> String {
    successors(Some(error), |&error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
