//! Letter case in paths and keys, for backends that ignore it (`ignore_case`).
//!
//! # Design
//!
//! *Why is the normal form decoded to be folded?* `%C3%84` and `%C3%A4` are Ä and ä. The hexadecimal digits of an
//! encoding are no letters of the name.
//!
//! *Why is the spelled path not decoded?* It stands for a server that routes before it decodes. Only what such a server
//! could compare without regard to case is folded: raw letters, and encodings of letters outside ASCII.

use std::borrow::Cow;

use percent_encoding::{percent_decode_str, utf8_percent_encode};

use super::{super::readings::folding::fold, ENCODED, KeptInNames, NormalPath, normal_segment};

impl NormalPath {
    /// The same path with the case of its letters folded: paths that differ only in case get one form.
    #[must_use]
    pub fn folded(&self) -> Self {
        Self(fold_normal(&self.0).into_owned())
    }
}

/// Folds the letters of a text whose characters are spelled as in a normal form.
pub(in crate::core) fn fold_normal(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|octet| octet.is_ascii_uppercase() || octet == b'%') {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (plain, following) = rest.split_at(rest.find('%').unwrap_or(rest.len()));
        folded.push_str(&plain.to_ascii_lowercase());
        let (encoded, following) = following.split_at(encoded_len(following));
        match percent_decode_str(encoded).decode_utf8() {
            Ok(name) if encoded.len() > 1 => {
                let name: String = name.chars().map(fold).collect();
                folded.extend(utf8_percent_encode(&name, ENCODED));
            }
            _ => folded.push_str(encoded),
        }
        rest = following;
    }
    Cow::Owned(folded)
}

/// The length of the encodings that a text begins with. A stray percent sign counts as one octet.
fn encoded_len(text: &str) -> usize {
    let is_encoding =
        |triplet: &&[u8]| matches!(triplet, [b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit());
    let encodings = text.as_bytes().chunks(3).take_while(is_encoding).count();
    if encodings == 0 { usize::from(text.starts_with('%')) } else { encodings * 3 }
}

/// Folds the letters of a path as received. Encodings of ASCII stay: a path that needs them to match is spelled in
/// another way than its normal form.
pub(in crate::core) fn fold_spelled(raw_path: &[u8]) -> Vec<u8> {
    let fold_segment = |segment: &[u8]| {
        let encodes_ascii = segment.split(|&octet| octet == b'%').skip(1).any(|text| matches!(text, [b'0'..=b'7', ..]));
        match normal_segment(segment, KeptInNames::ALL) {
            Ok(normal) if !encodes_ascii => fold_normal(&normal).into_owned().into_bytes(),
            _ => segment.to_ascii_lowercase(),
        }
    };
    raw_path.split(|&octet| octet == b'/').map(fold_segment).collect::<Vec<_>>().join(&b'/')
}

/// True if a text of a normal form has another form in another letter case.
pub(in crate::core) fn has_case(text: &str) -> bool {
    let decoded = percent_decode_str(text).decode_utf8_lossy();
    decoded.chars().any(|character| {
        fold(character) != character
            || character.to_uppercase().ne([character])
            || character.to_lowercase().ne([character])
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::{super::normalize, *};

    #[test]
    fn letters_are_folded_and_the_digits_of_encodings_are_not() {
        for (text, folded) in [
            ("/API/Notes/1", "/api/notes/1"),
            ("/%C3%84", "/%C3%A4"),
            ("/%C3%A4%20B", "/%C3%A4%20b"),
            ("/a%2FB", "/a%2Fb"),
            ("/%E2%84%AAEY", "/key"),
            ("A%zz%C3", "a%zz%C3"),
            ("/a/1~", "/a/1~"),
        ] {
            assert_eq!(fold_normal(text), folded, "{text}");
        }
    }

    #[test]
    fn a_spelled_path_is_folded_without_decoding_it() {
        for (path, folded) in [
            (&b"/API/Notes//1/"[..], "/api/notes//1/"),
            (b"/CAF%C3%89", "/caf%C3%A9"),
            (b"/caf%c3%a9", "/caf%C3%A9"),
            (b"/%41PI", "/%41pi"),
            (b"/A%2FB", "/a%2fb"),
            (b"/A/..", "/a/.."),
        ] {
            assert_eq!(fold_spelled(path), folded.as_bytes(), "{}", path.escape_ascii());
        }
    }

    /// Rule 18: a text without letter case is alone in its form.
    #[test]
    fn a_character_without_case_is_the_fold_of_no_other() {
        let folds: HashSet<char> = ('\0'..=char::MAX).filter(|&other| fold(other) != other).map(fold).collect();
        for character in ('\u{80}'..=char::MAX).chain('a'..='z') {
            let text: String = utf8_percent_encode(&character.to_string(), ENCODED).collect();
            assert!(has_case(&text) || !folds.contains(&character), "{character:?}");
        }
        assert!(!has_case("1-.%20~") && has_case("%C3%84") && has_case("1a"));
    }

    proptest! {
        /// Rule 18: all that a backend without regard to case takes for one name has one form, in normal form.
        #[test]
        fn names_that_differ_in_case_have_one_form(name in "[a-zA-Zäß€ЖжΣσςKſ/%.;~ ]{1,8}") {
            let path = |name: &str| {
                let encoded: String = utf8_percent_encode(name, ENCODED).collect();
                normalize(format!("/{encoded}").as_bytes(), KeptInNames::ALL).ok()
            };
            if let Some(normal) = path(&name) {
                let folded = normal.folded();
                prop_assert_eq!(normalize(folded.as_str().as_bytes(), KeptInNames::ALL), Ok(folded.clone()));
                prop_assert_eq!(folded.folded(), folded.clone());
                for other in [name.to_uppercase(), name.to_lowercase()] {
                    // Some capitals are several characters.
                    if other.chars().count() == name.chars().count() {
                        prop_assert_eq!(path(&other).map(|path| path.folded()), Some(folded.clone()));
                    }
                }
            }
        }
    }
}
