//! Judging a write and taking its claim: one verdict, bound to one revision (DESIGN, section 4, steps 5 and 6).

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    core::{
        bare_tags::{Before, ShortName},
        coarse_tag::Spelling,
        entity_tag::EntityTag,
        lease,
        policy::TagSource,
        precondition::{Combination, MatchRule, TagCondition},
        record::{Availability, Revision, Snapshot},
        refusal::Refusal,
        steps::take_over,
        validators::{Representation, Validators},
        verdict::{Evidence, Verdict, excluded, judge_from_memory, judge_write},
    },
    guard::{
        Guard,
        answer::Answer,
        claim::{Claim, MarkKind, Marked, turn::PlaceInFront},
        knowledge::evidence::{evidence, match_rule},
        lease::usage::conditions_go_first,
        probe::{Aim, Probed, variants::OpenQuestion},
        refusals,
        request::Request,
    },
    store::Swapped,
    telemetry::metrics,
};

/// A write that may begin: it was judged against the very record that its claim was swapped in for.
pub(crate) struct Admitted {
    /// Its claim.
    pub(crate) claim: Claim,
    /// What it was judged by.
    pub(crate) judged: Judged,
    /// How tags are spelled by the record that it was judged against.
    pub(crate) spelling: Spelling,
    /// Its right to write, as far as leases are concerned.
    pub(crate) standing: lease::Standing,
    /// The fence of the last lease of the resource.
    pub(crate) fence: Revision,
}

/// What a write that passed was judged by.
pub(crate) struct Judged {
    /// The tag of the representation, as clients get it.
    pub(crate) tag: Option<EntityTag>,
    /// What that says of the state of its target.
    pub(crate) before: Before,
}

/// A record that a write is judged by, first before its body was received.
pub(crate) struct Early {
    /// It.
    pub(crate) snapshot: Snapshot,
    /// When it was asked for.
    pub(crate) since: Instant,
}

/// How long the time of a record without moments may lie back: a mark's deadline is counted from it, and is longer than
/// all that its owner may wait for by more than this.
const EARLY_AGE_MAX: Duration = Duration::from_secs(1);

impl Guard {
    /// Takes the claim: judges the write against the record as it stands, and swaps the mark in against that very
    /// revision. Whatever changes the record in between makes the swap fail, and the write is judged again.
    ///
    /// The first attempt is made by the record that was read early: passing counts if the swap shows that it still
    /// stands, a refusal if another read does.
    pub(crate) async fn admit(
        &self,
        request: &Request,
        early: Option<Early>,
        standing: &mut PlaceInFront,
        end: Instant,
    ) -> Result<Admitted, Answer> {
        let (mut early, mut last) = (self.as_of_now(early).await?, None);
        loop {
            let is_early = early.is_some();
            let Early { snapshot, since } = match early.take().or(last.take()) {
                Some(known) => known,
                None => self.read_for(request).await?,
            };
            self.may_write(&snapshot)?;
            if standing.is_behind(&snapshot) || snapshot.availability() != Availability::Free {
                self.wait_until_free(request, &snapshot, standing, end).await?;
                continue;
            }
            let (judged, right) = match self.judge_wholly(request, &snapshot).await {
                Err(refused) if is_early => {
                    let current = self.read_for(request).await?;
                    if current.snapshot.revision == snapshot.revision {
                        return Err(refused);
                    }
                    last = Some(current);
                    continue;
                }
                judged => judged?,
            };
            let marking = Instant::now();
            let marked = self.mark(request, (&snapshot, since), MarkKind::Claim, right).await;
            match marked.map_err(|error| refusals::of_store(&error))? {
                Marked::Done(claim) => {
                    let spelling = self.spelling(&request.rules, Some(&snapshot));
                    return Ok(Admitted { claim, judged, spelling, standing: right, fence: snapshot.fence() });
                }
                Marked::Conflict(current) if Instant::now() < end => {
                    last = Some(Early { snapshot: *current, since: marking });
                }
                Marked::Full if Instant::now() < end => {}
                Marked::Conflict(_) | Marked::Full => {
                    return Err(refusals::write_in_flight(refusals::RETRY_SOON).into());
                }
            }
        }
    }

