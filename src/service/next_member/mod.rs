//! The next member of a collection: a GET of the collection with `Lease-Duration` takes the first member that no client
//! holds, in the order of their names (DESIGN, section 8).
//!
//! # Design
//!
//! *Why is the door asked for each member?* A member has a route of its own. A client that takes it, and one that reads it
//! by its name, are judged by the same rules.
//!
//! *Who may take a member?* The backend shows the index to the credentials of the client, and lets the same credentials read
//! the member before its lease is granted (`lease.auth`). What it does not let them read is passed over.

use std::time::Duration;

use http::{Method, StatusCode, header};
use pingora::http::RequestHeader;
use tokio::time::{Instant, timeout_at};

use super::{Service, own_request::call_of};
use crate::{
    body::Client,
    core::{
        members::line::Need,
        quirks::ServiceKind,
        refusal::{Code, Refusal},
    },
    dialect::{
        Response,
        native::{LEASE_DURATION, applied_wait, wait},
    },
    guard::{Answer, Halt, PlaceInLine, Relayed, while_client_waits},
    routing::GuardedRequest,
    telemetry::stream_info,
};
pub(super) use collection::Collection;
pub(super) use look::is_in_use;

mod collection;
mod look;

/// The number of members that may fail before their client gets the failure. A member that always fails must not keep
/// the others from all clients. A backend that fails for all members must not get a request for each.
const FAILURES_MAX: usize = 8;

/// True if a request takes a member, if it names a collection.
pub(super) fn takes_member(head: &RequestHeader, guarded: &GuardedRequest) -> bool {
    guarded.route.guard.as_ref().is_some_and(|rules| rules.quirks.service == ServiceKind::Plain)
        && !guarded.is_lease()
        && guarded.methods.judged == Method::GET
        && head.headers.contains_key(&LEASE_DURATION)
}

/// A member that a client has taken.
struct Taken {
    /// The request by which it was read.
    guarded: GuardedRequest,
    /// The path of the member, as the client knows it.
    path: String,
    answer: Box<Relayed>,
}

/// The result of a look at a member.
enum Looked {
    /// The client has the member.
    Taken(Taken),
    /// The member is not there, or not for this client.
    Passed,
    /// Another client has the member, perhaps for this time.
    Held(Option<Duration>),
    /// The member has changed since its index was read.
    Changed,
    /// The backend fails to show the member, and this is its answer.
    Failed(Answer),
}

impl Service<'_> {
    /// Handles a request for the next member.
    pub(super) async fn handle_next(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
    ) -> pingora::Result<Result<Answer, Refusal>> {
        let (taken, waited) = match self.next_member(client, guarded).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(answer)) => return self.guard.complete(client.head(), guarded, Ok(answer)).await,
            Err(halt) => return self.guard.complete(client.head(), guarded, Err(halt)).await,
        };
        let Taken { guarded, path, answer } = taken;
        let mut answer = self.guard.complete(client.head(), &guarded, Ok(Answer::Relayed(answer))).await?;
        if let Ok(Answer::Relayed(relayed)) = &mut answer {
            relayed.head.insert_header(header::CONTENT_LOCATION, path)?;
            if waited {
                let (name, value) = applied_wait();
                relayed.head.insert_header(name, value)?;
            }
        }
        Ok(answer)
    }

    /// Takes the next member, and tells whether the client has waited for it. Otherwise returns the answer without one.
    async fn next_member(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
    ) -> Result<Result<(Taken, bool), Answer>, Halt> {
        let (rules, call) = call_of(client.head(), guarded)?;
        if !call.conditions.is_empty() || call.lease_id.is_some() {
            return Err(of_no_member().into());
        }
        let request = self.guard.request(client, guarded, rules, call)?;
        let gate = &request.place.gate;
        let collection = Collection::of(self.guard, client.head(), guarded)?;
        let limits = self.wait_limits(client, &collection, guarded)?;
        let place = self.guard.stand_in_line(&request, &collection.members);
        let patience = wait(&client.head().headers).filter(|_| place.count <= limits.max_waiters);
        let end = Instant::now() + patience.unwrap_or_default().min(limits.max_wait);
        let (mut waited, mut failures, mut failed) = (false, 0, None);
        loop {
            if client.has_gone() {
                return Err(Halt::Broken(pingora::Error::new_down(pingora::ErrorType::ConnectionClosed)));
            }
            let waits = Instant::now() < end && !gate.has_cancelled_waiters();
            match place.need(waits) {
                Need::Look(dealt) => match self.look(client, (&collection, guarded), &place, &dealt).await? {
                    Looked::Taken(taken) => {
                        place.serve();
                        stream_info::acts_on(&taken.guarded.key);
                        return Ok(Ok((taken, waited)));
                    }
                    Looked::Failed(answer) => {
                        failures += 1;
                        if failures == FAILURES_MAX {
                            return Ok(Err(answer));
                        }
                        failed = Some(answer);
                        place.skip(None);
                    }
                    looked => pass_over(&place, &looked),
                },
                Need::Page | Need::Pass => {
                    let newest = || self.guard.records().newest_seen();
                    let turn = while_client_waits(client, place.turn_to_read(waits, newest)).await?;
                    if let Some(turn) = turn {
                        let reading = self.read_index(&request, &collection, turn.start.as_ref());
                        let page = while_client_waits(client, reading).await??;
                        turn.show(page);
                    }
                }
                Need::Nothing if !waits || failed.is_some() => {
                    return Ok(Err(failed.unwrap_or_else(|| nothing(waited))));
                }
                Need::Nothing => {
                    waited = true;
                    let change = gate.unless_cancelled(place.change());
                    let _ = while_client_waits(client, timeout_at(end, change)).await?;
                }
            }
        }
    }
}

/// Leaves a member to others.
fn pass_over(place: &PlaceInLine, looked: &Looked) {
    match looked {
        Looked::Held(free_after) => place.skip(*free_after),
        Looked::Changed if place.set_aside() => {}
        _ => place.skip(None),
    }
}

/// The answer if there was no member for the client.
fn nothing(waited: bool) -> Answer {
    let mut nothing = Response::empty(StatusCode::NO_CONTENT);
    if waited {
        nothing.fields.extend([applied_wait()]);
    }
    Answer::local(nothing)
}

/// The refusal of a request that says something of a member before it is known which one it is.
fn of_no_member() -> Refusal {
    let detail = "the request takes the next member, and no condition or lease can name that before: leave out the If \
                  fields and Lease-Id";
    Refusal::new(Code::MalformedRequest, detail)
}
