//! What a route demands of the requests that it matches (DESIGN, sections 5 and 6).

use std::time::Duration;

use http::{HeaderName, Method};

/// The policy of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every request passes; preconditions are forwarded untouched and no state is kept.
    LastWriterWins,
    /// Conditional headers are judged, and writes need one according to [`Require`].
    Optimistic,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagSource {
    /// A 128-bit hash of the representation's bytes.
    Content,
    /// The upstream's own `ETag` field.
    Upstream,
    /// The store's version of the resource; needs [`Writers::Exclusive`].
    Version,
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
}

/// Everything about one guarded route that its requests are handled by.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Where tags come from.
    pub etag: TagSource,
    /// Who else writes.
    pub writers: Writers,
    /// Which writes need a precondition.
    pub require: Require,
    /// The methods that [`Guard::require`] speaks of.
    pub require_methods: Vec<Method>,
    /// Whether `If-Match: *` counts as a precondition for [`Guard::require`].
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

impl Guard {
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
