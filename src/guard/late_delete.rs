//! The DELETE that waited until no client held the lease of its target (`lease.delete_pending`).
//!
//! # Design
//!
//! *Who sends it?* The proxy that handles the release of the last lease, or the next request to the resource if the last
//! lease has run out. It is an ordinary write, from the door on: under the claim, with the rules of its route, and in
//! doubt if no answer comes. It is judged again by its own conditions. What it leaves out are the demands on its client.

use std::sync::Arc;

use http::{HeaderName, Method, StatusCode, header};
use pingora::http::RequestHeader;

use super::{
    Answer, Guard, Halt,
    received_client::ReceivedClient,
    refusals,
    request::{Request, incoming},
};
use crate::{
    body::Client,
    core::{
        policy::{GuardRules, Idempotency, Require},
        records::{
            delete_steps::{outcome_of_late_delete, withdraw},
            pending_delete::PendingDelete,
            record::{Availability, Snapshot},
            steps::Outcome,
        },
        refusal::{Code, Refusal},
        tags::validators::tells_absence,
    },
    routing::door::Door,
    telemetry::Seldom,
};

static NOT_DONE: Seldom = Seldom::usual();

impl Guard {
    /// Sends the DELETE that may wait at the resource of a request, before the request is carried out.
    pub(crate) async fn finish_expected_delete(&self, client: &mut dyn Client, request: &Request) {
        for request in [Some(request), request.destination()].into_iter().flatten() {
            if request.route().deletes_may_be_pending {
                // Boxed, so that the futures of other requests stay small.
                Box::pin(self.finish_delete(client, request, false)).await;
            }
        }
    }

    /// Sends the DELETE that may be due once a request has this answer, and returns the answer.
    pub(crate) async fn finish_delete_after<T>(
        &self,
        client: &mut dyn Client,
        request: &Request,
        is_of_lease: bool,
        answer: Result<T, Halt>,
    ) -> Result<T, Halt> {
        let is_expected = request.route().deletes_may_be_pending;
        let may_be_due = match &answer {
            // The client may have been the last holder, with a write in flight.
            Ok(_) => is_expected && is_of_lease && !request.is_get_or_head(),
            // A route may have lost the option while the DELETE waited.
            Err(Halt::Refused(refusal)) => !is_expected && refusal.code == Code::DeletePending,
            Err(_) => false,
        };
        if may_be_due {
            Box::pin(self.finish_delete(client, request, is_expected)).await;
        }
        answer
    }

    /// Sends the DELETE that waits at the resource of this request, if no client holds the lease any more. If it is
    /// refused or fails, it goes on waiting, and the resource stays hidden. So it does while a write is in flight, unless
    /// the caller `waits_for_writes`.
    async fn finish_delete(&self, client: &mut dyn Client, request: &Request, waits_for_writes: bool) {
        let Ok(snapshot) = self.knowledge.snapshot(&request.key).await else { return };
        let Some(delete) = snapshot.due_delete() else { return };
        let is_busy = matches!(snapshot.availability(), Availability::Busy { .. } | Availability::InDoubt { .. });
        if is_busy && !waits_for_writes {
            return;
        }
        let why = match self.send_late_delete(client, request, delete).await {
            Ok(Answer::Relayed(relayed)) => match relayed.head.status {
                status if outcome_of_late_delete(status) == Outcome::Applied => {
                    tracing::info!(key = %request.key, "the last client has left: the resource is deleted");
                    return;
                }
                StatusCode::PRECONDITION_FAILED if delete.is_conditional() => {
                    return self.withdraw(request, delete).await;
                }
                status => format!("the upstream answered {}", status.as_u16()),
            },
            // Another request was faster.
            Err(Halt::Refused(refusal)) if refusal.code == Code::LeaseNotPresentOnUse => return,
            // A probe has found nothing to delete: the state that it means is gone.
            Err(Halt::Denied(relayed)) if delete.is_conditional() && tells_absence(relayed.head.status) => {
                return self.withdraw(request, delete).await;
            }
            Err(Halt::Refused(refusal)) if refusal.code == Code::PreconditionFailed && delete.is_conditional() => {
                return self.withdraw(request, delete).await;
            }
            Err(Halt::Refused(refusal)) => refusal.detail.into_owned(),
            Ok(_) | Err(_) => "the upstream gave no answer".to_owned(),
        };
        if let Some(left_out) = NOT_DONE.due() {
            tracing::warn!(key = %request.key, %why, left_out, "a DELETE that waited was not done, and waits on");
        }
    }

    /// Gives up a DELETE that means another state than the present one. If that fails, the next request tries again.
    async fn withdraw(&self, request: &Request, delete: &PendingDelete) {
        let step = |snapshot: &Snapshot| withdraw(snapshot, delete);
        if self.knowledge.records.update(&request.key, None, step).await.is_ok() {
            tracing::info!(key = %request.key, "the resource has changed: the DELETE that waited for its holders is withdrawn");
        }
    }

    async fn send_late_delete(
        &self,
        client: &mut dyn Client,
        request: &Request,
        delete: &PendingDelete,
    ) -> Result<Answer, Halt> {
        let mut head = RequestHeader::build(Method::DELETE, &delete.target, Some(1))?;
        if !delete.host.is_empty() {
            head.insert_header(header::HOST, &*delete.host)?;
        }
        for (name, value) in &delete.conditions {
            let name = HeaderName::try_from(&**name).map_err(|_error| refusals::of_field())?;
            head.append_header(name, &**value)?;
        }
        let door = self.writes.door(&Method::DELETE, &head, request.sender.address);
        let Door::Guarded(guarded) = door else { return Err(leads_elsewhere().into()) };
        let rules = guarded.route.guard.as_ref().filter(|_| guarded.key == request.key && !guarded.is_lease());
        let rules = rules.ok_or_else(leads_elsewhere)?;
        let call = rules.dialect.grammar().read(incoming(&head, &guarded), rules, false)?;
        let rules = GuardRules { require: Require::Never, idempotency: Idempotency::Off, ..GuardRules::clone(rules) };
        let mut client = ReceivedClient::without_content(client, head);
        let mut late = self.request(&mut client, &guarded, &Arc::new(rules), call)?;
        late.sender.is_late_delete = true;
        self.writes.write(&mut client, &late, None).await
    }
}

fn leads_elsewhere() -> Refusal {
    Refusal::new(Code::NoRoute, "the configuration leads its target to another resource now")
}
