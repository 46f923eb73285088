//! The list of operations: each request is one of them, or is refused.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::{
    BLOB_PREFIX, BLOB_TYPE, BLOCK_BLOB, CLIENT_REQUEST_ID, DATE, DELETE_SNAPSHOTS, LEASE_ACTION, LEASE_BREAK_PERIOD,
    LEASE_DURATION, LEASE_ID, LeaseVerb, PROPOSED_LEASE_ID, RANGE, VERSION, conditions,
    query::Query,
    refusals::{bad_field, bad_method, bad_path, missing_field, not_served, unknown_field},
};
use crate::core::{
    lease::LeaseId,
    precondition::{Preconditions, TagCondition},
    refusal::Refusal,
    target::split_query,
};

/// An operation that the dialect serves. There are no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AzureOperation {
    /// Get Blob and Get Blob Properties.
    ReadBlob,
    /// Put Blob, for a block blob.
    PutBlob,
    /// Delete Blob.
    DeleteBlob,
    /// Lease Blob.
    LeaseBlob,
    /// Get Container Properties.
    ReadContainer,
    /// Create Container.
    CreateContainer,
    /// Delete Container.
    DeleteContainer,
    /// Lease Container.
    LeaseContainer,
}

impl AzureOperation {
    fn of(method: &Method, query: &Query) -> Result<Self, Refusal> {
        match (query.container, query.lease, method) {
            (false, true, &Method::PUT) => Ok(Self::LeaseBlob),
            (true, true, &Method::PUT) => Ok(Self::LeaseContainer),
            (false, false, &Method::GET | &Method::HEAD) => Ok(Self::ReadBlob),
            (false, false, &Method::PUT) => Ok(Self::PutBlob),
            (false, false, &Method::DELETE) => Ok(Self::DeleteBlob),
            (true, false, &Method::GET | &Method::HEAD) => Ok(Self::ReadContainer),
            (true, false, &Method::PUT) => Ok(Self::CreateContainer),
            (true, false, &Method::DELETE) => Ok(Self::DeleteContainer),
            _ => Err(bad_method()),
        }
    }

    /// All operations.
    pub(super) const ALL: [Self; 8] = [
        Self::ReadBlob,
        Self::PutBlob,
        Self::DeleteBlob,
        Self::LeaseBlob,
        Self::ReadContainer,
        Self::CreateContainer,
        Self::DeleteContainer,
        Self::LeaseContainer,
    ];

    /// Returns the operation with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Returns the operation's name in Azure's documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadBlob => "Get Blob",
            Self::PutBlob => "Put Blob",
            Self::DeleteBlob => "Delete Blob",
            Self::LeaseBlob => "Lease Blob",
            Self::ReadContainer => "Get Container Properties",
            Self::CreateContainer => "Create Container",
            Self::DeleteContainer => "Delete Container",
            Self::LeaseContainer => "Lease Container",
        }
    }

    /// Whether the operation acts on a container.
    pub const fn is_of_container(self) -> bool {
        matches!(self, Self::ReadContainer | Self::CreateContainer | Self::DeleteContainer | Self::LeaseContainer)
    }

    /// Whether the operation reads a blob or a container.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::ReadBlob | Self::ReadContainer)
    }

    /// Whether the operation acts on a lease.
    pub const fn is_lease(self) -> bool {
        matches!(self, Self::LeaseBlob | Self::LeaseContainer)
    }

    /// Whether the operation serves this Azure field.
    fn knows(self, name: &HeaderName) -> bool {
        const ALWAYS: [HeaderName; 4] = [DATE, VERSION, CLIENT_REQUEST_ID, LEASE_ID];
        const OF_LEASES: [HeaderName; 4] = [LEASE_ACTION, LEASE_DURATION, LEASE_BREAK_PERIOD, PROPOSED_LEASE_ID];
        ALWAYS.contains(name)
            || match self {
                Self::ReadBlob => *name == RANGE,
                Self::PutBlob => *name == BLOB_TYPE || standing_for(name).is_some(),
                Self::DeleteBlob => *name == DELETE_SNAPSHOTS,
                Self::LeaseBlob | Self::LeaseContainer => OF_LEASES.contains(name),
                Self::ReadContainer | Self::CreateContainer | Self::DeleteContainer => false,
            }
    }
}

/// Returns the HTTP field that a blob property stands for.
fn standing_for(name: &HeaderName) -> Option<HeaderName> {
    match name.as_str().strip_prefix(BLOB_PREFIX)? {
        "content-type" => Some(header::CONTENT_TYPE),
        "content-encoding" => Some(header::CONTENT_ENCODING),
        "content-language" => Some(header::CONTENT_LANGUAGE),
        "content-disposition" => Some(header::CONTENT_DISPOSITION),
        "cache-control" => Some(header::CACHE_CONTROL),
        _ => None,
    }
}

