//! Decides whether a client may know of its resource what the proxy knows. The backend's answer decides
//! (DESIGN, section 8).
//!
//! # Design
//!
//! *When is the backend asked?* Only where something is in the way of a request, and only for a client that it has not
//! let read the resource of late. So it is asked nothing more for a request that goes to it anyway.
//!
//! *What does a client without rights get?* The answer that it would get if nothing were in the way: the refusal of its
//! preconditions, or the backend's own answer. From another answer it would learn that something is there.

use http::{Method, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::{
    Asked, Probed, Probes,
    unreadable::{answered, timed_out},
};
use crate::{
    core::{
        records::record::Snapshot,
        refusal::Refusal,
        rights::{Obstacle, WordOfBackend, may_be_told},
        tags::{head_answer::Aim, validators::Representation},
        watch::SeenContent,
    },
    guard::{Halt, request::Request},
    upstream::Exchange,
};

/// The answer of the upstream about the rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// The client may know.
    Granted,
    /// The upstream cannot be asked, or its answer does not tell.
    Unknown,
}

impl Probes {
    /// Asks the upstream whether it lets the sender of a request in, whether or not there is a representation. If not,
    /// fails with the upstream's own answer.
    pub(crate) async fn let_in(&self, request: &Request, snapshot: &Snapshot) -> Result<(), Halt> {
        match self.probe(request, snapshot, Aim::Right).await {
            found @ Probed::Current { .. } => {
                found.discard().await;
                Ok(())
            }
            Probed::Answer(exchange) => Err(self.upstreams_own(request, *exchange).await),
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// Asks the upstream what the sender of a request may read. If it shows the sender nothing, fails with its own
    /// answer, which is the same for a missing resource.
    pub(crate) async fn show(&self, request: &Request, snapshot: &Snapshot, aim: Aim) -> Result<Representation, Halt> {
        match self.probe(request, snapshot, aim).await {
            Probed::Answer(exchange) | Probed::Current { missing: Some(exchange), .. } => {
                Err(self.upstreams_own(request, *exchange).await)
            }
            Probed::Current { representation, .. } => Ok(representation),
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// Asks the upstream for the content of a resource, for all who watch it. `None` if the answer does not tell, or if a
    /// write has come between.
    pub(crate) async fn seen(&self, request: &Request, snapshot: &Snapshot, aim: Aim) -> Option<SeenContent> {
        let content = match self.probe(request, snapshot, aim).await {
            Probed::Current { representation: Representation::Present(validators), .. } => {
                SeenContent::of(validators.tag)
            }
            absent @ Probed::Current { representation: Representation::Absent, .. } => {
                absent.discard().await;
                SeenContent::Deleted
            }
            other => {
                other.discard().await;
                return None;
            }
        };
        self.knowledge.is_untouched(request, snapshot).await.then_some(content)
    }

    /// Lets a request go on to the refusal, or to the wait, that an obstacle demands. If its sender may not know of the
    /// obstacle, fails with the answer that the sender gets without it.
    pub(crate) async fn must_know(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        obstacle: Obstacle,
    ) -> Result<(), Halt> {
        if !self.knowledge.is_stranger(request, snapshot) {
            return Ok(());
        }
        // Boxed, so that the futures of other requests stay small.
        Box::pin(self.ask_permission(request, snapshot, obstacle)).await.map(drop)
    }

    /// Like [`must_know`](Self::must_know), but always asks the upstream. It must be asked with the client's
    /// credentials, and a signature holds for the client's request alone.
    pub(crate) async fn ask_permission(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        obstacle: Obstacle,
    ) -> Result<Permission, Halt> {
        if !request.can_lend_credentials() {
            return Ok(Permission::Unknown);
        }
        // Nothing waits for an earlier attempt, which only a resource that was there can have.
        let is_shown = match obstacle {
            Obstacle::Attempt | Obstacle::OwnAttempt => self.knowledge.was_shown(request, snapshot),
            Obstacle::Lease(_) | Obstacle::OwnLease | Obstacle::Write => self.knowledge.is_shown(request, snapshot),
        };
        let exchange = match self.ask_for_right(request).await {
            Ok(exchange) => exchange,
            Err(_) if may_be_told(WordOfBackend::Fails, obstacle, false) => return Ok(Permission::Unknown),
            Err(refusal) => return Err(refusal.into()),
        };
        let status = exchange.head().status;
        let word = WordOfBackend::of_status(status);
        if word == WordOfBackend::Shows {
            self.knowledge.was_let_read(request, snapshot);
        }
        if may_be_told(word, obstacle, is_shown) {
            exchange.discard().await;
            return Ok(if word == WordOfBackend::Shows { Permission::Granted } else { Permission::Unknown });
        }
        if word == WordOfBackend::Fails && matches!(obstacle, Obstacle::Attempt | Obstacle::OwnAttempt) {
            exchange.discard().await;
            return Err(if status == StatusCode::GATEWAY_TIMEOUT { timed_out() } else { answered(status) }.into());
        }
        Err(self.without_obstacle(request, snapshot, exchange).await)
    }

    async fn ask_for_right(&self, request: &Request) -> Result<Exchange, Refusal> {
        let end = Instant::now() + request.rules().probe.timeout;
        let asked = timeout_at(end, self.ask(request, Method::GET, false, None)).await;
        asked.unwrap_or_else(|_elapsed| Err(timed_out())).map(|Asked { exchange, .. }| exchange)
    }

    /// The answer to a request if nothing were in its way. A write that passes would go to the upstream, whose answer to
    /// the sender is known.
    async fn without_obstacle(&self, request: &Request, snapshot: &Snapshot, refused: Exchange) -> Halt {
        let own = self.relayed(request, Some(snapshot), refused).await;
        if let Err(halt) = self.judge(request, snapshot).await {
            return halt;
        }
        self.refuse_removal_of_members(request).await.err().unwrap_or(own)
    }
}
