//! The verdict on the preconditions of a request: from memory if memory decides, otherwise from a probe of the
//! upstream.

use http::Method;
use tokio::time::Instant;

use super::{Probed, Probes, variants::OpenQuestion};
use crate::{
    core::{
        policy::TagSource,
        records::record::Snapshot,
        refusal::Refusal,
        tags::{
            bare_tags::{Before, ShortName},
            coarse_tag::Spelling,
            entity_tag::EntityTag,
            head_answer::Aim,
            http_date::HttpDate,
            precondition::{ConditionField, Judgement, MatchRule, TagCondition, judge},
            validators::{Representation, Validators},
        },
        verdict::{Verdict, excluded, failed_read, judge_write},
    },
    guard::{
        Halt,
        knowledge::{committed_states::CommittedState, evidence::match_rule},
        refusals,
        request::Request,
    },
};

/// The basis of the verdict on a write that passed.
pub(crate) struct Judged {
    /// The tag of the representation, as clients get it.
    pub(crate) tag: Option<EntityTag>,
    /// The state of the target before the write, if the verdict shows it.
    pub(crate) before: Before,
    /// The modification date of that state, if the verdict shows it.
    pub(crate) modified: Option<HttpDate>,
    /// The state before it, if the reads beside the write get that state.
    pub(crate) committed: Option<Box<CommittedState>>,
}

/// The limit of an early verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Memory decides.
    Memory,
    /// The upstream decides, as long as no write is in flight.
    Undisturbed,
    /// The upstream decides.
    Certain,
}

impl Probes {
    /// Returns the verdict on the preconditions. If the request passes, it contains the state that the request was
    /// judged by.
    pub(crate) async fn judge(&self, request: &Request, snapshot: &Snapshot) -> Result<Judged, Halt> {
        request.affinity.judge_anew();
        // A resource that is only described must exist, and memory does not tell.
        if request.content.is_description_alone() {
            return self.judge_by_probe(request, snapshot).await;
        }
        match self.knowledge.verdict(request, snapshot) {
            (Verdict::Pass, tag) => {
                Ok(Judged::by_memory(request, tag, &self.knowledge.spelling(request, Some(snapshot))))
            }
            (Verdict::Refused(refusal), _) => Err(self.knowledge.explain(request, snapshot, refusal).into()),
            (Verdict::Missing | Verdict::AskUpstream, _) => self.judge_by_probe(request, snapshot).await,
        }
    }

    /// Like [`Probes::judge`], but before the write can begin: if the depth does not suffice for a verdict, it passes.
    pub(crate) async fn judge_early(&self, request: &Request, snapshot: &Snapshot, depth: Depth) -> Result<(), Halt> {
        match self.knowledge.verdict(request, snapshot).0 {
            Verdict::Pass => return Ok(()),
            Verdict::Refused(refusal) => return Err(self.knowledge.explain(request, snapshot, refusal).into()),
            Verdict::Missing | Verdict::AskUpstream => {}
        }
        if depth == Depth::Memory || depth == Depth::Undisturbed && !snapshot.has_no_pending_writes() {
            return Ok(());
        }
        // Boxed, so that the futures of other writes stay small.
        let verdict = Box::pin(self.judge_by_probe(request, snapshot)).await.map(drop);
        // During another write, the upstream may show a half-written state, which decides nothing.
        if depth == Depth::Undisturbed && verdict.is_err() && !self.knowledge.is_untouched(request, snapshot).await {
            return Ok(());
        }
        verdict
    }

    /// Returns the verdict on the conditions of a read that the upstream itself makes for another request. Any
    /// condition that does not hold fails.
    pub(crate) async fn judge_read(&self, request: &Request, snapshot: &Snapshot) -> Result<(), Halt> {
        let (representation, rule) = match self.probe(request, snapshot, Aim::Verdict).await {
            Probed::Current { representation, rule, missing, .. } => {
                if let Some(missing) = missing {
                    missing.discard().await;
                }
                (representation, rule)
            }
            Probed::Answer(exchange) => return Err(self.upstreams_own(request, *exchange).await),
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => return Err(refusal.into()),
        };
        let field = match judge(&request.method, &request.conditions, &representation, rule) {
            Judgement::Pass => return Ok(()),
            Judgement::Failed { field, .. } => field,
            Judgement::NotModified => ConditionField::IfNoneMatch,
            Judgement::Unknowable => return Err(refusals::unknown_state().into()),
        };
        Err(failed_read(&request.conditions, field, &representation).into())
    }

