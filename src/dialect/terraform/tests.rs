//! The terraform dialect: the meaning of each request, and the answer to each refusal.

use http::{HeaderMap, Method, StatusCode};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    error::status_of,
    lock_info::lease_id,
    refusals::{refuse, refuse_use},
    request::take_id,
    *,
};
use crate::{
    core::{
        cause::{LeaseInTheWay, Reason},
        lease::{Denied, LeaseId, UseDenied},
        policy::{GuardRules, StoreMethod},
        records::record::Availability,
        refusal::{Code, Refusal},
    },
    dialect::{Call, Grammar as _, Incoming, Intent},
    testing::guard,
};

const INFO: &str = r#"{"ID":"6f0b","Operation":"OperationTypeApply","Who":"ann@host","code":"mine","detail":"mine"}"#;

fn rules() -> GuardRules {
    GuardRules {
        store_method: StoreMethod::Put,
        lock_suffix: Some("/lock".into()),
        append_methods: Vec::new(),
        ..guard()
    }
}

fn method(name: &str) -> Method {
    Method::from_bytes(name.as_bytes()).expect("a token")
}

fn asked(name: &str, target: &str, rules: &GuardRules) -> Result<Option<LockRequest>, Code> {
    let (method, headers) = (method(name), HeaderMap::new());
    let request = Incoming { method: &method, other_methods: &[], target: target.as_bytes(), headers: &headers };
    lock_request(request, rules).map_err(|refusal| refusal.code)
}

fn call(name: &str, target: &str, rules: &GuardRules) -> Call {
    let (method, headers) = (method(name), HeaderMap::new());
    let request = Incoming { method: &method, other_methods: &[], target: target.as_bytes(), headers: &headers };
    Terraform.read(request, rules, false).expect("a request of the dialect")
}

/// The method and target that the upstream gets, if they are not those of the client.
fn forwarded(call: &Call) -> Option<(&str, String)> {
    let head = call.forwarded.as_ref()?;
    Some((head.method.as_str(), String::from_utf8(head.target.clone()).expect("text")))
}

#[test]
fn a_lock_is_asked_for_by_its_own_method_or_its_own_path() {
    let of = |verb, target: &str, named: Option<LeaseId>| {
        Ok(Some(LockRequest { verb, target: target.as_bytes().to_vec(), named }))
    };
    for (name, target, expected) in [
        ("LOCK", "/s/prod", of(LockVerb::Lock, "/s/prod", None)),
        ("UNLOCK", "/s/prod?x=1", of(LockVerb::Unlock, "/s/prod?x=1", None)),
        ("LOCK", "/s/prod/lock", of(LockVerb::Lock, "/s/prod", None)),
        ("UNLOCK", "/s/prod/lock", of(LockVerb::Unlock, "/s/prod", None)),
        ("POST", "/s/prod/lock", of(LockVerb::Lock, "/s/prod", None)),
        ("PUT", "/s/prod/lock?x=1", of(LockVerb::Lock, "/s/prod?x=1", None)),
        ("DELETE", "/s/prod/lock?ID=a&x=1", of(LockVerb::Unlock, "/s/prod?x=1", Some(lease_id("a")))),
        ("GET", "/s/prod/lock", Err(Code::MethodNotAllowed)),
        ("POST", "/s/prod/loc%6B", Err(Code::AmbiguousTarget)),
        ("POST", "/s/prod/lock/", Err(Code::AmbiguousTarget)),
        ("POST", "/lock", Err(Code::AmbiguousTarget)),
        ("POST", "/s/prod", Ok(None)),
        ("GET", "/s/prod", Ok(None)),
        ("POST", "/s/prod/padlock", Ok(None)),
        ("lock", "/s/prod", Ok(None)),
    ] {
        assert_eq!(asked(name, target, &rules()), expected, "{name} {target}");
    }
    let plain = GuardRules { lock_suffix: None, ..rules() };
    assert_eq!(asked("POST", "/s/prod/lock", &plain), Ok(None));
    assert_eq!(asked("LOCK", "/s/prod/lock", &plain), of(LockVerb::Lock, "/s/prod/lock", None));
}

