//! The verdict on writes: the refused ones, those that pass, and those that only the upstream can judge.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::*;
use crate::{
    core::{
        policy::{Require, TagSource},
        tags::{entity_tag::EntityTag, json::JsonPointer, validators::Validators, version_source::VersionSource},
    },
    testing,
};

fn guard(require: Require) -> GuardRules {
    GuardRules { other_writers: false, require, ..testing::guard() }
}

fn conditions(fields: &[(&'static str, &'static str)]) -> Preconditions {
    let field =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let headers: HeaderMap = fields.iter().map(field).collect();
    Preconditions::parse(&headers).unwrap()
}

fn present(tag: &'static str) -> Representation {
    Representation::Present(Validators { tag: Some(EntityTag::strong(tag).unwrap()), modified: None })
}

fn code(verdict: &Verdict) -> Option<Code> {
    match verdict {
        Verdict::Refused(refusal) => Some(refusal.code),
        _ => None,
    }
}

fn judged(method: &Method, fields: &[(&'static str, &'static str)], current: &Representation) -> Verdict {
    judge_write(&guard(Require::Always), method, &conditions(fields), current, MatchRule::Strong)
}

fn from_memory(fields: &[(&'static str, &'static str)], evidence: &[(Representation, bool)]) -> Verdict {
    let piece = |(representation, selected): &(Representation, bool)| Evidence {
        representation: representation.clone(),
        rule: MatchRule::Strong,
        selected: *selected,
    };
    let evidence: Vec<Evidence> = evidence.iter().map(piece).collect();
    judge_from_memory(&guard(Require::Always), &Method::PUT, &conditions(fields), &evidence).0
}

#[test]
fn a_write_without_a_required_precondition_is_refused_whatever_is_there() {
    for current in [Representation::Unknown, Representation::Absent, present("a")] {
        assert_eq!(code(&judged(&Method::PUT, &[], &current)), Some(Code::PreconditionRequired), "{current:?}");
    }
    assert_eq!(judged(&Method::POST, &[], &Representation::Unknown), Verdict::Pass);
}

#[test]
fn the_refusal_of_a_write_without_a_precondition_names_each_place_for_one() {
    let mut guard = guard(Require::Always);
    guard.version_sources = ["json:/_rev", "query:rev"].into_iter().filter_map(VersionSource::parse).collect();
    let detail = required(&guard, &Preconditions::default()).detail;
    let places =
        "its ETag in If-Match, or its version in the member /_rev of the body, or its version in the parameter rev";
    assert!(detail.contains(places), "{detail}");
}

#[test]
fn a_stale_tag_is_refused_and_the_current_one_passes() {
    assert_eq!(code(&judged(&Method::PUT, &[("if-match", "\"a\"")], &present("b"))), Some(Code::PreconditionFailed));
    assert_eq!(judged(&Method::PUT, &[("if-match", "\"a\"")], &present("a")), Verdict::Pass);
    assert_eq!(judged(&Method::PUT, &[("if-match", "\"a\"")], &Representation::Unknown), Verdict::AskUpstream);
}

#[test]
fn creating_what_exists_is_refused() {
    assert_eq!(code(&judged(&Method::PUT, &[("if-none-match", "*")], &present("a"))), Some(Code::PreconditionFailed));
    assert_eq!(judged(&Method::PUT, &[("if-none-match", "*")], &Representation::Absent), Verdict::Pass);
}

/// RFC 9110 section 13.2.1: a PUT would create, so it is judged. The answer to others would be 404 without the
/// precondition.
#[test]
fn a_missing_resource_speaks_for_itself_except_to_put() {
    let stale = &[("if-match", "\"a\"")];
    assert_eq!(code(&judged(&Method::PUT, stale, &Representation::Absent)), Some(Code::PreconditionFailed));
    assert_eq!(judged(&Method::DELETE, stale, &Representation::Absent), Verdict::Missing);
    assert_eq!(judged(&Method::PATCH, stale, &Representation::Absent), Verdict::Missing);
}

#[test]
fn under_existing_a_bare_write_creates_and_does_not_overwrite() {
    let judged = |current: &Representation| {
        judge_write(&guard(Require::Existing), &Method::PUT, &conditions(&[]), current, MatchRule::Strong)
    };
    assert_eq!(judged(&Representation::Absent), Verdict::Pass);
    assert_eq!(code(&judged(&present("a"))), Some(Code::PreconditionRequired));
    assert_eq!(judged(&Representation::Unknown), Verdict::AskUpstream);
}

#[test]
fn a_weak_tag_is_told_what_is_wrong_with_it() {
    let Verdict::Refused(refusal) = judged(&Method::PUT, &[("if-match", "W/\"a\"")], &present("a")) else {
        panic!("a weak tag never matches");
    };
    assert!(refusal.detail.contains("weak tag"), "{}", refusal.detail);
}

