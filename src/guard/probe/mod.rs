//! Probes: requests to the upstream for the current validators of a resource (DESIGN, section 4, "Probe").

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use tokio::time::{Instant, timeout_at};

use super::{
    Halt, Relayed,
    answer::withhold_foreign_tag,
    cors::Origins,
    knowledge::{
        Knowledge,
        committed_states::{CommittedState, can_be_kept},
        derived_tag::stated_tag,
        evidence::match_rule,
        selection::Selection,
        warn_once::Unsuited,
    },
    refusals,
    request::Request,
};
use crate::{
    body::{Body, BodyBudget, MemoryUse},
    core::{
        policy::{GuardRules, ProbeAuth, TagSource},
        records::record::Snapshot,
        refusal::Refusal,
        tags::{
            entity_tag::EntityTag,
            head_answer::{Aim, first_method, head_decides, keeps_state},
            precondition::{MatchRule, Preconditions, TagCondition},
            validators::{Modified, Representation, Validators},
        },
    },
    telemetry::{Step, TimedPart, metrics, timing},
    upstream::{Exchange, Failure, OwnCredentials, Transport, fields::response_head, read_whole},
};
use authorization::lends_bound_credentials;
use body_tag::Keep;
use collection::PlainFolders;
use head::probe_head;
use kept_bodies::KeptBodies;
use unreadable::{answered, bound_credentials, timed_out, too_large, unanswered, unreadable};

pub(crate) mod affinity;
pub(crate) mod authorization;
pub(crate) mod body_tag;
pub(crate) mod collection;
pub(crate) mod description;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod judge;
pub(crate) mod kept_bodies;
pub(crate) mod permission;
mod unreadable;
pub(crate) mod variants;

/// The answer to a request for a representation.
pub(crate) struct Asked {
    /// The exchange that brings the answer.
    pub(crate) exchange: Exchange,
    /// The selection of the representation.
    pub(crate) selection: Selection,
}

/// Probes of the current state of resources. All generations of the configuration share them.
pub(crate) struct Probes {
    knowledge: Arc<Knowledge>,
    exchanger: Arc<dyn Transport>,
    /// The grants of the upstreams to pages of other origins.
    pub(crate) origins: Arc<Origins>,
    budget: Arc<BodyBudget>,
    own: ArcSwap<OwnCredentials>,
    plain: PlainFolders,
    kept_bodies: KeptBodies,
}

/// The result of a probe.
pub(crate) enum Probed {
    /// The current representation.
    Current {
        /// The representation, or its absence.
        representation: Representation,
        /// The rule by which `If-Match` is compared with the tag.
        rule: MatchRule,
        /// The upstream's own answer, if there is no representation.
        missing: Option<Box<Exchange>>,
        /// The status of the answer.
        status: StatusCode,
        /// The state before it, if the reads beside the write get that state.
        committed: Option<Box<CommittedState>>,
    },
    /// The upstream refuses the principal, and its answer stands.
    Answer(Box<Exchange>),
    /// The upstream answers a GET of the target, but the answer does not show the state.
    Unreadable(Refusal),
    /// The probe learned nothing.
    Refused(Refusal),
}

impl Probed {
    /// The name of the result in metrics.
    const fn word(&self) -> &'static str {
        match self {
            Self::Current { representation: Representation::Absent, .. } => "absent",
            Self::Current { .. } => "present",
            Self::Answer(_) => "denied",
            Self::Unreadable(_) => "unreadable",
            Self::Refused(_) => "failed",
        }
    }

    /// Returns the name of the result, and the tag if the result shows one.
    fn shown(&self) -> (&'static str, Option<EntityTag>) {
        let tag = match self {
            Self::Current { representation: Representation::Present(validators), .. } => validators.tag.clone(),
            _ => None,
        };
        (self.word(), tag)
    }

    /// Ends the exchange that the result holds.
    async fn discard(self) {
        if let Self::Current { missing: Some(exchange), .. } | Self::Answer(exchange) = self {
            exchange.discard().await;
        }
    }

    /// True if this result of a HEAD needs no confirmation.
    fn is_decided_by_head(&self, aim: Aim, request: &Request) -> bool {
        let Self::Current { representation, rule, status, .. } = self else { return false };
        let asked = (&request.method, &request.conditions);
        head_decides(aim, request.rules(), asked, (*status, representation, *rule))
    }
}

