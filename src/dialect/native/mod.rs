//! The native dialect: the lease of `/docs/42` is the resource `/.leases/docs/42` (DESIGN, section 8).
//!
//! | request | effect | success |
//! |---|---|---|
//! | `POST` | acquires | 201 |
//! | `PUT` with `Lease-Id` | renews | 200 |
//! | `PATCH` with `Lease-Id`, `Proposed-Lease-Id` | changes the id | 200 |
//! | `PATCH` with `Lease-Id`, `Delete-Pending: ?0` | withdraws the DELETE that waits | 204 |
//! | `DELETE` with `Lease-Id` | releases | 204 |
//! | `DELETE` with `Lease-Break-Period` | breaks | 202 |
//! | `GET` | shows | 200 |

use http::HeaderName;

use crate::core::lease::field_names;

mod answer;
mod call;
mod fields;
mod page;
mod read;

pub(super) use answer::id_value;
pub use answer::{applied_wait, done, grant_fields, refuse, refuse_use, show, state_fields};
pub use call::{FACTS, Native, at_destination, call, problem};
pub use page::page_or_problem;
pub use read::{presented_id, presented_id_at_destination, read, read_on_get, wait};

/// The field with the id of a lease, which proves the lease on every request that uses it.
pub const LEASE_ID: HeaderName = HeaderName::from_static(field_names::LEASE_ID.lower);
/// The field with the requested or granted duration of a lease: seconds, or `infinite`.
pub const LEASE_DURATION: HeaderName = HeaderName::from_static(field_names::LEASE_DURATION.lower);
/// The field with the number that grows with every grant.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static(field_names::FENCING_TOKEN.lower);
const DESTINATION_LEASE_ID: HeaderName = HeaderName::from_static(field_names::DESTINATION_LEASE_ID.lower);
const LEASE_HOLDER: HeaderName = HeaderName::from_static(field_names::LEASE_HOLDER.lower);
const LEASE_STATE: HeaderName = HeaderName::from_static(field_names::LEASE_STATE.lower);
const LEASE_TIME: HeaderName = HeaderName::from_static(field_names::LEASE_TIME.lower);

#[cfg(test)]
mod tests;