    /// A record that was read early, if nothing was in its way then, with the time that it is now: no lease is judged by
    /// an earlier one.
    async fn as_of_now(&self, early: Option<Early>) -> Result<Option<Early>, Refusal> {
        let Some(Early { mut snapshot, mut since }) = early else { return Ok(None) };
        if snapshot.record.has_moments() || since.elapsed() > EARLY_AGE_MAX {
            since = Instant::now();
            snapshot.now = self.records.now().await.map_err(|error| refusals::of_store(&error))?;
        }
        Ok((snapshot.availability() == Availability::Free).then_some(Early { snapshot, since }))
    }

    async fn read_for(&self, request: &Request) -> Result<Early, Refusal> {
        let since = Instant::now();
        Ok(Early { snapshot: self.record(request).await?, since })
    }

    /// The whole verdict: on passing, what the request was judged by, and its right to write.
    async fn judge_wholly(&self, request: &Request, snapshot: &Snapshot) -> Result<(Judged, lease::Standing), Answer> {
        let by_lease = Self::judge_write_by_lease(request, snapshot);
        if let (Err(denied), false) = (&by_lease, conditions_go_first(request)) {
            // Whoever may not write at all need not know what there is.
            return Err(self.refuse_by_lease(request, snapshot, denied.clone()).await);
        }
        let judged = self.judge(request, snapshot).await?;
        match by_lease {
            Ok(standing) => Ok((judged, standing)),
            Err(denied) => Err(self.refuse_by_lease(request, snapshot, denied).await),
        }
    }

    /// The verdict on the preconditions; on passing, what the request was judged by.
    pub(crate) async fn judge(&self, request: &Request, snapshot: &Snapshot) -> Result<Judged, Answer> {
        request.affinity.judge_anew();
        if self.may_be_removed(request, snapshot).await {
            return self.judge_by_probe(request, snapshot).await;
        }
        match self.judge_by_memory(request, snapshot) {
            (Verdict::Pass, tag) => Ok(Judged::by_memory(request, tag)),
            (Verdict::Refused(refusal), _) => Err(refusal.into()),
            (Verdict::Missing | Verdict::AskUpstream, _) => self.judge_by_probe(request, snapshot).await,
        }
    }

    /// The verdict by what this process and the record remember; on passing, the tag that it was judged by.
    pub(crate) fn judge_by_memory(&self, request: &Request, snapshot: &Snapshot) -> (Verdict, Option<EntityTag>) {
        // A version is in the record; what responses taught has nothing to add.
        let remembered = (request.rules.etag != TagSource::Version)
            .then(|| self.memory.current(request.variant, snapshot, &request.head.headers))
            .flatten();
        let validators = remembered.as_ref().map(|remembered| &remembered.validators);
        let spelling = self.spelling(&request.rules, Some(snapshot));
        let evidence = evidence(request, snapshot, (self.records.incarnation(), &spelling), validators);
        let (verdict, judged_by) = judge_from_memory(&request.rules, &request.method, &request.conditions, &evidence);
        // To refuse a write by its target's state is to tell of that state: only those who may know it are told.
        let tells = matches!(&verdict, Verdict::Refused(_)) && judged_by.is_some();
        if tells
            && (!self.read_grants.may_know(&request.key, request.principal, snapshot.now)
                || self.was_issued_elsewhere(request, snapshot))
        {
            return (Verdict::AskUpstream, None);
        }
        if verdict == Verdict::Pass && self.may_be_excluded(request, snapshot) {
            return (Verdict::AskUpstream, None);
        }
        (verdict, judged_by.and_then(Evidence::selected_tag).cloned())
    }

