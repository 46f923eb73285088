//! The states of Terraform and `OpenTofu`, and their locks, which are leases without an end.
//!
//! # Design
//!
//! *Why is the door asked again?* A lock may have a path of its own (`lock_suffix`). The lock belongs to the state, whose
//! path may take another route. So the state's route decides about its lock, as it does about each write.

use http::{StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use super::Service;
use crate::{
    body::Client,
    core::{
        quirks::ServiceKind,
        refusal::{Code, Refusal},
    },
    dialect::{
        Call,
        terraform::{LockRequest, LockVerb, lock_request, told_status},
    },
    guard::{Answer, Halt, Verb, incoming, rules_of},
    routing::{GuardedRequest, door::Door},
    telemetry::stream_info,
};

mod lock;
#[cfg(test)]
mod tests;

impl Service<'_> {
    /// Handles a request for a state, or for its lock.
    pub(super) async fn answer_of_states(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        call: Call,
    ) -> Result<Answer, Halt> {
        let rules = rules_of(guarded)?;
        if let Some(asked) = lock_request(incoming(client.head(), guarded), rules)? {
            return self.answer_of_lock(client, guarded, call, &asked).await;
        }
        let (request, verb) = self.called(client, guarded, call)?;
        let mut answer = self.guard.serve(client, &request, verb).await?;
        if let (Verb::Write(_), Answer::Relayed(relayed)) = (verb, &mut answer) {
            tell_stored(&mut relayed.head)?;
        }
        Ok(answer)
    }

    async fn answer_of_lock(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        call: Call,
        asked: &LockRequest,
    ) -> Result<Answer, Halt> {
        let state = self.state_of(client.head(), guarded, asked)?;
        let request = self.guard.request(client, &state, rules_of(&state)?, call)?;
        match asked.verb {
            LockVerb::Lock => self.lock(client, &request).await,
            LockVerb::Unlock => self.unlock(client, &request, asked.named).await,
        }
    }

    /// Returns the request for a lock as one to its state.
    fn state_of(
        &self,
        head: &RequestHeader,
        guarded: &GuardedRequest,
        asked: &LockRequest,
    ) -> Result<GuardedRequest, Halt> {
        if head.raw_path() == asked.target {
            return Ok(guarded.clone());
        }
        let mut head = head.clone();
        head.set_raw_path(&asked.target)?;
        match self.guard.door(&asked.verb.method(), &head, guarded.client) {
            Door::Guarded(state) if rules_of(&state)?.quirks.service == ServiceKind::Terraform => {
                stream_info::acts_on(&state.key);
                Ok(state)
            }
            Door::Refuse { refusal, .. } => Err(refusal.into()),
            _ => Err(no_state().into()),
        }
    }
}

/// Makes the answer to a write the one that clients take for a success.
fn tell_stored(head: &mut ResponseHeader) -> pingora::Result<()> {
    let status = told_status(head.status);
    if head.status == StatusCode::NO_CONTENT && status != head.status {
        head.insert_header(header::CONTENT_LENGTH, 0)?;
    }
    head.set_status(status)
}

fn no_state() -> Refusal {
    let detail = "the path of the lock leads to no state: the path before lock_suffix takes another route";
    Refusal::new(Code::NotSupported, detail)
}
