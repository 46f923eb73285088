//! Copy Blob: the fields that name its source and its conditions, and the fields of the Put Blob that it becomes.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCEPT_ENCODING, EXPECT, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE, TE, TRAILER,
        TRANSFER_ENCODING,
    },
};
use uuid::Builder;

use super::{
    BLOB_MD5, BLOB_PREFIX, BLOB_TYPE, BLOCK_BLOB, CLIENT_REQUEST_ID, DATE, LEASE_ID, VERSION, checksums,
    fields::{single, standing_for},
    metadata,
    refusals::{bad_field, missing_field},
};
use crate::{
    core::{
        refusal::{Code, Refusal},
        tags::validators::tells_absence,
    },
    dialect::{
        Random,
        objects::{CopyGrammar, CopySource},
    },
};

/// The field with the URL of the source. An upload without it has content of its own.
pub(super) const COPY_SOURCE: HeaderName = HeaderName::from_static("x-ms-copy-source");
const REQUIRES_SYNC: HeaderName = HeaderName::from_static("x-ms-requires-sync");
/// The MD5 that the content of the source should have.
const SOURCE_MD5: HeaderName = HeaderName::from_static("x-ms-source-content-md5");
const COPY_ID: HeaderName = HeaderName::from_static("x-ms-copy-id");
const COPY_STATUS: HeaderName = HeaderName::from_static("x-ms-copy-status");

/// The fields that stand for fields of the read.
static OF_SOURCE: [(HeaderName, HeaderName); 5] = [
    (HeaderName::from_static("x-ms-source-if-match"), IF_MATCH),
    (HeaderName::from_static("x-ms-source-if-none-match"), IF_NONE_MATCH),
    (HeaderName::from_static("x-ms-source-if-modified-since"), IF_MODIFIED_SINCE),
    (HeaderName::from_static("x-ms-source-if-unmodified-since"), IF_UNMODIFIED_SINCE),
    (HeaderName::from_static("x-ms-source-lease-id"), LEASE_ID),
];

/// Fields of the message, and wishes for its answer, which mean neither the source nor the target.
static OF_MESSAGE: [HeaderName; 6] = [TRANSFER_ENCODING, EXPECT, RANGE, ACCEPT_ENCODING, TE, TRAILER];

/// Copies of Azure Blob Storage.
#[derive(Debug)]
pub(super) struct AzureCopies;

/// True if a copy has this Azure field.
pub(super) fn knows(name: &HeaderName) -> bool {
    [COPY_SOURCE, REQUIRES_SYNC, SOURCE_MD5].contains(name) || OF_SOURCE.iter().any(|(known, _)| known == name)
}

/// Reads the source of a copy.
///
/// # Errors
///
/// A field has no meaning, or the copy has content of its own.
pub(super) fn source(headers: &HeaderMap) -> Result<CopySource, Refusal> {
    metadata::check_empty(headers, "a copy has the content of its source")?;
    let url = single(headers, &COPY_SOURCE)?.ok_or_else(|| missing_field(COPY_SOURCE.as_str()))?;
    let url = url.to_str().ok().filter(|url| url.contains("://"));
    let url = url.ok_or_else(|| bad_field(COPY_SOURCE.as_str(), "a URL with a host"))?.to_owned();
    // Each copy has ended when it is answered, whether or not its client asks for that.
    let waits = single(headers, &REQUIRES_SYNC)?.map(HeaderValue::as_bytes);
    if waits.is_some_and(|waits| !waits.eq_ignore_ascii_case(b"true") && !waits.eq_ignore_ascii_case(b"false")) {
        return Err(bad_field(REQUIRES_SYNC.as_str(), "true or false"));
    }
    let mut fields = Vec::new();
    for (name, standing_for) in &OF_SOURCE {
        if let Some(value) = single(headers, name)? {
            fields.push((standing_for.clone(), value.clone()));
        }
    }
    Ok(CopySource { url, fields, md5: checksums::md5(headers, &SOURCE_MD5)? })
}

/// The refusal to end a copy.
pub(super) fn no_pending_copy() -> Refusal {
    let detail = "There is currently no pending copy operation: each copy has ended when it is answered.";
    Refusal::new(Code::NotSupported, detail).called(409, "NoPendingCopyOperation")
}

fn unverified(code: Code, detail: impl Into<Cow<'static, str>>, status: StatusCode) -> Refusal {
    Refusal::new(code, detail).called(status.as_u16(), "CannotVerifyCopySource")
}

fn is_of_message(name: &HeaderName) -> bool {
    OF_MESSAGE.contains(name) || name.as_str().starts_with("content-")
}

impl CopyGrammar for AzureCopies {
    fn is_of_read(&self, name: &HeaderName) -> bool {
        let is_common = [DATE, VERSION, CLIENT_REQUEST_ID].contains(name);
        let starts = |start| name.as_str().starts_with(start);
        (is_common || !starts("x-ms-")) && !starts("if-") && !is_of_message(name)
    }

    fn is_of_write(&self, name: &HeaderName) -> bool {
        !knows(name) && !is_of_message(name)
    }

