//! The metadata of a resource: short texts with names, and the place of the document that keeps them.
//!
//! # Design
//!
//! *Why a document of their own?* A plain backend keeps the content of a resource and nothing else. The record of the
//! store is no place for metadata, because idle records are forgotten.
//!
//! *Why is the name of the document made of that of the resource?* Each client that may read or write a resource may
//! then read or write its metadata, if the backend grants its rights by path. And the two go with the folder that they
//! are in.

use std::collections::BTreeMap;

use percent_encoding::percent_decode;

use crate::core::{
    http::request_target::{join_query, split_query},
    policy::GuardRules,
};

/// The largest size of all names and values together, in bytes. It is that of Azure Blob Storage.
pub const BYTES_MAX: usize = 8 * 1024;

/// The names and values, ordered by name. Names that differ only in letter case are one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Each name as it was spelled, with its value, by the name in lower case.
    values: BTreeMap<String, (String, String)>,
    len: usize,
}

/// The reason why a name with its value cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataFault {
    /// The name is empty.
    EmptyName,
    /// The name is no identifier, or the value is no text of a field.
    Malformed,
    /// The name is there already.
    Repeated,
    /// All of them together are too large.
    TooLarge,
}

impl Metadata {
    /// Adds a value.
    ///
    /// # Errors
    ///
    /// It cannot be added, and nothing has changed.
    pub fn insert(&mut self, name: &str, value: &str) -> Result<(), MetadataFault> {
        if name.is_empty() {
            return Err(MetadataFault::EmptyName);
        }
        if !is_identifier(name) || !is_field_value(value) {
            return Err(MetadataFault::Malformed);
        }
        let key = name.to_ascii_lowercase();
        if self.values.contains_key(&key) {
            return Err(MetadataFault::Repeated);
        }
        let len = self.len + name.len() + value.len();
        if len > BYTES_MAX {
            return Err(MetadataFault::TooLarge);
        }
        self.values.insert(key, (name.to_owned(), value.to_owned()));
        self.len = len;
        Ok(())
    }

    /// Spells a name like this, if there is one that differs from it in letter case alone.
    pub fn spell(&mut self, name: &str) {
        if let Some((spelled, _)) = self.values.get_mut(&name.to_ascii_lowercase()) {
            name.clone_into(spelled);
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns each name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.values().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// True if a name is an identifier, as Azure demands: letters, digits and underscores, without a digit in front.
fn is_identifier(name: &str) -> bool {
    let is_part = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'_';
    name.bytes().all(is_part) && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// True if a value can be sent in a field: visible characters of ASCII with blanks between them.
pub(super) fn is_field_value(value: &str) -> bool {
    value.trim_matches([' ', '\t']) == value
        && value.bytes().all(|octet| octet == b'\t' || (b' '..=b'~').contains(&octet))
}

impl GuardRules {
    /// True if documents beside the resources of the route describe them.
    pub const fn keeps_descriptions(&self) -> bool {
        self.metadata_suffix.is_some()
    }

    /// Returns the target of the document for the resource with this target: its suffix stands at the end of the path.
    pub fn document_target(&self, target: &[u8]) -> Vec<u8> {
        document_target(target, self.metadata_suffix.as_deref().unwrap_or_default())
    }
}

fn document_target(target: &[u8], suffix: &str) -> Vec<u8> {
    let (path, query) = split_query(target);
    join_query(&[path, suffix.as_bytes()].concat(), query)
}

/// True if a path is that of a document, or leads through a folder in place of one. Letter case makes no difference,
/// because it makes none to some backends.
pub fn names_document(path: &[u8], suffix: &str) -> bool {
    let ends = |segment: &[u8]| ends_with(&percent_decode(segment).collect::<Vec<_>>(), suffix);
    path.split(|&octet| octet == b'/').any(ends)
}

/// True if a decoded name is that of a document.
pub fn ends_with(name: &[u8], suffix: &str) -> bool {
    let end = name.len().checked_sub(suffix.len()).and_then(|start| name.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(suffix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Metadata, MetadataFault> {
        let mut metadata = Metadata::default();
        pairs.iter().try_for_each(|(name, value)| metadata.insert(name, value))?;
        Ok(metadata)
    }

    #[test]
    fn names_are_identifiers_that_keep_their_case() {
        let mut metadata = of(&[("owner", "a b"), ("_X1", "")]).unwrap();
        for name in ["Owner", "other"] {
            metadata.spell(name);
        }
        assert_eq!(metadata.iter().collect::<Vec<_>>(), [("_X1", ""), ("Owner", "a b")]);
        assert_eq!(of(&[("", "a")]), Err(MetadataFault::EmptyName));
        assert_eq!(of(&[("owner", "a"), ("OWNER", "a")]), Err(MetadataFault::Repeated));
        for name in ["1a", "a-b", "a.b", "ü", "a b"] {
            assert_eq!(of(&[(name, "")]), Err(MetadataFault::Malformed), "{name}");
        }
        for value in [" a", "a ", "a\n", "\0", "ü", "\x7f"] {
            assert_eq!(of(&[("a", value)]), Err(MetadataFault::Malformed), "{value:?}");
        }
    }

    #[test]
    fn all_together_have_a_limit() {
        let longest = "a".repeat(BYTES_MAX - 1);
        let mut metadata = of(&[("n", &longest)]).unwrap();
        assert_eq!(metadata.insert("m", ""), Err(MetadataFault::TooLarge));
        assert_eq!(metadata, of(&[("n", &longest)]).unwrap(), "nothing has changed");
    }

    #[test]
    fn the_document_is_beside_its_resource() {
        assert_eq!(document_target(b"/c/a%20b", ".meta"), b"/c/a%20b.meta");
        assert_eq!(document_target(b"/c/b?sig=x/y", ".meta"), b"/c/b.meta?sig=x/y");
        for path in ["/c/b.meta", "/c/b%2emeta", "/c/b.META", "/c/b.meta/d", "/.meta"] {
            assert!(names_document(path.as_bytes(), ".meta"), "{path}");
        }
        for path in ["/c/b", "/c/b.metadata", "/c/bmeta", "/meta", "/c.met/a"] {
            assert!(!names_document(path.as_bytes(), ".meta"), "{path}");
        }
    }
}
