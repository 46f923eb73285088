//! Watching resources: a stream of events, or the wait for one change (DESIGN, section 8, "Watch").
//!
//! # Design
//!
//! *Who may watch?* Each client that may read. The proxy asks the upstream with the client's credentials before the
//! first event, and again each `identity_ttl`. The client gets the upstream's answer. So a hidden resource looks like a
//! missing one.
//!
//! *What if one of several resources is denied?* The others are watched, and an event shows the status for this one. If
//! all are denied, the client gets the answer for the first one.
//!
//! *What does a watch hold?* A place of its own among the watches, and nothing that a guarded request waits for: no claim,
//! no place in a line, no connection to a server.

use std::{borrow::Cow, time::Duration};

use futures_util::{StreamExt as _, stream::iter};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use pingora::http::RequestHeader;

use super::{Service, events, head_alone::HeadAlone};
use crate::{
    body::Client,
    core::{
        http::request_target::split_query,
        records::record::Snapshot,
        refusal::{Code, Refusal},
        tags::precondition::{Preconditions, TagCondition},
        watch::{NAMES_MAX, Sight, StateId, StateObserver, names_in_query, state_tag},
    },
    dialect::{Incoming, Response, native},
    guard::{Answer, Halt, Watcher, rules_of},
    routing::{Facet, GuardedRequest, door::Door},
};
use questions::ASKED_AT_ONCE;
use stream::EventStream;
use wait::Wait;
use watching::{Watched, Watching};

mod questions;
mod stream;
#[cfg(test)]
mod tests;
mod wait;
mod watching;

/// The fields of a watch that the upstream must not read as those of a read. What it is asked names no form of events.
static OF_WATCH: [HeaderName; 10] = [
    header::ACCEPT,
    header::CACHE_CONTROL,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
    header::RANGE,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("prefer"),
];

/// The request of a client for a watch.
struct WatchWanted {
    /// True if it reads a stream of events.
    stream: bool,
    /// The state that it knows.
    known: Option<TagCondition>,
    /// The state that it saw before its stream broke off.
    last_event: Option<String>,
    /// How long it waits for one change.
    wait: Option<Duration>,
}

