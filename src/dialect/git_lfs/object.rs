//! The names of objects: the SHA-256 of their content.

use crate::core::digits::hexadecimal_text;

/// The name of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectId([u8; 32]);

impl ObjectId {
    /// Reads a name: 64 hexadecimal digits in lower case. `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let is_digit = |octet: u8| octet.is_ascii_digit() || (b'a'..=b'f').contains(&octet);
        if text.len() != 64 || !text.bytes().all(is_digit) {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// The SHA-256 that the content has.
    pub const fn sha256(self) -> [u8; 32] {
        self.0
    }

    /// Returns the path of the object in a repository.
    pub fn path_in(self, repository: &str) -> String {
        let [first, second, ..] = self.0;
        format!("{repository}/objects/{first:02x}/{second:02x}/{}", hexadecimal_text(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_64_digits_and_a_path_with_the_first_four() {
        let digits = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let id = ObjectId::parse(digits).expect("a name");
        assert_eq!(id.path_in("/org/game"), format!("/org/game/objects/4d/7a/{digits}"));
        assert_eq!((id.sha256()[0], id.sha256()[31]), (0x4d, 0x93));
        for text in ["", &digits[1..], &format!("{digits}0"), &digits.to_uppercase(), &digits.replace('4', "g")] {
            assert_eq!(ObjectId::parse(text), None, "{text}");
        }
    }
}
