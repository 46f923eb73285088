//! One guarded request, and what follows from its head alone.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::Method;
use pingora::http::{RequestHeader, ResponseHeader};

use super::{
    knowledge::principal::{Presented, Principal},
    probe::affinity::Affinity,
    request_conditions::show_tags,
};
use crate::{
    body::{Client, content_length},
    config::{Route, Upstream},
    core::{
        http::{client_address::ClientAddress, credentials::signer, request_target::split_query},
        lease::{LeaseId, TargetName, Usage, Usages},
        policy::{GuardRules, ProbeAuth},
        records::{
            presence::Presence,
            record::{Snapshot, VariantName},
            tree_leases::LeaseReach,
        },
        resource::ResourceKey,
        shares::line_share::LineClient,
        tags::{checksum::Checksum, precondition::Preconditions},
    },
    dialect::{Call, ForwardedHead, Grammar, Incoming, Intent, description::DescriptionUse, s3::Signature},
    drain::Gate,
    routing::GuardedRequest,
    telemetry::stream_info,
    upstream::{WantedPlace, fields::FieldsOfHead as _},
};

mod resting;

pub(crate) use resting::RestingRequest;

/// A guarded request with parsed preconditions.
pub(crate) struct Request {
    /// The route of the request, and what the request does there.
    pub(crate) place: GuardedRoute,
    /// The resource that the request acts on.
    pub(crate) key: ResourceKey,
    /// The method that the request is judged by.
    pub(crate) method: Method,
    /// The head as received, except for the target, which is the upstream's.
    pub(crate) head: Arc<RequestHeader>,
    /// The content, as the head describes it.
    pub(crate) content: AnnouncedContent,
    /// The preconditions of the request.
    pub(crate) conditions: Preconditions,
    /// The sender of the request, and the variant that it selects.
    pub(crate) sender: Sender,
    /// The servers that the request has dealt with.
    pub(crate) affinity: Affinity,
}

/// The content of a request, as its head describes it.
pub(crate) struct AnnouncedContent {
    /// True if content follows the head.
    pub(crate) follows: bool,
    /// The checksums that it should have.
    pub(crate) checksums: Vec<Checksum>,
    /// The use that the request makes of the description of its resource, if any.
    pub(crate) description: Option<DescriptionUse>,
}

impl AnnouncedContent {
    /// No content.
    const fn none() -> Self {
        Self { follows: false, checksums: Vec::new(), description: None }
    }

    /// True if the request shows the description of its resource.
    pub(crate) fn shows_description(&self) -> bool {
        self.description == Some(DescriptionUse::Shown)
    }

    /// True if the request changes the description of its resource, and leaves the content as it is.
    pub(crate) fn is_description_alone(&self) -> bool {
        self.description.as_ref().is_some_and(DescriptionUse::is_alone)
    }
}

/// A route that enforces its guard, and what the request does there.
pub(crate) struct GuardedRoute {
    route: Arc<Route>,
    rules: Arc<GuardRules>,
    /// The gate that writes on the route go through.
    pub(crate) gate: Arc<Gate>,
    /// The target by which the upstream gets a write, if it is not that of the resource.
    pub(crate) forwarded_target: Option<Arc<[u8]>>,
    /// The uses that the request makes of its resource, in all its readings together, as leases count them.
    pub(crate) usages: Usages,
    /// True if the request removes a whole collection, as an operation of its own.
    pub(crate) removes_tree: bool,
    /// The write of a second resource, if the request is a COPY or MOVE.
    pub(super) destination: Option<Box<Request>>,
}

/// The sender of a request.
#[derive(Clone)]
pub(crate) struct Sender {
    /// The identity of the sender.
    pub(crate) principal: Principal,
    /// The address of the sender.
    pub(crate) address: ClientAddress,
    /// The lease id in the request.
    pub(crate) lease_id: Option<LeaseId>,
    /// The ids of all leases that the request names, if it can name several.
    pub(crate) lease_ids: Vec<LeaseId>,
    /// True if a route that demands a lease demands it of this request too.
    pub(crate) needs_lease: bool,
    /// True if the proxy itself sends the request: it is the DELETE that waited for the holders of the lease.
    pub(crate) is_late_delete: bool,
    /// The name of the variant that the request selects, once something needs it. A request for a lease often needs
    /// none.
    variant: OnceLock<VariantName>,
}

impl GuardedRoute {
    /// The route that a request takes, under these rules.
    pub(super) fn of(guarded: &GuardedRequest, rules: Arc<GuardRules>, gate: Arc<Gate>) -> Self {
        Self {
            route: Arc::clone(&guarded.route),
            rules,
            gate,
            forwarded_target: guarded.forwarded_target.clone(),
            usages: guarded.methods.usages,
            removes_tree: false,
            destination: None,
        }
    }