    fn described(&self, copy: &HeaderMap, shown: &[(&str, &HeaderValue)]) -> Vec<(String, HeaderValue)> {
        let has_metadata = copy.keys().any(metadata::is_value);
        let described = shown.iter().filter_map(|&(spelled, value)| {
            let name = HeaderName::from_bytes(spelled.as_bytes()).ok()?;
            let of_blob = HeaderName::try_from([BLOB_PREFIX, name.as_str()].concat()).ok()?;
            if metadata::is_value(&name) {
                (!has_metadata).then(|| (spelled.to_owned(), value.clone()))
            } else if standing_for(&of_blob).is_some() {
                Some((of_blob.to_string(), value.clone()))
            } else {
                (name == BLOB_MD5).then(|| (name.to_string(), value.clone()))
            }
        });
        described.chain([(BLOB_TYPE.to_string(), HeaderValue::from_static(BLOCK_BLOB))]).collect()
    }

    fn made(&self, random: Random) -> Vec<(HeaderName, HeaderValue)> {
        let id = Builder::from_random_bytes(random()).into_uuid().to_string();
        // The text of an id is always a valid value.
        let id = HeaderValue::try_from(id).ok().map(|id| (COPY_ID, id));
        id.into_iter().chain([(COPY_STATUS, HeaderValue::from_static("success"))]).collect()
    }

    fn not_here(&self, reason: &'static str) -> Refusal {
        unverified(Code::NotSupported, reason, StatusCode::BAD_REQUEST)
    }

    fn not_read(&self, status: StatusCode) -> Refusal {
        if tells_absence(status) {
            let detail = "The source of the copy does not exist.";
            return unverified(Code::PreconditionFailed, detail, StatusCode::NOT_FOUND);
        }
        let detail = format!("The server behind this proxy has answered {} for the source.", status.as_u16());
        unverified(Code::UpstreamFailed, detail, StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn source_differs(&self) -> Refusal {
        let detail = "The source condition specified using HTTP conditional header(s) is not met.";
        Refusal::new(Code::PreconditionFailed, detail).called(412, "SourceConditionNotMet")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tags::checksum::Checksum;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn told(fields: &[(String, HeaderValue)]) -> Vec<String> {
        fields.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn a_source_is_a_url_with_the_conditions_and_the_lease_of_its_read() {
        let copy = headers(&[
            ("x-ms-copy-source", "http://h/c/a"),
            ("x-ms-source-if-match", "\"a\""),
            ("x-ms-source-lease-id", "1"),
            ("x-ms-lease-id", "2"),
            ("if-match", "\"b\""),
            ("x-ms-requires-sync", "true"),
            ("x-ms-source-content-md5", "kAFQmDzST7DWlj99KOF/cg=="),
        ]);
        let CopySource { url, fields, md5 } = source(&copy).unwrap();
        let value = HeaderValue::from_static;
        assert_eq!(url, "http://h/c/a");
        assert_eq!(fields, [(IF_MATCH, value("\"a\"")), (LEASE_ID, value("1"))]);
        assert_eq!(md5, Some(Checksum::Md5(0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128.to_be_bytes())));
        for field in [
            ("content-length", "1"),
            ("transfer-encoding", "chunked"),
            ("x-ms-requires-sync", "1"),
            ("x-ms-source-content-md5", "abc"),
            ("x-ms-copy-source", "/c/a"),
        ] {
            let mut copy = copy.clone();
            copy.insert(field.0, value(field.1));
            assert!(source(&copy).is_err(), "{field:?}");
        }
    }

    /// Rule 14: a field that is judged for one of them is never sent with the other.
    #[test]
    fn the_read_and_the_write_have_the_fields_that_are_theirs() {
        for (name, is_of_read, is_of_write) in [
            ("authorization", true, true),
            ("cookie", true, true),
            ("x-ms-version", true, true),
            ("x-ms-date", true, true),
            ("x-ms-lease-id", false, true),
            ("x-ms-meta-a", false, true),
            ("if-match", false, true),
            ("x-ms-copy-source", false, false),
            ("x-ms-source-if-match", false, false),
            ("x-ms-source-lease-id", false, false),
            ("x-ms-source-content-md5", false, false),
            ("x-ms-requires-sync", false, false),
            ("content-length", false, false),
            ("content-type", false, false),
            ("range", false, false),
            ("accept-encoding", false, false),
        ] {
            let name = HeaderName::from_static(name);
            assert_eq!(
                (AzureCopies.is_of_read(&name), AzureCopies.is_of_write(&name)),
                (is_of_read, is_of_write),
                "{name}"
            );
        }
    }

    #[test]
    fn a_copy_is_described_as_its_source_unless_it_has_metadata_of_its_own() {
        let shown = headers(&[
            ("content-type", "text/x"),
            ("content-length", "3"),
            ("x-ms-blob-content-md5", "m"),
            ("x-ms-meta-owner", "alice"),
            ("etag", "\"1\""),
        ]);
        let mut pairs: Vec<_> = shown.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let described = |copy: &HeaderMap, pairs: &[(&str, &HeaderValue)]| told(&AzureCopies.described(copy, pairs));
        let kept = ["x-ms-blob-content-type: text/x", "x-ms-blob-content-md5: m"];
        let (owner, kind) = ("X-Ms-Meta-Owner: alice", "x-ms-blob-type: BlockBlob");
        pairs.iter_mut().filter(|(name, _)| *name == "x-ms-meta-owner").for_each(|pair| pair.0 = "X-Ms-Meta-Owner");
        assert_eq!(described(&HeaderMap::new(), &pairs), [kept[0], kept[1], owner, kind]);
        let own = headers(&[("x-ms-meta-a", "1")]);
        assert_eq!(described(&own, &pairs), [kept[0], kept[1], kind]);
    }
}
