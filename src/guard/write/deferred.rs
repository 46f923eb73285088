//! A DELETE that waits until no other client holds the lease of its target (`lease.delete_pending`).

use http::{HeaderName, HeaderValue, Method, StatusCode, header};

use super::{Writes, admit::Deferral, touches::client_target};
use crate::{
    core::{
        cause::Reason,
        http::{credentials::has_credentials, request_target::split_query},
        lease::Done,
        records::{
            delete_steps::{Deletion, defer, deletion},
            pending_delete::PendingDelete,
            record::Snapshot,
        },
        refusal::{Code, Refusal},
    },
    dialect::Response,
    guard::{Answer, refusals, request::Request},
    store::Swapped,
    telemetry::metrics,
};

/// The fields by which a DELETE is judged.
const CONDITION_FIELDS: [HeaderName; 4] =
    [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE];

impl Writes {
    /// Lets a DELETE that its lease and its conditions permit wait for the other holders of the lease, and ends the
    /// lease of its client. Nothing of it is sent.
    pub(super) async fn defer(&self, request: &Request, snapshot: &Snapshot) -> Result<Deferral, Refusal> {
        let (id, principal) = (request.sender.lease_id, Some(request.sender.principal.holder()));
        match deletion(snapshot, request.target(), id, principal) {
            Deletion::Now => return Ok(Deferral::None),
            Deletion::Later if request.method == Method::DELETE => {}
            Deletion::Later => return Err(cannot_wait("a MOVE cannot wait")),
            Deletion::Never => {
                return Err(cannot_wait("the DELETE of another part of the resource already waits"));
            }
        }
        let next = defer(snapshot, kept(request)?, id, principal);
        let swapped = self.knowledge.records.swap(&request.key, snapshot.revision, next).await;
        match swapped.map_err(|error| refusals::of_lease_store(&error))? {
            Swapped::Conflict(current) => Ok(Deferral::Outdated(Box::new(current))),
            Swapped::Done(snapshot) => {
                self.leases.recount(&request.key, &snapshot);
                if let Some(metrics) = metrics::get() {
                    metrics.lease(&request.route().name, Done::Released.word());
                }
                Ok(Deferral::Waits(accepted()))
            }
        }
    }
}

/// Returns what the record keeps of a DELETE, if that is enough to send the same one later.
fn kept(request: &Request) -> Result<PendingDelete, Refusal> {
    let headers = &request.head.headers;
    let target = client_target(request);
    let (_, query) = split_query(&target);
    if !request.sender.principal.is_anonymous() || has_credentials(headers, query) {
        return Err(cannot_wait(
            "a DELETE with credentials cannot wait, since they are not kept: send it without credentials, or again \
             when no other client holds the lease",
        ));
    }
    if request.content.follows || request.head.method != Method::DELETE {
        return Err(cannot_wait("a DELETE with content, or with another method in its request line, cannot wait"));
    }
    let host = headers.get(header::HOST).map_or(&[][..], HeaderValue::as_bytes);
    let condition = |name: &HeaderName| {
        let values = headers.get_all(name).iter().map(|value| Box::from(value.as_bytes()));
        values.map(|value| (name.as_str().into(), value)).collect::<Vec<_>>()
    };
    let conditions = CONDITION_FIELDS.iter().flat_map(condition).collect();
    let delete =
        PendingDelete { host: host.into(), target: target.as_ref().into(), name: request.target(), conditions };
    if delete.fits() { Ok(delete) } else { Err(cannot_wait("a DELETE with so long a target or condition cannot wait")) }
}

/// The refusal of a DELETE that can be neither sent nor kept while other clients hold the lease.
fn cannot_wait(why: &'static str) -> Refusal {
    let detail = format!("other clients hold the lease, and the resource is deleted once they have left: {why}");
    Refusal::new(Code::LeaseHeld, detail).because(Reason::LeaseHeld)
}

/// The answer to a DELETE that waits.
fn accepted() -> Answer {
    Answer::local(Response::empty(StatusCode::ACCEPTED))
}
