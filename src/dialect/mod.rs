//! The ways in which clients speak to a route (`dialect`): how a request's head becomes a call, and its outcome an answer.
//! Pure.
//!
//! # Design
//!
//! *Who may ask which dialect a route speaks?* [`Dialect::grammar`] alone. All else asks the [`Grammar`] to read or to
//! write something, or looks at its data: [`Quirks`] while a request is judged, [`Defaults`] and [`Demands`] while a
//! configuration is read. A new dialect is a variant of [`Dialect`] with its name, and a file with its grammar.
//!
//! *Why does a grammar speak native unless it says otherwise?* S3 differs from plain HTTP in a few places alone, and so
//! does any other storage service with conditional requests of its own.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::core::{
    lease::{Acquire, Action, Denied, Done, LeaseDuration, LeaseId, UseDenied, field_names::LEASE_ID},
    policy::{Dialect, GuardRules, LeaseRules},
    precondition::Preconditions,
    quirks::Quirks,
    record::Snapshot,
    refusal::Refusal,
};

pub mod azure;
pub mod native;
pub mod s3;
#[cfg(test)]
mod toy;
pub mod xml;

impl Dialect {
    /// The dialects by the words of the configuration.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("native", Self::Native),
        ("s3", Self::S3),
        ("azure", Self::Azure),
        #[cfg(test)]
        ("toy", Self::Toy),
    ];

    /// How it is spoken.
    pub fn grammar(self) -> &'static dyn Grammar {
        match self {
            Self::Native => &native::Native,
            Self::S3 => &s3::S3,
            Self::Azure => &azure::Azure,
            #[cfg(test)]
            Self::Toy => &toy::Toy,
        }
    }

    /// How it differs from plain HTTP.
    pub fn quirks(self) -> &'static Quirks {
        self.grammar().quirks()
    }
}

/// A request as a grammar reads it.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The method that the request is judged by.
    pub method: &'a Method,
    /// Its target as received: path and query.
    pub target: &'a [u8],
    /// Its fields as received.
    pub headers: &'a HeaderMap,
}

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To read the resource.
    Read,
    /// To replace, change or remove it.
    Write,
    /// To append to it, beside other writes.
    Append,
    /// To remove it with all resources in it.
    RemoveTree,
    /// To use its lease.
    Lease,
    /// To learn what pages of other origins may do (a CORS preflight).
    Preflight,
}

/// A request that was read.
#[derive(Clone, Debug)]
pub struct Call {
    /// What it wants.
    pub intent: Intent,
    /// The name of its operation, if the dialect is a list of operations.
    pub operation: Option<&'static str>,
    /// The lease that it names.
    pub lease_id: Option<LeaseId>,
    /// Its preconditions.
    pub conditions: Preconditions,
    /// The head that the upstream gets, if that differs from the one received.
    pub forwarded: Option<ForwardedHead>,
    /// Whether the proxy cuts the part that the client wants out of a whole response.
    pub cuts_parts: bool,
}

/// The head of a request as the upstream gets it.
#[derive(Clone, Debug)]
pub struct ForwardedHead {
    /// The method.
    pub method: Method,
    /// The target: path and query.
    pub target: Vec<u8>,
    /// All fields.
    pub fields: HeaderMap,
}

/// What a request wants of the lease of a resource.
#[derive(Clone, Debug)]
pub enum LeaseOperation {
    /// To change it.
    Step {
        /// How.
        action: Action,
        /// How long the client would wait for it, if another client holds it.
        wait: Option<Duration>,
    },
    /// To see it.
    Show,
}

/// A lease that is to be acquired by a read, and how long its client would wait for it.
pub type LeaseOnRead = (Acquire, Option<Duration>);

/// A response that the proxy makes.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its fields.
    pub fields: HeaderMap,
    /// Its body, if it has one.
    pub body: Option<String>,
}

/// A refusal as clients read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDocument {
    /// The status.
    pub status: StatusCode,
    /// The name of the error.
    pub code: &'static str,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The fields beside those of the content.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: String,
}

/// What the upstream's response to a call means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The call succeeded.
    Done {
        /// The status that the client gets.
        status: StatusCode,
        /// Whether the client gets the upstream's body.
        relays_body: bool,
        /// Fields to add.
        fields: Vec<(HeaderName, HeaderValue)>,
    },
    /// The client's copy is current.
    NotModified,
    /// The call failed.
    Failed(ErrorDocument),
}

/// The defaults of a configuration that depend on the dialect.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is the default of a switch of its own")]
pub struct Defaults {
    /// `unique_tags`.
    pub unique_tags: bool,
    /// Whether `on_write` is `"probe"` for each source of tags.
    pub probes_after_write: bool,
    /// Whether `etag_after_write` is `"always"` for version tags.
    pub version_after_write: bool,
    /// `lease.bind`.
    pub bind: bool,
    /// `lease.client_break`.
    pub client_break: bool,
    /// `lease.infinite`.
    pub infinite: bool,
}

