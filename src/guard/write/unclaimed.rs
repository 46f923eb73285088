//! The life of an unclaimed write, which appends rather than replaces and runs beside others (DESIGN, section 4).

use tokio::time::Instant;

use super::{
    Writes,
    idempotency::{BODY_BYTES_MAX, Beginning, KeyedWrite, key_of_write},
    send::{end_of, head_of_write},
};
use crate::{
    body::{Body, Client, MemoryUse},
    core::{
        cause::Reason,
        records::{record::Availability, steps::Outcome},
        rights::Obstacle,
    },
    guard::{
        Answer, Halt,
        answer::withhold_foreign_tag,
        claim::{
            Held, Holding, MarkKind,
            places::{Places, TouchedPart},
        },
        refusals,
        request::Request,
        request_conditions::remove_conditions,
    },
    store::Sighting,
    upstream::{BufferedBody, fields::response_head, read_whole},
};

impl Writes {
    /// Handles a write without a precondition or a lease id. Its mark shows others that the resource may change
    /// meanwhile.
    pub(crate) async fn write_unclaimed(&self, client: &mut dyn Client, request: &Request) -> Result<Answer, Halt> {
        self.knowledge.is_unclaimed(request);
        let key = key_of_write(client, request)?;
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        let mut attempt = match self.begin(key, client.head(), request, &body).await? {
            Beginning::First(attempt) => attempt,
            Beginning::Replayed(answer) => return Ok(answer),
        };
        let answer = self.append(request, &body, &mut attempt).await;
        attempt.end(&answer).await;
        answer
    }

    async fn append(&self, request: &Request, body: &Body, attempt: &mut KeyedWrite) -> Result<Answer, Halt> {
        let mut head = head_of_write(request, body)?;
        if !request.rules().etag.is_upstreams_own() {
            // The preconditions that could not be read and are ignored (RFC 9110 section 13.1).
            remove_conditions(&mut head);
        }
        let end = Instant::now() + request.rules().claim.max_wait;
        let touched = self.touched(request);
        self.must_know_of_line(request, None, &touched).await?;
        let mut places = self.claims.stand_to_append(request, &touched, end).await?;
        let pass = request.pass().await?;
        let mut claim = self.mark_unclaimed(request, &mut places, end).await?;
        places.step_aside();
        // The write counts as a member of the line only while it waits, not while it is in flight.
        drop(places);
        attempt.bound(&mut claim);
        let (mut exchange, claim) = self.send(request, claim, (head, body), Outcome::NotApplied).await?;
        self.touch_named(request, exchange.head()).await;
        let status = exchange.head().status;
        let outcome = Outcome::of_status(status);
        attempt.answered(exchange.head());
        let end = end_of(request, exchange.head(), None);
        let settled = claim.settle_shown(outcome, None, None, end).await;
        drop(pass);
        // A replay also carries the body if it is short and arrives at once.
        let begun = if attempt.is_named() {
            let (wait, budget) = (request.wait_for_body(exchange.head()), self.bodies.budget_for(MemoryUse::Response));
            let read = read_whole(&mut exchange, BODY_BYTES_MAX, wait, budget).await;
            read.map_err(|_failure| {
                refusals::of_lost_response(status.as_u16(), outcome, request.upstream().late_write_window)
            })?
        } else {
            BufferedBody::unread()
        };
        let mut answer = response_head(exchange.take_head());
        let spelling = self.knowledge.spelling(request, settled.as_ref().map(|settled| &settled.snapshot));
        withhold_foreign_tag(&mut answer, request.rules(), &spelling)?;
        Answer::read_so_far(answer, begun, exchange).await
    }

    /// Adds the mark beside all other writes in flight or in doubt, after the turns of those that came before.
    async fn mark_unclaimed(&self, request: &Request, places: &mut Places, end: Instant) -> Result<Held, Halt> {
        loop {
            if !self.others_are_free(request, places, TouchedPart::Before, end).await? {
                continue;
            }
            let since = Instant::now();
            let seen = Sighting { snapshot: self.knowledge.record(request).await?, since };
            let snapshot = &seen.snapshot;
            if snapshot.above.is_some() {
                self.claims.may_write(snapshot)?;
            }
            let must_wait = snapshot.above.is_some() || snapshot.availability() == Availability::Orphaned;
            if places.own.is_behind(snapshot) || must_wait {
                self.claims.wait_for_own(request, snapshot, places, end).await?;
                continue;
            }
            if !self.others_are_free(request, places, TouchedPart::After, end).await? {
                continue;
            }
            self.claims.may_begin(snapshot)?;
            let right = self.leases.permit(request, snapshot).await?;
            // A POST to a missing resource may add a member, as a PUT does.
            self.judge_membership(request, snapshot).await?;
            match self.claims.hold(request, places, &seen, MarkKind::Unclaimed, (right, None)).await {
                Ok(Holding::Done(held)) => return Ok(held),
                Ok(Holding::Full) => {
                    self.probes.must_know(request, snapshot, Obstacle::Write).await?;
                    return Err(refusals::too_many_unclaimed().into());
                }
                Ok(Holding::Conflict(_) | Holding::Taken) if Instant::now() < end => {}
                Ok(Holding::Conflict(_) | Holding::Taken) => {
                    return Err(refusals::write_in_flight(refusals::RETRY_SOON, Reason::WriteInFlight).into());
                }
                Err(error) => return Err(refusals::of_store(&error).into()),
            }
        }
    }
}