    /// Like [`Probes::judge`], but always asks the upstream.
    pub(crate) async fn judge_by_probe(&self, request: &Request, snapshot: &Snapshot) -> Result<Judged, Halt> {
        let end = Instant::now() + request.rules().probe.timeout;
        let probed = self.probe_until(request, snapshot, (Aim::Verdict, None), end).await;
        if let Probed::Current { representation: Representation::Present(Validators { tag: Some(tag), .. }), .. } =
            &probed
        {
            self.knowledge.note_shown(request, snapshot, tag);
        }
        let open = OpenQuestion::after(request, &probed);
        if let Probed::Current { representation, .. } = &probed
            && self.is_excluded(request, snapshot, representation, end).await?
        {
            let refusal = excluded(&request.conditions);
            return Err(self.knowledge.explain(request, snapshot, refusal).into());
        }
        if let Some(open) = open
            && let Some(tag) = self.current_elsewhere(request, snapshot, open, end).await
        {
            return Ok(Judged { tag: Some(tag), before: Before::Unknown, modified: None, committed: None });
        }
        let mut kept = None;
        let (current, rule, missing, status) = match probed {
            // Its 404 says nothing of the resource whose tag the write names. That tag is no current one.
            Probed::Current { rule, missing, status, .. } if open == Some(OpenQuestion::Absent) && acts(request) => {
                if let Some(missing) = missing {
                    missing.discard().await;
                }
                (Representation::Present(Validators::default()), rule, None, Some(status))
            }
            Probed::Current { representation, rule, missing, status, committed } => {
                kept = committed;
                (representation, rule, missing, Some(status))
            }
            Probed::Answer(exchange) => return Err(self.upstreams_own(request, *exchange).await),
            // The target cannot be read, and the write names a tag of a representation that was read and has changed
            // since.
            Probed::Unreadable(_) if open.is_some() && self.knowledge.was_issued(request) => {
                (Representation::Present(Validators::default()), match_rule(request.rules()), None, None)
            }
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => {
                return Err(self.knowledge.explain(request, snapshot, refusal).into());
            }
        };
        match (judge_write(request.rules(), &request.method, &request.conditions, &current, rule), missing) {
            (Verdict::Pass, _) => {
                if let Some(refusal) = nothing_to_describe(request).filter(|_| current == Representation::Absent) {
                    return Err(refusal.into());
                }
                let spelling = self.knowledge.spelling(request, Some(snapshot));
                Ok(Judged { committed: kept, ..Judged::by_probe(current, rule, &spelling) })
            }
            (Verdict::Refused(refusal), _) => {
                if open == Some(OpenQuestion::OtherTag) {
                    self.was_refuted(request, snapshot);
                }
                Err(self.knowledge.explain_probed(request, snapshot, refusal, status).into())
            }
            (Verdict::Missing, Some(exchange)) => Err(self.upstreams_own(request, *exchange).await),
            (Verdict::AskUpstream, _) if request.rules().quirks.unknown_date_fails => Err(refusals::no_date().into()),
            // A probe leaves nothing unknown, and if there is no representation it brings the upstream's answer.
            (Verdict::Missing | Verdict::AskUpstream, _) => Err(refusals::unknown_state().into()),
        }
    }
}

/// True if a request acts on a resource that is read at another target, as `POST /orders/1/send` does on `/orders/1`.
fn acts(request: &Request) -> bool {
    request.method == Method::POST && !request.route().key.is_path()
}

/// The state that clients know by this tag, by the backend's own.
fn before(tag: &EntityTag, spelling: &Spelling) -> Before {
    Before::Tag(ShortName::of_tag(&spelling.at_backend(tag)))
}

/// Returns the refusal of a description for a resource that does not exist, if the request has nothing else.
fn nothing_to_describe(request: &Request) -> Option<Refusal> {
    let grammar = request.grammar().description().filter(|_| request.content.is_description_alone());
    grammar.map(|grammar| grammar.nothing_to_describe(request.head.raw_path()))
}

impl Judged {
    /// Returns the basis of a verdict from memory. If the backend judges itself and a write that names one tag passes,
    /// that tag was the current one.
    fn by_memory(request: &Request, tag: Option<EntityTag>, spelling: &Spelling) -> Self {
        let named = match &request.conditions.if_match {
            Some(TagCondition::Tags(tags)) if request.rules().etag == TagSource::Delegate && tags.len() == 1 => {
                tags.first()
            }
            _ => None,
        };
        let before = tag.as_ref().or(named).map_or(Before::Unknown, |tag| before(tag, spelling));
        Self { tag, before, modified: None, committed: None }
    }

    /// The basis of a verdict from a probe, which does not look for a tag that no condition needs.
    fn by_probe(current: Representation, rule: MatchRule, spelling: &Spelling) -> Self {
        match current {
            Representation::Present(Validators { tag, modified }) => {
                let own = tag.as_ref().filter(|_| rule != MatchRule::Version);
                let before = own.map_or(Before::Unknown, |tag| before(tag, spelling));
                Self { tag, before, modified: modified.map(|modified| modified.date), committed: None }
            }
            Representation::Absent => Self { tag: None, before: Before::Absent, modified: None, committed: None },
            Representation::Unknown => Self { tag: None, before: Before::Unknown, modified: None, committed: None },
        }
    }
}
