//! Sending a marked write: the last look at the clock, and what a failure means for the mark.

use std::time::Duration;

use http::{Method, header};
use pingora::http::RequestHeader;
use tokio::time::Instant;

use super::admit::Admitted;
use crate::{
    body::Body,
    config::Upstream,
    core::{
        lease::Standing, policy::GuardRules, precondition::TagCondition, record::Snapshot, refusal::Refusal,
        steps::Outcome, time::StoreTime,
    },
    dialect::s3::Signature,
    guard::{
        Guard,
        claim::{Claim, Intent, MarkKind, Marked},
        refusals,
        request::{Request, remove_conditions, show_tags},
    },
    store::StoreError,
    upstream::{Exchange, Failure, Purpose},
};

/// What a mark's deadline adds to all that its owner may wait for: pauses of the process, and of the store.
const DEADLINE_GRACE: Duration = Duration::from_secs(5);

impl Guard {
    /// Puts a mark in, with a deadline after all that its owner may wait for. The record was not asked for before
    /// `since`.
    pub(crate) async fn mark(
        &self,
        request: &Request,
        (snapshot, since): (&Snapshot, Instant),
        kind: MarkKind,
        standing: Standing,
    ) -> Result<Marked, StoreError> {
        let intent = Intent {
            kind,
            since,
            deadline: deadline(snapshot.now, request.upstream(), &request.rules),
            leaves_lease: standing.leaves_lease(),
            removes: (request.method == Method::DELETE).then(|| request.target()),
            late_max: request.upstream().late_max,
        };
        self.marker.mark(&request.key, snapshot, intent).await
    }

    /// Connects and sends a marked write, once. On failure its mark is settled: nothing happened where nothing was
    /// sent, and the write is in doubt where a byte may have been.
    pub(crate) async fn send(
        &self,
        request: &Request,
        claim: Claim,
        head: Box<RequestHeader>,
        body: &Body,
    ) -> Result<(Exchange, Claim), Refusal> {
        let upstream = request.upstream();
        let failure = match self.exchanger.connect(upstream, request.to_send(), Purpose::Write).await {
            Ok(_) if !claim.has_left(upstream.timeout).await => {
                claim.settle(Outcome::NotApplied, None).await;
                return Err(refusals::too_late_to_begin());
            }
            Ok(connected) => {
                request.affinity.sent(connected.server());
                match connected.send(head, body).await {
                    Ok(exchange) => return Ok((exchange, claim)),
                    Err(failure) => failure,
                }
            }
            Err(failure) => failure,
        };
        let outcome = match failure {
            Failure::NotSent { .. } | Failure::Insecure | Failure::Full => Outcome::NotApplied,
            Failure::Abandoned { .. } => Outcome::Doubt,
        };
        claim.settle(outcome, None).await;
        Err(refusals::of_write(failure, upstream.late_max))
    }
}

/// When the owner of a mark made now must be dead: after all that it may wait for.
pub(crate) fn deadline(now: StoreTime, upstream: &Upstream, rules: &GuardRules) -> StoreTime {
    let servers = u32::try_from(upstream.servers.len()).unwrap_or(u32::MAX);
    // A slot of a server and a connection to it; the questions before and after it wait for a slot too.
    let connecting = upstream.connect_timeout.saturating_mul(servers);
    let connecting = connecting.saturating_add(upstream.connections.queue_max_wait.saturating_mul(3));
    let exchange = upstream.timeout.saturating_mul(2);
    // One before the write, in which the verdict was made, and one after it.
    let probes = rules.probe_timeout.saturating_mul(2);
    now.plus(connecting.saturating_add(exchange).saturating_add(probes).saturating_add(DEADLINE_GRACE))
}

/// What the upstream is to see of the preconditions: nothing where it does not know our tags; where they are its own,
/// what the client sent, made exact by the tag that was judged (the last fence).
pub(crate) fn forward_conditions(
    head: &mut RequestHeader,
    request: &Request,
    admitted: &Admitted,
) -> pingora::Result<()> {
    if !request.rules.etag.is_upstreams_own() {
        remove_conditions(head);
        return Ok(());
    }
    let spelling = &admitted.spelling;
    let seen = spelling.conditions_of_write_at_backend(&request.conditions);
    if seen != request.conditions {
        show_tags(head, &seen);
    }
    let signature = Signature::of(request.head.raw_path(), &request.head.headers);
    let is_exact = matches!(&request.conditions.if_match, Some(TagCondition::Tags(tags)) if tags.len() == 1);
    match admitted.judged.tag.as_ref().map(|tag| spelling.at_backend(tag)) {
        // What the client has signed arrives as it was sent: it would be refused else.
        Some(tag) if !is_exact && !tag.is_weak() && !signature.covers(&header::IF_MATCH) => {
            head.insert_header(header::IF_MATCH, tag.to_header_value())
        }
        _ => Ok(()),
    }
}
