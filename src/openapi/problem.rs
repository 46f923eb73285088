//! The problems of an OpenAPI document. Each names its place, and says what to write.

use std::fmt;

/// The place of a problem in a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PlaceOfProblem {
    /// The document as a whole.
    Whole,
    /// A line and a column, from 1.
    Line(u64, u64),
    /// A JSON pointer (RFC 6901).
    Pointer(String),
}

/// One problem of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentProblem {
    place: PlaceOfProblem,
    message: String,
    hint: String,
}

impl DocumentProblem {
    pub(super) fn new(place: PlaceOfProblem, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { place, message: message.into(), hint: hint.into() }
    }

    pub(super) fn at(pointer: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(PlaceOfProblem::Pointer(pointer.to_owned()), message, hint)
    }
}

/// The problems of a document, in the order of their places; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DocumentProblems {
    name: String,
    problems: Vec<DocumentProblem>,
}

impl DocumentProblems {
    /// Sorts the problems of the document that has this name.
    pub(super) fn new(name: &str, mut problems: Vec<DocumentProblem>) -> Self {
        problems.sort();
        problems.dedup();
        Self { name: name.to_owned(), problems }
    }
}

/// Prints each problem with its place and its hint, and then their number.
impl fmt::Display for DocumentProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for DocumentProblem { place, message, hint } in &self.problems {
            match place {
                PlaceOfProblem::Whole => write!(f, "{}", self.name)?,
                PlaceOfProblem::Line(line, column) => write!(f, "{}:{line}:{column}", self.name)?,
                PlaceOfProblem::Pointer(pointer) => write!(f, "{}#{pointer}", self.name)?,
            }
            writeln!(f, ": {message}\n   hint: {hint}\n")?;
        }
        match self.problems.len() {
            1 => write!(f, "1 problem"),
            several => write!(f, "{several} problems"),
        }
    }
}
