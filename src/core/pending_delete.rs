//! A DELETE that waits until no client holds the lease of its resource any more (`lease.delete_pending`), as its record
//! keeps it. [`delete_steps`](super::delete_steps) decides about it.

use super::lease::TargetName;

/// The longest target URI that a record keeps, in bytes: every swap writes it again.
pub const TARGET_URI_BYTES_MAX: usize = 2_048;

/// A DELETE that waits for the holders of the lease: its target URI (RFC 9110 section 7.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PendingDelete {
    /// The value of `Host`; empty if the request had none.
    pub host: Box<[u8]>,
    /// The target as the client sent it: path, and query if there is one.
    pub target: Box<[u8]>,
    /// The name of that target at the upstream.
    pub name: TargetName,
}

impl PendingDelete {
    /// Whether the target URI is short enough for a record.
    pub const fn fits(&self) -> bool {
        self.host.len() + self.target.len() <= TARGET_URI_BYTES_MAX
    }
}
