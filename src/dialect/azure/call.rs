//! A request: it is one of the operations, or is refused.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::{
    AzureOperation, AzureResource, BLOB_TYPE, BLOCK_BLOB, DELETE_SNAPSHOTS, DELETE_TYPE_PERMANENT, LEASE_ACTION,
    LEASE_ID, LeaseVerb, RANGE, blocks, checksums, conditions, container_name, containers, copy,
    fields::{single, standing_for},
    list, metadata,
    query::Query,
    refusals::{
        bad_field, bad_path, missing_field, no_metadata, not_served, reserved_name, unknown_field, unknown_query,
    },
};
use crate::{
    core::{
        http::{
            range::{WantedRange, wanted},
            request_target::{join_query, split_query},
        },
        lease::LeaseId,
        objects::metadata::names_document,
        refusal::Refusal,
        tags::{
            checksum::Checksum,
            precondition::{Preconditions, TagCondition},
        },
    },
    dialect::{Call, ForwardedHead, Incoming, objects::SentContent},
};

/// The settings of a route that decide which operations it serves.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobRoute<'a> {
    /// The kind of resources that it serves.
    pub serves: AzureResource,
    /// The end of the names of documents with metadata, if it keeps metadata.
    pub metadata_suffix: Option<&'a str>,
}

/// Reads a request to a route.
///
/// # Errors
///
/// The request is none of the operations, or part of it has no meaning or would be lost.
pub fn read(request: Incoming<'_>, route: BlobRoute<'_>) -> Result<Call, Refusal> {
    let Incoming { method, target, headers, .. } = request;
    let BlobRoute { serves, metadata_suffix } = route;
    let (path, query) = split_query(target);
    let query = Query::read(query.unwrap_or_default())?;
    let operation = AzureOperation::of(method, &query, headers)?;
    if operation.resource() != serves {
        return Err(not_served(elsewhere(operation.resource(), serves)));
    }
    if query.parameters.iter().any(|(name, _)| !operation.takes(name)) {
        return Err(unknown_query());
    }
    if metadata_suffix.is_none() && operation.is_of_description() {
        return Err(no_metadata());
    }
    if metadata_suffix.is_some_and(|suffix| names_document(path, suffix)) {
        return Err(reserved_name());
    }
    check_fields(operation, headers, metadata_suffix.is_some())?;
    let conditions = conditions::read(operation, headers)?;
    let is_collection = serves != AzureResource::Blob;
    let mut target = path.strip_suffix(b"/").filter(|_| is_collection).unwrap_or(path).to_vec();
    let name = target.rsplit(|&octet| octet == b'/').next();
    if matches!(name, Some(b"." | b"..")) || name.is_none_or(<[u8]>::is_empty) && serves != AzureResource::Account {
        return Err(bad_path());
    }
    if operation == AzureOperation::CreateContainer {
        container_name::check(target.rsplit(|&octet| octet == b'/').next().unwrap_or_default())?;
    }
    if is_collection {
        // A collection (RFC 4918 section 5.2).
        target.push(b'/');
    }
    let target = join_query(&target, Some(&query.forwarded[..]).filter(|query| !query.is_empty()));
    let (checksums, content) = content(operation, &query, headers)?;
    let method = sent(operation, method);
    let fields = forwarded_fields(operation, &method, &conditions, headers);
    let lease_id = lease_id(operation, headers)?;
    Ok(Call {
        operation: Some(operation.name()),
        checksums,
        content,
        listing: match operation {
            AzureOperation::ListBlobs => Some(list::read(&query, metadata_suffix.is_some())?),
            AzureOperation::ListContainers => Some(containers::read(&query, metadata_suffix.is_some())?),
            _ => None,
        },
        description: match metadata_suffix {
            Some(_) => metadata::used(operation, headers)?,
            None => None,
        },
        forwarded: Some(ForwardedHead { method, target, fields }),
        cuts_parts: operation == AzureOperation::ReadBlob,
        part_checksum: match operation {
            AzureOperation::ReadBlob => checksums::of_part(headers)?,
            _ => None,
        },
        ..Call::plain(operation.intent(), lease_id, conditions)
    })
}

