//! Metadata and properties of blobs: their fields, and the refusals of what cannot be kept.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{
    AzureOperation, BLOB_MD5, METADATA_PREFIX, checksums,
    fields::{single, standing_for},
    refusals::{bad_field, invalid},
};
use crate::{
    core::{
        http::request_target::names_collection,
        objects::{
            description::{CONTENT_MD5, DescribedPart, Properties, ResourceDescription},
            metadata::{Metadata, MetadataFault},
        },
        refusal::{Code, Refusal},
    },
    dialect::description::{DescriptionGrammar, DescriptionUse},
};

/// Metadata and properties of Azure Blob Storage.
#[derive(Debug)]
pub(super) struct AzureMetadata;

/// The reason why an operation on a description has no content.
const IN_FIELDS: &str = "metadata and properties are in fields of their own";

/// Returns what an operation does with the description of its blob, if anything.
///
/// # Errors
///
/// The description in its fields cannot be kept, or it has content that would be dropped.
pub(super) fn used(operation: AzureOperation, headers: &HeaderMap) -> Result<Option<DescriptionUse>, Refusal> {
    Ok(Some(match operation {
        AzureOperation::ReadBlob
        | AzureOperation::ReadMetadata
        | AzureOperation::ReadContainer
        | AzureOperation::ReadContainerMetadata => DescriptionUse::Shown,
        AzureOperation::CreateContainer => {
            let metadata = read(headers)?;
            DescriptionUse::Created(ResourceDescription { metadata, ..ResourceDescription::default() })
        }
        AzureOperation::PutBlob | AzureOperation::PutBlockList | AzureOperation::CopyBlob => {
            let properties = properties(operation, headers)?;
            DescriptionUse::ReplacedWithContent(ResourceDescription { metadata: read(headers)?, properties })
        }
        AzureOperation::SetMetadata | AzureOperation::SetContainerMetadata => {
            check_empty(headers, IN_FIELDS)?;
            DescriptionUse::ReplacedAlone(DescribedPart::Metadata(read(headers)?))
        }
        AzureOperation::SetProperties => {
            check_empty(headers, IN_FIELDS)?;
            DescriptionUse::ReplacedAlone(DescribedPart::Properties(properties(operation, headers)?))
        }
        AzureOperation::DeleteBlob => DescriptionUse::Removed,
        _ => return Ok(None),
    }))
}

/// True if a field has a value of the metadata.
pub(super) fn is_value(name: &HeaderName) -> bool {
    name.as_str().starts_with(METADATA_PREFIX)
}

/// Refuses a request with content, for this reason.
pub(super) fn check_empty(headers: &HeaderMap, reason: &str) -> Result<(), Refusal> {
    let is_empty = headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0");
    if is_empty && !headers.contains_key(header::TRANSFER_ENCODING) {
        return Ok(());
    }
    Err(bad_field("Content-Length", &format!("0: {reason}")))
}

/// Reads the properties that a client chooses. Azure keeps the checksum of the body of Put Blob too, which is the blob.
fn properties(operation: AzureOperation, headers: &HeaderMap) -> Result<Properties, Refusal> {
    checksums::of_blob(headers)?;
    let mut properties = Properties::default();
    let of_body = HeaderName::from_static(CONTENT_MD5);
    let is_named = |name: &HeaderName| *name == BLOB_MD5 || standing_for(name).is_some();
    let named = headers.keys().filter(|name| is_named(name));
    let checksum = Some(&of_body).filter(|_| operation == AzureOperation::PutBlob && !headers.contains_key(BLOB_MD5));
    for field in named.chain(checksum) {
        let property = standing_for(field).unwrap_or_else(|| of_body.clone());
        let Some(value) = single(headers, field)?.filter(|value| !value.is_empty()) else { continue };
        let unfit = |_fault| bad_field(field.as_str(), "text of visible ASCII characters, with all others up to 8 KiB");
        let value = value.to_str().map_err(|_error| unfit(MetadataFault::Malformed))?;
        properties.insert(property.as_str(), value).map_err(unfit)?;
    }
    Ok(properties)
}

