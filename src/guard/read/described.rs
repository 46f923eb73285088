//! Reads that show the description of their resource, which is in a document of their own at the upstream.
//!
//! # Design
//!
//! *How can two answers of the upstream be of one state?* The record is read before the first and after the second. If no
//! write was in flight at either moment and none came in between, they are. Otherwise the read asks again. If writes do
//! not cease, the client gets what the upstream has shown, without validators: no condition can then be based on it.
//!
//! *Why is the description asked for first?* The content may be long. Until it ends, its exchange takes one of the
//! upstream's connections. Two reads that each wait for a second one could wait for each other.

use http::header;
use pingora::http::ResponseHeader;

use super::Reads;
use crate::{
    body::Client,
    core::{
        objects::description::last_change,
        records::{
            record::{Availability, Snapshot},
            settled::shows_settled_state,
        },
        refusal::Refusal,
        tags::validators::Modified,
    },
    guard::{Answer, Halt, answer::remove_validators, probe::description::Described, refusals, request::Request},
    store::StoreError,
};

/// The number of times that a read asks the upstream for both answers while other clients write.
const ATTEMPTS: usize = 3;

impl Reads {
    /// Handles a read of a resource with its description.
    pub(super) async fn read_described(&self, client: &mut dyn Client, request: &Request) -> Result<Answer, Halt> {
        // Received first, so that the body can be sent again.
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        let mut attempt = 1;
        loop {
            let snapshot = self.record_without_dead_marks(request).await;
            let before = snapshot.as_ref().ok().cloned();
            let answer = self.read_by_lease(client, request, snapshot, Some(&body)).await?;
            let Answer::Relayed(mut relayed) = answer else { return Ok(answer) };
            if !relayed.head.status.is_success() || self.is_of_one_state(request, before.as_ref()).await {
                return Ok(Answer::Relayed(relayed));
            }
            let may_cease = before.is_some_and(|before| before.has_no_pending_writes());
            if attempt == ATTEMPTS || !may_cease {
                remove_validators(&mut relayed.head);
                return Ok(Answer::Relayed(relayed));
            }
            relayed.discard().await;
            attempt += 1;
        }
    }

    /// Returns the record. The mark of a dead process becomes a doubt, which ends: no write may ever come that would take
    /// it over, and no tag would be shown until then.
    pub(in crate::guard) async fn record_without_dead_marks(&self, request: &Request) -> Result<Snapshot, StoreError> {
        let snapshot = self.knowledge.snapshot(&request.key).await?;
        match snapshot.availability() {
            Availability::Orphaned => self.claims.take_over_dead(&request.key, Some(snapshot)).await,
            Availability::Free | Availability::Busy { .. } | Availability::InDoubt { .. } => Ok(snapshot),
        }
    }

    async fn is_of_one_state(&self, request: &Request, before: Option<&Snapshot>) -> bool {
        let Some(before) = before else { return false };
        self.knowledge.record(request).await.is_ok_and(|after| shows_settled_state(before, &after))
    }

    /// Asks for the description that a read shows, if it shows any.
    pub(super) async fn description_of(&self, request: &Request) -> Option<Result<Described, Refusal>> {
        if !request.content.shows_description() {
            return None;
        }
        // Boxed, so that the futures of other reads stay small.
        Some(Box::pin(self.probes.description(request)).await)
    }
}

/// Adds its description to a representation, with the date of the last change of both.
pub(super) fn describe(head: &mut ResponseHeader, request: &Request, described: &Described) -> pingora::Result<()> {
    let Some(grammar) = request.grammar().description() else { return Ok(()) };
    for (name, value) in grammar.fields(&described.kept.clone().into_description()) {
        head.insert_header(name, value)?;
    }
    let own = Modified::from_headers(&head.headers);
    match last_change(request.head.raw_path(), own, described.modified) {
        Some(modified) => head.insert_header(header::LAST_MODIFIED, modified.date.to_string()),
        None => Ok(()),
    }
}
