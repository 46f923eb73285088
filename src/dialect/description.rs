//! Descriptions of resources, which are their metadata and properties, for dialects that have them.

use http::{HeaderName, HeaderValue};

use crate::core::{
    objects::{
        description::{DescribedPart, ResourceDescription},
        metadata::Metadata,
    },
    refusal::Refusal,
};

/// The use that a request makes of the description of its resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptionUse {
    /// It is shown with the answer.
    Shown,
    /// It comes into being with the resource, even if it is empty: it dates the resource.
    Created(ResourceDescription),
    /// It is replaced together with the content.
    ReplacedWithContent(ResourceDescription),
    /// A part of it is replaced and nothing else, and the resource must exist.
    ReplacedAlone(DescribedPart),
    /// It is removed with the resource.
    Removed,
}

impl DescriptionUse {
    /// Gives the new metadata the spelling that their names have in these fields, as they were received.
    pub fn spell<'field>(&mut self, grammar: &dyn DescriptionGrammar, fields: impl Iterator<Item = &'field str>) {
        if let Some(metadata) = self.new_metadata() {
            fields.filter_map(|field| grammar.name_in(field)).for_each(|name| metadata.spell(name));
        }
    }

    const fn new_metadata(&mut self) -> Option<&mut Metadata> {
        match self {
            Self::Created(description) | Self::ReplacedWithContent(description) => Some(&mut description.metadata),
            Self::ReplacedAlone(DescribedPart::Metadata(metadata)) => Some(metadata),
            Self::ReplacedAlone(DescribedPart::Properties(_)) | Self::Shown | Self::Removed => None,
        }
    }

    /// True if the request leaves the content of its resource unchanged.
    pub const fn is_alone(&self) -> bool {
        matches!(self, Self::ReplacedAlone(_))
    }

    /// True if the resource has no description after the request.
    pub fn leaves_none(&self) -> bool {
        matches!(self, Self::ReplacedWithContent(description) if description.is_empty())
    }

    /// True if the parts of the request depend on the description that the resource has.
    pub const fn depends_on_old(&self) -> bool {
        matches!(self, Self::ReplacedWithContent(_) | Self::ReplacedAlone(_))
    }
}

/// The part of a grammar for metadata and properties.
pub trait DescriptionGrammar: Sync {
    /// Returns the fields that show a description to a reader. Their names have the case of the metadata.
    fn fields(&self, description: &ResourceDescription) -> Vec<(String, HeaderValue)>;

    /// Returns the name of the value in a field, as the field spells it. `None` if the field has no value of metadata.
    fn name_in<'field>(&self, field: &'field str) -> Option<&'field str>;

    /// Returns the field with the MD5 of the whole resource, for an answer with any part of it.
    fn checksum_of_whole(&self) -> HeaderName;

    /// Returns the refusal of metadata for a resource with this target that does not exist.
    fn nothing_to_describe(&self, target: &[u8]) -> Refusal;
}