#[test]
fn the_id_is_taken_out_of_the_query() {
    let taken = |target: &str| {
        let (named, target) = take_id(target.as_bytes()).map_err(|refusal| refusal.code)?;
        Ok::<_, Code>((named, String::from_utf8(target).expect("text")))
    };
    for (target, id, rest) in [
        ("/s", None, "/s"),
        ("/s?", None, "/s?"),
        ("/s?x=1&y", None, "/s?x=1&y"),
        ("/s?ID=a", Some("a"), "/s"),
        ("/s?x=1&ID=a%2Bb+c&y=2", Some("a+b c"), "/s?x=1&y=2"),
        ("/s?ID=", Some(""), "/s"),
        // Other names stay what they are to the upstream.
        ("/s?id=a", None, "/s?id=a"),
        ("/s?IDs=a&ID", None, "/s?IDs=a&ID"),
        ("/s?%49D=a", None, "/s?%49D=a"),
    ] {
        assert_eq!(taken(target), Ok((id.map(lease_id), rest.to_owned())), "{target}");
    }
    assert_eq!(taken("/s?ID=a&ID=a"), Err(Code::MalformedRequest));
    assert_eq!(taken("/s?ID=%ff"), Err(Code::MalformedRequest));
}

#[test]
fn a_write_goes_on_without_its_id_and_by_the_method_of_the_backend() {
    let rules = rules();
    for (name, target, id, expected) in [
        ("POST", "/s?ID=a", Some("a"), Some(("PUT", "/s"))),
        ("POST", "/s", None, Some(("PUT", "/s"))),
        ("PUT", "/s?ID=a", Some("a"), Some(("PUT", "/s"))),
        ("DELETE", "/s?ID=a&x=1", Some("a"), Some(("DELETE", "/s?x=1"))),
        ("PUT", "/s", None, None),
    ] {
        let call = call(name, target, &rules);
        let expected = expected.map(|(method, target)| (method, target.to_owned()));
        assert_eq!(
            (call.intent, call.lease_id, forwarded(&call)),
            (Intent::Write, id.map(lease_id), expected),
            "{name}"
        );
    }
    let as_sent = GuardRules { store_method: StoreMethod::AsSent, append_methods: vec![Method::POST], ..rules };
    let call = call("POST", "/s", &as_sent);
    assert_eq!((call.intent, forwarded(&call)), (Intent::Write, None), "a state is never appended");
}

#[test]
fn a_read_keeps_its_query() {
    let call = call("GET", "/s?ID=a", &rules());
    assert_eq!((call.intent, call.lease_id, forwarded(&call)), (Intent::Read, None, None));
}

#[test]
fn only_the_lock_of_another_client_is_a_lock() {
    let held = || Denied::Held { remaining: None, holder: None, is_breaking: false };
    for (refusal, status) in [
        (refuse(&held()), 423),
        (refuse(&held()).because(Reason::LeaseAwaited), 503),
        (refuse(&Denied::Busy(Availability::Free)), 503),
        (refuse(&Denied::DeletePending), 503),
        (refuse(&Denied::IdMismatch), 409),
        (refuse_use(UseDenied::IdMissing), 423),
        (refuse_use(UseDenied::LeaseRequired), 423),
        (refuse_use(UseDenied::IdMismatch), 423),
        (refuse_use(UseDenied::Lost), 409),
        (refuse_use(UseDenied::NotPresent), 409),
        (Refusal::new(Code::WriteInFlight, ""), 503),
        (Refusal::new(Code::IdempotencyInFlight, ""), 503),
        (Refusal::new(Code::StoreUnavailable, ""), 503),
        (Refusal::new(Code::PreconditionFailed, ""), 412),
        (not_broken(), 409),
        (malformed_lock_info(MalformedLockInfo::NoId), 400),
        (malformed_lock_info(MalformedLockInfo::TooLong), 413),
    ] {
        assert_eq!(status_of(&refusal).as_u16(), status, "{refusal:?}");
    }
}

