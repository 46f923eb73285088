//! Metadata of resources, for dialects that have them.

use http::HeaderValue;

use crate::core::{metadata::Metadata, refusal::Refusal};

/// The use that a request makes of the metadata of its resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MetadataUse {
    /// Nothing.
    #[default]
    None,
    /// They are shown with the answer.
    Shown,
    /// They are replaced together with the content.
    ReplacedWithContent(Metadata),
    /// They alone are replaced, and the resource must exist.
    ReplacedAlone(Metadata),
    /// They are removed with the resource.
    Removed,
}

impl MetadataUse {
    /// Returns the metadata that the resource gets.
    pub const fn new_metadata(&mut self) -> Option<&mut Metadata> {
        match self {
            Self::ReplacedWithContent(metadata) | Self::ReplacedAlone(metadata) => Some(metadata),
            Self::None | Self::Shown | Self::Removed => None,
        }
    }

    /// Whether the request leaves the content of its resource unchanged.
    pub const fn is_alone(&self) -> bool {
        matches!(self, Self::ReplacedAlone(_))
    }

    /// Whether the resource has no metadata after the request.
    pub fn leaves_none(&self) -> bool {
        matches!(self, Self::ReplacedWithContent(metadata) if metadata.is_empty())
    }
}

/// The part of a grammar for metadata.
pub trait MetadataGrammar: Sync {
    /// Returns the fields that show metadata to a reader. Their names have the case of the metadata.
    fn fields(&self, metadata: &Metadata) -> Vec<(String, HeaderValue)>;

    /// Returns the name of the value in a field, as the field spells it. `None` if the field has no value of metadata.
    fn name_in<'field>(&self, field: &'field str) -> Option<&'field str>;

    /// Returns the refusal of metadata for a resource that does not exist.
    fn nothing_to_describe(&self) -> Refusal;
}
