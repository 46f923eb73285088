//! The terraform dialect: the `http` backend of Terraform and `OpenTofu` (`docs/how-to/terraform.md`).
//!
//! | request | effect | success |
//! |---|---|---|
//! | `LOCK`, or `POST` of the path of the lock | locks the state | 200 |
//! | `UNLOCK`, or `DELETE` of the path of the lock | unlocks the state; without an ID, no matter who holds the lock | 200 |
//! | `POST ?ID=`, also `PUT`, `DELETE` | writes the state, with the lock of this ID | 200 |
//! | `GET` | reads the state | the upstream's |
//!
//! # Design
//!
//! *What is the ID of a lock worth?* Nothing: its client chooses it, and the proxy shows it to each client that it
//! refuses. So locks are bound to the principal of their client by default (`lease.bind`), and the ID distinguishes the
//! locks of one principal.
//!
//! *Why is the id of the lease a hash?* An ID is any text, and mostly no UUID of version 4.
//!
//! *Why is an obstacle that passes a 503?* These clients take each 409 and 423 for the lock of another client, and give
//! up. They repeat a request after a 503.

mod error;
mod grammar;
mod lock_info;
mod refusals;
mod request;
mod unlock;

pub use grammar::{Terraform, told_status};
pub use lock_info::{LockInfo, MalformedLockInfo};
pub use refusals::{malformed_lock_info, not_broken};
pub use request::{LockRequest, LockVerb, lock_request};
pub use unlock::{NotReleased, after_release};

#[cfg(test)]
mod tests;
