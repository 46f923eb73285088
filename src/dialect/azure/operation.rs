//! The operations that the dialect serves, and the fields of each.

use http::{HeaderMap, HeaderName, Method};

use super::{
    BLOB_MD5, BLOB_TYPE, CLIENT_REQUEST_ID, CONTENT_CRC64, DATE, DELETE_SNAPSHOTS, DELETE_TYPE_PERMANENT, LEASE_ACTION,
    LEASE_BREAK_PERIOD, LEASE_DURATION, LEASE_ID, PROPOSED_LEASE_ID, RANGE, RANGE_CRC64, RANGE_MD5, VERSION,
    containers,
    copy::{self, COPY_SOURCE, no_pending_copy},
    fields::standing_for,
    list, metadata,
    query::{Component, Query},
    refusals::bad_method,
};
use crate::{core::refusal::Refusal, dialect::Intent};

/// An operation that the dialect serves. There are no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AzureOperation {
    /// Get Blob and Get Blob Properties.
    ReadBlob,
    /// Put Blob, for a block blob.
    PutBlob,
    /// Copy Blob, and Copy Blob From URL.
    CopyBlob,
    /// Put Block.
    PutBlock,
    /// Put Block List.
    PutBlockList,
    /// Get Block List.
    GetBlockList,
    /// Get Blob Metadata.
    ReadMetadata,
    /// Set Blob Metadata.
    SetMetadata,
    /// Set Blob Properties.
    SetProperties,
    /// Delete Blob.
    DeleteBlob,
    /// Lease Blob.
    LeaseBlob,
    /// Get Container Properties.
    ReadContainer,
    /// Get Container Metadata.
    ReadContainerMetadata,
    /// Set Container Metadata.
    SetContainerMetadata,
    /// List Blobs.
    ListBlobs,
    /// Create Container.
    CreateContainer,
    /// Delete Container.
    DeleteContainer,
    /// Lease Container.
    LeaseContainer,
    /// List Containers.
    ListContainers,
}

/// The resource of an operation, or of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AzureResource {
    /// The collection of all containers.
    Account,
    /// A container.
    Container,
    /// A blob.
    #[default]
    Blob,
}

impl AzureOperation {
    /// Returns the operation of a request.
    pub(super) fn of(method: &Method, query: &Query, headers: &HeaderMap) -> Result<Self, Refusal> {
        let is_copy = headers.contains_key(COPY_SOURCE) && !headers.contains_key(BLOB_TYPE);
        match (query.container, query.component, method) {
            (false, Some(Component::Lease), &Method::PUT) => Ok(Self::LeaseBlob),
            (false, Some(Component::Block), &Method::PUT) => Ok(Self::PutBlock),
            (false, Some(Component::BlockList), &Method::PUT) => Ok(Self::PutBlockList),
            (false, Some(Component::BlockList), &Method::GET) => Ok(Self::GetBlockList),
            (false, Some(Component::Metadata), &Method::GET | &Method::HEAD) => Ok(Self::ReadMetadata),
            (false, Some(Component::Metadata), &Method::PUT) => Ok(Self::SetMetadata),
            (false, Some(Component::Properties), &Method::PUT) => Ok(Self::SetProperties),
            (true, Some(Component::Metadata), &Method::GET | &Method::HEAD) => Ok(Self::ReadContainerMetadata),
            (true, Some(Component::Metadata), &Method::PUT) => Ok(Self::SetContainerMetadata),
            (false, Some(Component::List), &Method::GET) => Ok(Self::ListContainers),
            (true, Some(Component::Lease), &Method::PUT) => Ok(Self::LeaseContainer),
            (true, Some(Component::List), &Method::GET) => Ok(Self::ListBlobs),
            (false, None, &Method::GET | &Method::HEAD) => Ok(Self::ReadBlob),
            (false, Some(Component::Copy), &Method::PUT) => Err(no_pending_copy()),
            (false, None, &Method::PUT) if is_copy => Ok(Self::CopyBlob),
            (false, None, &Method::PUT) => Ok(Self::PutBlob),
            (false, None, &Method::DELETE) => Ok(Self::DeleteBlob),
            (true, None, &Method::GET | &Method::HEAD) => Ok(Self::ReadContainer),
            (true, None, &Method::PUT) => Ok(Self::CreateContainer),
            (true, None, &Method::DELETE) => Ok(Self::DeleteContainer),
            _ => Err(bad_method()),
        }
    }

    /// All operations, with their names in Azure's documentation.
    pub(super) const ALL: [(Self, &'static str); 19] = [
        (Self::ReadBlob, "Get Blob"),
        (Self::PutBlob, "Put Blob"),
        (Self::CopyBlob, "Copy Blob"),
        (Self::PutBlock, "Put Block"),
        (Self::PutBlockList, "Put Block List"),
        (Self::GetBlockList, "Get Block List"),
        (Self::ReadMetadata, "Get Blob Metadata"),
        (Self::SetMetadata, "Set Blob Metadata"),
        (Self::SetProperties, "Set Blob Properties"),
        (Self::DeleteBlob, "Delete Blob"),
        (Self::LeaseBlob, "Lease Blob"),
        (Self::ReadContainer, "Get Container Properties"),
        (Self::ReadContainerMetadata, "Get Container Metadata"),
        (Self::SetContainerMetadata, "Set Container Metadata"),
        (Self::ListBlobs, "List Blobs"),
        (Self::CreateContainer, "Create Container"),
        (Self::DeleteContainer, "Delete Container"),
        (Self::LeaseContainer, "Lease Container"),
        (Self::ListContainers, "List Containers"),
    ];

    /// Returns the operation with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(operation, _)| operation)
    }

