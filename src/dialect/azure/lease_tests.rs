//! Lease operations: their requests and their answers.

use super::*;
use crate::core::lease::testing::rules;

const A: &str = "11111111-1111-4111-8111-111111111111";
const B: &str = "22222222-2222-1222-8222-222222222222";

fn azure_rules() -> LeaseRules {
    let (min, max) = (Duration::from_secs(15), Duration::from_secs(60));
    LeaseRules { min, max, infinite: true, client_break: true, ..rules() }
}

fn id(text: &str) -> LeaseId {
    LeaseId::parse(text.as_bytes()).unwrap()
}

fn read(rules: &LeaseRules, fields: &[(HeaderName, &'static str)]) -> Result<Action, Refusal> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, HeaderValue::from_static(value));
    }
    action(&headers, rules, || Ok(LeaseId::from_random([0; 16])))
}

/// Describes an operation, without its random id.
fn told(fields: &[(HeaderName, &'static str)]) -> String {
    let name = |id: LeaseId| if id.reveal() == A { "A" } else { "B" };
    match read(&azure_rules(), fields) {
        Ok(Action::Acquire(Acquire { proposed, duration, holder: None, .. })) => {
            let seconds = match duration {
                LeaseDuration::Fixed(duration) => duration.as_secs().to_string(),
                LeaseDuration::Infinite => "for ever".to_owned(),
            };
            format!("acquire {} {seconds}", proposed.map_or("any", name))
        }
        Ok(Action::Acquire(_)) => "a holder".to_owned(),
        Ok(Action::Renew { id, duration: None }) => format!("renew {}", name(id)),
        Ok(Action::Renew { .. }) => "another duration".to_owned(),
        Ok(Action::Change { id, proposed }) => format!("change {} {}", name(id), name(proposed)),
        Ok(Action::Release { id }) => format!("release {}", name(id)),
        Ok(Action::Break { period }) => format!("break {period:?}"),
        Ok(Action::BreakNamed { id }) => format!("break {}", name(id)),
        Ok(Action::WithdrawDelete { .. }) => "withdraw".to_owned(),
        Err(refusal) => refusal.service.expect("Azure's name").code.to_owned(),
    }
}

#[test]
fn each_operation_is_read_from_its_fields() {
    let (id, proposed) = ((LEASE_ID, A), (PROPOSED_LEASE_ID, B));
    let act = |word| (LEASE_ACTION, word);
    let (duration, period) = (|text| (LEASE_DURATION, text), |text| (LEASE_BREAK_PERIOD, text));
    let (missing, invalid) = ("MissingRequiredHeader", "InvalidHeaderValue");
    for (fields, expected) in [
        (vec![act("acquire"), duration("15")], "acquire any 15"),
        (vec![act("Acquire"), duration("60"), proposed.clone()], "acquire B 60"),
        (vec![act("acquire"), duration("-1")], "acquire any for ever"),
        (vec![act("acquire")], missing),
        (vec![act("acquire"), duration("14")], invalid),
        (vec![act("acquire"), duration("0")], invalid),
        (vec![act("acquire"), duration("61")], invalid),
        (vec![act("acquire"), duration("-2")], invalid),
        (vec![act("acquire"), duration("+15")], invalid),
        (vec![act("acquire"), duration("")], invalid),
        (vec![act("acquire"), duration("15"), (PROPOSED_LEASE_ID, "mine")], invalid),
        (vec![act("acquire"), duration("15"), period("1")], "UnsupportedHeader"),
        (vec![act("renew"), id.clone()], "renew A"),
        (vec![act("renew")], missing),
        (vec![act("renew"), id.clone(), duration("15")], "UnsupportedHeader"),
        (vec![act("change"), id.clone(), proposed.clone()], "change A B"),
        (vec![act("change"), id.clone()], missing),
        (vec![act("change"), proposed], missing),
        (vec![act("release"), id.clone()], "release A"),
        (vec![act("release")], missing),
        (vec![act("break")], "break None"),
        (vec![act("break"), period("0"), id], "break Some(0ns)"),
        (vec![act("break"), period("60")], "break Some(60s)"),
        (vec![act("break"), period("61")], invalid),
        (vec![act("break"), period("-1")], invalid),
        (vec![act("steal")], invalid),
        (vec![act("break"), act("break")], invalid),
        (vec![], missing),
    ] {
        assert_eq!(told(&fields), expected, "{fields:?}");
    }
}

#[test]
fn a_route_says_which_leases_it_grants_and_who_may_break_them() {
    let refusal = |rules: &LeaseRules, fields: &[(HeaderName, &'static str)]| {
        read(rules, fields).expect_err("refused").service.map(|service| (service.status, service.code))
    };
    let finite = LeaseRules { infinite: false, ..azure_rules() };
    let forever = [(LEASE_ACTION, "acquire"), (LEASE_DURATION, "-1")];
    assert_eq!(refusal(&finite, &forever), Some((400, "InvalidHeaderValue")));
    let unbroken = LeaseRules { client_break: false, ..azure_rules() };
    assert_eq!(refusal(&unbroken, &[(LEASE_ACTION, "break")]), Some((403, "AuthorizationPermissionMismatch")));
}

#[test]
fn success_has_azures_status_and_field() {
    let text = |what| {
        let (status, field) = done(what, Some(id(A))).unwrap();
        let field = field.map(|(name, value)| format!(" {name}: {}", value.to_str().unwrap()));
        format!("{}{}", status.as_u16(), field.unwrap_or_default())
    };
    let duration = LeaseDuration::Infinite;
    assert_eq!(text(Done::Acquired { id: id(A), duration, is_new: true }), format!("201 x-ms-lease-id: {A}"));
    assert_eq!(text(Done::Renewed { duration }), format!("200 x-ms-lease-id: {A}"));
    assert_eq!(text(Done::Changed { id: id(B) }), format!("200 x-ms-lease-id: {B}"));
    assert_eq!(text(Done::Released), "200");
    assert_eq!(text(Done::Broken { remaining: Duration::from_millis(1_001) }), "202 x-ms-lease-time: 2");
    assert_eq!(done(Done::AlreadyReleased, None), Err(refuse(&Denied::NotPresent)));
}

#[test]
fn an_id_is_not_printed_with_the_fields_of_an_answer() {
    let (_, field) = done(Done::Changed { id: id(A) }, None).unwrap();
    assert!(!format!("{field:?}").contains(A));
}
