//! What a client of the resource does, step by step: what the guard does for it, in the same order.

use std::time::Duration;

use http::{HeaderMap, Method, header};
use ifmatch::core::{
    issued_tag::version_tag,
    policy::{
        Guarantee, Guard, Idempotency, MethodOverride, OnWrite, ProbeAuth, Require, TagAfterWrite, TagSource, Writers,
    },
    precondition::{MatchRule, Preconditions},
    record::{Mark, Record, Revision, Snapshot},
    steps::Outcome,
    time::StoreTime,
    verdict::{Evidence, Verdict, judge_from_memory, judge_write},
};

use super::{
    rules::{Mode, Rules},
    store::{Content, Store, content_tag, present, revisions_of},
};

/// A record as it was read, in a form that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    pub revision: Revision,
    pub record: Record,
    pub now: StoreTime,
}

impl Seen {
    pub fn of(store: &Store) -> Self {
        let Snapshot { revision, record, now } = store.read();
        Self { revision, record, now }
    }

    fn revisions(&mut self) -> Vec<&mut Revision> {
        let mut all = revisions_of(&mut self.record);
        all.push(&mut self.revision);
        all
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot { revision: self.revision, record: self.record.clone(), now: self.now }
    }
}

/// What a reader was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Given {
    pub content: Content,
    /// The version that a version tag would name.
    pub version: Revision,
}

/// Where a client stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It is about to read.
    Begins,
    /// The record was read for it, and the upstream is to be asked; unless the content was taken already.
    Reads(Seen, Option<Content>),
    /// It has read, or is a write that is judged by nothing.
    Asks,
    /// The verdict depends on the upstream.
    Probes(Seen),
    /// The verdict is that it passes.
    Marks(Seen),
    /// Its mark is in the record.
    Sends,
    /// Its write is with the upstream.
    IsSent { at: StoreTime, applied: bool },
    /// The outcome is known; after an applied write the resource may be read again.
    IsAnswered(Outcome),
    /// What was learned, if anything.
    Settles(Outcome, Option<Content>),
    /// The record was read to settle.
    Swaps(Outcome, Option<Content>, Seen),
    /// It has an answer.
    Done,
    /// Its proxy has died: its client sees a broken connection.
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    pub step: Step,
    /// `None`: an unclaimed write.
    pub writes: Option<Content>,
    pub given: Option<Given>,
    pub mark: Option<(Mark, Revision)>,
    /// Unclaimed writes that were applied when it got its claim.
    pub beside: u8,
}

impl Client {
    pub fn writer(content: Content) -> Self {
        Self { step: Step::Begins, writes: Some(content), given: None, mark: None, beside: 0 }
    }

    pub fn poster() -> Self {
        Self { step: Step::Asks, writes: None, given: None, mark: None, beside: 0 }
    }

    /// All revisions that it knows of.
    pub fn revisions(&mut self) -> Vec<&mut Revision> {
        let mut all: Vec<&mut Revision> = Vec::new();
        all.extend(self.given.as_mut().map(|given| &mut given.version));
        all.extend(self.mark.as_mut().map(|(_, marked_at)| marked_at));
        if let Step::Reads(seen, _) | Step::Probes(seen) | Step::Marks(seen) | Step::Swaps(_, _, seen) = &mut self.step
        {
            all.extend(seen.revisions());
        }
        all
    }

    pub fn is_over(&self) -> bool {
        matches!(self.step, Step::Done | Step::Dead)
    }

    /// The verdict from what is remembered, as the guard makes it.
    pub fn judge(&self, mode: Mode, store: &Store, snapshot: &Snapshot, rules: &Rules) -> Verdict {
        let mut evidence = Vec::new();
        let strong = |representation| Evidence { representation, rule: MatchRule::Strong, selected: true };
        match mode {
            Mode::ContentExclusive => {
                evidence.extend(snapshot.known().map(|known| strong(known.representation.clone())));
                evidence.extend(store.recalled(snapshot, rules).map(|content| strong(present(content_tag(content)))));
            }
            Mode::Version if snapshot.is_quiet() => {
                let representation = present(version_tag(1, snapshot.version(), 0).unwrap());
                evidence.push(Evidence { representation, rule: MatchRule::Version, selected: true });
            }
            Mode::ContentShared | Mode::Version => {}
        }
        judge_from_memory(&guard(mode), &Method::PUT, &self.conditions(mode), &evidence).0
    }

    /// The verdict on what the upstream says.
    pub fn judge_by(&self, mode: Mode, content: Content, snapshot: &Snapshot) -> Verdict {
        let (tag, rule) = match mode {
            Mode::Version => (version_tag(1, snapshot.version(), 0).unwrap(), MatchRule::Version),
            _ => (content_tag(content), MatchRule::Strong),
        };
        judge_write(&guard(mode), &Method::PUT, &self.conditions(mode), &present(tag), rule)
    }

    fn conditions(&self, mode: Mode) -> Preconditions {
        let given = self.given.unwrap();
        let tag = match mode {
            Mode::Version => version_tag(1, given.version, 0).unwrap(),
            _ => content_tag(given.content),
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_MATCH, tag.to_header_value());
        Preconditions::parse(&headers).unwrap()
    }
}

fn guard(mode: Mode) -> Guard {
    Guard {
        compare: ifmatch::core::policy::Compare::Strong,
        lease: None,
        etag: if mode == Mode::Version { TagSource::Version } else { TagSource::Content },
        ignored_json: Vec::new(),
        on_the_way: ifmatch::core::policy::OnTheWay::default(),
        writers: if mode == Mode::ContentShared { Writers::Shared } else { Writers::Exclusive },
        require: Require::Always,
        require_methods: vec![Method::PUT],
        allow_any: false,
        on_write: OnWrite::Probe,
        tag_after_write: TagAfterWrite::Verbatim,
        safe_methods: Vec::new(),
        unclaimed_methods: vec![Method::POST],
        method_override: MethodOverride::Refuse,
        guarantee: Guarantee::Store,
        observe: false,
        hash_max_bytes: 1,
        hash_wait: Duration::ZERO,
        identity_headers: Vec::new(),
        identity_ttl: Duration::ZERO,
        claim_max_wait: Duration::ZERO,
        claim_max_waiters: 1,
        probe_timeout: Duration::ZERO,
        probe_auth: ProbeAuth::Client,
        idempotency: Idempotency::Off,
        idempotency_ttl: Duration::ZERO,
        probe_region: Box::default(),
        errors: ifmatch::core::policy::ErrorShape::Problem,
        touches: Vec::new(),
    }
}
