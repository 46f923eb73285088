//! The demands of a route on the requests that it matches (DESIGN, sections 5 and 6).

use std::{path::PathBuf, time::Duration};

use http::{HeaderName, Method, header};

use super::members::index_form::IndexForm;
use super::quirks::Quirks;
use super::route::TouchTemplate;
use super::tags::json::JsonPointer;
use super::tags::version_source::VersionSource;

mod method_class;
mod trees;
mod words;

pub use method_class::MethodClass;
pub use words::{AbsentLease, LeaseAuth, LeaseGuards, MethodOverride, OnWrite, ProbeAuth, StoreMethod, TagAfterWrite};

/// The policy of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every request passes; preconditions are forwarded untouched and no state is kept.
    LastWriterWins,
    /// Conditional headers are judged, and [`Require`] decides which writes need one.
    Optimistic,
    /// Leases are judged too, by [`GuardRules::lease`]. Conditional headers are judged if they are present.
    Pessimistic,
}

/// Which guarded writes need a precondition (`require`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Require {
    /// No write does.
    Never,
    /// A write to an existing resource does; creating one does not.
    Existing,
    /// Every write does.
    Always,
}

/// The source of a representation's tag (`etag`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagSource {
    /// A 128-bit hash of the representation's bytes.
    Content,
    /// The upstream's own `ETag` field.
    Upstream,
    /// The store's version of the resource; needs `other_writers = false`.
    Version,
    /// This field of the upstream's response (`header:NAME`), quoted if it is not already an entity-tag. The upstream
    /// does not judge it.
    Header(HeaderName),
    /// This field of the JSON text in the upstream's answer (`json:/pointer`), like [`TagSource::Header`].
    Json(JsonPointer),
    /// The upstream's own `ETag` field; the upstream judges it too, and the proxy judges nothing.
    Delegate,
}

impl TagSource {
    /// True if tags are the upstream's own `ETag` fields, so that the upstream recognises the tags in conditions.
    pub const fn is_upstreams_own(&self) -> bool {
        matches!(self, Self::Upstream | Self::Delegate)
    }

    /// True if the backend makes the tags, in any part of its responses.
    pub const fn is_backends(&self) -> bool {
        matches!(self, Self::Upstream | Self::Delegate | Self::Header(_) | Self::Json(_))
    }

    /// True if a tag is computed from the body of a response.
    pub const fn needs_body(&self) -> bool {
        matches!(self, Self::Content | Self::Json(_))
    }
}

/// How `If-Match` is compared (`compare`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Strong comparison (RFC 9110 section 8.8.3.2).
    Strong,
    /// Equality of the whole tag, its weakness mark included, for origins whose tags are weak and must match.
    Opaque,
}

/// How the proxy learns whether a DELETE, COPY or MOVE would change a collection (`collections`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collections {
    /// By asking the backend whether it speaks `WebDAV`, and by its redirects.
    #[default]
    Detect,
    /// By asking the backend for the type of each resource, as `WebDAV` clients do. A write of a collection is one of all
    /// resources below it.
    WebDav,
    /// The backend has none: a DELETE, COPY or MOVE changes its target alone.
    None,
}

/// Which states a read may show (`reads`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadConsistency {
    /// Any state that the upstream shows, also beside a write in flight.
    #[default]
    Any,
    /// A state that no write in flight or in doubt is changing. The read waits for such writes.
    Settled,
    /// Like `Settled`, but beside a write in flight a read gets the state before that write, if this process holds it.
    Last,
}

impl ReadConsistency {
    /// True if reads show committed states alone.
    pub const fn is_committed(self) -> bool {
        matches!(self, Self::Settled | Self::Last)
    }
}

/// The recognition of writes by their idempotency keys (`idempotency`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// A write is not recognised, and the field is left to the upstream.
    Off,
    /// A write is recognised if it has a key.
    Accept,
    /// A write is recognised, and must have a key.
    Required,
}

/// The answer to a write that is done already (`repeated_writes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedWrites {
    /// A stale tag refuses it as any other write.
    Refuse,
    /// A PUT of the very bytes that are there succeeds.
    Succeed,
}

/// The dialect of a route's clients (`dialect`). The grammars in the module `dialect` define the meaning of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// HTTP, problem documents (RFC 9457), and leases below [`LeaseRules::prefix`] with `Lease-Id` fields.
    #[default]
    Native,
    /// Amazon S3: its error codes, signed requests, and unquoted tags.
    S3,
    /// Azure Blob Storage: its operations, `?comp=lease` and `x-ms-*` fields, and its errors.
    Azure,
    /// Azure Table Storage: its operations on entities, and its errors. Leases are those of [`Self::Native`].
    AzureTable,
    /// Azure Queue Storage: its operations on queues and messages, and its errors. It has no leases.
    AzureQueue,
    /// The `http` backend of Terraform and `OpenTofu`: states, and their locks.
    Terraform,
    /// Git LFS: objects, and the locks of its users.
    GitLfs,
    /// `WebDAV` class 2: locks by LOCK, UNLOCK and `If`, and errors in its XML.
    WebDav,
    /// A dialect of the tests.
    #[cfg(test)]
    Toy,
}