/// Tells a client, or the operator, why an operation is not served by a route.
const fn elsewhere(asked: AzureResource, serves: AzureResource) -> &'static str {
    match (asked, serves) {
        (AzureResource::Container, _) => {
            "This path is not that of a container here. If the URL begins with an account, the path of the route of \
             containers must too: path = \"/{account}/{container}\", with lease.guards = [\"delete\"]."
        }
        (AzureResource::Account, _) => {
            "List Containers is served where a route has members = \"/{container}\": its path is \"/\", or that of the \
             account."
        }
        (AzureResource::Blob, AzureResource::Container) => {
            "only containers are served on this route: add restype=container"
        }
        (AzureResource::Blob, _) => {
            "This path is that of an account, which has only List Containers here: add comp=list."
        }
    }
}

/// Returns the fields for the backend: HTTP fields replace the Azure fields that stand for them, and all other
/// Azure fields are removed.
fn forwarded_fields(
    operation: AzureOperation,
    method: &Method,
    conditions: &Preconditions,
    headers: &HeaderMap,
) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(headers.len());
    let describes_list =
        |name: &HeaderName| operation == AzureOperation::PutBlockList && name.as_str().starts_with("content-");
    for (name, value) in headers {
        if !is_of_azure(name) && !is_conditional(name) && !describes_list(name) {
            fields.append(name.clone(), value.clone());
        }
    }
    for (name, value) in headers {
        if let Some(field) = standing_for(name) {
            fields.insert(field, value.clone());
        }
    }
    match headers.get(RANGE) {
        Some(range) if operation == AzureOperation::ReadBlob => {
            fields.insert(header::RANGE, range.clone());
        }
        _ => {}
    }
    // A range that RFC 9110 section 14.2 lets a server ignore is one that some servers refuse.
    if *method != Method::GET || wanted(&fields, u64::MAX) == WantedRange::Whole {
        fields.remove(header::RANGE);
    }
    // A backend that judges its own tags gets the tag in HTTP's spelling.
    if let Some(TagCondition::Tags(tags)) = &conditions.if_match
        && let [tag] = tags.as_slice()
    {
        fields.insert(header::IF_MATCH, tag.to_header_value());
    }
    fields
}

/// Returns the checksums of a body, and what the body is. An upload in one request is the blob.
fn content(
    operation: AzureOperation,
    query: &Query,
    headers: &HeaderMap,
) -> Result<(Vec<Checksum>, SentContent), Refusal> {
    match operation {
        AzureOperation::PutBlob => {
            let (of_body, of_blob) = (checksums::of_body(headers)?, checksums::of_blob(headers)?);
            // Its own MD5 takes precedence over that of the body (Put Blob of Azure's documentation).
            let is_checked = |checksum: &Checksum| of_blob.is_empty() || !matches!(checksum, Checksum::Md5(_));
            let of_body: Vec<_> = of_body.into_iter().filter(is_checked).collect();
            Ok(([of_body, of_blob].concat(), SentContent::Whole))
        }
        AzureOperation::CopyBlob => Ok((Vec::new(), SentContent::CopyOf(copy::source(headers)?))),
        AzureOperation::PutBlock => Ok((checksums::of_body(headers)?, SentContent::Block(blocks::id(query)?))),
        AzureOperation::PutBlockList => {
            let list = SentContent::BlockList { checksums: checksums::of_blob(headers)? };
            Ok((checksums::of_body(headers)?, list))
        }
        AzureOperation::GetBlockList => {
            blocks::check_kind(query)?;
            Ok((Vec::new(), SentContent::Representation))
        }
        _ => Ok((Vec::new(), SentContent::Representation)),
    }
}

