//! The parameters of a query, by the names that a backend could read.
//!
//! # Design
//!
//! *Which spellings are one name?* A name arrives percent-encoded (IIS also decodes `%u0064`), with `+` for a space, in
//! any letter case, and between `&` or `;`. PHP drops blanks in front, ends a name at NUL, and reads `.`, a space and
//! `[` as `_`. PHP and Node's `qs` read `name[]` as a list called `name`.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::folding::fold;
use crate::core::target::split_query;

/// Whether the query of a target has a parameter that a backend could read under this name.
pub fn has(target: &[u8], meant: &str) -> bool {
    values(target, meant).next().is_some()
}

/// Returns the decoded value of each parameter that a backend could read under this name.
pub fn values<'a>(target: &'a [u8], meant: &'a str) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let (_, query) = split_query(target);
    let parameters = query.into_iter().flat_map(|query| query.split(|octet| matches!(octet, b'&' | b';')));
    let named = parameters.map(cut).filter(|(name, _)| is_read_as(name, meant));
    named.map(|(_, value)| Cow::from(percent_decode(value)))
}

/// Returns the name of a parameter as sent, without its value.
pub fn name_of(parameter: &[u8]) -> &[u8] {
    cut(parameter).0
}

/// Whether a backend could read the name of a parameter, as sent, as this ASCII name.
pub fn is_read_as(name: &[u8], meant: &str) -> bool {
    if name.eq_ignore_ascii_case(meant.as_bytes()) {
        return true;
    }
    let decoded = decoded(name);
    let ended = decoded.split('\0').next().unwrap_or_default();
    [ended, ended.trim()].into_iter().any(|name| {
        let member = name.find('[').and_then(|at| name.get(..at));
        are_read_alike(name, meant) || member.is_some_and(|name| are_read_alike(name, meant))
    })
}

/// Cuts a parameter into its name and its value.
fn cut(parameter: &[u8]) -> (&[u8], &[u8]) {
    let mut halves = parameter.splitn(2, |&octet| octet == b'=');
    (halves.next().unwrap_or_default(), halves.next().unwrap_or_default())
}

/// Decodes a name: percent-encodings, those of IIS, and `+`.
fn decoded(name: &[u8]) -> String {
    let octets = percent_decode(name).map(|octet| if octet == b'+' { b' ' } else { octet }).collect::<Vec<_>>();
    let text = String::from_utf8_lossy(&octets).into_owned();
    let mut pieces = text.split("%u");
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let character = piece.get(..4).and_then(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
        match (character, piece.get(4..)) {
            (Some(character), Some(rest)) => {
                whole.push(character);
                whole.push_str(rest);
            }
            _ => whole.extend(["%u", piece]),
        }
    }
    whole
}

fn are_read_alike(name: &str, meant: &str) -> bool {
    let is_read_as =
        |(read, meant): (char, char)| fold(read) == fold(meant) || meant == '_' && matches!(read, '.' | ' ' | '[');
    name.chars().count() == meant.len() && name.chars().zip(meant.chars()).all(is_read_as)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rule 18: every octet of a name may be encoded, and every letter may have another case.
    #[test]
    fn each_spelling_of_each_octet_is_recognised() {
        for meant in ["delete", "versionId", "_method", "x-amz-signature"] {
            for at in 0..meant.len() {
                let (before, rest) = meant.split_at(at);
                let (octet, after) = rest.split_at(1);
                let value = octet.as_bytes()[0];
                for spelling in [
                    format!("%{value:02x}"),
                    format!("%{value:02X}"),
                    format!("%u{value:04x}"),
                    octet.to_ascii_uppercase(),
                    octet.to_ascii_lowercase(),
                    format!("%{:02x}", value.to_ascii_uppercase()),
                ] {
                    let name = format!("{before}{spelling}{after}");
                    assert!(is_read_as(name.as_bytes(), meant), "{name}");
                }
            }
        }
    }

    #[test]
    fn names_that_php_and_unicode_fold_are_recognised() {
        for (name, meant) in [
            (".method", "_method"),
            ("+method", "_method"),
            ("%5bmethod", "_method"),
            ("+_method", "_method"),
            ("_method%00x", "_method"),
            ("_method[]", "_method"),
            ("delete%5B0%5D", "delete"),
            ("re%C5%BFtype", "restype"),
            ("%E2%84%AAey", "key"),
        ] {
            assert!(is_read_as(name.as_bytes(), meant), "{name}");
        }
    }

    #[test]
    fn other_names_are_others() {
        for (name, meant) in [
            ("delete2", "delete"),
            ("xdelete", "delete"),
            ("de.lete", "delete"),
            ("%u12", "delete"),
            ("", "delete"),
            ("method", "_method"),
            ("-method", "_method"),
            ("%2564elete", "delete"),
        ] {
            assert!(!is_read_as(name.as_bytes(), meant), "{name}");
        }
    }

    #[test]
    fn the_values_of_all_spellings_are_returned() {
        let target = b"/delete?a=delete;D%45lete=1&b=2&delete&delete=%32";
        let found: Vec<_> = values(target, "delete").map(Cow::into_owned).collect();
        assert_eq!(found, [&b"1"[..], b"", b"2"]);
        assert!(!has(b"/delete=1", "delete"));
    }

    proptest! {
        /// Rule 18: any mixture of spellings of a name is that name.
        #[test]
        fn any_mixture_of_spellings_is_one_name(ways in prop::collection::vec(0..5_u8, 9), before in " {0,2}") {
            let spelled = |(octet, way): (u8, &u8)| match way {
                0 => char::from(octet).to_string(),
                1 => char::from(octet.to_ascii_uppercase()).to_string(),
                2 => format!("%{octet:02x}"),
                3 => format!("%{:02X}", octet.to_ascii_uppercase()),
                _ => format!("%u{octet:04X}"),
            };
            let name = "versionid".bytes().zip(&ways).map(spelled).collect::<String>();
            let name = format!("{}{name}", before.replace(' ', "+"));
            prop_assert!(is_read_as(name.as_bytes(), "versionId"), "{}", name);
        }
    }
}