/// The rules for the leases of one route.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration")]
pub struct LeaseRules {
    /// The path below which the native dialect has the leases of resources: a normal path without a trailing slash.
    pub prefix: String,
    /// The operations that a lease keeps others from.
    pub guards: LeaseGuards,
    /// Whose credentials decide who may lease a resource.
    pub auth: LeaseAuth,
    /// True if only the principal that took a lease can use it.
    pub bind: bool,
    /// True if several clients may hold shared leases of one resource.
    pub shared: bool,
    /// True if a DELETE waits until no other client holds the lease.
    pub delete_pending: bool,
    /// True if a client without the lease learns of a conflict with the holder, instead of an absent id.
    pub sharing_violation: bool,
    /// True if reads of the resource show the state of its lease.
    pub show: bool,
    /// True if a GET can take the lease of what it reads.
    pub acquire_on_read: bool,
    /// True if clients may break a lease that they do not hold.
    pub client_break: bool,
    /// The rule for leases of resources that do not exist.
    pub absent: AbsentLease,
    /// How long a lease is remembered after its end.
    pub remember_time: Duration,
    /// The maximum number of leases of one principal.
    pub max_per_principal: usize,
    /// The maximum number of leases of all principals at one address.
    pub max_per_address: usize,
    /// The duration of a lease if the client names none.
    pub default: Duration,
    /// The shortest duration that a client may request.
    pub min: Duration,
    /// The longest duration that a client may request.
    pub max: Duration,
    /// True if a client may request an infinite lease.
    pub infinite: bool,
    /// True if an operation that the lease guards needs a lease even if no client holds one.
    pub required: bool,
    /// The longest time that a client may wait for a lease.
    pub max_wait: Duration,
    /// The maximum number of clients that wait for the lease of one resource.
    pub max_waiters: usize,
    /// The longest time that a client may hold a lease, no matter how often it renews the lease.
    pub max_hold_time: Duration,
    /// How long a lease stays after the stream that holds it has broken off.
    pub linger: Duration,
}

/// The guarantee that a route demands of the store (`guarantee`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Any guarantee of the store suffices.
    Store,
    /// The store loses nothing that it has acknowledged. The proxy does not start with a store that may lose data.
    Safety,
}

/// The queue for writes on one resource (`claim`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRules {
    /// How long a write waits for the claim, and a settled read for the end of writes.
    pub max_wait: Duration,
    /// How many writes may wait for the claim of one resource, and how many settled reads.
    pub max_waiters: usize,
}

/// The limits of probes (`probe`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRules {
    /// How long a probe may take.
    pub timeout: Duration,
}

