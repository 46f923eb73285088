//! The native dialect: the lease of `/docs/42` is the resource `/.leases/docs/42` (DESIGN, section 8).
//!
//! | request | does | success |
//! |---|---|---|
//! | `POST` | acquires | 201 |
//! | `PUT` with `Lease-Id` | renews | 200 |
//! | `PATCH` with `Lease-Id`, `Proposed-Lease-Id` | changes the id | 200 |
//! | `DELETE` with `Lease-Id` | releases | 204 |
//! | `DELETE` with `Lease-Break-Period` | breaks | 202 |
//! | `GET` | shows | 200 |

use http::HeaderName;

mod answer;
mod call;
mod read;

pub use answer::{done, grant_fields, refuse, refuse_use, show};
pub use call::{DEFAULTS, DEMANDS, Native, QUIRKS, call, problem};
pub use read::{presented_id, read, read_on_get, wait};

/// The id of a lease: proves it on every request that uses it.
pub const LEASE_ID: HeaderName = HeaderName::from_static("lease-id");
/// How long a lease is wanted for: seconds, or `infinite`.
pub const LEASE_DURATION: HeaderName = HeaderName::from_static("lease-duration");
/// The number that grows with every grant.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");
const LEASE_HOLDER: HeaderName = HeaderName::from_static("lease-holder");
const LEASE_TIME: HeaderName = HeaderName::from_static("lease-time");
const LEASE_BREAK_PERIOD: HeaderName = HeaderName::from_static("lease-break-period");
const PROPOSED_LEASE_ID: HeaderName = HeaderName::from_static("proposed-lease-id");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

#[cfg(test)]
mod tests;