impl Probes {
    /// Builds probes that go through `exchanger` and hold bodies within `budget`.
    pub(crate) fn new(knowledge: Arc<Knowledge>, exchanger: Arc<dyn Transport>, budget: Arc<BodyBudget>) -> Self {
        let (origins, own, plain) = (Arc::new(Origins::new()), ArcSwap::default(), PlainFolders::new());
        let kept_bodies = KeptBodies::new();
        Self { knowledge, exchanger, origins, budget, own, plain, kept_bodies }
    }

    /// Probes the resource of a write, whose record was read as `snapshot`.
    pub(crate) async fn probe(&self, request: &Request, snapshot: &Snapshot, aim: Aim) -> Probed {
        self.probe_until(request, snapshot, (aim, None), Instant::now() + request.rules().probe.timeout).await
    }

    /// Like [`Probes::probe`], but until `end`, and for another variant of the resource if `asked` has a selection.
    pub(crate) async fn probe_until(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        asked: (Aim, Option<&Selection>),
        end: Instant,
    ) -> Probed {
        let mut step = Step::begin("probe");
        let _probing = timing(TimedPart::Probe);
        let probed = self.probe_upstream(request, snapshot, asked, end).await;
        step.set("ifmatch.probe.found", probed.word());
        if let Some(metrics) = metrics::get() {
            metrics.probed(&request.route().name, probed.word());
        }
        probed
    }

    async fn probe_upstream(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        (aim, selection): (Aim, Option<&Selection>),
        end: Instant,
    ) -> Probed {
        let method = first_method(aim, request.rules(), &request.conditions);
        let by_head = method == Method::HEAD;
        let probed = match self.probe_by(request, snapshot, (method, selection), (aim, end)).await {
            Ok(probed) if by_head && !probed.is_decided_by_head(aim, request) => {
                let by_head = probed.shown();
                // Its connection may be the only one.
                probed.discard().await;
                // Boxed, because it is rare.
                let probed = Box::pin(self.probe_by(request, snapshot, (Method::GET, selection), (aim, end))).await;
                if probed.as_ref().is_ok_and(|by_get| by_get.shown() != by_head) {
                    self.knowledge.is_unsuited(request, Unsuited::HeadIsNotGet);
                }
                probed
            }
            probed => probed,
        };
        probed.unwrap_or_else(Probed::Refused)
    }

    /// Asks by one method. The error says that no answer came.
    async fn probe_by(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        (method, selection): (Method, Option<&Selection>),
        (aim, end): (Aim, Instant),
    ) -> Result<Probed, Refusal> {
        let asked = timeout_at(end, self.ask(request, method, request.rules().etag.needs_body(), selection));
        let asked = asked.await.map_err(|_elapsed| timed_out())??;
        Ok(self.understand(request, snapshot, asked, (aim, end)).await)
    }

