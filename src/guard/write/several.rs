//! A write of several resources that one request names: all of them, or none (DESIGN, section 3, rule 1).
//!
//! # Design
//!
//! *Why all or none?* The upstream gets the request as its client has sent it, and may have signed it. So no resource can be
//! left out of it.
//!
//! *Why are all judged before the first claim?* A verdict counts for the very record that the claim is swapped in for.
//! So a write that is refused claims nothing, and lets no other write wait.
//!
//! *Why are the claims taken one by one?* Of two processes that claim some of the same resources, the one that gets the
//! first of these goes on. The other gives all that it has back, and waits with nothing in its hands.

use futures_util::future::join_all;
use http::StatusCode;
use pingora::http::{RequestHeader, ResponseHeader};
use tokio::time::Instant;

use super::{
    Writes,
    admit::Basis,
    idempotency::{Beginning, KeyedWrite, key_of_write},
    send::{end_of, head_of_write},
};
use crate::{
    body::{Body, Client, MemoryUse},
    core::{
        cause::Reason,
        records::{record::Availability, steps::Outcome},
    },
    guard::{
        Answer, Halt,
        answer::set_tag,
        claim::{Held, turn::PlaceInFront},
        refusals,
        request::Request,
    },
    store::Sighting,
    upstream::{BufferedBody, fields::response_head, read_whole},
};

/// How many resources the store or the upstream is asked about at the same time.
const AT_ONCE: usize = 16;

/// The longest answer of the upstream that is read for what became of each resource, in bytes.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The knowledge of a service about a write of several resources. The resources are numbered in the order in which the
/// service has named them.
pub(crate) trait WrittenMembers: Sync {
    /// Returns the answer to a write of which these resources are refused. Nothing was sent.
    fn refused(&self, refused: Vec<(usize, Halt)>) -> Result<Answer, Halt>;

    /// Returns what became of each resource, by the status of the answer and, if it is whole, by its body.
    fn outcomes(&self, status: StatusCode, body: Option<&[u8]>) -> Vec<Outcome>;
}

/// The writes of one resource, each with the number of its own.
type WriteGroup<'a> = &'a [(usize, Request)];

/// The write that a group is claimed by: the first.
fn lead(group: WriteGroup<'_>) -> Option<&Request> {
    group.first().map(|(_, request)| request)
}

/// The claims of all groups, with what the leads were judged by; else the writes that are refused.
type AdmittedGroups = Result<(Held, Vec<Basis>), Vec<(usize, Halt)>>;

impl Writes {
    /// Handles a request that writes several resources. `named` are the writes of each alone, and `request` is what the
    /// upstream gets.
    pub(crate) async fn write_several(
        &self,
        client: &mut dyn Client,
        (request, body): (&Request, &Body),
        named: Vec<Request>,
        members: &dyn WrittenMembers,
    ) -> Result<Answer, Halt> {
        let key = key_of_write(client, request)?;
        let mut attempt = match self.begin(key, client.head(), request, body).await? {
            Beginning::First(attempt) => attempt,
            Beginning::Replayed(answer) => return Ok(answer),
        };
        let mut named: Vec<_> = named.into_iter().enumerate().collect();
        // The order of claims. Of one resource, the shortest target is that of its current state.
        named.sort_by(|(_, one), (_, other)| {
            other.key.cmp(&one.key).then(one.head.raw_path().len().cmp(&other.head.raw_path().len()))
        });
        let groups: Vec<WriteGroup<'_>> = named.chunk_by(|(_, one), (_, other)| one.key == other.key).collect();
        let answer = self.write_groups((request, body), &groups, members, &mut attempt).await;
        attempt.end(&answer).await;
        answer
    }

