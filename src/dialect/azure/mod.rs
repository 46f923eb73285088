//! The azure dialect: the part of Azure Blob Storage's REST interface that needs nothing of a backend but GET, PUT and
//! DELETE of files, with the leases that such a backend does not have (`docs/azure.md`).

use http::{HeaderName, HeaderValue};

mod asked;
mod error;
mod fields;

pub use asked::{Asked, LeaseVerb};
pub use error::{AzureError, error_of};
pub use fields::common_fields;

/// The name of an error; clients choose their exception by it.
pub const ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
const LEASE_ACTION: HeaderName = HeaderName::from_static("x-ms-lease-action");
const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// The version of the interface that is spoken where the client names none.
const DEFAULT_VERSION: HeaderValue = HeaderValue::from_static("2021-12-02");
