//! The names of the fields of the native lease protocol (DESIGN, section 8).

/// The name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// The name in lower case, as programs compare it.
    pub lower: &'static str,
    /// The name as people write it.
    pub title: &'static str,
}

const fn named(lower: &'static str, title: &'static str) -> FieldName {
    FieldName { lower, title }
}

/// The id of a lease, which proves it on every request that uses it.
pub const LEASE_ID: FieldName = named("lease-id", "Lease-Id");
/// The id of the lease of the destination of a COPY or MOVE.
pub const DESTINATION_LEASE_ID: FieldName = named("destination-lease-id", "Destination-Lease-Id");
/// The id that a holder wants instead.
pub const PROPOSED_LEASE_ID: FieldName = named("proposed-lease-id", "Proposed-Lease-Id");
/// The choice whether a DELETE that waits goes on waiting: `?0` withdraws it.
pub const DELETE_PENDING: FieldName = named("delete-pending", "Delete-Pending");
/// The mode of the lease: `shared` permits shared leases of other clients beside this one, `exclusive` does not.
pub const LEASE_MODE: FieldName = named("lease-mode", "Lease-Mode");
/// The uses that the holder of a shared lease makes of the resource: a list of `read`, `write` and `delete`.
pub const LEASE_ACCESS: FieldName = named("lease-access", "Lease-Access");
/// The uses that the holder of a shared lease permits to other holders: a list as above, or `none`.
pub const LEASE_SHARE: FieldName = named("lease-share", "Lease-Share");
/// How long a lease is wanted, or granted: seconds, or `infinite`.
pub const LEASE_DURATION: FieldName = named("lease-duration", "Lease-Duration");
/// The moment until which no other client gets the lease, as a date.
pub const LEASE_EXPIRES: FieldName = named("lease-expires", "Lease-Expires");
/// The name of the holder that others may see.
pub const LEASE_HOLDER: FieldName = named("lease-holder", "Lease-Holder");
/// The state of the lease, in answers of the resource itself.
pub const LEASE_STATE: FieldName = named("lease-state", "Lease-State");
/// How long a broken lease still lasts, in seconds.
pub const LEASE_TIME: FieldName = named("lease-time", "Lease-Time");
/// How long the holder of a broken lease has to finish, in seconds.
pub const LEASE_BREAK_PERIOD: FieldName = named("lease-break-period", "Lease-Break-Period");
/// The number that grows with every grant.
pub const FENCING_TOKEN: FieldName = named("fencing-token", "Fencing-Token");
