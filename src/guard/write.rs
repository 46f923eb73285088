//! The life of a guarded write (DESIGN, section 4, "Write"): one function from the first verdict to the answer.

use http::Method;
use pingora::{http::RequestHeader, proxy::Session};
use tokio::time::Instant;

use super::{
    Guards,
    admit::Admitted,
    answer::{Answer, set_tag},
    lease_use::send_fence,
    new_state::describes_target,
    refusals,
    request::Request,
    send::forward_conditions,
};
use crate::{
    core::{policy::Guard, steps::Outcome, validators::Validators, verdict::Verdict},
    exchange::{
        Body, Whole,
        fields::{request_head, response_head},
        read_whole,
    },
};

impl Guards {
    /// Handles a write from its first verdict to the answer. The claim is never held while the client is waited for:
    /// the whole body is here before it is taken, and it is given back before the answer is written.
    pub(super) async fn write(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
    ) -> Result<Answer, Answer> {
        self.judge_early(session, request, guard).await?;
        // Boxed, so that a refusal from memory need not make room for an exchange.
        Box::pin(self.write_to_upstream(session, request, guard)).await
    }

    async fn write_to_upstream(
        &self,
        session: &mut Session,
        request: &Request,
        guard: &Guard,
    ) -> Result<Answer, Answer> {
        let body = self.receive(session).await?;
        let head = request_head(&request.head, body.len()).map_err(|error| refusals::of_head(&error))?;
        let end = Instant::now() + guard.claim_max_wait;
        let turn = self.queues.turn(&request.key, guard.claim_max_waiters, end).await.map_err(refusals::of_turn)?;
        let admitted = self.admit(request, guard, end).await?;
        let answer = self.exchange_under_claim(request, guard, admitted, head, &body).await;
        drop(turn);
        answer
    }

    /// The verdict before the body is asked for, so that an upload in vain is never sent. Passing decides nothing: the
    /// write is judged again under the claim.
    async fn judge_early(&self, session: &Session, request: &Request, guard: &Guard) -> Result<(), Answer> {
        let snapshot = self.record(request).await?;
        self.may_write(&snapshot)?;
        Self::judge_write_by_lease(request, guard, &snapshot)?;
        match self.judge_by_memory(request, guard, &snapshot).0 {
            Verdict::Refused(refusal) => Err(refusal.into()),
            Verdict::Missing | Verdict::AskUpstream if self.is_costly(session) => {
                Box::pin(self.judge_by_probe(request, guard, &snapshot)).await.map(drop)
            }
            Verdict::Pass | Verdict::Missing | Verdict::AskUpstream => Ok(()),
        }
    }

    /// Sends an admitted write, learns what became of it, and settles it before the answer goes out.
    async fn exchange_under_claim(
        &self,
        request: &Request,
        guard: &Guard,
        admitted: Admitted,
        mut head: RequestHeader,
        body: &Body,
    ) -> Result<Answer, Answer> {
        forward_conditions(&mut head, guard, request, admitted.judged.as_ref())?;
        send_fence(&mut head, admitted.standing, admitted.fence)?;
        let (mut exchange, claim) = self.send(request, admitted.claim, head, body).await?;
        let status = exchange.head().status;
        let outcome = Outcome::of_status(status);
        let upstream = request.upstream();
        let Ok(whole) = read_whole(&mut exchange, guard.hash_max_bytes, upstream.timeout, &self.body_budget).await
        else {
            claim.settle(outcome, None).await;
            return Err(refusals::of_lost_response(status.as_u16(), outcome, upstream.late_max).into());
        };
        let may_learn = outcome == Outcome::Applied && matches!(whole, Whole::Complete(_));
        let learned = if may_learn { self.new_state(request, guard, exchange.head(), body).await } else { None };
        let kept = learned.as_ref().and_then(|learned| learned.to_keep(request, guard));
        let settled = claim.settle(outcome, kept).await;
        let has_lease = settled.as_ref().is_none_or(|settled| settled.snapshot.lease().is_some());
        if guard.lease.is_some() && !has_lease {
            self.holdings.free(&request.key);
        }
        let mut answer = response_head(exchange.take_head());
        let tag = match outcome {
            Outcome::Applied if describes_target(&request.method) => {
                self.tag_after_write(request, guard, learned, settled.as_ref())
            }
            Outcome::Applied if request.method == Method::DELETE => None,
            _ if guard.etag.is_upstreams_own() => Validators::from_headers(&answer.headers).0.tag,
            _ => None,
        };
        set_tag(&mut answer, tag.as_ref())?;
        Answer::read_so_far(answer, whole, exchange).await
    }
}
