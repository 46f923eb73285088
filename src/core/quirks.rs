//! The demands of a dialect beyond RFC 9110, as data. Code that judges requests looks at these, and never at the name
//! of the dialect.

use http::HeaderName;

/// The service whose operations the requests of a dialect are. `service/` has a folder for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// None: each request is one verb of the guard.
    Plain,
    /// Amazon S3: a write may name another object, whose content the server takes.
    S3,
    /// Azure Storage: a closed list of operations, whose answers are rewritten.
    Azure,
    /// Azure Queue Storage: queues and messages, each a document that operations change.
    AzureQueue,
    /// The `http` backend of Terraform: states with locks.
    Terraform,
    /// Git LFS: objects that are files, and the locks of its users.
    GitLfs,
    /// `WebDAV`: locks that are leases, and lists of properties that show them.
    WebDav,
    /// The service of the tests.
    #[cfg(test)]
    Toy,
}

/// The differences between the dialect of a route and plain HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate difference")]
pub struct Quirks {
    /// True if conditions are judged before the lease, and a missing resource is reported before either.
    pub conditions_before_lease: bool,
    /// True if a condition on a date is false if the upstream reports no date.
    pub unknown_date_fails: bool,
    /// True if clients need a modification date in each answer, even if two states may share it.
    pub always_dated: bool,
    /// True if the answer to a write has the modification date of the new state.
    pub date_after_write: bool,
    /// The name of the 404 that answers `If-Match` on a missing resource, if that is not a 412.
    pub missing_is_404: Option<&'static str>,
    /// True if a 304 that states no tag repeats the one tag that its request named.
    pub confirms_named_tag: bool,
    /// True if a tag that looks like a hash is one of the content, and rightly repeats with it.
    pub tags_are_hashes: bool,
    /// The fields that may hold the idempotency key of a write. The first one that is present counts.
    pub idempotency_fields: &'static [HeaderName],
    /// The starts of the names of fields that hold content, or describe it, besides those of HTTP.
    pub content_prefixes: &'static [&'static str],
    /// True if the query is part of the name of a target. If not, it names the operation and the right to it.
    pub query_names_target: bool,
    /// True if one request can remove a whole collection of resources.
    pub removes_trees: bool,
    /// True if a POST may wrap another method in `X-HTTP-Method`, as `OData` before version 4 does.
    pub wraps_methods: bool,
    /// True if no resource holds others, so that each removal is that of its target alone.
    pub is_flat: bool,
    /// True if leases have their own paths, below `lease.prefix`.
    pub leases_have_paths: bool,
    /// True if the answer to each lease operation has the validators of the resource.
    pub lease_answers_have_validators: bool,
    /// True if an error that answers HEAD has fields that describe the content that GET would get.
    pub head_errors_have_content: bool,
    /// True if LOCK and UNLOCK use leases, PROPFIND and REPORT read, and OPTIONS tells so.
    pub has_locks: bool,
    /// True if the dialect is a closed list of operations, and refuses all others.
    pub is_closed_list: bool,
    /// The service that carries its requests out.
    pub service: ServiceKind,
}
