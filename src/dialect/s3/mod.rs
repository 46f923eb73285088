//! The s3 dialect: the differences from RFC 9110 in the requests and responses of Amazon S3 and of servers like it
//! (`dialect = "s3"`, `docs/s3.md`).

mod conditions;
mod copy;
mod error;
mod grammar;
mod removals;
mod signature;

pub use conditions::{quoted, refuse_unguardable};
pub use copy::{is_of_source, not_judged};
pub use error::error_of;
pub use grammar::S3;
pub use removals::{LIST_BYTES_MAX, NotRemoved, REMOVALS_MAX, Removal, RemovalList, bucket_of, none_removed, outcomes};
pub use signature::{Signature, keep_for_own_signature, object_of, target_without_signature};
