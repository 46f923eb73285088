//! The names of query parameters, as servers, languages and frameworks read them.
//!
//! # Design
//!
//! *Which readers are these?* PHP reads `.`, a space and `[` as `_`, drops spaces before a name, and ends it at NUL.
//! PHP, Rack, qs and ASP.NET take `id[]` and `id[x]` for `id`; Rack and qs take `[id]` for it too. ASP.NET and nginx
//! ignore letter case, older ASP reads `%u0069` and drops a stray `%`, and nginx decodes no name. JavaScript drops a
//! `?` before the first name.
//!
//! *Why one form for all of them?* Each reading of a name is brought to one form, in which the names that any reader
//! confuses are equal. It may join names that no reader confuses, which costs a refusal, and never an update.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::folding::fold;

/// Decodes a name or value as HTML forms encode it: `+` is a space, and a `%` without its two digits stands for itself.
pub fn form_decode(spelled: &[u8]) -> Cow<'_, [u8]> {
    if !spelled.iter().any(|octet| matches!(octet, b'+' | b'%')) {
        return Cow::Borrowed(spelled);
    }
    Cow::Owned(percent_decode(&spaced(spelled)).collect())
}

/// Reads `+` as a space.
fn spaced(spelled: &[u8]) -> Vec<u8> {
    spelled.iter().map(|&octet| if octet == b'+' { b' ' } else { octet }).collect()
}

/// True if every reader takes a spelled name for this one: it is the name, and only what must be encoded is.
pub fn is_only_read_as(spelled: &[u8], name: &str) -> bool {
    *form_decode(spelled) == *name.as_bytes() && spelled.is_ascii() && !has_needless_encoding(spelled)
}

