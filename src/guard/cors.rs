//! Answers to pages of other origins: what the upstream grants an origin holds for our own answers too.
//!
//! # Design
//!
//! *Why is a grant remembered?* A refusal is made without the upstream, and without its word a browser shows the page
//! neither the problem nor even the status. Each response to an origin is such a word, that to a preflight and that to
//! a probe included: it is kept for a while, for the route, the host and the origin.
//!
//! *What where there is none?* Then the upstream is asked as a browser asks it, by a preflight, which changes nothing
//! and tells nothing of the request that is refused but its method.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, header};
use moka::sync::Cache;
use pingora::http::{RequestHeader, ResponseHeader};
use tokio::time::timeout;

use super::{
    answer::Answer,
    refusals,
    request::{Request, name_resource},
};
use crate::{
    body::{Bodies, Body, Client},
    config::Route,
    core::{
        cors::{self, is_granted},
        policy::GuardRules,
    },
    routing::GuardedRequest,
    upstream::{
        BufferedBody, Choice, Exchange, Transport,
        fields::{request_head, response_head},
    },
};

/// How many origins are remembered, over all routes: some 300 bytes each.
const ORIGINS_MAX: u64 = 10_000;
/// How long a grant is believed: browsers believe one for at least as long by default of most servers.
const GRANT_TTL: Duration = Duration::from_secs(600);
/// How long an upstream that grants an origin nothing is not asked again.
const DENIAL_TTL: Duration = Duration::from_secs(5);

/// What upstreams grant to which origins.
pub(crate) struct Origins {
    grants: Cache<[u8; 32], Arc<HeaderMap>>,
    denials: Cache<[u8; 32], ()>,
}

impl Origins {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        let grants = Cache::builder().max_capacity(ORIGINS_MAX).time_to_live(GRANT_TTL).build();
        let denials = Cache::builder().max_capacity(ORIGINS_MAX).time_to_live(DENIAL_TTL).build();
        Self { grants, denials }
    }

    /// Learns from a response to a request with an origin. Only one that is no error tells of an origin that is not
    /// let in: servers forget their CORS fields on errors.
    pub(crate) fn learn(&self, route: &Route, request: &HeaderMap, response: &ResponseHeader) {
        let Some(name) = name_of(route, request) else { return };
        let grant = cors::grant(&response.headers);
        if !grant.is_empty() {
            if self.grants.get(&name).is_none_or(|known| *known != grant) {
                self.grants.insert(name, Arc::new(grant));
            }
        } else if !(response.status.is_client_error() || response.status.is_server_error()) {
            self.grants.invalidate(&name);
            self.denials.insert(name, ());
        }
    }
}

/// Of what a grant is remembered; `None` where the request comes from no page of another origin.
fn name_of(route: &Route, request: &HeaderMap) -> Option<[u8; 32]> {
    let origin = request.get(header::ORIGIN)?.as_bytes();
    let host = request.get(header::HOST).map_or(&[][..], HeaderValue::as_bytes);
    let mut hasher = blake3::Hasher::new();
    for part in [route.name.as_bytes(), host, origin] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Some(*hasher.finalize().as_bytes())
}

/// Answers to the pages of other origins under one configuration.
pub(crate) struct Cors {
    exchanger: Arc<dyn Transport>,
    origins: Arc<Origins>,
    bodies: Bodies,
}

impl Cors {
    /// Answers by what is known of origins; what is not is asked this way.
    pub(crate) const fn new(exchanger: Arc<dyn Transport>, origins: Arc<Origins>, bodies: Bodies) -> Self {
        Self { exchanger, origins, bodies }
    }

    /// Those of another configuration.
    pub(crate) fn renewed(&self, bodies: Bodies) -> Self {
        Self::new(Arc::clone(&self.exchanger), Arc::clone(&self.origins), bodies)
    }

