//! The service of the tests. It shows that one folder, one kind and one dialect make a service.
//!
//! `KEEP` leases the resource for its client, and answers with the content that the holder has from then on.

use std::sync::Arc;

use http::{HeaderName, Method};

use super::Service;
use crate::{
    body::Client,
    core::lease::{Acquire, Action, Done, LeaseDuration, LeaseMode},
    dialect::{Call, LeaseOperation},
    guard::{Answer, Halt, Verb, fresh_id, refusals, rules_of},
    routing::GuardedRequest,
};

const TOY_LEASE: HeaderName = HeaderName::from_static("toy-lease");

impl Service<'_> {
    /// Handles a request of the tests' dialect.
    pub(super) async fn answer_toy(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        call: Call,
    ) -> Result<Answer, Halt> {
        let verb = super::verb(call.intent, false);
        let mut request = self.guard.request(client, guarded, rules_of(guarded)?, call)?;
        if Method::from_bytes(b"KEEP").is_ok_and(|keep| request.method != keep) {
            return self.guard.serve(client, &request, verb).await;
        }
        let wanted = Acquire {
            proposed: None,
            fresh: fresh_id()?,
            mode: LeaseMode::Exclusive,
            duration: LeaseDuration::Infinite,
            holder: None,
            note: None,
            keeper: None,
            takes_over: false,
        };
        let operation = LeaseOperation::Step { action: Action::Acquire(wanted), wait: None };
        let leased = self.guard.operate_lease(client, &request, operation).await?;
        let Some(Done::Acquired { id, .. }) = leased.done else { return Err(refusals::of_field().into()) };
        request.sender.lease_id = Some(id);
        request.method = Method::GET;
        Arc::make_mut(&mut request.head).set_method(Method::GET);
        let mut answer = self.guard.serve(client, &request, Verb::Read).await?;
        if let (Answer::Relayed(relayed), Some(untold)) = (&mut answer, leased.untold) {
            relayed.head.insert_header(TOY_LEASE, &*id.reveal())?;
            untold.travel_with(&mut relayed.head);
        }
        Ok(answer)
    }
}