/// True if an encoding stands for a character that no encoder encodes. nginx compares names without decoding them.
fn has_needless_encoding(spelled: &[u8]) -> bool {
    spelled.split(|&octet| octet == b'%').skip(1).any(|text| {
        let code = text.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let octet = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        octet.is_some_and(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_'))
    })
}

/// True if some reader takes a spelled name of a parameter for this one, for a list or a table of that name, or for a
/// name in its place.
pub fn may_be_read_as(spelled: &[u8], name: &str) -> bool {
    let is_plain = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    if spelled.iter().all(is_plain) && name.as_bytes().iter().all(is_plain) {
        return spelled.eq_ignore_ascii_case(name.as_bytes());
    }
    let meant = form(name);
    let holders: Vec<String> = holders(name).map(form).collect();
    whole_names(spelled).iter().any(|whole| {
        let (read, trimmed) = (form(whole), form(whole.trim_end()));
        read == meant
            || trimmed == meant
            || holders.contains(&read)
            || self::holders(whole).any(|held| form(held) == meant)
    })
}

/// The names that a spelled one may be decoded to.
fn whole_names(spelled: &[u8]) -> Vec<String> {
    let decoded = form_decode(spelled);
    let decodings =
        [spelled.to_vec(), form_decode(&decoded).into_owned(), decoded.to_vec(), loosely_decode(&spaced(spelled))];
    let texts = decodings.iter().map(|octets| octets.utf8_chunks().map(|chunk| chunk.valid()).collect::<String>());
    let is_before_names = |character: char| character.is_whitespace() || matches!(character, '?' | '[' | ']');
    texts
        .flat_map(|text| [text.split('\0').next().unwrap_or_default().to_owned(), text.replace('\0', "")])
        .flat_map(|text| [text.trim_start_matches(is_before_names).to_owned(), text])
        .collect()
}

/// Decodes as older ASP does: `%u0069` is a character as well, and a `%` without digits is dropped.
fn loosely_decode(spelled: &[u8]) -> Vec<u8> {
    let mut parts = spelled.split(|&octet| octet == b'%');
    let mut decoded = parts.next().unwrap_or_default().to_vec();
    let code = |digits: Option<&[u8]>| {
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    for part in parts {
        if let Some(octet) = code(part.get(..2)).and_then(|code| u8::try_from(code).ok()) {
            decoded.push(octet);
            decoded.extend(part.get(2..).unwrap_or_default());
        } else if let Some(character) =
            code(part.strip_prefix(b"u").or(part.strip_prefix(b"U")).and_then(|digits| digits.get(..4)))
                .and_then(char::from_u32)
        {
            decoded.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            decoded.extend(part.get(5..).unwrap_or_default());
        } else {
            decoded.extend(part);
        }
    }
    decoded
}

/// The names of the lists and tables that a name is an element of: `a` and `a[b]` for `a[b][c]`.
fn holders(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('[').filter_map(|(end, _)| name.get(..end))
}

/// The form in which names that readers confuse are equal.
fn form(name: &str) -> String {
    let kept = name.chars().filter(|character| *character != ']' && !(character.is_control() && *character != '\t'));
    kept.map(|character| match character {
        '.' | '[' | '+' => '_',
        space if space.is_whitespace() => '_',
        other => fold(other),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_read_as_what_some_reader_makes_of_it() {
        for (spelled, name) in [
            ("doc_id", "doc_id"),
            ("doc.id", "doc_id"),
            ("doc+id", "doc_id"),
            ("doc%20id", "doc_id"),
            ("doc[id", "doc_id"),
            ("doc%5Bid", "doc_id"),
            ("doc_id[]", "doc_id"),
            ("doc.id[x][y]", "doc_id"),
            ("[doc_id]", "doc_id"),
            ("+doc_id", "doc_id"),
            ("doc_id%20", "doc_id"),
            ("doc_id%00x", "doc_id"),
            ("doc%00_id", "doc_id"),
            ("%64oc_id", "doc_id"),
            ("%2564oc_id", "doc_id"),
            ("%u0064oc_id", "doc_id"),
            ("doc%_id", "doc_id"),
            ("doc%ff_id", "doc_id"),
            ("?doc_id", "doc_id"),
            ("DOC_ID", "doc_id"),
            ("%C4%B1d", "id"),
            ("\u{130}D", "id"),
            ("%E2%84%AAey", "key"),
            ("filter.id", "filter[id]"),
            ("filter[id][]", "filter[id]"),
            ("filter", "filter[id]"),
            (".method", "_method"),
            ("+method", "_method"),
            ("%5bmethod", "_method"),
            ("+_method", "_method"),
            ("_method%00x", "_method"),
            ("_method[]", "_method"),
            ("delete%5B0%5D", "delete"),
            ("re%C5%BFtype", "restype"),
            ("%2564elete", "delete"),
            ("X-AMZ-signature", "x-amz-Signature"),
        ] {
            assert!(may_be_read_as(spelled.as_bytes(), name), "{spelled} {name}");
        }
    }

    #[test]
    fn other_names_are_other_names() {
        for (spelled, name) in [
            ("doc", "doc_id"),
            ("docid", "doc_id"),
            ("doc-id", "doc_id"),
            ("doc_ids", "doc_id"),
            ("my_doc_id", "doc_id"),
            ("_id", "id"),
            ("id", "_id"),
            ("ids[id]", "id"),
            ("filter[name]", "filter[id]"),
            ("", "id"),
            ("de.lete", "delete"),
            ("%u12", "delete"),
            ("method", "_method"),
            ("-method", "_method"),
        ] {
            assert!(!may_be_read_as(spelled.as_bytes(), name), "{spelled} {name}");
        }
    }

    #[test]
    fn one_spelling_has_one_reading() {
        for (spelled, name) in [("id", "id"), ("a+b", "a b"), ("a%20b", "a b"), ("%C3%A9", "é"), ("f%5Bid%5D", "f[id]")]
        {
            assert!(is_only_read_as(spelled.as_bytes(), name), "{spelled}");
            assert!(may_be_read_as(spelled.as_bytes(), name), "{spelled}");
        }
        for (spelled, name) in
            [("%69d", "id"), ("a%2Eb", "a.b"), ("a%5Fb", "a_b"), ("é", "é"), ("ID", "id"), ("id[]", "id")]
        {
            assert!(!is_only_read_as(spelled.as_bytes(), name), "{spelled}");
            assert!(may_be_read_as(spelled.as_bytes(), name), "{spelled}");
        }
    }

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
                    assert!(may_be_read_as(name.as_bytes(), meant), "{name}");
                }
            }
        }
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
            prop_assert!(may_be_read_as(name.as_bytes(), "versionId"), "{}", name);
        }
    }
}
