//! The label that the holder of a lease gives itself, for others to read.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

/// The maximum length of a label, in characters: enough for a name, a host and a purpose, and small in every record.
const LABEL_MAX: usize = 200;

/// The beginning of an encoded label.
const ENCODED: &[u8] = b"UTF-8'";

/// A label of 1 to 200 characters, none of which is a control character.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HolderLabel(Box<str>);

/// The reason why bytes are no label.
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

    /// Reads the value of `Lease-Holder`: a label, or an encoded one as parameters have it (`UTF-8''J%C3%B6rg`, RFC 8187
    /// section 3.2). Programs that can send ASCII alone encode other scripts so.
    pub fn parse_field(field_value: &[u8]) -> Result<Self, MalformedLabel> {
        let encoded =
            field_value.split_at_checked(ENCODED.len()).filter(|(start, _)| start.eq_ignore_ascii_case(ENCODED));
        let Some((_, rest)) = encoded else { return Self::parse(field_value) };
        // A language may stand between the two quotes.
        let language = rest.iter().position(|octet| *octet == b'\'').ok_or(MalformedLabel)?;
        let text = rest.get(language + 1..).unwrap_or_default();
        Self::parse(&percent_decode(text).collect::<Vec<u8>>())
    }

    /// Returns the label as a field value, encoded if it is more than visible ASCII.
    pub fn to_field(&self) -> String {
        let is_plain = self.0.bytes().all(|octet| octet == b' ' || octet.is_ascii_graphic());
        let is_encoded =
            self.0.as_bytes().get(..ENCODED.len()).is_some_and(|start| start.eq_ignore_ascii_case(ENCODED));
        if is_plain && !is_encoded {
            return self.0.to_string();
        }
        format!("UTF-8''{}", utf8_percent_encode(&self.0, NON_ALPHANUMERIC))
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

    /// RFC 8187 section 3.2.
    #[test]
    fn a_label_of_any_script_can_be_encoded() {
        for (value, expected) in [
            ("worker 7", Ok("worker 7")),
            ("Jörg", Ok("Jörg")),
            ("UTF-8''J%C3%B6rg", Ok("Jörg")),
            ("utf-8'de'J%c3%b6rg%20B.", Ok("Jörg B.")),
            ("UTF-8", Ok("UTF-8")),
            ("UTF-8'J", Err(MalformedLabel)),
            ("UTF-8''%FF", Err(MalformedLabel)),
            ("UTF-8''a%0D%0Ab", Err(MalformedLabel)),
            ("UTF-8''", Err(MalformedLabel)),
        ] {
            let label = HolderLabel::parse_field(value.as_bytes());
            assert_eq!(label.as_ref().map(HolderLabel::as_str), expected.as_ref().copied(), "{value}");
            if let Ok(label) = label {
                let field = label.to_field();
                assert!(field.is_ascii(), "{field}");
                assert_eq!(HolderLabel::parse_field(field.as_bytes()), Ok(label), "{field}");
            }
        }
    }
}