    /// The verdict by what the upstream says now; on passing, what it was judged by.
    pub(crate) async fn judge_by_probe(&self, request: &Request, snapshot: &Snapshot) -> Result<Judged, Answer> {
        let end = Instant::now() + request.rules.probe_timeout;
        let probed = self.probe_until(request, snapshot, (Aim::Verdict, None), end).await;
        let open = OpenQuestion::after(request, &probed);
        if let Probed::Current { representation, .. } = &probed
            && self.is_excluded(request, snapshot, representation, end).await?
        {
            return Err(excluded().into());
        }
        if let Some(open) = open
            && let Some(tag) = self.current_elsewhere(request, snapshot, open, end).await
        {
            return Ok(Judged { tag: Some(tag), before: Before::Unknown });
        }
        let (current, rule, missing) = match probed {
            Probed::Current { representation, rule, missing } => (representation, rule, missing),
            Probed::Answer(exchange) => return Err(self.upstreams_own(&request.rules, *exchange).await?),
            // Nothing to read there, and a tag of something that was read and has changed since.
            Probed::Unreadable(_) if open.is_some() && self.was_issued(request) => {
                (Representation::Present(Validators::default()), match_rule(&request.rules), None)
            }
            Probed::Unreadable(refusal) | Probed::Refused(refusal) => return Err(refusal.into()),
        };
        match (judge_write(&request.rules, &request.method, &request.conditions, &current, rule), missing) {
            (Verdict::Pass, _) => Ok(Judged::by_probe(current, rule)),
            (Verdict::Refused(refusal), _) => Err(refusal.into()),
            (Verdict::Missing, Some(exchange)) => Err(self.upstreams_own(&request.rules, *exchange).await?),
            (Verdict::AskUpstream, _) if request.conditions.combination == Combination::Azure => {
                Err(refusals::no_date().into())
            }
            // A probe leaves nothing unknown, and where nothing is there it brings the upstream's answer.
            (Verdict::Missing | Verdict::AskUpstream, _) => Err(refusals::unknown_state().into()),
        }
    }

    /// Refuses what cannot even be judged now: the proxy has just started, or another write is in doubt.
    pub(crate) fn may_write(&self, snapshot: &Snapshot) -> Result<(), Refusal> {
        self.may_begin(snapshot)?;
        match snapshot.availability() {
            Availability::InDoubt { until } => Err(refusals::write_in_flight(snapshot.now.until(until))),
            Availability::Free | Availability::Busy { .. } | Availability::Orphaned => Ok(()),
        }
    }

    /// Refuses a write that comes too soon after the start.
    pub(crate) fn may_begin(&self, snapshot: &Snapshot) -> Result<(), Refusal> {
        let remaining = snapshot.now.until(self.held_until);
        if remaining.is_zero() { Ok(()) } else { Err(refusals::held_back(remaining)) }
    }

    /// Waits in front for a change of a record that others keep busy, until `end`; makes a doubt of what a dead owner left.
    /// The caller reads again, so an early end of the wait does no harm.
    pub(crate) async fn wait_until_free(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        standing: &mut PlaceInFront,
        end: Instant,
    ) -> Result<(), Refusal> {
        if let Some(next) = take_over(snapshot) {
            tracing::warn!(key = ?request.key, "the owner of a write in flight is gone: the write is in doubt");
            let swapped = self.records.swap(&request.key, snapshot.revision, next).await;
            if let (Ok(Swapped::Done(_)), Some(metrics)) = (&swapped, metrics::get()) {
                metrics.doubt_made();
            }
            return swapped.map(drop).map_err(|error| refusals::of_store(&error));
        }
        self.wait_in_front(snapshot, &request.rules, standing, end).await
    }
}

impl Judged {
    /// By what is remembered. A backend that judges by itself lets a write pass that names one tag only if that is the
    /// current one.
    fn by_memory(request: &Request, tag: Option<EntityTag>) -> Self {
        let named = match &request.conditions.if_match {
            Some(TagCondition::Tags(tags)) if request.rules.etag == TagSource::Delegate && tags.len() == 1 => {
                tags.first()
            }
            _ => None,
        };
        let before = tag.as_ref().or(named).map_or(Before::Unknown, |tag| Before::Tag(ShortName::of_tag(tag)));
        Self { tag, before }
    }

    /// By what a probe has found. It looks at no tag that nothing asks for.
    fn by_probe(current: Representation, rule: MatchRule) -> Self {
        match current {
            Representation::Present(Validators { tag, .. }) => {
                let own = tag.as_ref().filter(|_| rule != MatchRule::Version);
                let before = own.map_or(Before::Unknown, |tag| Before::Tag(ShortName::of_tag(tag)));
                Self { tag, before }
            }
            Representation::Absent => Self { tag: None, before: Before::Absent },
            Representation::Unknown => Self { tag: None, before: Before::Unknown },
        }
    }
}