    /// The same for a request without a destination.
    fn without_destination(&self) -> Self {
        Self {
            route: Arc::clone(&self.route),
            rules: Arc::clone(&self.rules),
            gate: Arc::clone(&self.gate),
            forwarded_target: self.forwarded_target.clone(),
            usages: self.usages,
            removes_tree: self.removes_tree,
            destination: None,
        }
    }

    /// How many writes may stand in the line of a resource of the route.
    pub(crate) fn line_max(&self) -> usize {
        self.rules.claim.max_waiters
    }
}

impl Sender {
    /// Returns the client that has sent this head to a route with these rules, and its lease fields.
    pub(super) fn of(
        client: &mut dyn Client,
        head: &RequestHeader,
        guarded: &GuardedRequest,
        (rules, lease_id, needs_lease): (&GuardRules, Option<LeaseId>, bool),
    ) -> Self {
        // A dialect may remove the credentials from the query of what it forwards.
        let (_, query) = split_query(client.head().raw_path());
        let presented = Presented { headers: &head.headers, query, certificate: client.certificate() };
        let principal = Principal::of(presented, rules);
        if let Some(name) = principal.shown() {
            stream_info::sent_by(name);
        }
        let (address, variant) = (guarded.client, OnceLock::new());
        Self { principal, address, lease_id, lease_ids: Vec::new(), needs_lease, is_late_delete: false, variant }
    }
}

impl Request {
    /// Creates the request from the findings of the door and of the dialect.
    pub(crate) fn new(
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        (rules, gate): (&Arc<GuardRules>, Arc<Gate>),
        call: Call,
    ) -> pingora::Result<Self> {
        let Call { intent, mut conditions, checksums, mut description, lease_id, needs_lease, forwarded, .. } = call;
        let mut head = Arc::clone(client.head());
        if let (Some(description), Some(grammar)) = (&mut description, rules.dialect.grammar().description()) {
            description.spell(grammar, head.spelled_fields().map(|(field, _)| field));
        }
        if let Some(forwarded) = forwarded {
            replace_head(Arc::make_mut(&mut head), forwarded)?;
        }
        let target = guarded.target_at_upstream(head.raw_path());
        if *target != *head.raw_path() {
            let target = target.into_owned();
            Arc::make_mut(&mut head).set_raw_path(&target)?;
        }
        if conditions.restore(&rules.etag_suffixes, rules.accept_weak_own) {
            show_tags(Arc::make_mut(&mut head), &conditions);
        }
        let removes_tree = intent == Intent::RemoveTree;
        let place = GuardedRoute { removes_tree, ..GuardedRoute::of(guarded, Arc::clone(rules), gate) };
        let sender = Sender::of(client, &head, guarded, (rules, lease_id, needs_lease));
        Ok(Self {
            content: AnnouncedContent { follows: client.has_content(), checksums, description },
            ..Self::without_content(guarded, (place, sender), head, conditions)
        })
    }

    /// Creates a request whose content has no meaning of its own.
    pub(super) fn without_content(
        guarded: &GuardedRequest,
        (place, sender): (GuardedRoute, Sender),
        head: Arc<RequestHeader>,
        conditions: Preconditions,
    ) -> Self {
        Self {
            place,
            key: guarded.key.clone(),
            method: guarded.methods.judged.clone(),
            head,
            content: AnnouncedContent::none(),
            conditions,
            sender,
            affinity: Affinity::default(),
        }
    }

    /// Returns the write of the destination, if the request is a COPY or MOVE.
    pub(crate) fn destination(&self) -> Option<&Self> {
        self.place.destination.as_deref()
    }

    /// Returns the same, for a dialect that states more about it than its call.
    pub(crate) fn destination_mut(&mut self) -> Option<&mut Self> {
        self.place.destination.as_deref_mut()
    }

    /// True if an applied request leaves no representation of its target, which may end its lease.
    pub(crate) fn removes_target(&self) -> bool {
        self.method == Method::DELETE || self.destination().is_some() && !self.only_reads_target()
    }

    /// True if the request may change the resources below its target, or below its destination.
    pub(crate) fn may_change_members(&self) -> bool {
        self.place.usages.contains(Usage::Delete) || self.destination().is_some()
    }

    /// Returns the state of its target that an applied request leaves; `None` if its method does not tell.
    pub(crate) fn left_presence(&self) -> Option<Presence> {
        let gives_content = matches!(self.method, Method::PUT | Method::PATCH);
        let is_told = self.removes_target() || gives_content;
        is_told.then(|| Presence { target: self.target(), is_present: !self.removes_target() })
    }

