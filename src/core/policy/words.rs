//! The rules of a route that are one word each in the configuration.

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

/// How the new tag is learned after an applied write when its response carries none (`on_write`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWrite {
    /// The proxy reads the resource again before it releases the claim.
    Probe,
    /// The tag is not learned.
    Omit,
}

/// When the answer to a write carries a derived tag (`etag_after_write`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagAfterWrite {
    /// Only if the bytes read back are the bytes sent (RFC 9110 section 9.3.4).
    Verbatim,
    /// Always.
    Always,
}

/// Whose credentials a probe carries (`probe_auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAuth {
    /// The credentials of the request that the probe is made for.
    Client,
    /// No credentials.
    None,
    /// A field of the proxy's own (`probe_field_file`).
    Field,
    /// A signature with the proxy's own credentials (AWS Signature Version 4).
    SigV4,
}

/// The treatment of a request that names its method in a header field (`method_override`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodOverride {
    /// The request is refused with 400.
    Refuse,
    /// The method named in the field is the one that is judged.
    Judge,
}

/// The method by which a backend gets a state that its client sends with POST (`store_method`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreMethod {
    /// The method of the client.
    #[default]
    AsSent,
    /// PUT, as file servers want it.
    Put,
}
