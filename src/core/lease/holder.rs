//! The label that the holder of a lease gives itself, for others to read.

/// The maximum length of a label, in characters: enough for a name, a host and a purpose, and small in every record.
const LABEL_MAX: usize = 200;

/// A label of 1 to 200 characters, none of which is a control character.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HolderLabel(Box<str>);

/// Why bytes are no label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a holder's label has 1 to {LABEL_MAX} characters of UTF-8, none of them a control character")]
pub struct MalformedLabel;

impl HolderLabel {
    /// Reads a field value.
    pub fn parse(field_value: &[u8]) -> Result<Self, MalformedLabel> {
        let text = std::str::from_utf8(field_value).map_err(|_where| MalformedLabel)?.trim();
        let length = text.chars().take(LABEL_MAX + 1).count();
        let is_label = (1..=LABEL_MAX).contains(&length) && !text.chars().any(char::is_control);
        is_label.then(|| Self(text.into())).ok_or(MalformedLabel)
    }

    /// Returns the label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_short_visible_text() {
        assert_eq!(HolderLabel::parse(b" worker 7 \t").as_ref().map(HolderLabel::as_str), Ok("worker 7"));
        assert_eq!(HolderLabel::parse("ä".repeat(200).as_bytes()).map(|label| label.as_str().len()), Ok(400));
        for bytes in ["ä".repeat(201).as_bytes(), b"", b"  ", b"a\x07b", b"\xff"] {
            assert_eq!(HolderLabel::parse(bytes), Err(MalformedLabel), "{bytes:?}");
        }
    }
}
