//! The azure dialect: the part of Azure Blob Storage's REST interface that needs only GET, PUT and DELETE of files from
//! a backend. The proxy adds the leases (`docs/azure.md`).
//!
//! [`read`] reads a request, or refuses it. Only operations on its list reach a backend.

use http::{HeaderName, HeaderValue};

mod asked;
mod blocks;
mod call;
mod checksums;
mod conditions;
mod container_name;
#[cfg(test)]
mod container_tests;
mod containers;
mod copy;
mod error;
mod fields;
mod grammar;
mod lease;
#[cfg(test)]
mod lease_table_tests;
mod list;
mod lists;
mod metadata;
mod operation;
mod query;
mod refusals;
mod response;

pub use asked::{AskedOperation, LeaseVerb};
pub use call::{BlobRoute, read};
pub use error::{AzureError, error_of};
pub use fields::{common_fields, lease_fields};
pub use grammar::Azure;
pub use lease::{action, done};
pub(super) use metadata::read as read_metadata;
pub use operation::{AzureOperation, AzureResource};
pub(super) use query::is_of_signature;
pub(super) use refusals::{bad_method, bad_query, invalid, not_served, unknown_query};
pub use refusals::{refuse, refuse_use};
pub use response::{common_failure, outcome};

/// The field with the name of an error. Clients choose their exception by it.
pub const ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
/// The field with the kind of a blob.
pub const BLOB_TYPE: HeaderName = HeaderName::from_static("x-ms-blob-type");
/// The only kind of blob that is served.
pub const BLOCK_BLOB: &str = "BlockBlob";
/// The checksum of the blob, which Azure keeps as a property. An upload in one request is the blob.
const BLOB_MD5: HeaderName = HeaderName::from_static("x-ms-blob-content-md5");
const CONTENT_CRC64: HeaderName = HeaderName::from_static("x-ms-content-crc64");
const RANGE_MD5: HeaderName = HeaderName::from_static("x-ms-range-get-content-md5");
const RANGE_CRC64: HeaderName = HeaderName::from_static("x-ms-range-get-content-crc64");
const BLOB_PREFIX: &str = "x-ms-blob-";
pub(super) const METADATA_PREFIX: &str = "x-ms-meta-";
const LEASE_ACTION: HeaderName = HeaderName::from_static("x-ms-lease-action");
const LEASE_ID: HeaderName = HeaderName::from_static("x-ms-lease-id");
const LEASE_TIME: HeaderName = HeaderName::from_static("x-ms-lease-time");
const LEASE_STATE: HeaderName = HeaderName::from_static("x-ms-lease-state");
const LEASE_STATUS: HeaderName = HeaderName::from_static("x-ms-lease-status");
const LEASE_DURATION: HeaderName = HeaderName::from_static("x-ms-lease-duration");
const LEASE_BREAK_PERIOD: HeaderName = HeaderName::from_static("x-ms-lease-break-period");
const PROPOSED_LEASE_ID: HeaderName = HeaderName::from_static("x-ms-proposed-lease-id");
const DELETE_SNAPSHOTS: HeaderName = HeaderName::from_static("x-ms-delete-snapshots");
const DELETE_TYPE_PERMANENT: HeaderName = HeaderName::from_static("x-ms-delete-type-permanent");
const RANGE: HeaderName = HeaderName::from_static("x-ms-range");
const DATE: HeaderName = HeaderName::from_static("x-ms-date");
/// The field with the version of the interface.
pub const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
/// The field with the id that a client gives its request.
pub const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// The version of the interface if the client names none.
const DEFAULT_VERSION: HeaderValue = HeaderValue::from_static("2021-12-02");
