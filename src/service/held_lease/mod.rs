//! Leases that clients hold by streams: an acquisition with `Accept: text/event-stream` stays open for as long as its
//! client holds the lease (DESIGN, section 8, "A lease held by a stream").
//!
//! # Design
//!
//! *When does the stream begin?* With the grant, or as soon as a client that is willing to wait has to. Until then each
//! refusal is the ordinary answer.
//!
//! *What does it hold?* A place among the watches, and nothing that a guarded request waits for. While its client waits
//! for the lease, it also stands in the line of the lease.
//!
//! *Who renews the lease?* Its keeper ([`LeaseKeeper`](crate::guard::LeaseKeeper)), no matter what the stream does.

use http::{HeaderMap, HeaderValue, Method, header};
use pingora::http::RequestHeader;

use super::{Service, events};
use crate::{
    body::Client,
    core::{
        lease::{Action, KeeperName, LeaseDuration},
        policy::LeaseRules,
        refusal::{Code, Refusal},
    },
    dialect::LeaseOperation,
    entropy::random_u64,
    guard::{Answer, Halt, fresh_id, incoming, rules_of, while_client_waits},
    routing::GuardedRequest,
};
use stream::{HeldLease, LeaseStream};

#[cfg(test)]
mod random_tests;
mod stream;
#[cfg(test)]
mod tests;

/// True if a lease operation acquires a lease that its client holds by a stream.
pub(super) fn is_wanted(head: &RequestHeader, judged: &Method) -> bool {
    *judged == Method::POST && events::are_wanted(&head.headers)
}

impl Service<'_> {
    /// Handles a request for a lease that its client holds by a stream.
    pub(super) async fn answer_held_lease(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
    ) -> Result<Answer, Halt> {
        if client.has_content() {
            return Err(has_content().into());
        }
        let rules = rules_of(guarded)?;
        let grammar = rules.dialect.grammar();
        let call = grammar.read(incoming(client.head(), guarded), rules, true)?;
        let Some(lease_rules) = &rules.lease else { return Err(no_lease().into()) };
        let operation = grammar.lease(incoming(client.head(), guarded), lease_rules, fresh_id)?;
        let LeaseOperation::Step { action: Action::Acquire(wanted), wait } = operation else {
            return Err(no_lease().into());
        };
        if wanted.duration == LeaseDuration::Infinite {
            return Err(without_end(lease_rules).into());
        }
        let places = self.guard.watch_places(guarded.client, 1)?;
        let keeper = KeeperName::of(random_u64().map_err(|_error| no_numbers())?);
        let request = self.guard.request(client, guarded, rules, call)?;
        self.guard.finish_expected_delete(client, &request).await;
        let lease = self.guard.streamed_lease(request, client.head().raw_path(), keeper);
        let mut acquisition = lease.acquire(lease_rules, wanted, wait);
        let operated = while_client_waits(client, async {
            if wait.is_some() { acquisition.acquired_at_once().await } else { Some(acquisition.acquired().await) }
        });
        let operated = operated.await?.transpose()?;
        let ends = (places, self.guard.end().clone());
        let lease = HeldLease { lease, rules: lease_rules.clone() };
        let stream = match operated {
            Some(operated) => LeaseStream::granted(lease, operated, ends)?,
            None => LeaseStream::waiting(lease, acquisition, ends).await,
        };
        let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let events = (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        Ok(Answer::lasting(HeaderMap::from_iter([no_store, events]), Box::new(stream)))
    }
}

fn has_content() -> Refusal {
    let detail = "send no content with the request for a lease that a stream holds: only then ifmatch sees that its \
                  client has gone";
    Refusal::new(Code::MalformedRequest, detail)
}

fn without_end(rules: &LeaseRules) -> Refusal {
    let (min, max) = (rules.min.as_secs_f64(), rules.max.as_secs_f64());
    let detail = format!(
        "a lease that a stream holds has an end, in case that ifmatch dies: Lease-Duration is a number of seconds from \
         {min} to {max}"
    );
    Refusal::new(Code::MalformedLeaseHeader, detail)
}

fn no_lease() -> Refusal {
    Refusal::new(Code::NotSupported, "this route has no leases that a stream can hold")
}

fn no_numbers() -> Refusal {
    Refusal::new(Code::Overloaded, "no random numbers available; try again")
}