    /// Makes an answer readable for the page that asked, if it is of an origin that the upstream lets in.
    pub(crate) async fn answer_origin(
        &self,
        request: &RequestHeader,
        guarded: &GuardedRequest,
        rules: &GuardRules,
        answer: &mut Answer,
    ) -> pingora::Result<()> {
        let with_leases = rules.lease.is_some();
        match answer {
            Answer::Relayed(relayed) => {
                self.origins.learn(&guarded.route, &request.headers, &relayed.head);
                expose(&mut relayed.head, with_leases)?;
            }
            Answer::NotModified(head) => {
                self.origins.learn(&guarded.route, &request.headers, head);
                expose(head, with_leases)?;
            }
            Answer::Local(head, _) => {
                let grant = self.grant(request, guarded, rules, true).await;
                for (name, value) in &cors::own_answer(&grant, with_leases) {
                    head.insert_header(name.clone(), value.clone())?;
                }
            }
            Answer::Refused(refusal) => {
                // Who could not be asked a moment ago is not asked now.
                let may_ask = !refusal.code.status().is_server_error();
                let grant = self.grant(request, guarded, rules, may_ask).await;
                refusal.fields = Some(Box::new(cors::own_answer(&grant, with_leases)));
            }
            Answer::Broken(_) => {}
        }
        Ok(())
    }

    /// What the upstream grants the origin of a request: nothing, if that cannot be told.
    async fn grant(
        &self,
        request: &RequestHeader,
        guarded: &GuardedRequest,
        rules: &GuardRules,
        may_ask: bool,
    ) -> Arc<HeaderMap> {
        let Some(name) = name_of(&guarded.route, &request.headers) else { return Arc::default() };
        if let Some(grant) = self.origins.grants.get(&name) {
            return grant;
        }
        if !may_ask || self.origins.denials.contains_key(&name) {
            return Arc::default();
        }
        if let Ok(Some(exchange)) = timeout(rules.probe_timeout, self.ask_preflight(request, guarded)).await {
            self.origins.learn(&guarded.route, &request.headers, exchange.head());
            exchange.discard().await;
        }
        self.origins.grants.get(&name).unwrap_or_default()
    }

    /// A preflight of our own about the resource of a request.
    async fn ask_preflight(&self, request: &RequestHeader, guarded: &GuardedRequest) -> Option<Exchange> {
        let mut head = RequestHeader::build(Method::OPTIONS, b"/", Some(4)).ok()?;
        head.set_raw_path(request.raw_path()).ok()?;
        name_resource(&mut head, guarded).ok()?;
        for name in [header::HOST, header::ORIGIN] {
            head.insert_header(name.clone(), request.headers.get(name)?.clone()).ok()?;
        }
        let method = if guarded.is_lease { &Method::GET } else { &request.method };
        head.insert_header(header::ACCESS_CONTROL_REQUEST_METHOD, method.as_str()).ok()?;
        let head = request_head(&head, 0).ok()?;
        let upstream = &guarded.route.upstream;
        let choice = Choice::Hash(guarded.key.as_str().as_bytes());
        self.exchanger.read(upstream, choice, head, &Body::empty()).await.ok()
    }

    /// Answers a preflight with what the upstream says, and with ours added: it is not asked about fields and
    /// operations that it does not know.
    pub(crate) async fn preflight(
        &self,
        client: &mut dyn Client,
        request: &Request,
        is_lease: bool,
    ) -> Result<Answer, Answer> {
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        let mut head = request_head(&request.head, body.len()).map_err(|error| refusals::of_head(&error))?;
        match cors::asked_of_upstream(&head.headers) {
            Some(left) => head.insert_header(header::ACCESS_CONTROL_REQUEST_HEADERS, left)?,
            None => drop(head.remove_header(&header::ACCESS_CONTROL_REQUEST_HEADERS)),
        }
        if is_lease {
            head.insert_header(header::ACCESS_CONTROL_REQUEST_METHOD, "GET")?;
        }
        let exchange = self.exchanger.read(request.upstream(), request.to_ask(), head, &body);
        let mut exchange = exchange.await.map_err(refusals::of_read)?;
        let mut head = response_head(exchange.take_head());
        if is_granted(&head.headers) {
            let with_leases = request.rules().lease.is_some();
            if let Some(allowed) = cors::allowed(&head.headers, with_leases) {
                head.insert_header(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed)?;
            }
            if let (true, Some(methods)) = (is_lease, cors::allowed_for_leases(&head.headers)) {
                head.insert_header(header::ACCESS_CONTROL_ALLOW_METHODS, methods)?;
            }
        }
        Answer::read_so_far(head, BufferedBody::unread(), exchange).await
    }
}

/// Names our fields in a response of the upstream that lets the origin in.
fn expose(head: &mut ResponseHeader, with_leases: bool) -> pingora::Result<()> {
    match cors::exposed(&head.headers, with_leases).filter(|_| is_granted(&head.headers)) {
        Some(exposed) => head.insert_header(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed),
        None => Ok(()),
    }
}