/// What a dialect demands of the configuration of a route.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Whether the policy must be `"pessimistic"`.
    pub leases: bool,
    /// Whether clients sign requests, so that the proxy cannot change them, nor probe by their right.
    pub signed_requests: bool,
    /// Keys of the route that have no effect.
    pub idle_keys: &'static [&'static str],
    /// Keys of the lease table that have no effect, each with the reason.
    pub idle_lease_keys: &'static [(&'static str, &'static str)],
    /// The shortest and the longest finite lease.
    pub lease_durations: Option<(Duration, Duration)>,
    /// Whether a read can acquire a lease.
    pub acquires_on_read: bool,
}

/// How a dialect is spoken. What a grammar does not define it speaks as [`native`] does.
pub trait Grammar: Sync {
    /// How it differs from plain HTTP while a request is judged.
    fn quirks(&self) -> &'static Quirks {
        &native::QUIRKS
    }

    /// The defaults of its routes.
    fn defaults(&self) -> &'static Defaults {
        &native::DEFAULTS
    }

    /// What it demands of its routes.
    fn demands(&self) -> &'static Demands {
        &native::DEMANDS
    }

    /// Reads a request to a route with these rules. `is_lease` tells that its path is that of a lease.
    ///
    /// # Errors
    ///
    /// The request cannot be read, or asks for something that the dialect does not serve.
    fn read(&self, request: Incoming<'_>, rules: &GuardRules, is_lease: bool) -> Result<Call, Refusal> {
        native::call(request, rules, is_lease)
    }

    /// Reads a lease operation. `fresh` draws the id of a lease whose client chooses none.
    ///
    /// # Errors
    ///
    /// The request cannot be read, or asks for something that the route does not allow.
    fn lease(&self, request: Incoming<'_>, rules: &LeaseRules, fresh: Fresh) -> Result<LeaseOperation, Refusal> {
        native::read(request.method, request.headers, rules, fresh)
    }

    /// Whether a read asks for the lease of what it reads.
    fn asks_for_lease(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(&native::LEASE_DURATION)
    }

    /// Reads the lease that a GET asks for, if it asks for one (`lease.acquire_on_read`).
    ///
    /// # Errors
    ///
    /// As those of [`Grammar::lease`].
    fn lease_on_read(
        &self,
        headers: &HeaderMap,
        rules: &LeaseRules,
        fresh: Fresh,
    ) -> Result<Option<LeaseOnRead>, Refusal> {
        Ok(native::read_on_get(headers, rules, fresh)?.map(|wanted| (wanted, native::wait(headers))))
    }

    /// The fields by which a client learns of its grant.
    fn grant_fields(
        &self,
        id: LeaseId,
        duration: LeaseDuration,
        snapshot: &Snapshot,
    ) -> Vec<(HeaderName, HeaderValue)> {
        native::grant_fields(id, duration, snapshot).to_vec()
    }

    /// The response to a lease operation that was done. `snapshot` is the record with it, `presented` the id that the
    /// request named; `waited` tells that the client had to wait.
    ///
    /// # Errors
    ///
    /// Success of this kind is an error for the clients of the dialect.
    fn lease_done(
        &self,
        done: Done,
        presented: Option<LeaseId>,
        snapshot: &Snapshot,
        waited: bool,
    ) -> Result<Response, Refusal> {
        let _ = presented;
        Ok(native::done(done, snapshot, waited))
    }

    /// The response that shows a lease.
    fn lease_shown(&self, snapshot: &Snapshot) -> Response {
        native::show(snapshot)
    }

    /// The refusal of a lease operation.
    fn lease_denied(&self, denied: Denied) -> Refusal {
        native::refuse(denied)
    }

    /// The refusal of a read or write that a lease forbids.
    fn use_denied(&self, denied: UseDenied) -> Refusal {
        native::refuse_use(denied)
    }

    /// The field that presents a lease, as it is usually written.
    fn lease_field(&self) -> &'static str {
        LEASE_ID.title
    }

    /// The document that tells a client of a refusal. `random` makes the number of the answer, if it has one.
    fn refusal(&self, request: Incoming<'_>, refusal: &Refusal, random: [u8; 16]) -> ErrorDocument {
        let _ = (request, random);
        native::problem(refusal)
    }

    /// What a status of the upstream means for a call.
    fn outcome(&self, call: &Call, status: StatusCode) -> CallOutcome {
        let _ = call;
        CallOutcome::Done { status, relays_body: true, fields: Vec::new() }
    }

    /// The fields of each answer to a request with these fields. `random` makes the number of the answer.
    fn answer_fields(&self, request: &HeaderMap, random: [u8; 16]) -> Vec<(HeaderName, HeaderValue)> {
        let _ = (request, random);
        Vec::new()
    }

    /// The fields of a 304.
    fn not_modified_fields(&self) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    /// The fields by which a read learns of the lease of its resource.
    fn state_fields(&self, snapshot: &Snapshot) -> Vec<(HeaderName, HeaderValue)> {
        let _ = snapshot;
        Vec::new()
    }

    /// The target by which the upstream is asked for the state of what a request with this target acts on, without the
    /// credentials in it.
    fn probe_target(&self, target: &[u8]) -> Vec<u8> {
        s3::target_without_signature(target)
    }
}

/// Draws the id of a lease.
pub type Fresh = fn() -> Result<LeaseId, Refusal>;
