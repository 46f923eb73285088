//! The cause of a refusal: a reason more exact than its code, and the facts that the verdict rested on.
//!
//! # Design
//!
//! *Who sees what?* The reason, the tags that the client sent, and why its own earlier read got no tag, are for the
//! client. All other facts show the state of
//! the resource: an operator sees them, and a client only if `client_may_know`.

use std::{fmt, time::Duration};

use super::{
    lease::LeaseNote,
    records::record::Snapshot,
    tags::{
        entity_tag::EntityTag,
        precondition::{Preconditions, TagCondition},
    },
};

/// How many characters of a tag are shown: enough to tell tags apart, and too few to use one.
const TAG_CHARACTERS: usize = 16;
/// The room for one shown tag in ASCII.
const SHOWN_BYTES: usize = TAG_CHARACTERS + "W/\"\"...".len();
/// How many tags of a list are shown.
const TAGS: usize = 3;

/// The id of one refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub u64);

impl RequestId {
    /// Reads an id as [`Display`](fmt::Display) writes it, alone or as a URN.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("urn:ifmatch:request:").unwrap_or(text);
        let is_id = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).ok().filter(|_| is_id).map(Self)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// Defines an enumeration whose values are words in logs, metrics and documents.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $value,)* }

        impl $name {
            /// The word in logs, metrics and documents.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }
        }
    };
}

words! {
    /// The reason why a request was refused, if its code has several reasons.
    Reason {
        /// `If-Match` names another state than the current one.
        StaleTag = "stale-tag",
        /// `If-Match` names the current state by a tag that was weakened on its way.
        WeakTag = "weak-tag",
        /// `If-Match` was sent, and the backend's current tag is weak, so that no tag can match it.
        BackendTagWeak = "backend-tag-weak",
        /// `If-Match` was sent, and the current representation has no tag.
        NoCurrentTag = "no-current-tag",
        /// `If-Match` was sent, and there is no representation.
        ResourceMissing = "resource-missing",
        /// `If-None-Match` excludes the current representation.
        ResourceExists = "resource-exists",
        /// The resource has changed since the date in `If-Unmodified-Since`, or may have.
        ChangedSinceDate = "changed-since-date",
        /// The date in `If-Unmodified-Since` may be that of an earlier state.
        AmbiguousDate = "ambiguous-date",
        /// The resource has not changed since the date in `If-Modified-Since`.
        UnchangedSinceDate = "unchanged-since-date",
        /// The request has none of the preconditions that the route requires.
        NoPrecondition = "no-precondition",
        /// The date in `If-Unmodified-Since` is all that the request has, and it cannot be compared.
        UnusableDate = "unusable-date",
        /// The request has `If-Match: *`, which the route does not accept as a precondition.
        AnyTagNotAllowed = "any-tag-not-allowed",
        /// Another client holds the lease.
        LeaseHeld = "lease-held",
        /// No client holds the lease, and the route requires one.
        LeaseRequired = "lease-required",
        /// Other clients wait for the lease.
        LeaseAwaited = "lease-awaited",
        /// Another write on the resource is in flight.
        WriteInFlight = "write-in-flight",
        /// The outcome of an earlier write on the resource cannot be known yet.
        WriteInDoubt = "write-in-doubt",
        /// The proxy has just started.
        StartGrace = "start-grace",
        /// Too many requests wait for their turn at the resource.
        LineFull = "line-full",
        /// The turn of the request did not come in time.
        WaitTooLong = "wait-too-long",
        /// The rules of the route changed during the request.
        RouteChanged = "route-changed",
        /// Too many requests wait for their turns, at all resources together.
        AllLinesFull = "all-lines-full",
        /// The servers have as many exchanges as they may.
        UpstreamFull = "upstream-full",
        /// Connecting to a server took too long.
        ConnectionTooSlow = "connection-too-slow",
        /// The budget of request bodies is used up.
        BodiesFull = "bodies-full",
        /// A body cannot be written to the spool directory.
        SpoolFailed = "spool-failed",
        /// The record of the resource has no room for another write.
        RecordFull = "record-full",
        /// The store does not answer, or answers with an error.
        StoreFailed = "store-failed",
        /// The store has lost acknowledged writes, and waits for an operator.
        StoreLostWrites = "store-lost-writes",
    }
}

words! {
    /// The reason why a response on a guarded route has no tag.
    Untagged {
        /// The body is larger than `max_hash_size`, or than the room for bodies.
        TooLarge = "too-large",
        /// The body did not arrive within `hash_wait`.
        TooSlow = "too-slow",
        /// The body is a stream.
        Stream = "stream",
        /// The source of the route's tags is not in the response.
        NoSource = "no-source",
        /// The record of the resource cannot be used: the store does not answer, or the proxy has just started.
        NoRecord = "no-record",
    }
}

impl Untagged {
    /// The reason and the remedy, as the end of a sentence that says that a resource has no tag.
    pub const fn because(self) -> &'static str {
        match self {
            Self::TooLarge => {
                "its body is larger than max_hash_size (or than the room in max_body_memory_total): raise that limit, \
                 or set etag to a source that does not need the body"
            }
            Self::TooSlow => {
                "its body did not arrive within hash_wait: raise it, let the backend send Content-Length, or set etag \
                 to a source that does not need the body"
            }
            Self::Stream => {
                "its body is a stream (text/event-stream, or with trailers): if these responses need a tag, set etag \
                 to a source that does not need the body"
            }
            Self::NoSource => "the backend's response did not have the source of the route's tags (etag)",
            Self::NoRecord => {
                "the store did not answer, or the proxy had started moments before: read the resource again"
            }
        }
    }
}

