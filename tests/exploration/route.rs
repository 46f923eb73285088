//! The route of the clients, and the guard's verdicts on it.

use std::{sync::LazyLock, time::Duration};

use http::Method;
use ifmatch::{
    config::parse,
    core::{
        lease::{LeaseDuration, LeaseId, Standing, Usage, UseDenied, judge_use},
        policy::{AbsentLease, GuardRules, LeaseAuth, LeaseGuards, LeaseRules},
        records::record::{Known, Revision, Snapshot, VariantName},
        tags::{
            entity_tag::EntityTag,
            issued_tag::{content_tag, version_tag},
            precondition::{MatchRule, Preconditions, TagCondition},
            validators::{Representation, Validators},
        },
        verdict::{Evidence, Verdict, judge_from_memory, judge_write},
    },
};

use super::{rules::Mode, store::TICK};

/// The content of the resource, as an arbitrary number: equal numbers stand for equal bytes.
pub type Content = u8;

/// The lease of every holder.
pub const LEASE: LeaseDuration = LeaseDuration::Fixed(TICK);

/// How long a lease is remembered after its end: until the mark of a write that began then has been taken over.
const LEASE_REMEMBERED: Duration = Duration::from_millis(3);

/// The answer that a reader got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Given {
    pub content: Content,
    /// The version that a version tag would name.
    pub version: Revision,
    /// Whether no write was applied since.
    pub is_latest: bool,
}

/// The fields of a write that are judged.
#[derive(Clone, Copy, Debug)]
pub struct Presented {
    /// The state that its `If-Match` names.
    pub base: Option<Given>,
    pub lease_id: Option<LeaseId>,
}

/// Returns the lease id of a holder.
pub fn lease_id(index: usize) -> LeaseId {
    LeaseId::from_random([u8::try_from(index).unwrap(); 16])
}

/// Returns the record's knowledge of a content.
pub fn known(content: Content) -> Known {
    Known { variant: VariantName([0; 16]), representation: present(tag_of(content)) }
}

/// Returns the verdict of the lease.
pub fn judge_by_lease(snapshot: &Snapshot, has_leases: bool, presented: Presented) -> Result<Standing, UseDenied> {
    if !has_leases {
        return Ok(Standing::Free);
    }
    judge_use(snapshot, Some(lease_rules()), Usage::Write, presented.lease_id, None)
}

/// Returns the verdict on the precondition from what is remembered.
pub fn judge_by_memory(mode: Mode, snapshot: &Snapshot, recalled: Option<Content>, presented: Presented) -> Verdict {
    let mut evidence = Vec::new();
    let of_content = |representation| Evidence { representation, rule: MatchRule::Content, selected: true };
    match mode {
        Mode::ContentExclusive => {
            evidence.extend(snapshot.known().map(|known| of_content(known.representation.clone())));
            evidence.extend(recalled.map(|content| of_content(present(tag_of(content)))));
        }
        Mode::Version if snapshot.has_no_pending_writes() => {
            let representation = present(version_tag(1, snapshot.version(), 0).unwrap());
            evidence.push(Evidence { representation, rule: MatchRule::Version, selected: true });
        }
        Mode::ContentShared | Mode::Version => {}
    }
    judge_from_memory(guard(mode, presented), &Method::PUT, &conditions(mode, presented), &evidence).0
}

/// Returns the verdict on the precondition from the upstream's content.
pub fn judge_by_probe(mode: Mode, snapshot: &Snapshot, content: Content, presented: Presented) -> Verdict {
    let (tag, rule) = match mode {
        Mode::Version => (version_tag(1, snapshot.version(), 0).unwrap(), MatchRule::Version),
        Mode::ContentExclusive | Mode::ContentShared => (tag_of(content), MatchRule::Content),
    };
    judge_write(guard(mode, presented), &Method::PUT, &conditions(mode, presented), &present(tag), rule)
}

fn conditions(mode: Mode, presented: Presented) -> Preconditions {
    let tag = presented.base.map(|base| match mode {
        Mode::Version => version_tag(1, base.version, 0).unwrap(),
        Mode::ContentExclusive | Mode::ContentShared => tag_of(base.content),
    });
    Preconditions { if_match: tag.map(|tag| TagCondition::Tags(vec![tag])), ..Preconditions::default() }
}

fn present(tag: EntityTag) -> Representation {
    Representation::Present(Validators { tag: Some(tag), modified: None })
}

fn tag_of(content: Content) -> EntityTag {
    static TAGS: LazyLock<Vec<EntityTag>> =
        LazyLock::new(|| (0..=20).map(|content| content_tag(&blake3::hash(&[content])).unwrap()).collect());
    TAGS[usize::from(content)].clone()
}

/// Returns the rules of a route. A write without a precondition gets rules that require none.
fn guard(mode: Mode, presented: Presented) -> &'static GuardRules {
    static GUARDS: LazyLock<Vec<GuardRules>> = LazyLock::new(|| {
        let all = Mode::ALL.map(|mode| ["always", "never"].map(|require| new_guard(mode, require)));
        all.into_iter().flatten().collect()
    });
    let place = Mode::ALL.iter().position(|one| *one == mode).unwrap();
    &GUARDS[place * 2 + usize::from(presented.base.is_none())]
}

fn new_guard(mode: Mode, require: &str) -> GuardRules {
    let (etag, other_writers) = match mode {
        Mode::Version => ("version", false),
        Mode::ContentExclusive => ("content", false),
        Mode::ContentShared => ("content", true),
    };
    let text = format!(
        "[upstreams.backend]\nservers = [\"127.0.0.1:1\"]\n\
         [[routes]]\nname = \"docs\"\npath = \"/docs/{{id}}\"\nupstream = \"backend\"\npolicy = \"optimistic\"\n\
         etag = \"{etag}\"\nother_writers = {other_writers}\nrequire = \"{require}\"\n"
    );
    let config = parse("exploration.toml", &text).expect("a configuration").config;
    let rules = config.routes[0].guard.as_deref().expect("a guarded route");
    GuardRules { lease: Some(lease_rules().clone()), ..rules.clone() }
}

/// Returns rules for leases that end after a tick.
pub fn lease_rules() -> &'static LeaseRules {
    static RULES: LazyLock<LeaseRules> = LazyLock::new(|| LeaseRules {
        prefix: "/.leases".to_owned(),
        guards: LeaseGuards::Write,
        auth: LeaseAuth::None,
        bind: false,
        shared: false,
        delete_pending: false,
        acquire_on_read: false,
        client_break: true,
        absent: AbsentLease::Allow,
        remember_time: LEASE_REMEMBERED,
        max_per_principal: 1,
        max_per_address: 10,
        default: TICK,
        min: TICK,
        max: TICK,
        infinite: false,
        required: false,
        max_wait: Duration::ZERO,
        max_waiters: 0,
        max_hold_time: Duration::MAX,
    });
    &RULES
}