    /// Returns the operation's name.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    /// Returns the purpose of the operation.
    pub(super) const fn intent(self) -> Intent {
        match self {
            Self::ReadBlob | Self::ReadMetadata | Self::ReadContainer | Self::ReadContainerMetadata => Intent::Read,
            Self::PutBlob
            | Self::CopyBlob
            | Self::PutBlockList
            | Self::SetMetadata
            | Self::SetProperties
            | Self::DeleteBlob
            | Self::CreateContainer
            | Self::SetContainerMetadata => Intent::Write,
            Self::PutBlock => Intent::StageBlock,
            Self::GetBlockList => Intent::ReadBlocks,
            Self::ListBlobs | Self::ListContainers => Intent::List,
            Self::DeleteContainer => Intent::RemoveTree,
            Self::LeaseBlob | Self::LeaseContainer => Intent::Lease,
        }
    }

    /// Returns the resource of the operation.
    pub const fn resource(self) -> AzureResource {
        match self {
            Self::ListContainers => AzureResource::Account,
            Self::ReadContainer
            | Self::ReadContainerMetadata
            | Self::SetContainerMetadata
            | Self::ListBlobs
            | Self::CreateContainer
            | Self::DeleteContainer
            | Self::LeaseContainer => AzureResource::Container,
            Self::ReadBlob
            | Self::PutBlob
            | Self::CopyBlob
            | Self::PutBlock
            | Self::PutBlockList
            | Self::GetBlockList
            | Self::ReadMetadata
            | Self::SetMetadata
            | Self::SetProperties
            | Self::DeleteBlob
            | Self::LeaseBlob => AzureResource::Blob,
        }
    }

    /// True if the operation changes nothing.
    pub const fn is_read(self) -> bool {
        matches!(self.intent(), Intent::Read | Intent::ReadBlocks | Intent::List)
    }

    /// True if the operation gives the blob a new content.
    pub const fn replaces_blob(self) -> bool {
        matches!(self, Self::PutBlob | Self::CopyBlob | Self::PutBlockList)
    }

    /// True if the operation can overwrite what another client has written.
    pub const fn overwrites(self) -> bool {
        self.replaces_blob() || matches!(self, Self::SetMetadata | Self::SetProperties)
    }

    /// True if the operation reads or sets metadata or properties, and nothing else.
    pub const fn is_of_description(self) -> bool {
        matches!(
            self,
            Self::ReadMetadata
                | Self::SetMetadata
                | Self::SetProperties
                | Self::ReadContainerMetadata
                | Self::SetContainerMetadata
        )
    }

    /// True if the operation acts on a lease.
    pub const fn is_lease(self) -> bool {
        matches!(self, Self::LeaseBlob | Self::LeaseContainer)
    }

    /// True if the operation serves this Azure field.
    pub(super) fn knows(self, name: &HeaderName) -> bool {
        const ALWAYS: [HeaderName; 4] = [DATE, VERSION, CLIENT_REQUEST_ID, LEASE_ID];
        const OF_LEASES: [HeaderName; 4] = [LEASE_ACTION, LEASE_DURATION, LEASE_BREAK_PERIOD, PROPOSED_LEASE_ID];
        ALWAYS.contains(name)
            || match self {
                Self::ReadBlob => [RANGE, RANGE_MD5, RANGE_CRC64].contains(name),
                Self::PutBlob => *name == BLOB_TYPE || describes_upload(name),
                Self::CopyBlob => copy::knows(name) || metadata::is_value(name),
                // The SDKs send the metadata of the blob with each of its blocks, and with the list again.
                Self::PutBlock => *name == CONTENT_CRC64 || metadata::is_value(name),
                Self::PutBlockList => describes_upload(name),
                Self::SetMetadata | Self::CreateContainer | Self::SetContainerMetadata => metadata::is_value(name),
                Self::SetProperties => *name == BLOB_MD5 || standing_for(name).is_some(),
                Self::DeleteBlob => [DELETE_SNAPSHOTS, DELETE_TYPE_PERMANENT].contains(name),
                Self::LeaseBlob | Self::LeaseContainer => OF_LEASES.contains(name),
                Self::GetBlockList
                | Self::ReadMetadata
                | Self::ReadContainer
                | Self::ReadContainerMetadata
                | Self::ListBlobs
                | Self::DeleteContainer
                | Self::ListContainers => false,
            }
    }

    /// True if the operation serves this parameter of the query.
    pub(super) fn takes(self, parameter: &str) -> bool {
        match self {
            Self::PutBlock => parameter == "blockid",
            Self::GetBlockList => parameter == "blocklisttype",
            Self::ListBlobs => list::PARAMETERS.contains(&parameter),
            Self::ListContainers => containers::PARAMETERS.contains(&parameter),
            _ => false,
        }
    }
}

/// True if a field describes the content or the metadata of a new blob.
fn describes_upload(name: &HeaderName) -> bool {
    [BLOB_MD5, CONTENT_CRC64].contains(name) || standing_for(name).is_some() || metadata::is_value(name)
}
