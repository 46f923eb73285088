//! The problem documents of refusals, and their fields.

use serde_json::json;

use super::{
    super::cause::{LastChange, LeaseInTheWay, Untagged},
    *,
};

/// RFC 9457 section 3.1.
#[test]
fn a_problem_says_what_helps_and_nothing_else() {
    let refusal = Refusal::new(Code::UpstreamTimeout, "say \"when\"");
    let expected = r#"{"type":"urn:ifmatch:problem:upstream-timeout","title":"The upstream did not answer in time","#;
    let expected = format!(r#"{expected}"status":504,"detail":"say \"when\"","code":"upstream-timeout"}}"#);
    assert_eq!(refusal.problem(), expected);
    let refusal = refusal.retry_after(Duration::from_millis(1_001)).in_doubt();
    assert!(refusal.problem().ends_with(r#""retry_after":2,"in_doubt":true}"#), "{}", refusal.problem());
}

/// RFC 8259 section 7: a text of a request may hold anything.
#[test]
fn any_text_is_escaped() {
    let text = "\u{0}\t\n\u{1f}\"\\/\u{7f}\u{e9}\u{2028}\u{1f512}";
    for text in [text, "", "\"", "a", "\\\""] {
        let mut refusal = Refusal::new(Code::LeaseHeld, text.to_owned()).held_by(text);
        refusal.cause_mut().sent_tag = Some(text.into());
        let problem: serde_json::Value = serde_json::from_str(&refusal.problem()).expect("JSON");
        assert_eq!([&problem["detail"], &problem["holder"], &problem["sent_tag"]], [text; 3]);
    }
}

/// Details that show the state of the resource are only for clients that may know it.
#[test]
fn a_client_learns_the_part_of_the_cause_that_it_may_know() {
    let mut refusal = Refusal::new(Code::PreconditionFailed, "").because(Reason::StaleTag);
    refusal.request_id = Some(RequestId(0xa1));
    let lease = LeaseInTheWay { holder: Some("ann".into()), remaining: Some(Duration::from_millis(9_900)), note: None };
    *refusal.cause_mut() = Cause {
        sent_tag: Some("\"a\"".into()),
        current_tag: Some("\"b\"".into()),
        last_change: Some(LastChange {
            age: Duration::from_millis(2_500),
            trace_id: Some("77".into()),
            is_unread: true,
        }),
        probe_status: Some(200),
        lease: Some(lease),
        untagged: Some(Untagged::TooLarge),
        ..Cause::clone(refusal.cause_mut())
    };
    let members = |refusal: &Refusal| -> serde_json::Value {
        let mut members: serde_json::Value = serde_json::from_str(&refusal.problem()).expect("JSON");
        let object = members.as_object_mut().expect("an object");
        for member in ["type", "title", "status", "detail", "code"] {
            object.remove(member).expect("every problem has it");
        }
        members
    };
    let known = json!({
        "instance": "urn:ifmatch:request:00000000000000a1", "reason": "stale-tag", "sent_tag": "\"a\"",
        "untagged": "too-large",
    });
    assert_eq!(members(&refusal), known);
    refusal.cause_mut().client_may_know = true;
    let state = json!({
        "instance": "urn:ifmatch:request:00000000000000a1", "reason": "stale-tag", "sent_tag": "\"a\"",
        "current_tag": "\"b\"", "last_change_seconds": 2, "probe_status": 200, "holder": "ann",
        "lease_seconds": 9, "untagged": "too-large",
    });
    assert_eq!(members(&refusal), state);
}

/// RFC 9110 section 10.2.3: a client that comes back at once would only be refused again.
#[test]
fn a_wait_is_at_least_a_second() {
    let refusal = Refusal::new(Code::WriteInFlight, "").retry_after(Duration::from_millis(1));
    assert_eq!(refusal.retry_after_seconds(), Some(1));
    assert_eq!(Refusal::new(Code::WriteInFlight, "").retry_after_seconds(), None);
}

/// RFC 9209 section 2.1: `details` is a string of a structured field, which allows only visible ASCII.
#[test]
fn proxy_status_is_made_of_our_own_words() {
    let refusal = Refusal::new(Code::StoreFull, "\r\nX: y");
    assert_eq!(refusal.proxy_status(), "ifmatch; error=proxy_internal_error; details=\"store-full\"");
}
