//! What a route demands of the requests that it matches (DESIGN, sections 5 and 6).

use std::time::Duration;

use http::{HeaderName, Method};

use super::json::JsonPointer;
use super::route::TouchTemplate;

/// The policy of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every request passes; preconditions are forwarded untouched and no state is kept.
    LastWriterWins,
    /// Conditional headers are judged, and writes need one according to [`Require`].
    Optimistic,
    /// Leases are judged too, by [`GuardRules::lease`]; conditional headers are judged where they are present.
    Pessimistic,
}

/// Which guarded writes need a precondition (`require`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Require {
    /// None does.
    Never,
    /// A write to a resource that exists does; creating one does not.
    Existing,
    /// Each does.
    Always,
}

/// Where the tag of a representation comes from (`etag`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagSource {
    /// A 128-bit hash of the representation's bytes.
    Content,
    /// The upstream's own `ETag` field.
    Upstream,
    /// The store's version of the resource; needs [`Writers::Exclusive`].
    Version,
    /// This field of the upstream's response (`header:NAME`), quoted if it is not an entity-tag already. The upstream
    /// does not judge it.
    Header(HeaderName),
    /// This field of the JSON text that the upstream answers (`json:/pointer`), like [`TagSource::Header`].
    Json(JsonPointer),
    /// The upstream's own `ETag` field; the upstream judges it too, and nothing is judged here.
    Delegate,
}

impl TagSource {
    /// Whether tags are the upstream's own `ETag` fields, so that it knows what conditions name.
    pub const fn is_upstreams_own(&self) -> bool {
        matches!(self, Self::Upstream | Self::Delegate)
    }

    /// Whether the backend makes the tags, wherever they stand.
    pub const fn is_backends(&self) -> bool {
        matches!(self, Self::Upstream | Self::Delegate | Self::Header(_) | Self::Json(_))
    }

    /// Whether a tag is made of the body of a response.
    pub const fn needs_body(&self) -> bool {
        matches!(self, Self::Content | Self::Json(_))
    }
}

/// What others on the way to the client do to tags, and what is done about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intermediaries {
    /// What they append to a tag, inside its quotes (`etag_suffixes`).
    pub suffixes: Vec<String>,
    /// Whether they make tags weak, so that a weak tag counts as the strong one that was issued (`accept_weak_own`).
    pub weakens: bool,
    /// The response field that carries the tag a second time (`mirror_header`).
    pub mirror: Option<HeaderName>,
}

/// How `If-Match` is compared (`compare`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Strong comparison (RFC 9110 section 8.8.3.2).
    Strong,
    /// Equality of the whole tag, its weakness mark included, for origins whose tags are weak and must match.
    Opaque,
}

/// Who else writes to the resources of a route (`writers`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Others may write behind the proxy's back: nothing is judged or answered from memory.
    Shared,
    /// Every writer comes through this proxy: its record is authoritative.
    Exclusive,
}

/// How the new tag is learned after an applied write when its response carries none (`on_write`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWrite {
    /// The resource is read again before the claim is given back.
    Probe,
    /// It is not learned.
    Omit,
}

/// When the answer to a write carries a derived tag (`etag_after_write`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagAfterWrite {
    /// Only where the bytes read back are the bytes sent (RFC 9110 section 9.3.4).
    Verbatim,
    /// Always.
    Always,
}

/// What becomes of a request that names its method in a header field (`method_override`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodOverride {
    /// It is refused with 400.
    Refuse,
    /// The method named there is the one that is judged.
    Judge,
}

/// Whose credentials a probe carries (`probe_auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAuth {
    /// Those of the request that it is made for.
    Client,
    /// None.
    None,
    /// A signature with the proxy's own credentials (AWS Signature Version 4).
    SigV4,
}

/// Whether a write is recognised by the idempotency key that it came with (`idempotency`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// It is not: the field is the upstream's.
    Off,
    /// It is, if it has one.
    Accept,
    /// It is, and must have one.
    Required,
}

/// The protocol in which clients speak of leases (`lease.dialect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Our own: requests below [`LeaseRules::prefix`], and `Lease-Id` fields.
    Native,
    /// That of Azure Blob Storage: `?comp=lease` and `x-ms-*` fields.
    Azure,
}

/// The shape of the refusals of a route, for the clients that are to read them (`errors`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorShape {
    /// Problem documents (RFC 9457).
    Problem,
    /// The errors of Azure Blob Storage: XML and `x-ms-error-code`.
    Azure,
    /// The errors of Amazon S3: XML.
    S3,
}

/// What a lease keeps others from (`lease.guards`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseGuards {
    /// Writing: shared read, exclusive write.
    Write,
    /// Reading and writing.
    ReadAndWrite,
    /// Deleting alone.
    Delete,
}

/// Whose credentials decide who may lease a resource (`lease.auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAuth {
    /// The upstream's: it is asked for the resource with the client's credentials first.
    Probe,
    /// Nobody's: whoever reaches the proxy may.
    None,
}

/// Whether a resource that does not exist can be leased (`lease.absent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentLease {
    /// It can.
    Allow,
    /// It cannot.
    Refuse,
}