/// A refusal whose lease has this note.
fn in_the_way(mut refusal: Refusal, note: Option<&str>) -> Refusal {
    let note = note.map(|note| LockInfo::parse(note.as_bytes()).expect("a description").note().clone());
    refusal.cause_mut().lease = Some(LeaseInTheWay { holder: None, remaining: None, note });
    refusal
}

#[test]
fn the_lock_in_the_way_stands_beside_the_problem_and_cannot_replace_it() {
    let (method, headers) = (Method::POST, HeaderMap::new());
    let request = Incoming { method: &method, other_methods: &[], target: b"/s", headers: &headers };
    let told = Terraform.refusal(request, &in_the_way(refuse_use(UseDenied::IdMissing), Some(INFO)));
    assert_eq!((told.status, told.content_type), (StatusCode::LOCKED, "application/problem+json"));
    let body: Value = serde_json::from_str(&told.body).expect("JSON");
    assert_eq!(
        (&body["ID"], &body["Operation"], &body["Who"]),
        (&json!("6f0b"), &json!("OperationTypeApply"), &json!("ann@host"))
    );
    assert_eq!((&body["status"], &body["code"]), (&json!(423), &json!("lease-id-missing")));
    assert!(body["detail"].as_str().is_some_and(|detail| detail.starts_with("the state is locked")), "{body}");
    // A lease of another dialect has no description.
    let plain = Terraform.refusal(request, &in_the_way(refuse_use(UseDenied::IdMissing), None));
    assert!(!plain.body.contains("\"ID\""), "{}", plain.body);
}

#[test]
fn the_refusal_of_a_release_tells_who_holds_the_lock() {
    let id = lease_id("6f0b");
    let refused = |code, note| after_release(&in_the_way(Refusal::new(code, ""), note), id);
    assert_eq!(refused(Code::LeaseIdMismatch, Some(INFO)), NotReleased::OfAnother);
    assert_eq!(refused(Code::LeaseIdMismatch, Some(r#"{"ID":"other"}"#)), NotReleased::Refused);
    assert_eq!(refused(Code::LeaseIdMismatch, None), NotReleased::Refused, "a lease of another dialect");
    assert_eq!(refused(Code::WriteInFlight, Some(INFO)), NotReleased::Refused);
    for code in [Code::LeaseIdMismatch, Code::LeaseNotPresent] {
        assert_eq!(after_release(&Refusal::new(code, ""), id), NotReleased::NotLocked);
    }
    assert_eq!(after_release(&Refusal::new(Code::StoreUnavailable, ""), id), NotReleased::Refused);
}

#[test]
fn only_a_whole_success_is_told_as_one() {
    for (status, told) in [(200, 200), (201, 200), (204, 200), (202, 202), (207, 207), (404, 404), (500, 500)] {
        let of = |status| StatusCode::from_u16(status).expect("a status");
        assert_eq!(told_status(of(status)), of(told));
    }
}

proptest! {
    /// Rule 14: the parts that are taken out of a query are not sent, and all others are sent unchanged.
    #[test]
    fn the_rest_of_a_query_stays_as_it_is(parts in prop::collection::vec("(ID=)?[a-zA-Z%=;]{0,6}", 0..5)) {
        let target = format!("/s?{}", parts.join("&"));
        let Ok((named, rest)) = take_id(target.as_bytes()) else { return Ok(()) };
        let kept: Vec<_> = parts.iter().filter(|part| !part.starts_with("ID=")).map(String::as_str).collect();
        let expected = match kept.join("&") {
            _ if named.is_none() => target,
            query if query.is_empty() => "/s".to_owned(),
            query => format!("/s?{query}"),
        };
        prop_assert_eq!(&*rest, expected.as_bytes());
        prop_assert_eq!(take_id(&rest).ok(), Some((None, rest)));
    }
}
