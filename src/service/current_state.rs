//! The current state with a 412: what a client would read next, if it prefers that to a document (`Prefer:
//! return=representation`, RFC 7240 section 4.2).
//!
//! # Design
//!
//! *Why a read of its own?* The client gets what a GET would give it: by its own credentials, by the lease that may keep
//! readers away, and with the tag of the very bytes that it gets. The state that refused the write may be gone by then.
//!
//! *What if the read gives no 200?* Then the refusal has its document.

use http::{Method, StatusCode, header};
use pingora::http::RequestHeader;

use super::Service;
use crate::{
    body::Client,
    core::{
        http::{
            preferences::{PREFER, wants_representation},
            readings::method,
        },
        lease::field_names::LEASE_DURATION,
        records::idempotency::IDEMPOTENCY_KEY,
        refusal::{Code, Refusal},
    },
    guard::{Answer, Halt, Verb, remove_conditions},
    routing::{GuardedRequest, door::Door},
    upstream::fields::FieldsOfHead as _,
};

/// True if a client gets the current state with this refusal. There is no GET to make from a request that names its
/// method or its resource elsewhere than in its first line.
pub(super) fn is_wanted(client: &dyn Client, guarded: &GuardedRequest, refusal: &Refusal) -> bool {
    let head = client.head();
    refusal.code == Code::PreconditionFailed
        && wants_representation(&head.headers)
        && guarded.methods.usages.changes()
        && guarded.destination.is_none()
        && guarded.forwarded_target.is_none()
        && !method::is_named(&head.headers, head.raw_path())
}

impl Service<'_> {
    /// Reads the resource of a refused write for its client.
    pub(super) async fn with_current_state(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        refusal: Refusal,
    ) -> Result<Answer, Halt> {
        let head = head_of_read(client.head());
        let Door::Guarded(read) = self.guard.door(&Method::GET, &head, guarded.client) else {
            return Err(refusal.into());
        };
        let (mut client, request) = self.own_request(client, head, &read)?;
        match self.guard.serve(&mut client, &request, Verb::Read).await {
            Ok(Answer::Relayed(relayed)) if relayed.head.status == StatusCode::OK => {
                return Ok(Answer::Current(Box::new(refusal), relayed));
            }
            Ok(Answer::Relayed(relayed)) | Err(Halt::Denied(relayed)) => relayed.discard().await,
            Err(gone @ Halt::Broken(_)) => return Err(gone),
            Ok(_) | Err(Halt::Refused(_)) => {}
        }
        Err(refusal.into())
    }
}

/// The head of a GET for the resource of a write: without its conditions, and without what describes its content.
fn head_of_read(head: &RequestHeader) -> RequestHeader {
    let mut head = head.clone();
    remove_conditions(&mut head);
    head.remove_all(|name| {
        let is_of_write = [&PREFER, &IDEMPOTENCY_KEY, &header::RANGE, &header::EXPECT, &header::TRANSFER_ENCODING];
        is_of_write.contains(&name) || name.as_str() == LEASE_DURATION.lower || name.as_str().starts_with("content-")
    });
    head.set_method(Method::GET);
    head
}