    /// True if the request changes another resource, and only reads its target: it is a COPY.
    pub(crate) fn only_reads_target(&self) -> bool {
        self.destination().is_some() && self.method.as_str() == "COPY"
    }

    /// Returns the name of the variant that the request selects, before `Vary` counts.
    pub(crate) fn variant(&self) -> VariantName {
        let variant = || self.sender.principal.variant(&self.key, self.head.raw_path(), &self.head.headers);
        *self.sender.variant.get_or_init(variant)
    }

    /// Returns the name of the same variant that tags carry.
    pub(crate) fn labelled_variant(&self) -> VariantName {
        let principal = self.sender.principal;
        if principal.signs() {
            principal.labelled_variant(&self.key, self.head.raw_path(), &self.head.headers)
        } else {
            self.variant()
        }
    }

    /// True if the request has the id of a lease that is held or remembered.
    pub(crate) fn proves_lease(&self, snapshot: &Snapshot) -> bool {
        let principal = Some(self.sender.principal.holder());
        let mut leases = snapshot.leases().chain(snapshot.held_around(LeaseReach::Tree).map(|around| &around.lease));
        self.sender.lease_id.is_some_and(|id| leases.any(|lease| lease.is_proved_by(id, principal)))
    }

    /// The sender, as one of those in a line. Cookies that may change at any time do not count.
    pub(crate) fn line_client(&self) -> LineClient {
        LineClient { address: self.sender.address, principal: self.sender.principal.holder() }
    }

    /// True if the upstream can be asked what the sender may read. It must be asked with the sender's credentials, and a
    /// signature holds for one request alone.
    pub(crate) fn can_lend_credentials(&self) -> bool {
        let headers = &self.head.headers;
        let is_signed = signer(headers).is_some() || Signature::of(self.head.raw_path(), headers).is_of_aws();
        !is_signed && self.rules().probe_auth == ProbeAuth::Client
    }

    /// Returns the grammar of its client.
    pub(crate) fn grammar(&self) -> &'static dyn Grammar {
        self.rules().dialect.grammar()
    }

    /// True if the method is GET or HEAD, which select a representation.
    pub(crate) fn is_get_or_head(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// True if the head alone names what the request selects. The content of a GET has no meaning of its own (RFC 9110
    /// section 9.3.1), but a backend may answer each content differently.
    pub(crate) fn is_named_by_head(&self) -> bool {
        self.is_get_or_head() && !self.content.follows
    }

    /// Returns the name of the target among those that share the key. In some dialects the query names no
    /// other target: it names the operation and the right to it.
    pub(crate) fn target(&self) -> TargetName {
        let target = self.head.raw_path();
        let target = if self.rules().quirks.query_names_target { target } else { split_query(target).0 };
        TargetName::of(target, self.upstream().ignore_case)
    }

    /// The route.
    pub(crate) const fn route(&self) -> &Arc<Route> {
        &self.place.route
    }

    /// The rules of the route.
    pub(crate) fn rules(&self) -> &GuardRules {
        &self.place.rules
    }

    /// The upstream of the route.
    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.route().upstream
    }

    /// Returns how long the body of this response may take to arrive.
    pub(crate) fn wait_for_body(&self, head: &ResponseHeader) -> Duration {
        self.rules().wait_for_body(content_length(&head.headers), self.upstream().read_timeout)
    }

    /// The server to probe for the resource.
    pub(crate) fn to_ask(&self) -> WantedPlace<'_> {
        WantedPlace { choice: self.affinity.to_ask(self.key.as_str()), client: self.sender.address }
    }

    /// The server to send the request to.
    pub(crate) fn to_send(&self) -> WantedPlace<'_> {
        WantedPlace { choice: self.affinity.to_send(self.key.as_str()), client: self.sender.address }
    }
}

/// Returns the part of a request that a grammar reads.
pub(crate) fn incoming<'a>(head: &'a RequestHeader, guarded: &'a GuardedRequest) -> Incoming<'a> {
    Incoming {
        method: &guarded.methods.judged,
        other_methods: &guarded.methods.others,
        target: head.raw_path(),
        headers: &head.headers,
    }
}

/// Makes a head the one that the upstream is to get.
fn replace_head(head: &mut RequestHeader, forwarded: ForwardedHead) -> pingora::Result<()> {
    head.set_method(forwarded.method);
    head.set_raw_path(&forwarded.target)?;
    let received: Vec<_> = head.headers.keys().cloned().collect();
    for name in &received {
        head.remove_header(name);
    }
    let mut last = None;
    for (name, value) in forwarded.fields {
        // The map names a field with the first of its values alone.
        last = name.or(last);
        if let Some(name) = &last {
            head.append_header(name.clone(), value)?;
        }
    }
    Ok(())
}
