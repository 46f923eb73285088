//! Metadata of blobs: the fields `x-ms-meta-NAME`, and the refusals of what cannot be kept.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{
    AzureOperation, METADATA_PREFIX,
    refusals::{bad_field, invalid},
};
use crate::{
    core::{
        metadata::{Metadata, MetadataFault},
        refusal::{Code, Refusal},
    },
    dialect::metadata::{MetadataGrammar, MetadataUse},
};

/// Metadata of Azure Blob Storage.
#[derive(Debug)]
pub(super) struct AzureMetadata;

/// Returns what an operation does with the metadata of its blob.
///
/// # Errors
///
/// The metadata in its fields cannot be kept, or it has content that would be dropped.
pub(super) fn used(operation: AzureOperation, headers: &HeaderMap) -> Result<MetadataUse, Refusal> {
    Ok(match operation {
        AzureOperation::ReadBlob | AzureOperation::ReadMetadata => MetadataUse::Shown,
        AzureOperation::PutBlob | AzureOperation::PutBlockList => MetadataUse::ReplacedWithContent(read(headers)?),
        AzureOperation::SetMetadata => {
            let is_empty = headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0");
            if !is_empty || headers.contains_key(header::TRANSFER_ENCODING) {
                return Err(bad_field("Content-Length", "0: the metadata are in the fields x-ms-meta-NAME"));
            }
            MetadataUse::ReplacedAlone(read(headers)?)
        }
        AzureOperation::DeleteBlob => MetadataUse::Removed,
        _ => MetadataUse::None,
    })
}

/// Whether a field has a value of the metadata.
pub(super) fn is_value(name: &HeaderName) -> bool {
    name.as_str().starts_with(METADATA_PREFIX)
}

fn read(headers: &HeaderMap) -> Result<Metadata, Refusal> {
    let mut metadata = Metadata::default();
    for (field, value) in headers {
        if let Some(name) = field.as_str().strip_prefix(METADATA_PREFIX) {
            let value = value.to_str().map_err(|_error| refusal_of(MetadataFault::Malformed))?;
            metadata.insert(name, value).map_err(refusal_of)?;
        }
    }
    Ok(metadata)
}

fn refusal_of(fault: MetadataFault) -> Refusal {
    match fault {
        MetadataFault::EmptyName => {
            invalid("EmptyMetadataKey", "A field x-ms-meta- has no name behind its last hyphen.")
        }
        MetadataFault::Malformed | MetadataFault::Repeated => invalid(
            "InvalidMetadata",
            "Each name in the metadata is an identifier that occurs once, whatever its letter case. Each value is text of \
             visible ASCII characters.",
        ),
        MetadataFault::TooLarge => {
            invalid("MetadataTooLarge", "The names and values of the metadata have at most 8 KiB together.")
        }
    }
}

impl MetadataGrammar for AzureMetadata {
    fn fields(&self, metadata: &Metadata) -> Vec<(String, HeaderValue)> {
        let field =
            |(name, value): (&str, &str)| Some(([METADATA_PREFIX, name].concat(), HeaderValue::from_str(value).ok()?));
        metadata.iter().filter_map(field).collect()
    }

    fn name_in<'field>(&self, field: &'field str) -> Option<&'field str> {
        let (prefix, name) = field.split_at_checked(METADATA_PREFIX.len())?;
        prefix.eq_ignore_ascii_case(METADATA_PREFIX).then_some(name)
    }

    fn nothing_to_describe(&self) -> Refusal {
        Refusal::new(Code::PreconditionFailed, "The specified blob does not exist.").called(404, "BlobNotFound")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operation: AzureOperation, fields: &[(&'static str, &str)]) -> Result<MetadataUse, &'static str> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        }
        used(operation, &headers).map_err(|refusal| refusal.service.expect("Azure has a name for it").code)
    }

    #[test]
    fn each_field_is_a_value_that_a_read_shows_again() {
        let fields =
            [("x-ms-meta-owner", "a b"), ("x-ms-meta-_x", ""), ("x-ms-date", "today"), ("content-length", "0")];
        let Ok(MetadataUse::ReplacedAlone(mut metadata)) = of(AzureOperation::SetMetadata, &fields) else {
            panic!("{:?}", of(AzureOperation::SetMetadata, &fields))
        };
        assert_eq!(metadata.iter().collect::<Vec<_>>(), [("_x", ""), ("owner", "a b")]);
        for field in ["X-Ms-Meta-Owner", "x-ms-date", "x", "ü"] {
            if let Some(name) = AzureMetadata.name_in(field) {
                metadata.spell(name);
            }
        }
        let shown = AzureMetadata.fields(&metadata);
        let shown: Vec<_> = shown.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(shown, [("x-ms-meta-_x", ""), ("x-ms-meta-Owner", "a b")]);
        metadata.spell("owner");
        let uploads = [AzureOperation::PutBlob, AzureOperation::PutBlockList];
        assert!(
            uploads.iter().all(|upload| of(*upload, &fields) == Ok(MetadataUse::ReplacedWithContent(metadata.clone())))
        );
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let long = "a".repeat(9 * 1024);
        for (fields, code) in [
            (&[("x-ms-meta-", "a")][..], "EmptyMetadataKey"),
            (&[("x-ms-meta-a-b", "a")], "InvalidMetadata"),
            (&[("x-ms-meta-1", "a")], "InvalidMetadata"),
            (&[("x-ms-meta-a", "ü")], "InvalidMetadata"),
            (&[("x-ms-meta-a", "1"), ("x-ms-meta-a", "1")], "InvalidMetadata"),
            (&[("x-ms-meta-a", &long)], "MetadataTooLarge"),
        ] {
            assert_eq!(of(AzureOperation::PutBlob, fields), Err(code), "{fields:?}");
            assert_eq!(of(AzureOperation::SetMetadata, fields), Err(code), "{fields:?}");
        }
        for content in [("content-length", "1"), ("transfer-encoding", "chunked")] {
            assert_eq!(of(AzureOperation::SetMetadata, &[content]), Err("InvalidHeaderValue"), "{content:?}");
        }
    }

    #[test]
    fn only_operations_on_whole_blobs_use_metadata() {
        for operation in [AzureOperation::PutBlock, AzureOperation::LeaseBlob, AzureOperation::CreateContainer] {
            assert_eq!(of(operation, &[]), Ok(MetadataUse::None), "{operation:?}");
        }
        assert_eq!(of(AzureOperation::DeleteBlob, &[]), Ok(MetadataUse::Removed));
        assert_eq!(of(AzureOperation::ReadMetadata, &[]), Ok(MetadataUse::Shown));
    }
}
