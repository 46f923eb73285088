//! A DELETE that waits until no client holds the lease of its resource any more (`lease.delete_pending`), as its record
//! keeps it. [`delete_steps`](super::delete_steps) decides about it.

use crate::core::lease::TargetName;

/// The longest request that a record keeps, in bytes of target URI and conditions: every swap writes it again.
pub const REQUEST_BYTES_MAX: usize = 2_048;

/// A DELETE that waits for the holders of the lease: its target URI (RFC 9110 section 7.1), and the state that it means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PendingDelete {
    /// The value of `Host`; empty if the request had none.
    pub host: Box<[u8]>,
    /// The target as the client sent it: path, and query if there is one.
    pub target: Box<[u8]>,
    /// The name of that target at the upstream.
    pub name: TargetName,
    /// The conditional fields that were true when it was received, in the order of their lines.
    pub conditions: Box<[Condition]>,
}

/// A conditional field of a request: its name in lower case, and its value.
pub type Condition = (Box<str>, Box<[u8]>);

impl PendingDelete {
    /// True if it removes one state of the resource alone. A write that may have changed the state then withdraws it.
    pub fn is_conditional(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// The bytes that a record keeps of the request, besides the name of its target.
    pub fn bytes(&self) -> usize {
        let conditions = self.conditions.iter().map(|(name, value)| name.len() + value.len());
        self.host.len() + self.target.len() + conditions.sum::<usize>()
    }

    /// True if the request is short enough for a record.
    pub fn fits(&self) -> bool {
        self.bytes() <= REQUEST_BYTES_MAX
    }
}