impl Service<'_> {
    /// Handles a request to watch resources.
    pub(super) async fn answer_watch(&self, client: &mut dyn Client, guarded: &GuardedRequest) -> Result<Answer, Halt> {
        let rules = rules_of(guarded)?;
        let wanted = WatchWanted::of(&client.head().headers);
        let named = self.named(client, guarded)?;
        let places = self.guard.watch_places(guarded.client, named.len())?;
        let sender = HeadAlone::of(client);
        let asking = named.into_iter().map(|named| self.begin(&sender, named));
        let begun: Vec<_> = iter(asking).buffered(ASKED_AT_ONCE).collect().await;
        let mut watched = Vec::with_capacity(begun.len());
        let (mut first, mut denied) = (Vec::new(), Vec::new());
        let mut of_first_denied = None;
        for (name, begun) in begun {
            match begun {
                Ok((own, snapshot, sight)) => {
                    let observer = StateObserver::new(&snapshot, sight);
                    watched.push(Watched::new(name, own, observer));
                    first.push(snapshot);
                }
                Err(Halt::Denied(relayed)) => {
                    denied.push((name, relayed.head.status));
                    match of_first_denied {
                        None => of_first_denied = Some(relayed),
                        Some(_) => relayed.discard().await,
                    }
                }
                Err(halt) => return Err(halt),
            }
        }
        match of_first_denied {
            Some(relayed) if watched.is_empty() => return Err(Halt::Denied(relayed)),
            Some(relayed) => relayed.discard().await,
            None => {}
        }
        let (watching, end) = (Watching::of(watched), self.guard.end().clone());
        if wanted.stream {
            let stream = EventStream::new(watching, (&first, &denied), wanted.last_event.as_deref(), (places, end));
            return Ok(stream.into_answer());
        }
        let max_wait = rules.watch_max_wait;
        Wait { watching, snapshots: first, denied, end }.answer(client, &wanted, max_wait).await
    }

    /// Returns the resources that a request names: that of its path, or those of its query.
    fn named(
        &self,
        client: &dyn Client,
        guarded: &GuardedRequest,
    ) -> Result<Vec<(GuardedRequest, RequestHeader)>, Halt> {
        let (head, prefix) = (client.head(), &rules_of(guarded)?.watch_prefix);
        let (path, _) = split_query(head.raw_path());
        let is_list = path == prefix.as_bytes();
        let names = if is_list { names_in_query(head.raw_path()).collect() } else { Ok(Vec::new()) };
        let names: Vec<Vec<u8>> = names?;
        if names.is_empty() {
            return Ok(vec![(guarded.clone(), RequestHeader::clone(head))]);
        }
        if names.len() > NAMES_MAX {
            let detail = format!("name at most {NAMES_MAX} resources in one request");
            return Err(Refusal::new(Code::TargetTooLong, detail).into());
        }
        let one = |name: Vec<u8>| {
            let mut head = RequestHeader::clone(head);
            head.set_raw_path(&[path, &name].concat())?;
            match self.guard.door(&Method::GET, &head, guarded.client) {
                Door::Guarded(found) if found.facet == Facet::Watch => Ok((found, head)),
                Door::Refuse { refusal, .. } => Err(Halt::from(refusal)),
                _ => Err(Refusal::new(Code::NoRoute, "name resources of routes with watch = true").into()),
            }
        };
        names.into_iter().map(one).collect()
    }

    /// Begins to watch one resource.
    async fn begin(
        &self,
        sender: &HeadAlone,
        (guarded, mut head): (GuardedRequest, RequestHeader),
    ) -> (String, Result<(Watcher, Snapshot, Sight), Halt>) {
        let rules = match rules_of(&guarded) {
            Ok(rules) => rules,
            Err(error) => return (String::new(), Err(error.into())),
        };
        let name = name_of(head.raw_path().get(rules.watch_prefix.len()..).unwrap_or_default());
        for field in &OF_WATCH {
            head.remove_header(field);
        }
        let begun = async {
            head.insert_header(header::ACCEPT, HeaderValue::from_static("*/*"))?;
            let mut client = sender.with(head);
            let incoming = Incoming {
                method: &Method::GET,
                other_methods: &[],
                target: client.head().raw_path(),
                headers: &client.head().headers,
            };
            let call = native::call(incoming, rules, false)?;
            let request = self.guard.request(&mut client, &guarded, rules, call)?;
            self.guard.watch(request).await
        };
        (name, Box::pin(begun).await)
    }
}

impl WatchWanted {
    fn of(headers: &HeaderMap) -> Self {
        let last_event = headers.get("last-event-id").and_then(|id| id.to_str().ok());
        Self {
            stream: events::are_wanted(headers),
            known: Preconditions::parse_for_read(headers).if_none_match,
            last_event: last_event.map(str::to_owned),
            wait: native::wait(headers),
        }
    }

    /// True if the client knows the states with this name.
    fn knows(&self, id: &StateId) -> bool {
        let is_named = |tag: &crate::core::tags::entity_tag::EntityTag| tag.opaque() == id.as_str().as_bytes();
        match &self.known {
            Some(TagCondition::Tags(tags)) => tags.iter().any(is_named),
            Some(TagCondition::Any) => true,
            None => false,
        }
    }
}

/// Returns the target of a resource as text.
fn name_of(target: &[u8]) -> String {
    let name = String::from_utf8_lossy(target);
    if name.starts_with('/') { Cow::into_owned(name) } else { format!("/{name}") }
}

/// The answer that tells states as JSON.
fn told(body: String, id: &StateId) -> Response {
    Response { status: StatusCode::OK, fields: fields_of_state(id, "application/json"), body: Some(body) }
}

/// The fields of an answer that tells states.
fn fields_of_state(id: &StateId, content_type: &'static str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(tag) = state_tag(id) {
        fields.insert(header::ETAG, tag.to_header_value());
    }
    fields
}
