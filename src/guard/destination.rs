//! The destination of a COPY or MOVE, as a write of its own under the same claim (DESIGN, sections 3, rule 1, and 4).
//!
//! # Design
//!
//! *Why is it a request?* It is judged as a PUT there would be: by the rules of its own route, by its record, its lease
//! and its part of the request. So everything that judges a write judges it too, and nothing is written twice.
//!
//! *What does its route demand?* A condition, if something is there that would be replaced: `Overwrite: F`, or what a
//! dialect knows beside it. `If-Match` speaks of the source (RFC 9110 section 13.1.1).

use std::sync::Arc;

use http::Method;
use pingora::http::RequestHeader;

use super::{
    Halt, Request, refusals,
    request::{GuardedRoute, Sender},
    request_conditions::remove_conditions,
    rules_of,
};
use crate::{
    body::Client,
    core::{
        cause::Reason,
        http::readings::destination::{DEPTH, DESTINATION, OVERWRITE},
        policy::{GuardRules, TagSource},
        refusal::{Code, Refusal},
    },
    dialect::AtDestination,
    drain::{Gate, Pass},
    routing::GuardedDestination,
    upstream::fields::FieldsOfHead as _,
};

/// The passes of a write through the gates of its routes.
pub(crate) struct Passes {
    _own: Pass,
    _others: Vec<Pass>,
}

impl Request {
    /// Returns the write of the destination of this request, with this part of the request. `gate` is that of its
    /// route.
    pub(super) fn at_destination(
        &self,
        client: &mut dyn Client,
        GuardedDestination { request: guarded, target }: &GuardedDestination,
        gate: Arc<Gate>,
        AtDestination { mut conditions, lease_id, needs_lease }: AtDestination,
    ) -> pingora::Result<Self> {
        let rules = rules_of(guarded)?;
        let mut head = RequestHeader::clone(&self.head);
        remove_conditions(&mut head);
        head.remove_all(|name| [&DESTINATION, &OVERWRITE, &DEPTH].contains(&name));
        head.set_raw_path(&guarded.target_at_upstream(target))?;
        conditions.restore(&rules.etag_suffixes, rules.accept_weak_own);
        let place = GuardedRoute::of(guarded, Arc::new(rules_at_destination(rules, &self.method)), gate);
        let sender = Sender::of(client, &head, guarded, (rules, lease_id, needs_lease));
        Ok(Self::without_content(guarded, (place, sender), Arc::new(head), conditions))
    }

    /// Notes that the request goes to this server of the upstream, with this head. A COPY or MOVE names its destination
    /// there with the scheme and the host of the connection, since servers compare them with their own.
    pub(super) fn sent_to(&self, head: &mut RequestHeader, server: usize) -> pingora::Result<()> {
        self.affinity.sent(server);
        let Some(destination) = self.destination() else { return Ok(()) };
        let upstream = self.upstream();
        if Arc::ptr_eq(upstream, destination.upstream()) {
            destination.affinity.sent(server);
        }
        let own = upstream.servers.get(server).and_then(|name| upstream.host_header.for_server(name));
        let host = own.map(str::as_bytes).or(head.headers.get(http::header::HOST).map(http::HeaderValue::as_bytes));
        let scheme: &[u8] = if upstream.tls.is_some() { b"https://" } else { b"http://" };
        let reference = [scheme, host.unwrap_or_default(), destination.head.raw_path()].concat();
        head.insert_header("Destination", reference)
    }

    /// Goes through the gate of the route, for a write, and through that of its destination. Fails if one of the routes
    /// has been replaced.
    pub(crate) async fn pass(&self) -> Result<Passes, Refusal> {
        self.pass_with(self.destination().as_slice()).await
    }

    /// Goes through the gates of the route and of the routes of these other requests, for one write of all. Fails if one of
    /// the routes has been replaced.
    pub(crate) async fn pass_with(&self, others: &[&Self]) -> Result<Passes, Refusal> {
        let retired = |_retired| refusals::of_retired_route();
        let gate = &self.place.gate;
        let mut gates: Vec<&Arc<Gate>> = Vec::new();
        for Self { place: GuardedRoute { gate: other, .. }, .. } in others {
            if !gates.iter().chain([&gate]).any(|known| Arc::ptr_eq(known, other)) {
                gates.push(other);
            }
        }
        loop {
            let own = gate.enter().await.map_err(retired)?;
            let others = gates.iter().map(|other| other.enter_at_once().ok_or(other));
            match others.collect::<Result<_, _>>() {
                Ok(others) => return Ok(Passes { _own: own, _others: others }),
                Err(closed) => {
                    // A reload that closes several gates waits for those that are behind one of them.
                    drop(own);
                    closed.opened().await.map_err(retired)?;
                }
            }
        }
    }
}

/// The rules by which a destination is judged. The backend judges none of its conditions.
fn rules_at_destination(rules: &GuardRules, method: &Method) -> GuardRules {
    let etag = if rules.etag == TagSource::Delegate { TagSource::Upstream } else { rules.etag.clone() };
    let (require, require_methods) = (rules.demand_at_destination(method), vec![Method::PUT]);
    GuardRules { etag, require, require_methods, ..rules.clone() }
}

/// Says of a refusal that it speaks of the destination, and what to send instead.
pub(super) fn refused_at_destination(halt: Halt) -> Halt {
    let Halt::Refused(mut refusal) = halt else { return halt };
    let reason = refusal.cause.as_ref().and_then(|cause| cause.reason);
    refusal.detail = match (refusal.code, reason) {
        (Code::PreconditionRequired, _) => {
            "something is at the destination, and it would be replaced unseen: send Overwrite: F, so that nothing is \
             replaced, or read it and replace it by a PUT with its ETag in If-Match"
                .into()
        }
        (Code::PreconditionFailed, Some(Reason::ResourceExists)) => {
            "something is at the destination, and Overwrite: F keeps it: choose another name, or leave Overwrite out"
                .into()
        }
        (code, _) if code.status().is_client_error() => format!("at the destination: {}", refusal.detail).into(),
        _ => refusal.detail,
    };
    Halt::Refused(refusal)
}
