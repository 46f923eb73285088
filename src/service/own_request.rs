//! Requests that a service makes in the name of its client.

use std::sync::Arc;

use http::{HeaderName, Method, header};
use pingora::http::RequestHeader;

use super::Service;
use crate::{
    body::Client,
    core::{http::credentials::signer, policy::GuardRules, refusal::Refusal},
    dialect::Call,
    guard::{Halt, ReceivedClient, Request, incoming, rules_of},
    routing::{GuardedRequest, door::Door},
    upstream::fields::FieldsOfHead as _,
};

/// The fields of a client's request that also belong to those which the proxy makes for it, beside its credentials.
const KEPT: [HeaderName; 6] = [
    header::HOST,
    header::USER_AGENT,
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

impl Service<'_> {
    /// Sends a request through the door, beside one of the same client. Fails with `elsewhere` unless it takes a guarded
    /// route.
    pub(super) fn guarded(
        &self,
        head: &RequestHeader,
        beside: &GuardedRequest,
        elsewhere: impl FnOnce() -> Refusal,
    ) -> Result<GuardedRequest, Refusal> {
        match self.guard.door(&head.method, head, beside.client) {
            Door::Guarded(guarded) => Ok(guarded),
            Door::Refuse { refusal, .. } => Err(refusal),
            _ => Err(elsewhere()),
        }
    }

    /// The same for a request that this service handles as well, at the same upstream.
    pub(super) fn guarded_here(
        &self,
        head: &RequestHeader,
        beside: &GuardedRequest,
        elsewhere: impl Fn() -> Refusal,
    ) -> Result<GuardedRequest, Halt> {
        let guarded = self.guarded(head, beside, &elsewhere)?;
        let is_ours = rules_of(&guarded)?.quirks.service == rules_of(beside)?.quirks.service;
        let is_here = is_ours && guarded.route.upstream == beside.route.upstream;
        if is_here { Ok(guarded) } else { Err(elsewhere().into()) }
    }

    /// Returns a request without content that this service makes for a client, as its route reads it.
    pub(super) fn own_request<'c>(
        &self,
        client: &'c mut dyn Client,
        head: RequestHeader,
        guarded: &GuardedRequest,
    ) -> Result<(ReceivedClient<'c>, Request), Halt> {
        let (rules, call) = call_of(&head, guarded)?;
        let mut client = ReceivedClient::without_content(client, head);
        let request = self.guard.request(&mut client, guarded, rules, call)?;
        Ok((client, request))
    }
}

/// Reads a request as the dialect of its route spells it.
pub(super) fn call_of<'g>(
    head: &RequestHeader,
    guarded: &'g GuardedRequest,
) -> Result<(&'g Arc<GuardRules>, Call), Halt> {
    let rules = rules_of(guarded)?;
    let call = rules.dialect.grammar().read(incoming(head, guarded), rules, guarded.is_lease())?;
    Ok((rules, call))
}

/// Returns the head of a request with this method and path, and with the credentials of the client.
pub(super) fn made_head(
    received: &RequestHeader,
    (method, path): (&Method, &str),
    rules: &GuardRules,
) -> pingora::Result<RequestHeader> {
    let mut head = received.clone();
    head.set_method(method.clone());
    head.set_raw_path(path.as_bytes())?;
    // A signature holds for the client's own request alone.
    let is_signed = signer(&received.headers).is_some();
    let is_credential = |name: &HeaderName| {
        let is_declared = rules.identity_headers.contains(name) || *name == header::COOKIE;
        is_declared && !(is_signed && *name == header::AUTHORIZATION)
    };
    head.remove_all(|name| !KEPT.contains(name) && !name.as_str().starts_with("x-forwarded-") && !is_credential(name));
    Ok(head)
}
