//! Reads that show settled states alone (`reads = "settled"`): they wait for writes before the upstream is asked, and
//! look at the record again before a byte of its answer goes to the client.

use tokio::time::Instant;

use super::{Reads, Sending};
use crate::{
    body::Client,
    core::{
        cause::Reason,
        records::{record::Snapshot, settled::shows_settled_state},
        rights::Obstacle,
    },
    guard::{
        Answer, Halt,
        answer::while_client_waits,
        claim::settled::SettledNow,
        lease::usage::judge_read_by_lease,
        refusals::{self, RETRY_SOON},
        request::Request,
    },
};

impl Reads {
    /// Handles a read, and asks the upstream again if a write came in between. Returns the answer with the record of the
    /// state that it shows.
    pub(crate) async fn read_settled(
        &self,
        client: &mut dyn Client,
        request: &Request,
    ) -> Result<(Answer, Snapshot), Halt> {
        // Received first, so that the body can be sent again.
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        let end = Instant::now() + request.rules().claim.max_wait;
        loop {
            let snapshot = match self.claims.settled_now(request).await? {
                SettledNow::Settled(snapshot) => snapshot,
                SettledNow::Pending(snapshot) => {
                    if let Some(answer) = self.read_committed(request, &snapshot)? {
                        return Ok(answer);
                    }
                    // A resource that was shown to no client may be one that the write creates, or has removed. Else it
                    // may be hidden.
                    let may_be_absent = !self.knowledge.is_shown(request, &snapshot);
                    let standing = (&snapshot, may_be_absent);
                    Box::pin(self.must_be_let_read(client, request, standing, Some(&body))).await?;
                    while_client_waits(client, self.claims.settled(request, end)).await??
                }
            };
            let answer = self.read_by_lease(client, request, Ok(snapshot.clone()), Some(&body)).await;
            if let Some(answer) = self.of_settled_state(request, &snapshot, answer).await? {
                return Ok((answer, snapshot));
            }
            if Instant::now() >= end {
                return Err(overtaken());
            }
        }
    }

    /// Like [`read_resource`](Self::read_resource), but of a settled state. The request is sent once, so the read is
    /// refused if a write came in between.
    pub(super) async fn read_settled_once(
        &self,
        client: &mut dyn Client,
        request: &Request,
        sending: Sending<'_>,
    ) -> Result<Answer, Halt> {
        let end = Instant::now() + request.rules().claim.max_wait;
        let snapshot = while_client_waits(client, self.claims.settled(request, end)).await??;
        let answer = self.read_resource(client, request, Some(snapshot.clone()), sending).await;
        self.of_settled_state(request, &snapshot, answer).await?.ok_or_else(overtaken)
    }

    /// Judges a settled state by its lease and the conditions of a read that the upstream itself is about to make.
    pub(crate) async fn may_be_read(&self, client: &mut dyn Client, request: &Request) -> Result<(), Halt> {
        let end = Instant::now() + request.rules().claim.max_wait;
        loop {
            let snapshot = match self.claims.settled_now(request).await? {
                SettledNow::Settled(snapshot) => snapshot,
                SettledNow::Pending(snapshot) => {
                    self.probes.must_know(request, &snapshot, Obstacle::Write).await?;
                    while_client_waits(client, self.claims.settled(request, end)).await??
                }
            };
            if let Err(denied) = judge_read_by_lease(request, Ok(&snapshot)) {
                return Err(self.leases.refuse_by_lease(request, &snapshot, denied).await);
            }
            if request.conditions.is_empty() {
                return Ok(());
            }
            let judged = self.probes.judge_read(request, &snapshot).await;
            if shows_settled_state(&snapshot, &self.knowledge.record(request).await?) {
                return judged;
            }
            if Instant::now() >= end {
                return Err(overtaken());
            }
        }
    }

    /// Returns an answer if no write was in flight since the record was read, and discards it otherwise.
    async fn of_settled_state(
        &self,
        request: &Request,
        before: &Snapshot,
        answer: Result<Answer, Halt>,
    ) -> Result<Option<Answer>, Halt> {
        let after = match answer {
            Err(Halt::Broken(_)) => return answer.map(Some),
            _ => self.knowledge.record(request).await,
        };
        if after.as_ref().is_ok_and(|after| shows_settled_state(before, after)) {
            return answer.map(Some);
        }
        if let Ok(Answer::Relayed(relayed)) | Err(Halt::Denied(relayed)) = answer {
            relayed.discard().await;
        }
        after.map(|_overtaken| None).map_err(Halt::from)
    }
}

/// The refusal of a read whose answers were overtaken by writes.
pub(crate) fn overtaken() -> Halt {
    refusals::unsettled(RETRY_SOON, Reason::WriteInFlight).into()
}