/// The refusal of an operation on a container by a route of blobs.
const NO_CONTAINER: &str = "This path is that of a blob here, not of a container. If the URL begins with an account, \
                            the path of the route of containers must too: path = \"/{account}/{container}\", with \
                            lease.guards = [\"delete\"].";

/// A request that the dialect serves.
#[derive(Clone, Debug)]
pub struct BlobCall {
    /// The operation.
    pub operation: AzureOperation,
    /// The id of the lease that the request names.
    pub lease_id: Option<LeaseId>,
    /// The conditions of the request.
    pub conditions: Preconditions,
    /// The method for the backend.
    pub method: Method,
    /// The target for the backend.
    pub target: Vec<u8>,
}

impl BlobCall {
    /// Reads a request. `containers`: whether its route serves containers instead of blobs.
    ///
    /// # Errors
    ///
    /// The request is none of the operations, or part of it has no meaning or would be lost.
    pub fn read(method: &Method, target: &[u8], headers: &HeaderMap, containers: bool) -> Result<Self, Refusal> {
        let (path, query) = split_query(target);
        let query = Query::read(query.unwrap_or_default())?;
        let operation = AzureOperation::of(method, &query)?;
        match (operation.is_of_container(), containers) {
            (true, false) => return Err(not_served(NO_CONTAINER)),
            (false, true) => return Err(not_served("only containers are served on this route: add restype=container")),
            _ => {}
        }
        check_fields(operation, headers)?;
        let conditions = conditions::read(operation, headers)?;
        let mut target = path.strip_suffix(b"/").filter(|_| containers).unwrap_or(path).to_vec();
        if matches!(target.rsplit(|&octet| octet == b'/').next(), None | Some(b"" | b"." | b"..")) {
            return Err(bad_path());
        }
        if containers {
            // A collection (RFC 4918 section 5.2).
            target.push(b'/');
        }
        if !query.forwarded.is_empty() {
            target.push(b'?');
            target.extend_from_slice(&query.forwarded);
        }
        Ok(Self {
            operation,
            lease_id: lease_id(operation, headers)?,
            conditions,
            method: sent(operation, method),
            target,
        })
    }

    /// Returns the fields for the backend: HTTP fields replace the Azure fields that stand for them, and all other
    /// Azure fields are removed.
    pub fn forwarded_fields(&self, headers: &HeaderMap) -> HeaderMap {
        let mut fields = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            if !is_of_azure(name) && !is_conditional(name) {
                fields.append(name.clone(), value.clone());
            }
        }
        for (name, value) in headers {
            if let Some(field) = standing_for(name) {
                fields.insert(field, value.clone());
            }
        }
        match headers.get(RANGE) {
            Some(range) if self.operation == AzureOperation::ReadBlob => {
                fields.insert(header::RANGE, range.clone());
            }
            _ => {}
        }
        if self.method != Method::GET {
            fields.remove(header::RANGE);
        }
        // A backend that judges its own tags gets the tag in HTTP's spelling.
        if let Some(TagCondition::Tags(tags)) = &self.conditions.if_match
            && let [tag] = tags.as_slice()
        {
            fields.insert(header::IF_MATCH, tag.to_header_value());
        }
        fields
    }
}

/// Returns the method for the backend. A container is a collection, which MKCOL creates (RFC 4918 section 9.3).
fn sent(operation: AzureOperation, method: &Method) -> Method {
    match operation {
        // These octets are a token, so the conversion cannot fail.
        AzureOperation::CreateContainer => Method::from_bytes(b"MKCOL").unwrap_or_default(),
        AzureOperation::ReadContainer => Method::HEAD,
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
fn check_fields(operation: AzureOperation, headers: &HeaderMap) -> Result<(), Refusal> {
    let unknown = headers.keys().find(|name| is_of_azure(name) && !operation.knows(name));
    if let Some(name) = unknown {
        return Err(unknown_field(name.as_str()));
    }
    if headers.contains_key(header::CONTENT_RANGE) {
        return Err(unknown_field("Content-Range"));
    }
    match operation {
        AzureOperation::PutBlob => check_blob_type(single(headers, &BLOB_TYPE)?),
        AzureOperation::DeleteBlob => match single(headers, &DELETE_SNAPSHOTS)? {
            None => Ok(()),
            // There are no snapshots to delete.
            Some(value) if value.as_bytes() == b"include" => Ok(()),
            Some(_) => Err(not_served("snapshots are not served here")),
        },
        _ => Ok(()),
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

/// Returns the value of a field that may occur at most once.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (_, Some(_)) => Err(bad_field(name.as_str(), "one value")),
        (value, None) => Ok(value),
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
