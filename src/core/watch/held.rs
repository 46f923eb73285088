//! The texts of the events of a lease that a stream holds.

use std::time::Duration;

use http::StatusCode;
use serde::Serialize;

use super::text::{event, json};
use crate::core::{
    lease::{LeaseDuration, LeaseId, LeaseLoss, PublicLease},
    records::record::Snapshot,
    refusal::Refusal,
    tags::entity_tag::EntityTag,
};

#[derive(Serialize)]
struct WaitingText<'a> {
    /// The number of clients in the line, this one included.
    place: usize,
    #[serde(flatten)]
    lease: PublicLease<'a>,
}

#[derive(Serialize)]
struct GrantedText {
    id: String,
    fence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    seconds: Option<u64>,
}

#[derive(Serialize)]
struct BreakingText {
    seconds: u64,
}

#[derive(Serialize)]
struct LostText {
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

/// Returns the event that tells a client that it waits, and for whom.
pub fn waiting_event(snapshot: &Snapshot, place: usize) -> String {
    event("waiting", None, &json(&WaitingText { place, lease: PublicLease::of(snapshot) }))
}

/// Returns the event that tells a client of its lease. It alone has the id.
pub fn granted_event(id: LeaseId, duration: LeaseDuration, snapshot: &Snapshot, tag: Option<&EntityTag>) -> String {
    let text = |tag: &EntityTag| String::from_utf8_lossy(tag.to_header_value().as_bytes()).into_owned();
    let seconds = match duration {
        LeaseDuration::Fixed(duration) => Some(duration.as_secs()),
        LeaseDuration::Infinite => None,
    };
    let granted = GrantedText { id: id.reveal(), fence: snapshot.fence().0, etag: tag.map(text), seconds };
    event("granted", None, &json(&granted))
}

/// Returns the event that tells a client how long it has to finish. Rounded down: a client that counts on less is safe.
pub fn breaking_event(remaining: Duration) -> String {
    event("breaking", None, &json(&BreakingText { seconds: remaining.as_secs() }))
}

/// Returns the event of a lost lease, with the status of the upstream if that is the reason.
pub fn lost_event(loss: LeaseLoss, status: Option<StatusCode>) -> String {
    let status = status.map(|status| status.as_u16());
    event("lost", None, &json(&LostText { reason: loss.word(), status }))
}

/// Returns the event that refuses a client that has waited. Its data is the document of the refusal.
pub fn refused_event(refusal: &Refusal) -> String {
    event("refused", None, &refusal.problem())
}
