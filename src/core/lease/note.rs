//! The note of a service about a lease, in the service's own words.

/// The maximum length of a note, in bytes: enough for the document by which a client of another protocol describes its
/// lock. All leases of a resource stand in one record.
pub const NOTE_BYTES_MAX: usize = 4096;

/// A text of at most 4,096 bytes that a service reads back with the lease. The guard gives it no meaning.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseNote(Box<str>);

/// The reason why a text is no note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is kept with a lease has at most {NOTE_BYTES_MAX} bytes")]
pub struct TooLongNote;

impl LeaseNote {
    /// Takes a text.
    ///
    /// # Errors
    ///
    /// The text has more than [`NOTE_BYTES_MAX`] bytes.
    pub fn new(text: &str) -> Result<Self, TooLongNote> {
        (text.len() <= NOTE_BYTES_MAX).then(|| Self(text.into())).ok_or(TooLongNote)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_bounded_in_bytes() {
        assert_eq!(LeaseNote::new(&"ä".repeat(2048)).as_ref().map(LeaseNote::as_str), Ok(&*"ä".repeat(2048)));
        assert_eq!(LeaseNote::new(&format!("{}.", "ä".repeat(2048))), Err(TooLongNote));
    }
}