words! {
    /// A setting of a route by which a tag counts that is refused without it.
    Setting {
        /// Tags of this proxy that a gateway has weakened count.
        AcceptWeakOwn = "accept_weak_own = true",
        /// Tags are compared as texts.
        CompareOpaque = "compare = \"opaque\"",
    }
}

/// A lease that was in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseInTheWay {
    /// The label that its holder gave itself.
    pub holder: Option<Box<str>>,
    /// The time until it ends unless it is renewed; `None` for an infinite lease.
    pub remaining: Option<Duration>,
    /// The service's note about the lease.
    pub note: Option<LeaseNote>,
}

impl LeaseInTheWay {
    /// The lease in a record, if it is held; else that of a tree around the resource.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        let own = snapshot.lease().filter(|_| snapshot.lease_state().is_held());
        let lease = own.or_else(|| snapshot.holding_leases().next())?;
        let holder = lease.holder.as_ref().map(|holder| holder.as_str().into());
        Some(Self { holder, remaining: lease.remaining(snapshot.now), note: lease.note.clone() })
    }
}

/// The last change of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastChange {
    /// The time between the change and the refusal.
    pub age: Duration,
    /// The id of the trace of the write.
    pub trace_id: Option<Box<str>>,
    /// True if another client made the change, and the client of the refused request has read an earlier version through
    /// this process, and none since.
    pub is_unread: bool,
}

/// The reason for a refusal and the facts behind it, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The reason, if the code has several.
    pub reason: Option<Reason>,
    /// The tags that the request named, shortened.
    pub sent_tag: Option<Box<str>>,
    /// The current tag, shortened.
    pub current_tag: Option<Box<str>>,
    /// The setting with which the request would have passed.
    pub saved_by: Option<Setting>,
    /// The last change of the resource.
    pub last_change: Option<LastChange>,
    /// The status of the upstream's answer to the probe that decided.
    pub probe_status: Option<u16>,
    /// The lease.
    pub lease: Option<LeaseInTheWay>,
    /// The path of the resource that the lease is on, if it is not on the target but above or below it.
    pub leased_elsewhere: Option<Box<str>>,
    /// The reason why an earlier read of the resource got no tag.
    pub untagged: Option<Untagged>,
    /// True if the client may know the state of the resource.
    pub client_may_know: bool,
}

/// Returns a tag in its quotes, with at most 16 characters.
pub fn shortened(tag: &EntityTag) -> String {
    let mut shown = String::with_capacity(SHOWN_BYTES);
    append_shortened(&mut shown, tag);
    shown
}

fn append_shortened(shown: &mut String, tag: &EntityTag) {
    let text = String::from_utf8_lossy(tag.opaque());
    let cut = text.char_indices().nth(TAG_CHARACTERS).and_then(|(end, _)| text.get(..end));
    shown.push_str(if tag.is_weak() { "W/\"" } else { "\"" });
    shown.push_str(cut.unwrap_or(&text));
    shown.push_str(if cut.is_some() { "\"..." } else { "\"" });
}

/// Returns the tags that a request names, shortened.
pub fn named_tags(conditions: &Preconditions) -> Option<Box<str>> {
    match conditions.if_match.as_ref().or(conditions.if_none_match.as_ref())? {
        TagCondition::Any => Some("*".into()),
        TagCondition::Tags(tags) => {
            let mut shown = String::with_capacity(SHOWN_BYTES);
            for (index, tag) in tags.iter().take(TAGS).enumerate() {
                shown.push_str(if index == 0 { "" } else { ", " });
                append_shortened(&mut shown, tag);
            }
            shown.push_str(if tags.len() > TAGS { ", ..." } else { "" });
            Some(shown.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_shortened_inside_its_quotes() {
        let shown = |text: &str| shortened(&EntityTag::of_text(text.as_bytes()).expect("a tag"));
        assert_eq!(shown("\"0123456789abcdef\""), "\"0123456789abcdef\"");
        assert_eq!(shown("W/\"0123456789abcdefg\""), "W/\"0123456789abcdef\"...");
        assert_eq!(shown("\"\""), "\"\"");
    }

    #[test]
    fn at_most_three_tags_of_a_list_are_shown() {
        let named = |field: &'static str| {
            let headers = [(http::header::IF_MATCH, http::HeaderValue::from_static(field))].into_iter().collect();
            named_tags(&Preconditions::parse(&headers).expect("well-formed"))
        };
        assert_eq!(named("*").as_deref(), Some("*"));
        assert_eq!(named("\"a\", W/\"b\"").as_deref(), Some("\"a\", W/\"b\""));
        assert_eq!(named("\"a\", \"b\", \"c\", \"d\"").as_deref(), Some("\"a\", \"b\", \"c\", ..."));
        assert_eq!(named_tags(&Preconditions::default()), None);
    }

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let id = RequestId(0xa1);
        assert_eq!(id.to_string(), "00000000000000a1");
        assert_eq!(RequestId::parse("00000000000000a1"), Some(id));
        assert_eq!(RequestId::parse("urn:ifmatch:request:00000000000000A1"), Some(id));
        for text in ["", "a1", "+0000000000000a1", "00000000000000a1 ", "000000000000000g"] {
            assert_eq!(RequestId::parse(text), None, "{text}");
        }
    }
}
