//! The words of the rules for leases.

/// The operations that a lease keeps others from (`lease.guards`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseGuards {
    /// Writing: shared read, exclusive write.
    Write,
    /// Reading: shared write, exclusive read.
    Read,
    /// Reading and writing.
    ReadAndWrite,
    /// Deleting only.
    Delete,
}

/// Whose credentials decide who may lease a resource (`lease.auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAuth {
    /// The upstream's: the proxy first requests the resource with the client's credentials.
    Probe,
    /// No one's: every client that can reach the proxy may.
    None,
}

/// The rule for leases of resources that do not exist (`lease.absent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentLease {
    /// It can be leased.
    Allow,
    /// It cannot be leased.
    Refuse,
}
