//! Answers to pages of other origins: a grant of the upstream to an origin also covers the proxy's own answers.
//!
//! # Design
//!
//! *Why is a grant remembered?* The proxy refuses without the upstream, and without a grant a browser hides the
//! problem and even the status from the page. Each response to an origin shows the grant, including those to
//! preflights and probes. The proxy keeps the grant for a while, for the route, the host and the origin.
//!
//! *What if there is no grant yet?* Then the proxy sends the upstream a preflight, as a browser would. A preflight
//! changes nothing, and reveals only the method of the refused request.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, header};
use moka::sync::Cache;
use pingora::http::{RequestHeader, ResponseHeader};
use tokio::time::timeout;

use super::{Answer, Halt, refusals, request::Request};
use crate::{
    body::{Bodies, Body, Client},
    config::Route,
    core::{
        http::cors::{self, is_granted},
        policy::GuardRules,
        refusal::Refusal,
        tags::parts_hash::PartsHasher,
    },
    routing::{Facet, GuardedRequest},
    upstream::{
        BufferedBody, Choice, Exchange, Transport, WantedPlace,
        fields::{request_head, response_head},
    },
};

/// The number of origins that are remembered over all routes. Each takes about 300 bytes.
const ORIGINS_MAX: u64 = 10_000;
/// How long the proxy trusts a grant. With the defaults of most servers, browsers trust one for at least as long.
const GRANT_TTL: Duration = Duration::from_secs(600);
/// How long the proxy does not ask again after the upstream has granted an origin nothing.
const DENIAL_TTL: Duration = Duration::from_secs(5);

/// The grants of upstreams to origins.
pub(crate) struct Origins {
    grants: Cache<[u8; 32], Arc<HeaderMap>>,
    denials: Cache<[u8; 32], ()>,
}

impl Origins {
    /// Starts without any grants.
    pub(crate) fn new() -> Self {
        let grants = Cache::builder().max_capacity(ORIGINS_MAX).time_to_live(GRANT_TTL).build();
        let denials = Cache::builder().max_capacity(ORIGINS_MAX).time_to_live(DENIAL_TTL).build();
        Self { grants, denials }
    }

    /// Learns from a response to a request with an origin. Only a response that is no error can show a denial,
    /// because servers leave out their CORS fields on errors.
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

/// The name under which a grant is remembered; `None` if the request does not come from a page of another origin.
fn name_of(route: &Route, request: &HeaderMap) -> Option<[u8; 32]> {
    let origin = request.get(header::ORIGIN)?.as_bytes();
    let host = request.get(header::HOST).map_or(&[][..], HeaderValue::as_bytes);
    Some(PartsHasher::default().add(route.name.as_bytes()).add(host).add(origin).hash())
}

/// Answers to pages of other origins under one configuration.
pub(crate) struct Cors {
    exchanger: Arc<dyn Transport>,
    origins: Arc<Origins>,
    bodies: Bodies,
}

impl Cors {
    /// Builds answers from the grants in `origins`. Unknown grants are requested through `exchanger`.
    pub(crate) const fn new(exchanger: Arc<dyn Transport>, origins: Arc<Origins>, bodies: Bodies) -> Self {
        Self { exchanger, origins, bodies }
    }

    /// The answers under another configuration.
    pub(crate) fn renewed(&self, bodies: Bodies) -> Self {
        Self::new(Arc::clone(&self.exchanger), Arc::clone(&self.origins), bodies)
    }

    /// Makes an answer readable for the page that sent the request, if the upstream lets the page's origin in.
    pub(crate) async fn answer_origin(
        &self,
        request: &RequestHeader,
        guarded: &GuardedRequest,
        rules: &GuardRules,
        answer: &mut Result<Answer, Refusal>,
    ) -> pingora::Result<()> {
        let with_leases = rules.lease.is_some();
        match answer {
            Ok(Answer::Relayed(relayed) | Answer::Current(_, relayed)) => {
                self.origins.learn(&guarded.route, &request.headers, &relayed.head);
                expose(&mut relayed.head, with_leases)?;
            }
            Ok(Answer::NotModified(head)) => {
                self.origins.learn(&guarded.route, &request.headers, head);
                expose(head, with_leases)?;
            }
            Ok(Answer::Local(head, _) | Answer::Lasting(head, _) | Answer::Told(_, head, _)) => {
                let grant = self.grant(request, guarded, rules, true).await;
                for (name, value) in &cors::own_answer(&grant, with_leases) {
                    head.insert_header(name.clone(), value.clone())?;
                }
            }
            Err(refusal) => {
                // After a server error the proxy does not ask the upstream.
                let may_ask = !refusal.code.status().is_server_error();
                let grant = self.grant(request, guarded, rules, may_ask).await;
                refusal.fields = Some(Box::new(cors::own_answer(&grant, with_leases)));
            }
        }
        Ok(())
    }

    /// The upstream's grant to the origin of a request. Empty if the grant cannot be learned.
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
        if let Ok(Some(exchange)) = timeout(rules.probe.timeout, self.ask_preflight(request, guarded)).await {
            self.origins.learn(&guarded.route, &request.headers, exchange.head());
            exchange.discard().await;
        }
        self.origins.grants.get(&name).unwrap_or_default()
    }

    /// Sends the proxy's own preflight about the resource of a request.
    async fn ask_preflight(&self, request: &RequestHeader, guarded: &GuardedRequest) -> Option<Exchange> {
        let mut head = RequestHeader::build(Method::OPTIONS, b"/", Some(4)).ok()?;
        head.set_raw_path(&guarded.target_at_upstream(request.raw_path())).ok()?;
        for name in [header::HOST, header::ORIGIN] {
            head.insert_header(name.clone(), request.headers.get(name)?.clone()).ok()?;
        }
        let method = if guarded.facet == Facet::Resource { &request.method } else { &Method::GET };
        head.insert_header(header::ACCESS_CONTROL_REQUEST_METHOD, method.as_str()).ok()?;
        let head = request_head(&head, 0).ok()?;
        let upstream = &guarded.route.upstream;
        let choice = Choice::Hash(guarded.key.as_str().as_bytes());
        let wanted = WantedPlace { choice, client: guarded.client };
        self.exchanger.read(upstream, wanted, head, &Body::empty()).await.ok()
    }

    /// Answers a preflight with the upstream's response, and adds the proxy's own fields and operations. The upstream
    /// is not asked about those, because it does not know them.
    pub(crate) async fn preflight(
        &self,
        client: &mut dyn Client,
        request: &Request,
        is_lease: bool,
    ) -> Result<Answer, Halt> {
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

/// Exposes the proxy's fields in a response of the upstream that lets the origin in.
fn expose(head: &mut ResponseHeader, with_leases: bool) -> pingora::Result<()> {
    match cors::exposed(&head.headers, with_leases).filter(|_| is_granted(&head.headers)) {
        Some(exposed) => head.insert_header(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed),
        None => Ok(()),
    }
}
