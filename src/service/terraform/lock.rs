//! The operations on locks.

use http::StatusCode;

use crate::{
    body::Client,
    core::{
        lease::{Acquire, Action, HolderLabel, LeaseDuration, LeaseId, LeaseMode, NOTE_BYTES_MAX},
        refusal::{Code, Refusal},
    },
    dialect::{
        LeaseOperation, Response,
        terraform::{LockInfo, MalformedLockInfo, NotReleased, after_release, malformed_lock_info, not_broken},
    },
    guard::{Answer, Halt, Request},
    service::Service,
};

impl Service<'_> {
    /// Locks a state. The description of the lock is kept with it, for those whom it keeps away.
    pub(super) async fn lock(&self, client: &mut dyn Client, request: &Request) -> Result<Answer, Halt> {
        let info = LockInfo::parse(&self.description(client).await?).map_err(malformed_lock_info)?;
        let id = info.lease_id();
        let wanted = Acquire {
            proposed: Some(id),
            fresh: id,
            mode: LeaseMode::Exclusive,
            duration: LeaseDuration::Infinite,
            holder: info.holder(),
            note: Some(info.note().clone()),
            keeper: None,
            takes_over: false,
        };
        self.step(client, request, Action::Acquire(wanted)).await.map(|_held| done())
    }

    /// Unlocks a state. Its body describes the lock, or `named` names it. If neither does, the lock is that of any client.
    pub(super) async fn unlock(
        &self,
        client: &mut dyn Client,
        request: &Request,
        named: Option<LeaseId>,
    ) -> Result<Answer, Halt> {
        let body = self.description(client).await?;
        let described = match (body.is_empty(), named) {
            (true, named) => named,
            (false, _) => Some(LockInfo::parse(&body).map_err(malformed_lock_info)?.lease_id()),
        };
        let Some(id) = described else {
            return self.end_lock(client, request, Action::Break { period: None }).await;
        };
        match self.step(client, request, Action::Release { id }).await {
            Ok(_) => Ok(done()),
            Err(Halt::Refused(refusal)) => match after_release(&refusal, id) {
                NotReleased::NotLocked => Ok(done()),
                NotReleased::OfAnother => self.end_lock(client, request, Action::BreakNamed { id }).await,
                NotReleased::Refused => Err(refusal.into()),
            },
            Err(halt) => Err(halt),
        }
    }

    /// Ends the lock of another client.
    async fn end_lock(&self, client: &mut dyn Client, request: &Request, action: Action) -> Result<Answer, Halt> {
        if !request.rules().lease.as_ref().is_some_and(|rules| rules.client_break) {
            return Err(not_broken().into());
        }
        match self.step(client, request, action).await {
            Ok(holder) => {
                let holder = holder.as_ref().map_or("", HolderLabel::as_str);
                tracing::warn!(key = %request.key, holder, "a client has ended the lock of another (lease.client_break)");
                Ok(done())
            }
            // It has ended on its own meanwhile.
            Err(Halt::Refused(refusal)) if refusal.code == Code::LeaseNotPresent && !names_lease(&refusal) => {
                Ok(done())
            }
            Err(halt) => Err(halt),
        }
    }

    /// Takes a step, and returns the label of the last holder.
    async fn step(
        &self,
        client: &mut dyn Client,
        request: &Request,
        action: Action,
    ) -> Result<Option<HolderLabel>, Halt> {
        let operation = LeaseOperation::Step { action, wait: None };
        let operated = self.guard.operate_lease(client, request, operation).await?;
        Ok(operated.snapshot.lease().and_then(|lease| lease.holder.clone()))
    }

    /// Receives the body that describes a lock.
    async fn description(&self, client: &mut dyn Client) -> Result<Vec<u8>, Halt> {
        self.receive_short(client, NOTE_BYTES_MAX, || malformed_lock_info(MalformedLockInfo::TooLong)).await
    }
}

/// True if a refusal names a lease that is held.
fn names_lease(refusal: &Refusal) -> bool {
    refusal.cause.as_ref().is_some_and(|cause| cause.lease.is_some())
}

/// The answer to an operation that succeeded: clients accept 200 alone.
fn done() -> Answer {
    Answer::local(Response::empty(StatusCode::OK))
}