    async fn write_groups(
        &self,
        (request, body): (&Request, &Body),
        groups: &[WriteGroup<'_>],
        members: &dyn WrittenMembers,
        attempt: &mut KeyedWrite,
    ) -> Result<Answer, Halt> {
        let head = head_of_write(request, body)?;
        let end = Instant::now() + request.rules().claim.max_wait;
        let leads: Vec<&Request> = groups.iter().copied().filter_map(lead).collect();
        let mut places = Vec::with_capacity(leads.len());
        for lead in &leads {
            self.must_know_of_line(lead, None, &[]).await?;
            places.push(self.claims.stand_to_claim_one(lead, end).await?);
        }
        let pass = request.pass_with(&leads).await?;
        let (claims, bases) = match self.admit_groups(groups, &mut places, end).await? {
            Ok(admitted) => admitted,
            Err(refused) => return members.refused(refused),
        };
        places.iter_mut().for_each(PlaceInFront::step_aside);
        let answer = self.send_for_all((request, head, body), (claims, groups, bases), members, attempt).await;
        drop((pass, places));
        answer
    }

    /// Judges each write, and claims all resources if none is refused.
    async fn admit_groups(
        &self,
        groups: &[WriteGroup<'_>],
        places: &mut [PlaceInFront],
        end: Instant,
    ) -> Result<AdmittedGroups, Halt> {
        loop {
            let Some(seen) = self.see_all_free(groups, places, end).await? else { continue };
            let bases = match self.judge_groups(groups, &seen).await {
                Ok(bases) => bases,
                Err(refused) => return Ok(Err(refused)),
            };
            let leads = groups.iter().copied().filter_map(lead).zip(&seen).zip(&bases);
            let claimed = leads.map(|((lead, seen), basis)| (lead, seen, basis.standing)).collect::<Vec<_>>();
            match self.claims.hold_each(&claimed).await.map_err(|error| refusals::of_store(&error))? {
                Some(claims) => return Ok(Ok((claims, bases))),
                None if Instant::now() < end => {}
                None => return Err(refusals::write_in_flight(refusals::RETRY_SOON, Reason::WriteInFlight).into()),
            }
        }
    }

    /// Reads the records of all resources. If one of these is not free, waits for it, and returns `None`.
    async fn see_all_free(
        &self,
        groups: &[WriteGroup<'_>],
        places: &mut [PlaceInFront],
        end: Instant,
    ) -> Result<Option<Vec<Sighting>>, Halt> {
        let leads: Vec<&Request> = groups.iter().copied().filter_map(lead).collect();
        let mut seen = Vec::with_capacity(leads.len());
        for portion in leads.chunks(AT_ONCE) {
            let mut reading = Vec::with_capacity(AT_ONCE);
            for lead in portion {
                reading.push(self.read_for(lead));
            }
            for read in join_all(reading).await {
                seen.push(read?);
            }
        }
        for (number, (lead, Sighting { snapshot, .. })) in leads.iter().zip(&seen).enumerate() {
            let Some(place) = places.get_mut(number) else { continue };
            self.claims.may_begin(snapshot)?;
            if place.is_behind(snapshot) || snapshot.availability() != Availability::Free {
                if snapshot.availability() != Availability::Orphaned {
                    self.must_know_to_wait(lead, snapshot).await?;
                }
                self.claims.wait_for_one(lead, snapshot, (places, number), end).await?;
                return Ok(None);
            }
            let is_unchanged = place.keep_sign(snapshot, lead.rules()).await;
            if !is_unchanged.map_err(|error| refusals::of_store(&error))? {
                return Ok(None);
            }
        }
        Ok(Some(seen))
    }

    /// Judges each write by the record of its resource. Returns what the lead of each group was judged by; else all writes
    /// that are refused.
    async fn judge_groups(
        &self,
        groups: &[WriteGroup<'_>],
        seen: &[Sighting],
    ) -> Result<Vec<Basis>, Vec<(usize, Halt)>> {
        let writes = groups.iter().zip(seen).flat_map(|(group, seen)| {
            group.iter().enumerate().map(move |(place, (number, request))| (place, *number, request, &seen.snapshot))
        });
        let writes: Vec<_> = writes.collect();
        let (mut bases, mut refused) = (Vec::with_capacity(groups.len()), Vec::new());
        for portion in writes.chunks(AT_ONCE) {
            let mut judging = Vec::with_capacity(AT_ONCE);
            for (_, _, request, snapshot) in portion {
                judging.push(self.judge(request, snapshot, self.probes.judge(request, snapshot)));
            }
            for (judged, (place, number, request, snapshot)) in join_all(judging).await.into_iter().zip(portion) {
                match judged {
                    Ok(judged) if *place == 0 => bases.push(self.basis(request, snapshot, judged)),
                    Ok(_) => {}
                    Err(halt) => refused.push((*number, halt)),
                }
            }
        }
        if refused.is_empty() { Ok(bases) } else { Err(refused) }
    }

    /// Sends the request once, and settles each resource by its part of the answer.
    async fn send_for_all(
        &self,
        (request, head, body): (&Request, Box<RequestHeader>, &Body),
        (mut claims, groups, bases): (Held, &[WriteGroup<'_>], Vec<Basis>),
        members: &dyn WrittenMembers,
        attempt: &mut KeyedWrite,
    ) -> Result<Answer, Halt> {
        attempt.bound(&mut claims);
        let (mut exchange, claims) = self.send(request, claims, (head, body), Outcome::NotApplied).await?;
        attempt.answered(exchange.head());
        let (status, budget) = (exchange.head().status, self.bodies.budget_for(MemoryUse::Response));
        let whole = read_whole(&mut exchange, ANSWER_BYTES_MAX, request.upstream().timeout, budget).await;
        let content = match &whole {
            Ok(BufferedBody::Complete(body)) => Some(body.chunks().concat()),
            _ => None,
        };
        let outcomes = members.outcomes(status, content.as_deref());
        self.settle_groups((claims, groups, bases), &outcomes, exchange.head()).await;
        let Ok(whole) = whole else {
            let late_write_window = request.upstream().late_write_window;
            return Err(refusals::of_lost_response(status.as_u16(), Outcome::Unclear, late_write_window).into());
        };
        let mut answer = response_head(exchange.take_head());
        set_tag(&mut answer, None)?;
        Answer::read_so_far(answer, whole, exchange).await
    }

    async fn settle_groups(
        &self,
        (claims, groups, bases): (Held, &[WriteGroup<'_>], Vec<Basis>),
        outcomes: &[Outcome],
        answer: &ResponseHeader,
    ) {
        let mut settling = Vec::with_capacity(groups.len());
        for ((claim, group), basis) in claims.apart().zip(groups).zip(&bases) {
            let Some(lead) = lead(group) else { continue };
            let (end, outcome) = (end_of(lead, answer, basis.judged.modified), outcome_of(group, outcomes));
            settling.push(self.settle(lead, (claim, basis), (outcome, end), None));
        }
        while !settling.is_empty() {
            join_all(settling.drain(..settling.len().min(AT_ONCE))).await;
        }
    }
}

/// Returns the outcome of the resource of a group. If its writes have different outcomes, none of them tells it.
fn outcome_of(group: WriteGroup<'_>, outcomes: &[Outcome]) -> Outcome {
    let mut told = group.iter().map(|(number, _)| outcomes.get(*number).copied().unwrap_or(Outcome::Unclear));
    let first = told.next().unwrap_or(Outcome::Unclear);
    if told.all(|other| other == first) { first } else { Outcome::Unclear }
}