/// The rules for the leases of one route.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration")]
pub struct LeaseRules {
    /// How clients speak of leases.
    pub dialect: Dialect,
    /// Where the native dialect finds the leases of resources: a normal path without a slash at its end.
    pub prefix: String,
    /// What a lease keeps others from.
    pub guards: LeaseGuards,
    /// Who may lease.
    pub auth: LeaseAuth,
    /// Whether a lease is of use only to the principal that took it.
    pub bind: bool,
    /// Whether a GET can take the lease of what it reads.
    pub acquire_on_read: bool,
    /// Whether clients may break a lease that they do not hold.
    pub client_break: bool,
    /// Whether a resource that does not exist can be leased.
    pub absent: AbsentLease,
    /// How long a lease is remembered after its end.
    pub remember: Duration,
    /// The most leases of one principal.
    pub max_per_principal: usize,
    /// The most leases of all principals that come from one address.
    pub max_per_address: usize,
    /// The duration of a lease whose client names none.
    pub default: Duration,
    /// The shortest duration that a client may ask for.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// Whether a client may ask for a lease without an end.
    pub infinite: bool,
    /// Whether what the lease guards needs one even while nobody holds one.
    pub required: bool,
    /// The longest that a client may wait for a lease.
    pub max_wait: Duration,
    /// The most clients that wait for the lease of one resource.
    pub max_waiters: usize,
    /// The longest that one holding may last, however often it is renewed.
    pub hold_max: Duration,
}

/// What a route demands of the store (`guarantee`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// What it gives.
    Store,
    /// That it loses nothing that it has acknowledged. A store that may is refused at the start.
    Safety,
}

/// Everything about one guarded route that its requests are handled by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration")]
pub struct GuardRules {
    /// Where tags come from.
    pub etag: TagSource,
    /// The members of JSON bodies that a content tag leaves out (`ignore_json`).
    pub ignored_json: Vec<JsonPointer>,
    /// Whether the backend never gives one tag to two states (`unique_tags`).
    pub unique_tags: bool,
    /// What becomes of tags on their way.
    pub intermediaries: Intermediaries,
    /// Who else writes.
    pub writers: Writers,
    /// How `If-Match` is compared.
    pub compare: Compare,
    /// Which writes need a precondition.
    pub require: Require,
    /// The methods that [`GuardRules::require`] speaks of.
    pub require_methods: Vec<Method>,
    /// Whether `If-Match: *` counts as a precondition for [`GuardRules::require`].
    pub allow_any: bool,
    /// How the tag of an applied write is learned.
    pub on_write: OnWrite,
    /// When the answer to a write carries it.
    pub tag_after_write: TagAfterWrite,
    /// Methods beside GET and HEAD that read.
    pub safe_methods: Vec<Method>,
    /// Methods that append rather than replace, and run beside other writes.
    pub unclaimed_methods: Vec<Method>,
    /// What becomes of a request that names its method in a header field.
    pub method_override: MethodOverride,
    /// Whether a WebSocket handshake may open a tunnel.
    pub websocket: bool,
    /// What the store must promise.
    pub guarantee: Guarantee,
    /// Whether requests are only watched: verdicts are logged and never enforced.
    pub observe: bool,
    /// The largest body, in bytes, that a content tag is computed of.
    pub hash_max_bytes: usize,
    /// How long a body may take to arrive before its response is sent without a content tag.
    pub hash_wait: Duration,
    /// The request fields whose values make a principal.
    pub identity_headers: Vec<HeaderName>,
    /// How long a principal may know of a resource that it was let read.
    pub identity_ttl: Duration,
    /// How long a write waits for the claim.
    pub claim_max_wait: Duration,
    /// How many writes wait for the claim of one resource.
    pub claim_max_waiters: usize,
    /// How long a probe may take.
    pub probe_timeout: Duration,
    /// Whose credentials a probe carries.
    pub probe_auth: ProbeAuth,
    /// The region that a probe is signed for, under [`ProbeAuth::SigV4`].
    pub probe_region: Box<str>,
    /// Whether writes are recognised by their idempotency keys.
    pub idempotency: Idempotency,
    /// How long a success is replayed to its retries.
    pub idempotency_ttl: Duration,
    /// The shape of its refusals.
    pub errors: ErrorShape,
    /// The other resources that a write changes.
    pub touches: Vec<TouchTemplate>,
    /// The rules for leases; `Some` exactly under [`Policy::Pessimistic`].
    pub lease: Option<LeaseRules>,
}

/// How a request acts on a resource (DESIGN, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodClass {
    /// It changes nothing.
    Read,
    /// It replaces, changes or removes the resource.
    Write,
    /// It appends: it runs beside other writes.
    UnclaimedWrite,
    /// It is forwarded unjudged (OPTIONS).
    Unjudged,
    /// It is refused with 405 (TRACE, CONNECT).
    NotAllowed,
    /// It changes a second resource, which no claim covers: refused with 501 (COPY, MOVE).
    NotSupported,
}

impl GuardRules {
    /// Whether the route serves the operations of Azure's list, and nothing else.
    pub fn speaks_azure(&self) -> bool {
        self.lease.as_ref().is_some_and(|rules| rules.dialect == Dialect::Azure)
    }

    /// Whether the backend makes the tags, and may give one to two states.
    pub const fn has_coarse_tags(&self) -> bool {
        !self.unique_tags && self.etag.is_backends()
    }

    /// The class of a method on this route.
    pub fn class_of(&self, method: &Method) -> MethodClass {
        match method.as_str() {
            "GET" | "HEAD" => MethodClass::Read,
            "OPTIONS" => MethodClass::Unjudged,
            "TRACE" | "CONNECT" => MethodClass::NotAllowed,
            "COPY" | "MOVE" => MethodClass::NotSupported,
            _ if self.safe_methods.contains(method) => MethodClass::Read,
            _ if self.unclaimed_methods.contains(method) => MethodClass::UnclaimedWrite,
            _ => MethodClass::Write,
        }
    }
}