/// All rules by which the requests of one guarded route are handled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration")]
pub struct GuardRules {
    /// The source of the tags.
    pub etag: TagSource,
    /// The members of JSON bodies that a content tag leaves out (`ignore_json`).
    pub ignored_json: Vec<JsonPointer>,
    /// True if the backend never gives one tag to two states (`unique_tags`).
    pub unique_tags: bool,
    /// The suffixes that intermediaries on the way to the client append to a tag, inside its quotes.
    pub etag_suffixes: Vec<String>,
    /// True if a weak tag counts as the strong one that was issued, because intermediaries make tags weak.
    pub accept_weak_own: bool,
    /// The response field that carries the tag a second time.
    pub mirror_header: Option<HeaderName>,
    /// The member of JSON objects that has their tag (`tag_member`).
    pub tag_member: Option<JsonPointer>,
    /// True if others may write to the resources behind the proxy's back (`other_writers`). If so, nothing is judged or
    /// answered from memory; if not, the record is authoritative.
    pub other_writers: bool,
    /// How `If-Match` is compared.
    pub compare: Compare,
    /// Which writes need a precondition.
    pub require: Require,
    /// The methods that [`GuardRules::require`] applies to.
    pub require_methods: Vec<Method>,
    /// The answer to a PUT of the very bytes that are there.
    pub repeated_writes: RepeatedWrites,
    /// True if tags without quotes count, and strong ones for weak ones.
    pub lenient_tags: bool,
    /// The places other than `If-Match` where a write names its version (`precondition`).
    pub version_sources: Vec<VersionSource>,
    /// True if `If-Match: *` counts as a precondition for [`GuardRules::require`].
    pub allow_any: bool,
    /// How the tag of an applied write is learned.
    pub on_write: OnWrite,
    /// When the answer to a write carries that tag.
    pub tag_after_write: TagAfterWrite,
    /// The number of re-reads in a row that must have shown the content of PUTs before a PUT gets its tag without one.
    /// Zero means that a re-read follows each PUT.
    pub verbatim_after: usize,
    /// Methods other than GET and HEAD that read.
    pub safe_methods: Vec<Method>,
    /// Methods that append instead of replacing, and run beside other writes.
    pub append_methods: Vec<Method>,
    /// Which states reads may show.
    pub reads: ReadConsistency,
    /// The treatment of a request that names its method in a header field.
    pub method_override: MethodOverride,
    /// How the proxy learns whether a DELETE would remove a collection.
    pub collections: Collections,
    /// True if a WebSocket handshake may open a tunnel.
    pub websocket: bool,
    /// The guarantee that the store must give.
    pub guarantee: Guarantee,
    /// True if requests are only watched: verdicts are logged and never enforced.
    pub observe: bool,
    /// The largest body that a content tag is computed from, in bytes.
    pub max_hash_size_bytes: usize,
    /// How long a body may take to arrive before the response is sent without a content tag; `None` if the route does
    /// not say.
    pub hash_wait: Option<Duration>,
    /// The request fields whose values make up a principal.
    pub identity_headers: Vec<HeaderName>,
    /// The cookies that are part of a principal; if empty, the whole Cookie field is, but not for leases.
    pub identity_cookies: Vec<String>,
    /// The parameters of the query that are part of a principal.
    pub identity_query: Vec<String>,
    /// How long a principal gets answers from memory after the backend has let it read the resource.
    pub identity_ttl: Duration,
    /// The queue for writes on one resource.
    pub claim: ClaimRules,
    /// The limits of probes.
    pub probe: ProbeRules,
    /// Whose credentials a probe carries.
    pub probe_auth: ProbeAuth,
    /// The region that a probe is signed for, under [`ProbeAuth::SigV4`].
    pub probe_region: Box<str>,
    /// The file of the field that a probe carries, under [`ProbeAuth::Field`].
    pub probe_field_file: Option<PathBuf>,
    /// The recognition of writes by their idempotency keys.
    pub idempotency: Idempotency,
    /// How long the answer of a write is replayed to its retries.
    pub idempotency_ttl: Duration,
    /// True if the route is that of collections, whose members it names (`members`).
    pub has_members: bool,
    /// The end of the names of the documents that describe resources (`metadata_suffix`), if the route keeps any.
    pub metadata_suffix: Option<Box<str>>,
    /// The form in which the backend lists the members of a collection (`index`).
    pub index: IndexForm,
    /// The method by which the backend gets a state.
    pub store_method: StoreMethod,
    /// The end of the paths of locks (`lock_suffix`), if they have paths of their own.
    pub lock_suffix: Option<Box<str>>,
    /// The field with the name of the client, which its locks are shown with (`owner_header`).
    pub owner_header: Option<HeaderName>,
    /// True if clients may watch the resources (`watch`).
    pub watch: bool,
    /// The path below which they do so: a normal path without a trailing slash.
    pub watch_prefix: String,
    /// How often the backend is asked about a watched resource that others write too; `None` if it is not.
    pub watch_probe: Option<Duration>,
    /// The longest time that a client may wait for one change of a resource, if it asks for no stream.
    pub watch_max_wait: Duration,
    /// The dialect of the route's clients.
    pub dialect: Dialect,
    /// The differences between that dialect and plain HTTP.
    pub quirks: &'static Quirks,
    /// The other resources that a write changes (`also_changes`).
    pub also_changes: Vec<TouchTemplate>,
    /// The rules for leases; `Some` if and only if the policy is [`Policy::Pessimistic`].
    pub lease: Option<LeaseRules>,
}

/// How long a body of unknown length may take to arrive before the response is sent without a tag of it. It is less than
/// people notice, and more than most backends need for a page.
const WAIT_FOR_UNKNOWN_LENGTH: Duration = Duration::from_millis(50);

impl GuardRules {
    /// Returns whether all of a field is part of a principal.
    pub fn identifies(&self, name: &HeaderName) -> bool {
        self.identity_headers.contains(name) && (*name != header::COOKIE || self.identity_cookies.is_empty())
    }

    /// True if requests may state their conditions otherwise than RFC 9110 does, or have a tag in their bodies.
    pub fn restates(&self) -> bool {
        self.lenient_tags || !self.version_sources.is_empty() || self.tag_member.is_some()
    }

    /// True if content tags leave out some of a body.
    pub fn hashes_parts(&self) -> bool {
        self.etag == TagSource::Content && (!self.ignored_json.is_empty() || self.tag_member.is_some())
    }

    /// Returns how long the body of a response may take to arrive before the response is sent without a tag of its body.
    /// A body with a stated length of at most `max_hash_size` is known to end, so it has the upstream's `read_timeout`.
    pub fn wait_for_body(&self, stated_length_bytes: Option<u64>, read_timeout: Duration) -> Duration {
        let fits = |bytes| usize::try_from(bytes).is_ok_and(|bytes| bytes <= self.max_hash_size_bytes);
        let default = if stated_length_bytes.is_some_and(fits) { read_timeout } else { WAIT_FOR_UNKNOWN_LENGTH };
        self.hash_wait.unwrap_or(default)
    }

    /// Returns what the route demands of a write with this method to its target. The target of a COPY is only read.
    pub fn demand(&self, method: &Method) -> Require {
        if self.require_methods.contains(method) && method.as_str() != "COPY" { self.require } else { Require::Never }
    }

    /// Returns what the route demands of a COPY or MOVE for its destination: a condition if that exists.
    pub fn demand_at_destination(&self, method: &Method) -> Require {
        let is_demanded = self.require != Require::Never && self.require_methods.contains(method);
        if is_demanded { Require::Existing } else { Require::Never }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