/// An operator learns of a setting only if the request would have passed with it.
#[test]
fn the_setting_that_would_have_saved_a_request_is_named() {
    let weak = Representation::Present(Validators { tag: EntityTag::weak("a").ok(), modified: None });
    for (current, sent, saved_by) in [
        (present("a"), "W/\"a\"", Some(Setting::AcceptWeakOwn)),
        (present("a"), "\"b\"", None),
        (weak.clone(), "W/\"a\"", Some(Setting::CompareOpaque)),
        (weak, "W/\"b\"", None),
    ] {
        let Verdict::Refused(refusal) = judged(&Method::PUT, &[("if-match", sent)], &current) else { panic!("{sent}") };
        assert_eq!(refusal.cause.and_then(|cause| cause.saved_by), saved_by, "{sent}");
    }
}

/// The advice to send the tag without `W/`, or to read again, would lead to the same refusal.
#[test]
fn a_tag_that_no_tag_can_match_is_told_of_by_its_source() {
    let pointer = || TagSource::Json(JsonPointer::parse("/meta/v").expect("a pointer"));
    let weak = || Some(EntityTag::weak("a").expect("a tag"));
    for (etag, tag, rule, reason, says) in [
        (TagSource::Upstream, weak(), MatchRule::Strong, Reason::BackendTagWeak, "compare = \"opaque\""),
        (pointer(), weak(), MatchRule::Strong, Reason::BackendTagWeak, "compare = \"opaque\""),
        (TagSource::Upstream, weak(), MatchRule::Opaque, Reason::StaleTag, "was changed"),
        (pointer(), None, MatchRule::Strong, Reason::NoCurrentTag, "its member /meta/v"),
        (TagSource::Upstream, None, MatchRule::Strong, Reason::NoCurrentTag, "no tag that could match"),
    ] {
        for sent in ["\"a\"", "\"b\""] {
            let (guard, current) = (
                GuardRules { etag: etag.clone(), ..guard(Require::Always) },
                Representation::Present(Validators { tag: tag.clone(), modified: None }),
            );
            let verdict = judge_write(&guard, &Method::PUT, &conditions(&[("if-match", sent)]), &current, rule);
            let Verdict::Refused(refusal) = verdict else { panic!("{etag:?} {sent}: {verdict:?}") };
            assert_eq!(refusal.cause.as_ref().and_then(|cause| cause.reason), Some(reason), "{etag:?} {sent}");
            assert!(refusal.detail.contains(says), "{}", refusal.detail);
        }
    }
}

#[test]
fn an_asterisk_that_is_not_accepted_is_told_why() {
    let Verdict::Refused(refusal) = judged(&Method::PUT, &[("if-match", "*")], &present("a")) else {
        panic!("the route has no allow_any");
    };
    assert!(refusal.detail.contains("allow_any"), "{}", refusal.detail);
    let Verdict::Refused(refusal) = judged(&Method::PUT, &[], &present("a")) else { panic!("it names no version") };
    assert!(!refusal.detail.contains("allow_any"), "{}", refusal.detail);
}

#[test]
fn memory_refuses_only_by_the_selected_variant() {
    let stale = &[("if-match", "\"old\"")];
    assert_eq!(code(&from_memory(stale, &[(present("new"), true)])), Some(Code::PreconditionFailed));
    assert_eq!(from_memory(stale, &[(present("new"), false)]), Verdict::AskUpstream);
    assert_eq!(from_memory(stale, &[]), Verdict::AskUpstream);
}

#[test]
fn a_version_passes_whatever_variant_it_was_issued_for() {
    let by_version = |fields: &[(&'static str, &'static str)]| {
        let evidence = [Evidence { representation: present("1-7-a"), rule: MatchRule::Version, selected: false }];
        judge_from_memory(&guard(Require::Always), &Method::PUT, &conditions(fields), &evidence).0
    };
    assert_eq!(by_version(&[("if-match", "\"1-7-b\"")]), Verdict::Pass);
    assert_eq!(by_version(&[("if-match", "\"1-6-a\"")]), Verdict::AskUpstream);
    let and_none = &[("if-match", "\"1-7-b\""), ("if-none-match", "\"x\"")];
    assert_eq!(by_version(and_none), Verdict::AskUpstream);
}

/// The same bytes may once have been those of the selected variant.
#[test]
fn another_tag_of_another_variant_does_not_pass() {
    let fresh = &[("if-match", "\"other\"")];
    assert_eq!(from_memory(fresh, &[(present("other"), false)]), Verdict::AskUpstream);
    let and_selected = [(present("selected"), true), (present("other"), false)];
    assert_eq!(code(&from_memory(fresh, &and_selected)), Some(Code::PreconditionFailed));
}

#[test]
fn what_needs_no_knowledge_needs_no_memory() {
    assert_eq!(code(&from_memory(&[], &[])), Some(Code::PreconditionRequired));
    let guard = guard(Require::Never);
    assert_eq!(judge_from_memory(&guard, &Method::PUT, &conditions(&[]), &[]).0, Verdict::Pass);
}

#[test]
fn a_demand_that_no_tag_can_meet_names_the_reason() {
    let told = |code| untagged(Refusal::new(code, "read it"), Untagged::TooLarge);
    let demanded = told(Code::PreconditionRequired);
    assert!(demanded.detail.contains("larger than max_hash_size"), "{}", demanded.detail);
    assert_eq!(told(Code::ValidatorUnavailable).detail, "read it", "it has a reason of its own");
}
