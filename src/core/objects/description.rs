//! The description of a resource: its metadata and properties, and the document that keeps them beside the resource.
//!
//! # Design
//!
//! *How does the document tell them apart?* The name of each property has a hyphen, and no name in the metadata has one.
//!
//! *Why is a checksum removed before the content is replaced?* The two change in two requests, and a process may crash
//! between them. A reader then gets new content with the description of the last one. A stale checksum in it would
//! make clients refuse the content, or accept damage. So no document with a checksum ever stands beside other content.

use std::collections::BTreeMap;

use super::metadata::{BYTES_MAX, Metadata, MetadataFault, is_field_value};
use crate::core::{http::request_target::names_collection, tags::validators::Modified};

/// The largest document that is read, in bytes. Metadata and properties of [`BYTES_MAX`] each need less, with quotes,
/// commas and escapes.
pub const DOCUMENT_BYTES_MAX: usize = 64 * 1024;

/// The media type of the document.
pub const DOCUMENT_TYPE: &str = "application/json";

/// The property with the MD5 of the content in Base64, as in the field of that name.
pub const CONTENT_MD5: &str = "content-md5";

/// The names of all properties. Each is that of a field in lower case.
const PROPERTIES: [&str; 6] =
    ["cache-control", "content-disposition", "content-encoding", "content-language", CONTENT_MD5, "content-type"];

/// The fields of a representation that its client has chosen, by their names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    values: BTreeMap<&'static str, String>,
    len: usize,
}

impl Properties {
    /// Adds a property.
    ///
    /// # Errors
    ///
    /// It cannot be added, and nothing has changed.
    pub fn insert(&mut self, name: &str, value: &str) -> Result<(), MetadataFault> {
        let known = PROPERTIES.into_iter().find(|known| *known == name).ok_or(MetadataFault::Malformed)?;
        if value.is_empty() || !is_field_value(value) {
            return Err(MetadataFault::Malformed);
        }
        if self.values.contains_key(known) {
            return Err(MetadataFault::Repeated);
        }
        let len = self.len + value.len();
        if len > BYTES_MAX {
            return Err(MetadataFault::TooLarge);
        }
        self.values.insert(known, value.to_owned());
        self.len = len;
        Ok(())
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns each name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// The description of a resource, which its document keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceDescription {
    /// The metadata.
    pub metadata: Metadata,
    /// The properties.
    pub properties: Properties,
}

/// A part of a description that takes the place of the same part of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescribedPart {
    /// All metadata.
    Metadata(Metadata),
    /// All properties.
    Properties(Properties),
}

impl ResourceDescription {
    /// True if there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.metadata.is_empty() && self.properties.is_empty()
    }

    /// Returns the description with another part.
    #[must_use]
    pub fn with(self, part: DescribedPart) -> Self {
        match part {
            DescribedPart::Metadata(metadata) => Self { metadata, ..self },
            DescribedPart::Properties(properties) => Self { properties, ..self },
        }
    }

    /// Returns the description without the checksum of the content, if it has one.
    fn without_checksum(&self) -> Option<Self> {
        let mut left = self.clone();
        let checksum = left.properties.values.remove(CONTENT_MD5)?;
        left.properties.len -= checksum.len();
        Some(left)
    }

    /// Returns the document: a JSON object with a text for each name.
    pub fn to_document(&self) -> Vec<u8> {
        let members: BTreeMap<&str, &str> = self.metadata.iter().chain(self.properties.iter()).collect();
        // Texts always have a JSON form.
        serde_json::to_vec(&members).unwrap_or_default()
    }

    /// Reads a document. `None` if it has another form, or holds what no client could have sent.
    pub fn from_document(document: &[u8]) -> Option<Self> {
        let members: BTreeMap<String, String> = serde_json::from_slice(document).ok()?;
        let mut description = Self::default();
        for (name, value) in &members {
            let Self { metadata, properties } = &mut description;
            if name.contains('-') { properties.insert(name, value) } else { metadata.insert(name, value) }.ok()?;
        }
        Some(description)
    }
}

/// The document beside a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptDocument {
    /// There is none.
    #[default]
    Absent,
    /// It has another form than this proxy gives it, so it describes nothing.
    Unreadable,
    /// It holds this description.
    Readable(ResourceDescription),
}

/// True if the date of a resource with this target and this date of its own depends on its document.
pub fn is_dated_by_document(target: &[u8], own: Option<Modified>) -> bool {
    own.is_some() || names_collection(target)
}

/// The date of the last change of a resource with this target, by its own date and that of its document.
///
/// A collection has the date of its document: a server dates it by its members, or not at all. Anything else has the
/// later of both, and none if it has none of its own.
pub fn last_change(target: &[u8], own: Option<Modified>, document: Option<Modified>) -> Option<Modified> {
    if names_collection(target) { document.or(own) } else { Some(own?.later(document)) }
}

/// A change of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentChange {
    /// It holds this description from then on.
    Written(ResourceDescription),
    /// It is removed.
    Removed,
}

impl KeptDocument {
    /// Returns the description that the document holds.
    pub fn into_description(self) -> ResourceDescription {
        match self {
            Self::Readable(description) => description,
            Self::Absent | Self::Unreadable => ResourceDescription::default(),
        }
    }

    /// Returns the changes of the document before and after its resource gets new content with this description.
    pub fn around_new_content(&self, new: &ResourceDescription) -> (Option<DocumentChange>, Option<DocumentChange>) {
        let before = match self {
            Self::Readable(kept) => kept.without_checksum(),
            Self::Absent | Self::Unreadable => None,
        };
        let before =
            before.map(|left| if left.is_empty() { DocumentChange::Removed } else { DocumentChange::Written(left) });
        let is_absent = *self == Self::Absent || before == Some(DocumentChange::Removed);
        let after = if new.is_empty() {
            (!is_absent).then_some(DocumentChange::Removed)
        } else {
            Some(DocumentChange::Written(new.clone()))
        };
        (before, after)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::btree_map, prelude::*};

