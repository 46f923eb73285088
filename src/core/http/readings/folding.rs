//! Letter case: which characters a reader without regard to case takes for one.
//!
//! # Design
//!
//! *Why no table of its own?* The case mappings of the standard library and Unicode's simple folding make the same
//! groups of characters. The few groups that they split are in [`fold`], and a test compares all characters.
//!
//! *Why is the dotless i an i?* Unicode's simple folding keeps `ı` and `İ` apart from `i`. Java's `equalsIgnoreCase`
//! does not. Two names that count as one cost a needless refusal, and one name that counts as two costs an update.

use std::borrow::Cow;

/// Folds the case of a text: two texts that differ only in the case of their letters get one form. It joins all that
/// Unicode's simple case folding joins, and the dotted and dotless i.
pub fn simple_fold(text: &str) -> Cow<'_, str> {
    if text.chars().all(|character| fold(character) == character) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(fold).collect())
}

/// Folds one character. Of characters that differ only in case, all give the same one.
pub fn fold(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    match character {
        'İ' => 'i',
        // Their capitals are several characters.
        '\u{1FD3}' => '\u{390}',
        '\u{1FE3}' => '\u{3B0}',
        'ﬅ' => 'ﬆ',
        _ => {
            let upper = only(character.to_uppercase()).unwrap_or(character);
            only(upper.to_lowercase()).unwrap_or(upper)
        }
    }
}

/// The only character of a mapping; `None` if there are several.
fn only(mut mapping: impl Iterator<Item = char>) -> Option<char> {
    mapping.next().filter(|_| mapping.next().is_none())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    use super::*;

    /// The characters that Unicode's simple folding joins with this one, itself among them.
    fn joined(character: char) -> Vec<char> {
        let mut class = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
        class.try_case_fold_simple().expect("the tables of Unicode");
        class.iter().flat_map(|range| range.start()..=range.end()).collect()
    }

    /// Rule 18: all characters that Unicode's simple folding takes for one are one here, and hardly any others.
    #[test]
    fn the_groups_are_those_of_unicode() {
        let mut groups: BTreeMap<char, Vec<char>> = BTreeMap::new();
        for character in '\0'..=char::MAX {
            let folded = fold(character);
            assert_eq!(fold(folded), folded, "{character:?}");
            groups.entry(folded).or_default().push(character);
        }
        // The table of the test may be older, and not know some letters.
        let is_known = |group: &[char]| group.iter().any(|character| joined(*character).len() > 1);
        for (folded, group) in groups.iter().filter(|(_, group)| is_known(group)) {
            let expected = if *folded == 'i' { vec!['I', 'i', 'İ', 'ı'] } else { joined(*folded) };
            assert_eq!(*group, expected, "{folded:?}");
        }
        for character in '\0'..=char::MAX {
            for other in joined(character) {
                assert_eq!(fold(character), fold(other), "{character:?} {other:?}");
            }
        }
    }

    #[test]
    fn texts_that_differ_in_case_have_one_form() {
        for (text, form) in [
            ("SKU", "sku"),
            ("ſku", "sku"),
            ("\u{212A}ey", "key"),
            ("Straße", "straße"),
            ("ẞ", "ß"),
            ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
            ("σίσυφος", "σίσυφοσ"),
            ("ID_ıİ", "id_ii"),
            ("µ", "μ"),
        ] {
            assert_eq!(simple_fold(text), form, "{text}");
        }
        assert!(matches!(simple_fold("a/1-é"), Cow::Borrowed(_)));
    }
}
