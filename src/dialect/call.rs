//! A request before and after a grammar has read it.

use std::time::Duration;

use http::{HeaderMap, HeaderName, Method};

use super::{description::DescriptionUse, objects::SentContent};
use crate::core::{
    lease::{Acquire, Action, LeaseId},
    objects::folders::Listing,
    refusal::Refusal,
    tags::{
        checksum::{Checksum, ChecksumKind},
        precondition::Preconditions,
    },
};

/// The part of a request that a grammar reads.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The method that the request is judged by.
    pub method: &'a Method,
    /// The other methods that a backend could read.
    pub other_methods: &'a [Method],
    /// The target as received: path and query.
    pub target: &'a [u8],
    /// The fields as received.
    pub headers: &'a HeaderMap,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Reading the resource.
    Read,
    /// Replacing, changing or removing the resource.
    Write,
    /// Appending to the resource, beside other writes.
    Append,
    /// Uploading a block, which changes nothing until a list joins it with others.
    StageBlock,
    /// Reading the blocks that wait for their list.
    ReadBlocks,
    /// Listing the resources in a collection.
    List,
    /// Removing the resource with all resources in it.
    RemoveTree,
    /// Using or showing the lease of the resource.
    Lease,
    /// Asking what pages of other origins may do (a CORS preflight).
    Preflight,
}

/// A request that a grammar has read.
#[derive(Clone, Debug)]
pub struct Call {
    /// The purpose of the request.
    pub intent: Intent,
    /// The name of the operation, if the dialect is a list of operations.
    pub operation: Option<&'static str>,
    /// The id of the lease that the request names.
    pub lease_id: Option<LeaseId>,
    /// True if a route that demands a lease demands it of this request too. A lease that is held counts in any case.
    pub needs_lease: bool,
    /// The preconditions of the request.
    pub conditions: Preconditions,
    /// The part of it for its destination, if it is a COPY or MOVE.
    pub destination: AtDestination,
    /// The checksums that its body should have.
    pub checksums: Vec<Checksum>,
    /// The meaning of its body.
    pub content: SentContent,
    /// The resources that a list shows.
    pub listing: Option<Listing>,
    /// The use that it makes of the description of its resource, if any.
    pub description: Option<DescriptionUse>,
    /// The head for the upstream, if it differs from the head received.
    pub forwarded: Option<ForwardedHead>,
    /// True if the proxy cuts the part that the client wants out of a whole response.
    pub cuts_parts: bool,
    /// The checksum of that part which the client wants with it.
    pub part_checksum: Option<PartChecksum>,
}

impl Call {
    /// A request that says nothing but this.
    pub(in crate::dialect) fn plain(intent: Intent, lease_id: Option<LeaseId>, conditions: Preconditions) -> Self {
        Self {
            intent,
            operation: None,
            lease_id,
            needs_lease: true,
            conditions,
            destination: AtDestination::default(),
            checksums: Vec::new(),
            content: SentContent::default(),
            listing: None,
            description: None,
            forwarded: None,
            cuts_parts: false,
            part_checksum: None,
        }
    }
}

/// The part of a COPY or MOVE that concerns its destination.
#[derive(Clone, Debug, Default)]
pub struct AtDestination {
    /// The preconditions of the request for the destination.
    pub conditions: Preconditions,
    /// The id of the lease of the destination that the request names.
    pub lease_id: Option<LeaseId>,
    /// True if a route that demands a lease demands that of the destination too.
    pub needs_lease: bool,
}

/// A checksum that a client wants with a part.
#[derive(Clone, Debug)]
pub struct PartChecksum {
    /// Its kind.
    pub kind: ChecksumKind,
    /// The field that tells it, in Base64.
    pub field: HeaderName,
    /// The largest part that has one, in bytes. It is held in memory.
    pub max_bytes: usize,
    /// The refusal of a larger part.
    pub too_large: fn() -> Refusal,
}

/// The head of a request to the upstream.
#[derive(Clone, Debug)]
pub struct ForwardedHead {
    /// The method.
    pub method: Method,
    /// The target: path and query.
    pub target: Vec<u8>,
    /// All fields.
    pub fields: HeaderMap,
}

/// An operation on the lease of a resource.
#[derive(Clone, Debug)]
pub enum LeaseOperation {
    /// Changes the lease.
    Step {
        /// The change.
        action: Action,
        /// How long the client is willing to wait if another client holds the lease.
        wait: Option<Duration>,
    },
    /// Shows the lease.
    Show,
}

/// A lease for a read to acquire, and how long the client is willing to wait for it.
pub type LeaseOnRead = (Acquire, Option<Duration>);