    /// Requests the resource of a write. With `for_bytes` the request accepts no content coding, so that the bytes
    /// can be hashed.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        method: Method,
        for_bytes: bool,
        selection: Option<&Selection>,
    ) -> Result<Asked, Refusal> {
        let mut head =
            probe_head(request, method, for_bytes).ok_or_else(|| unreadable("the probe head cannot be written"))?;
        if let Some(selection) = selection {
            selection.apply(&mut head).map_err(|_error| unreadable("the probe head cannot be written"))?;
        }
        self.set_credentials(request, &mut head)?;
        let (sent, body) = (head.clone(), Body::empty());
        let exchange = self.exchanger.read(request.upstream(), request.to_ask(), head, &body);
        let exchange = exchange.await.map_err(|failure| match failure {
            Failure::NotSent { timed_out: true } | Failure::Abandoned { timed_out: true } => timed_out(),
            Failure::Insecure => unreadable("no secure connection to it could be made"),
            Failure::Full => refusals::of_read(failure),
            Failure::NotSent { .. } | Failure::Abandoned { .. } => unanswered(),
        })?;
        request.affinity.asked(exchange.server());
        let selection = Selection::of(request.rules(), &sent, &exchange.head().headers);
        Ok(Asked { exchange, selection })
    }

    async fn understand(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        Asked { mut exchange, selection }: Asked,
        (aim, end): (Aim, Instant),
    ) -> Probed {
        let head = exchange.head();
        let status = head.status;
        self.origins.learn(request.route(), &request.head.headers, head);
        match status.as_u16() {
            200 | 203 | 204 => {}
            404 | 410 => {
                let (missing, rule) = (Some(Box::new(exchange)), match_rule(request.rules()));
                let representation = Representation::Absent;
                return Probed::Current { representation, rule, missing, status, committed: None };
            }
            401 | 403 if lends_bound_credentials(request) => return Probed::Refused(bound_credentials(status)),
            401 | 403 | 407 | 429 => return Probed::Answer(Box::new(exchange)),
            504 => return Probed::Refused(timed_out()),
            300..500 => return Probed::Unreadable(answered(status)),
            _ => return Probed::Refused(answered(status)),
        }
        // A probe without the client's credentials shows only what the proxy may read.
        if request.rules().probe_auth == ProbeAuth::Client {
            self.knowledge.was_let_read(request, snapshot);
        }
        let first_date = snapshot.record.first_date;
        let modified = Modified::from_headers(&head.headers).map(|modified| modified.by_record(first_date));
        let version = || self.knowledge.version_tag(request, snapshot, &[]);
        let spelling = self.knowledge.spelling(request, Some(snapshot));
        let issued = |tag: EntityTag| self.knowledge.issue(request, &spelling, &tag);
        let mut rule = match_rule(request.rules());
        let is_kept = keeps_state(aim, request.rules()) && can_be_kept(request, status, &head.headers);
        let keep = if is_kept { Keep::Body } else { Keep::Nothing };
        let mut kept = None;
        let tag = match &request.rules().etag {
            TagSource::Upstream | TagSource::Delegate | TagSource::Header(_) => {
                stated_tag(request, &head.headers).and_then(issued)
            }
            TagSource::Version => version(),
            TagSource::Content | TagSource::Json(_) if status == StatusCode::NO_CONTENT => None,
            // The head alone shows whether there is a representation.
            TagSource::Content | TagSource::Json(_) if aim == Aim::Right => None,
            TagSource::Content | TagSource::Json(_)
                if !names_tags(&request.conditions) && aim == Aim::Verdict && keep == Keep::Nothing =>
            {
                None
            }
            TagSource::Content | TagSource::Json(_) => {
                let wanted = (selection.number(request), keep);
                match self.tag_of_probed(request.rules(), &mut exchange, wanted, end).await {
                    Ok(Some((tag, body))) => {
                        kept = body;
                        tag.and_then(issued)
                    }
                    // Readers of a body of this size got a version tag.
                    Ok(None) if !request.rules().other_writers => {
                        rule = MatchRule::Version;
                        version()
                    }
                    // The tag was wanted only for the answer.
                    Ok(None) | Err(_) if !names_tags(&request.conditions) => None,
                    Ok(None) => return Probed::Refused(too_large()),
                    Err(refusal) => return Probed::Refused(refusal),
                }
            }
        };
        if keep == Keep::Body && !request.rules().etag.needs_body() {
            kept = self.body_to_keep(request.rules(), &mut exchange, end).await;
        }
        let head = exchange.take_head();
        exchange.discard().await;
        let modified = match self.modified(request, modified, (aim, end)).await {
            Ok(modified) => modified.map(|modified| modified.by_record(first_date)),
            Err(refusal) => return Probed::Refused(refusal),
        };
        let validators = Validators { tag, modified };
        let committed = kept.map(|body| {
            Box::new(CommittedState::new(request, snapshot, (response_head(head), body), &validators, selection))
        });
        Probed::Current { representation: Representation::Present(validators), rule, missing: None, status, committed }
    }

    /// The date of the last change of a resource whose content has this date, if the verdict or the answer needs it.
    async fn modified(
        &self,
        request: &Request,
        of_content: Option<Modified>,
        (aim, end): (Aim, Instant),
    ) -> Result<Option<Modified>, Refusal> {
        let Preconditions { if_modified_since, if_unmodified_since, .. } = &request.conditions;
        let is_needed = aim == Aim::Tag || if_modified_since.is_some() || if_unmodified_since.is_some();
        if is_needed && request.rules().keeps_descriptions() {
            self.last_change(request, of_content, end).await
        } else {
            Ok(of_content)
        }
    }

    /// Turns the upstream's own answer to a probe into the answer to the write: the upstream refuses the principal,
    /// or has no representation.
    pub(crate) async fn upstreams_own(&self, request: &Request, exchange: Exchange) -> Halt {
        // Its client must see that the upstream has answered the proxy, and not the request.
        let mark = format!("ifmatch; received-status={}; details=\"probe\"", exchange.head().status.as_u16());
        let mut halt = self.relayed(request, None, exchange).await;
        if let Halt::Denied(relayed) = &mut halt {
            if let Err(error) = relayed.head.append_header("Proxy-Status", mark) {
                return error.into();
            }
            // The answer to a HEAD states the length of a body that it does not have.
            if relayed.rest.is_none() {
                relayed.head.remove_header(&header::CONTENT_LENGTH);
            }
        }
        halt
    }

    /// Like [`upstreams_own`](Self::upstreams_own), but in place of the upstream's answer to the request itself.
    async fn relayed(&self, request: &Request, snapshot: Option<&Snapshot>, mut exchange: Exchange) -> Halt {
        let mut head = response_head(exchange.take_head());
        // The answer gets no foreign tag, because a client could not base a write on it.
        let (rules, spelling) = (request.rules(), self.knowledge.spelling(request, snapshot));
        if let Err(error) = withhold_foreign_tag(&mut head, rules, &spelling) {
            return error.into();
        }
        let Ok(whole) = read_whole(
            &mut exchange,
            rules.max_hash_size_bytes,
            rules.probe.timeout,
            (&self.budget, MemoryUse::Response),
        )
        .await
        else {
            return unreadable("its answer broke off").into();
        };
        Relayed::read_so_far(head, whole, exchange).await.map_or_else(Halt::from, Halt::Denied)
    }
}

/// True if a write names tags, so that the verdict needs the current one.
fn names_tags(conditions: &Preconditions) -> bool {
    let lists = [&conditions.if_match, &conditions.if_none_match];
    lists.iter().any(|condition| matches!(condition, Some(TagCondition::Tags(_))))
}

/// True if the name of a response's variant covers all fields in its `Vary`, so that the record may keep its
/// validators.
pub(crate) fn is_selected_by_name(rules: &GuardRules, response: &HeaderMap) -> bool {
    let mut names =
        response.get_all(header::VARY).iter().flat_map(|line| line.as_bytes().split(|&octet| octet == b','));
    names.all(|name| {
        let name = name.trim_ascii();
        name.is_empty()
            || name.eq_ignore_ascii_case(b"origin")
            || (rules.etag.needs_body() && name.eq_ignore_ascii_case(b"accept-encoding"))
            || HeaderName::from_bytes(name).is_ok_and(|name| rules.identifies(&name))
    })
}