/// Reads the metadata in the fields of a request.
///
/// # Errors
///
/// A name or a value cannot be kept.
pub(in crate::dialect) fn read(headers: &HeaderMap) -> Result<Metadata, Refusal> {
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

impl DescriptionGrammar for AzureMetadata {
    fn fields(&self, description: &ResourceDescription) -> Vec<(String, HeaderValue)> {
        let metadata = description.metadata.iter().map(|(name, value)| ([METADATA_PREFIX, name].concat(), value));
        let properties = description
            .properties
            .iter()
            .map(|(name, value)| (if name == CONTENT_MD5 { BLOB_MD5.to_string() } else { name.to_owned() }, value));
        let all = metadata.chain(properties);
        all.filter_map(|(name, value)| Some((name, HeaderValue::from_str(value).ok()?))).collect()
    }

    fn name_in<'field>(&self, field: &'field str) -> Option<&'field str> {
        let (prefix, name) = field.split_at_checked(METADATA_PREFIX.len())?;
        prefix.eq_ignore_ascii_case(METADATA_PREFIX).then_some(name)
    }

    fn checksum_of_whole(&self) -> HeaderName {
        BLOB_MD5
    }

    fn nothing_to_describe(&self, target: &[u8]) -> Refusal {
        let (detail, code) = if names_collection(target) {
            ("The specified container does not exist.", "ContainerNotFound")
        } else {
            ("The specified blob does not exist.", "BlobNotFound")
        };
        Refusal::new(Code::PreconditionFailed, detail).called(404, code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operation: AzureOperation, fields: &[(&'static str, &str)]) -> Result<Option<DescriptionUse>, &'static str> {
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
        let set = of(AzureOperation::SetMetadata, &fields);
        let Ok(Some(DescriptionUse::ReplacedAlone(DescribedPart::Metadata(mut metadata)))) = set else {
            panic!("{:?}", of(AzureOperation::SetMetadata, &fields))
        };
        assert_eq!(metadata.iter().collect::<Vec<_>>(), [("_x", ""), ("owner", "a b")]);
        for field in ["X-Ms-Meta-Owner", "x-ms-date", "x", "ü"] {
            if let Some(name) = AzureMetadata.name_in(field) {
                metadata.spell(name);
            }
        }
        let description = ResourceDescription { metadata: metadata.clone(), ..ResourceDescription::default() };
        assert_eq!(shown(&description), ["x-ms-meta-_x: ", "x-ms-meta-Owner: a b"]);
        metadata.spell("owner");
        let uploads = [AzureOperation::PutBlob, AzureOperation::PutBlockList];
        assert!(uploads.iter().all(|upload| of(*upload, &fields)
            == Ok(Some(DescriptionUse::ReplacedWithContent(ResourceDescription {
                metadata: metadata.clone(),
                ..ResourceDescription::default()
            })))));
    }

    fn shown(description: &ResourceDescription) -> Vec<String> {
        let fields = AzureMetadata.fields(description);
        fields.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn properties_of_the_blob_are_kept_and_those_of_the_request_are_not() {
        const MD5: &str = "kAFQmDzST7DWlj99KOF/cg==";
        let fields = [
            ("x-ms-blob-content-type", "text/x"),
            ("x-ms-blob-cache-control", "no-cache"),
            ("x-ms-blob-content-language", ""),
            ("x-ms-blob-content-md5", MD5),
            ("content-type", "a/b"),
        ];
        let kept = [
            "cache-control: no-cache".to_owned(),
            format!("x-ms-blob-content-md5: {MD5}"),
            "content-type: text/x".to_owned(),
        ];
        for upload in [AzureOperation::PutBlob, AzureOperation::PutBlockList] {
            let Ok(Some(DescriptionUse::ReplacedWithContent(description))) = of(upload, &fields) else {
                panic!("{upload:?}")
            };
            assert_eq!(shown(&description), kept, "{upload:?}");
        }
        let Ok(Some(DescriptionUse::ReplacedAlone(set))) = of(AzureOperation::SetProperties, &fields) else {
            panic!("no set")
        };
        assert_eq!(shown(&ResourceDescription::default().with(set)), kept);
        for (operation, is_kept) in [(AzureOperation::PutBlob, true), (AzureOperation::PutBlockList, false)] {
            let Ok(Some(DescriptionUse::ReplacedWithContent(description))) = of(operation, &[("content-md5", MD5)])
            else {
                panic!("{operation:?}")
            };
            assert_eq!(!description.is_empty(), is_kept, "{operation:?}");
        }
        for (field, code) in [
            (("x-ms-blob-content-type", "ü"), "InvalidHeaderValue"),
            (("x-ms-blob-content-md5", "a"), "InvalidMd5"),
            (("content-length", "1"), "InvalidHeaderValue"),
        ] {
            assert_eq!(of(AzureOperation::SetProperties, &[field]), Err(code), "{field:?}");
        }
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
        for operation in [AzureOperation::PutBlock, AzureOperation::LeaseBlob, AzureOperation::DeleteContainer] {
            assert_eq!(of(operation, &[]), Ok(None), "{operation:?}");
        }
        assert_eq!(of(AzureOperation::DeleteBlob, &[]), Ok(Some(DescriptionUse::Removed)));
        assert_eq!(of(AzureOperation::ReadMetadata, &[]), Ok(Some(DescriptionUse::Shown)));
    }
}