    use super::*;
    use crate::core::tags::{http_date::HttpDate, told_dates::FirstDate};

    fn of(pairs: &[(&str, &str)]) -> ResourceDescription {
        let mut description = ResourceDescription::default();
        for (name, value) in pairs {
            let ResourceDescription { metadata, properties } = &mut description;
            if name.contains('-') { properties.insert(name, value) } else { metadata.insert(name, value) }.unwrap();
        }
        description
    }

    #[test]
    fn a_file_has_the_later_date_and_a_collection_that_of_its_document() {
        let date = |seconds| {
            Some(Modified { date: HttpDate::from_unix_seconds(seconds), strong: true, first: FirstDate::NONE })
        };
        for (own, document, of_file, of_collection) in [
            (Some(1), Some(2), Some(2), Some(2)),
            (Some(3), Some(2), Some(3), Some(2)),
            (Some(3), None, Some(3), Some(3)),
            (None, Some(2), None, Some(2)),
            (None, None, None, None),
        ] {
            let [own, document, of_file, of_collection] =
                [own, document, of_file, of_collection].map(|at| at.and_then(date));
            assert_eq!(last_change(b"/c/b?sig=/", own, document), of_file, "{own:?} {document:?}");
            assert_eq!(last_change(b"/c/?sig=x", own, document), of_collection, "{own:?} {document:?}");
            assert!(is_dated_by_document(b"/c/b", own) || of_file == own, "{own:?} {document:?}");
            assert!(is_dated_by_document(b"/c/", own));
        }
    }

    #[test]
    fn properties_are_fields_of_a_short_list() {
        let mut properties = Properties::default();
        assert_eq!(properties.insert("content-type", "text/x"), Ok(()));
        for (name, value, fault) in [
            ("content-type", "a", MetadataFault::Repeated),
            ("content-length", "1", MetadataFault::Malformed),
            ("Content-Language", "de", MetadataFault::Malformed),
            ("content-language", "", MetadataFault::Malformed),
            ("content-language", "a\n", MetadataFault::Malformed),
            ("content-language", &"a".repeat(BYTES_MAX), MetadataFault::TooLarge),
        ] {
            assert_eq!(properties.insert(name, value), Err(fault), "{name}");
        }
        assert_eq!(properties.iter().collect::<Vec<_>>(), [("content-type", "text/x")]);
    }

    #[test]
    fn a_part_takes_the_place_of_the_same_part() {
        let all = of(&[("a", "1"), ("content-type", "text/x")]);
        let other = of(&[("b", "2"), ("content-language", "de")]);
        let metadata = DescribedPart::Metadata(other.metadata.clone());
        assert_eq!(all.clone().with(metadata), of(&[("b", "2"), ("content-type", "text/x")]));
        let properties = DescribedPart::Properties(other.properties);
        assert_eq!(all.with(properties), of(&[("a", "1"), ("content-language", "de")]));
    }

    #[test]
    fn a_document_of_another_form_is_not_read() {
        for text in ["", "[]", "{\"a\":1}", "{\"a\":\"\\n\"}", "{\"a-b\":\"\"}", "{\"a\":\"\",\"A\":\"\"}", "{} x"] {
            assert_eq!(ResourceDescription::from_document(text.as_bytes()), None, "{text}");
        }
        assert_eq!(ResourceDescription::from_document(b" {} "), Some(ResourceDescription::default()));
        // However many escapes it has.
        let longest = "\"".repeat(BYTES_MAX - 1);
        let worst = of(&[("n", &longest), ("content-type", &longest)]).to_document();
        assert!(worst.len() <= DOCUMENT_BYTES_MAX, "{}", worst.len());
    }

    #[test]
    fn no_checksum_stands_beside_other_content() {
        use DocumentChange::{Removed, Written};
        let (plain, new) = (of(&[("a", "1")]), of(&[("b", "2"), (CONTENT_MD5, "new")]));
        let checked = of(&[("a", "1"), (CONTENT_MD5, "old")]);
        let alone = of(&[(CONTENT_MD5, "old")]);
        let nothing = ResourceDescription::default();
        let written = |description: &ResourceDescription| Some(Written(description.clone()));
        for (kept, before) in [
            (KeptDocument::Absent, None),
            (KeptDocument::Unreadable, None),
            (KeptDocument::Readable(plain.clone()), None),
            (KeptDocument::Readable(checked), written(&plain)),
            (KeptDocument::Readable(alone), Some(Removed)),
        ] {
            assert_eq!(kept.around_new_content(&new), (before.clone(), written(&new)), "{kept:?}");
            let is_absent = kept == KeptDocument::Absent || before == Some(Removed);
            let after = (!is_absent).then_some(Removed);
            assert_eq!(kept.around_new_content(&nothing), (before, after), "{kept:?}");
        }
        assert_eq!(KeptDocument::Readable(plain.clone()).into_description(), plain);
        assert_eq!(KeptDocument::Unreadable.into_description(), nothing);
    }

    proptest! {
        #[test]
        fn a_document_brings_back_what_it_was_made_of(
            values in btree_map("[a-z_][A-Z0-9_]{0,9}", "([!-~]([ -~]{0,9}[!-~])?)?", 0..20),
            language in "[!-~]{1,9}",
        ) {
            let mut description = of(&[("content-language", &language)]);
            for (name, value) in &values {
                prop_assert_eq!(description.metadata.insert(name, value), Ok(()));
            }
            let read = ResourceDescription::from_document(&description.to_document());
            prop_assert_eq!(read, Some(description));
        }
    }
}