/// Returns the method for the backend. A container is a collection, which MKCOL creates (RFC 4918 section 9.3).
fn sent(operation: AzureOperation, method: &Method) -> Method {
    match operation {
        // These octets are a token, so the conversion cannot fail.
        AzureOperation::CreateContainer => Method::from_bytes(b"MKCOL").unwrap_or_default(),
        AzureOperation::ReadContainer
        | AzureOperation::ReadContainerMetadata
        | AzureOperation::ListBlobs
        | AzureOperation::ListContainers
        | AzureOperation::GetBlockList
        | AzureOperation::ReadMetadata => Method::HEAD,
        _ => method.clone(),
    }
}

fn is_of_azure(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-ms-")
}

fn is_conditional(name: &HeaderName) -> bool {
    name.as_str().starts_with("if-")
}

/// Refuses a request with a field that is not served, so that no part of a request is silently dropped.
fn check_fields(operation: AzureOperation, headers: &HeaderMap, keeps_metadata: bool) -> Result<(), Refusal> {
    let is_known = |name: &HeaderName| operation.knows(name) && (keeps_metadata || !metadata::is_value(name));
    let unknown = headers.keys().find(|name| is_of_azure(name) && !is_known(name));
    if let Some(name) = unknown {
        return Err(unknown_field(name.as_str()));
    }
    if headers.contains_key(header::CONTENT_RANGE) {
        return Err(unknown_field("Content-Range"));
    }
    match operation {
        AzureOperation::PutBlob => check_blob_type(single(headers, &BLOB_TYPE)?),
        AzureOperation::DeleteBlob => check_deletion(headers),
        _ => Ok(()),
    }
}

/// Nothing is kept of a deleted blob, and there are no snapshots to delete: every deletion is permanent.
fn check_deletion(headers: &HeaderMap) -> Result<(), Refusal> {
    match single(headers, &DELETE_TYPE_PERMANENT)?.map(HeaderValue::as_bytes) {
        None | Some(b"true" | b"false") => {}
        Some(_) => return Err(bad_field(DELETE_TYPE_PERMANENT.as_str(), "true or false")),
    }
    match single(headers, &DELETE_SNAPSHOTS)?.map(HeaderValue::as_bytes) {
        None | Some(b"include") => Ok(()),
        Some(_) => Err(not_served("snapshots are not served here")),
    }
}

fn check_blob_type(value: Option<&HeaderValue>) -> Result<(), Refusal> {
    match value.map(HeaderValue::as_bytes) {
        None => Err(missing_field(BLOB_TYPE.as_str())),
        Some(kind) if kind.eq_ignore_ascii_case(BLOCK_BLOB.as_bytes()) => Ok(()),
        Some(kind) if kind.eq_ignore_ascii_case(b"AppendBlob") || kind.eq_ignore_ascii_case(b"PageBlob") => {
            Err(not_served("the only blobs served here are block blobs"))
        }
        Some(_) => Err(bad_field(BLOB_TYPE.as_str(), BLOCK_BLOB)),
    }
}

/// Returns the id of the lease that a request names. An acquisition and a break need no id.
fn lease_id(operation: AzureOperation, headers: &HeaderMap) -> Result<Option<LeaseId>, Refusal> {
    let verb = single(headers, &LEASE_ACTION)?.and_then(|word| LeaseVerb::of(word.as_bytes()));
    if operation.is_lease() && matches!(verb, Some(LeaseVerb::Acquire | LeaseVerb::Break)) {
        return Ok(None);
    }
    id(headers, &LEASE_ID)
}

/// Returns the id in a field.
pub(super) fn id(headers: &HeaderMap, name: &HeaderName) -> Result<Option<LeaseId>, Refusal> {
    let parse =
        |value: &HeaderValue| LeaseId::parse(value.as_bytes()).map_err(|_error| bad_field(name.as_str(), "a GUID"));
    single(headers, name)?.map(parse).transpose()
}

#[cfg(test)]
#[path = "call_tests.rs"]
pub(super) mod tests;
