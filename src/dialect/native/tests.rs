//! The native dialect: the meaning of each request, and the answer to each outcome.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, header};

use super::*;
use crate::{
    core::{
        lease::{Acquire, Action, Denied, Done, HolderLabel, LeaseDuration, LeaseId},
        policy::LeaseRules,
        records::record::{Record, Revision, Snapshot},
        refusal::Code,
        time::StoreTime,
    },
    dialect::LeaseOperation,
    testing::fields,
};

const RANDOM: &str = "0b6f3a52-93f1-4f7e-8a38-0e9ad9f0a8c4";
const OTHER: &str = "7d9f6b0c-5a43-4c0e-9d1f-2b8f3f0f6c11";

fn rules() -> LeaseRules {
    let max_wait = Duration::from_secs(20);
    LeaseRules { acquire_on_read: true, infinite: false, max_wait, ..crate::core::lease::testing::rules() }
}

fn id(text: &str) -> LeaseId {
    LeaseId::parse(text.as_bytes()).unwrap()
}

fn fresh() -> LeaseId {
    LeaseId::from_random([7; 16])
}

fn operation(method: &str, lines: &[(&'static str, &'static str)], rules: &LeaseRules) -> Result<LeaseOperation, Code> {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    read(&method, &fields(lines), rules, || Ok(fresh())).map_err(|refusal| refusal.code)
}

fn acquisition(lines: &[(&'static str, &'static str)], rules: &LeaseRules) -> (Acquire, Option<Duration>) {
    match operation("POST", lines, rules) {
        Ok(LeaseOperation::Step { action: Action::Acquire(acquire), wait }) => (acquire, wait),
        other => panic!("POST must acquire, and gave {other:?}"),
    }
}

#[test]
fn a_post_acquires_with_what_the_route_gives() {
    let (acquire, wait) = acquisition(&[], &rules());
    assert_eq!((acquire.proposed, acquire.fresh, acquire.holder), (None, fresh(), None));
    assert_eq!((acquire.duration, wait), (LeaseDuration::Fixed(Duration::from_secs(30)), None));
}

#[test]
fn a_post_acquires_with_what_the_client_says() {
    let lines = [("lease-id", RANDOM), ("lease-duration", "15"), ("lease-holder", "worker 7"), ("prefer", "wait=5")];
    let (acquire, wait) = acquisition(&lines, &rules());
    assert_eq!(acquire.proposed, Some(id(RANDOM)));
    assert_eq!(acquire.duration, LeaseDuration::Fixed(Duration::from_secs(15)));
    assert_eq!(acquire.holder.as_ref().map(HolderLabel::as_str), Some("worker 7"));
    assert_eq!(wait, Some(Duration::from_secs(5)));
}

#[test]
fn each_method_is_one_action() {
    let with_id = [("lease-id", RANDOM)];
    let action = |method, lines: &[(&'static str, &'static str)]| match operation(method, lines, &rules()) {
        Ok(LeaseOperation::Step { action, wait: None }) => action,
        other => panic!("{method} must be one action, and gave {other:?}"),
    };
    assert!(matches!(action("PUT", &with_id), Action::Renew { id: named, duration: None } if named == id(RANDOM)));
    assert!(matches!(action("DELETE", &with_id), Action::Release { id: named } if named == id(RANDOM)));
    let change = [("lease-id", RANDOM), ("proposed-lease-id", OTHER)];
    assert!(
        matches!(action("PATCH", &change), Action::Change { id: old, proposed } if old == id(RANDOM) && proposed == id(OTHER))
    );
    let keep = [("lease-id", RANDOM), ("delete-pending", "?0")];
    assert!(matches!(action("PATCH", &keep), Action::WithdrawDelete { id: named } if named == id(RANDOM)));
    let period = Some(Duration::from_secs(7));
    assert!(
        matches!(action("DELETE", &[("lease-break-period", "7")]), Action::Break { period: named } if named == period)
    );
    assert!(matches!(operation("GET", &[], &rules()), Ok(LeaseOperation::Show)));
}

#[test]
fn a_renewal_takes_the_duration_that_it_names() {
    let duration = |lines: &[(&'static str, &'static str)]| match operation("PUT", lines, &rules()) {
        Ok(LeaseOperation::Step { action: Action::Renew { duration, .. }, wait: None }) => Ok(duration),
        Ok(other) => panic!("PUT must renew, and gave {other:?}"),
        Err(code) => Err(code),
    };
    let with = |text| [("lease-id", RANDOM), ("lease-duration", text)];
    assert_eq!(duration(&[("lease-id", RANDOM)]), Ok(None));
    assert_eq!(duration(&with("45")), Ok(Some(LeaseDuration::Fixed(Duration::from_secs(45)))));
    for text in ["14", "61", "infinite", "soon"] {
        assert_eq!(duration(&with(text)), Err(Code::MalformedLeaseHeader), "{text}");
    }
}

#[test]
fn what_cannot_be_read_or_is_not_allowed_is_refused() {
    let strict = LeaseRules { client_break: false, ..rules() };
    for (method, lines, code) in [
        ("POST", &[("lease-duration", "14")][..], Code::MalformedLeaseHeader),
        ("POST", &[("lease-duration", "61")], Code::MalformedLeaseHeader),
        ("POST", &[("lease-duration", "infinite")], Code::MalformedLeaseHeader),
        ("POST", &[("lease-duration", "-1")], Code::MalformedLeaseHeader),
        ("POST", &[("lease-duration", "15.5")], Code::MalformedLeaseHeader),
        ("POST", &[("lease-id", "1")], Code::MalformedLeaseHeader),
        // A version 1 UUID: made from a clock and an address.
        ("POST", &[("lease-id", "c232ab00-9414-11ec-b3c8-9f6bdeced846")], Code::MalformedLeaseHeader),
        ("POST", &[("lease-id", RANDOM), ("lease-id", OTHER)], Code::MalformedLeaseHeader),
        ("PUT", &[], Code::MalformedLeaseHeader),
        ("PATCH", &[("lease-id", RANDOM)], Code::MalformedLeaseHeader),
        ("PATCH", &[("delete-pending", "?0")], Code::MalformedLeaseHeader),
        ("PATCH", &[("lease-id", RANDOM), ("delete-pending", "?1")], Code::MalformedLeaseHeader),
        ("PATCH", &[("lease-id", RANDOM), ("delete-pending", "false")], Code::MalformedLeaseHeader),
        (
            "PATCH",
            &[("lease-id", RANDOM), ("delete-pending", "?0"), ("proposed-lease-id", OTHER)],
            Code::MalformedLeaseHeader,
        ),
        ("DELETE", &[], Code::MalformedLeaseHeader),
        ("DELETE", &[("lease-break-period", "0")], Code::MethodNotAllowed),
        ("LOCK", &[], Code::MethodNotAllowed),
    ] {
        assert_eq!(operation(method, lines, &strict).err(), Some(code), "{method} {lines:?}");
    }
}

#[test]
fn a_lease_without_an_end_is_given_where_the_route_allows_it() {
    let (acquire, _) = acquisition(&[("lease-duration", "Infinite")], &LeaseRules { infinite: true, ..rules() });
    assert_eq!(acquire.duration, LeaseDuration::Infinite);
}

/// RFC 7240 section 2: a preference that cannot be understood is ignored.
#[test]
fn a_wait_is_found_among_other_preferences() {
    for (value, expected) in [
        ("return=minimal, wait=3", Some(3)),
        ("WAIT=\"3\"; x=y", Some(3)),
        ("wait=100", Some(100)),
        ("wait=soon", None),
        ("wait", None),
    ] {
        assert_eq!(acquisition(&[("prefer", value)], &rules()).1, expected.map(Duration::from_secs), "{value}");
    }
}

#[test]
fn a_get_takes_the_lease_only_when_it_asks_and_may() {
    let asks = fields(&[("lease-duration", "15")]);
    assert!(read_on_get(&asks, &rules(), || Ok(fresh())).unwrap().is_some());
    assert!(read_on_get(&HeaderMap::new(), &rules(), || Ok(fresh())).unwrap().is_none());
    let may_not = LeaseRules { acquire_on_read: false, ..rules() };
    assert!(read_on_get(&asks, &may_not, || Ok(fresh())).unwrap().is_none());
    let holder = fields(&[("lease-duration", "15"), ("lease-id", RANDOM)]);
    assert!(read_on_get(&holder, &rules(), || Ok(fresh())).unwrap().is_none(), "the holder reads with its own lease");
}

fn snapshot() -> Snapshot {
    Snapshot::new(Revision(9), Record::absent(Revision(9)), StoreTime::default())
}

#[test]
fn each_outcome_has_its_status_and_fields() {
    let duration = LeaseDuration::Fixed(Duration::from_millis(30_900));
    for (outcome, status, expected) in [
        (
            Done::Acquired { id: id(RANDOM), duration, is_new: true },
            201,
            &[("lease-id", RANDOM), ("lease-duration", "30"), ("fencing-token", "9")][..],
        ),
        (Done::Renewed { duration }, 200, &[("lease-duration", "30"), ("fencing-token", "9")]),
        (Done::Changed { id: id(OTHER) }, 200, &[("lease-id", OTHER)]),
        (Done::DeleteWithdrawn, 204, &[]),
        (Done::Released, 204, &[]),
        (Done::AlreadyReleased, 204, &[]),
        (Done::Broken { remaining: Duration::from_millis(1) }, 202, &[("lease-time", "1")]),
    ] {
        let response = done(outcome, &snapshot(), false);
        assert_eq!(response.status.as_u16(), status, "{outcome:?}");
        let mut all = fields(expected);
        all.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        assert_eq!(response.fields, all, "{outcome:?}");
    }
    let waited = done(Done::Released, &snapshot(), true);
    assert_eq!(waited.fields.get("preference-applied"), Some(&HeaderValue::from_static("wait")));
}

#[test]
fn a_refusal_tells_the_holders_label_and_when_to_come_back() {
    let holder = Some(HolderLabel::parse(b"worker 7").unwrap());
    let held = Denied::Held { remaining: Some(Duration::from_millis(1_500)), holder, is_breaking: false };
    let refusal = refuse(held);
    assert_eq!(refusal.retry_after_seconds(), Some(2));
    assert_eq!(refusal.holder.as_deref(), Some("worker 7"));
    assert!(refusal.problem().contains(r#""holder":"worker 7""#), "{}", refusal.problem());
}

#[test]
fn a_lease_that_nobody_has_is_shown_as_available() {
    let shown = show(&snapshot());
    assert_eq!(shown.body.as_deref(), Some(r#"{"state":"available"}"#));
}
