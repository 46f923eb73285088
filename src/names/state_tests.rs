use std::net::Ipv4Addr;

use super::*;

const WAIT: Duration = Duration::from_secs(2);
const MOMENT: Duration = Duration::from_millis(1);

fn addresses(last: u8) -> Vec<SocketAddr> {
    vec![SocketAddr::from((Ipv4Addr::new(192, 0, 2, last), 80))]
}

/// A resolver that does not answer, or that says that there is no such name.
fn failure(text: &'static str) -> io::Result<Vec<SocketAddr>> {
    Err(io::Error::other(text))
}

const NO_ANSWER: &str = "failed to lookup address information: Temporary failure in name resolution";
const UNKNOWN: &str = "failed to lookup address information: Name or service not known";

/// A name after look-ups with these outcomes, each of which took no time, and the time of the last one.
fn name_after(outcomes: impl IntoIterator<Item = io::Result<Vec<SocketAddr>>>) -> (NameState, Instant) {
    let (mut name, now) = (NameState::default(), Instant::now());
    for outcome in outcomes {
        name.begins(now);
        name.ends(now, outcome);
    }
    (name, now)
}

/// The step of a caller that asks now and may wait: it uses the address with this last number, waits this time, or
/// fails.
#[derive(Debug, PartialEq)]
enum Seen {
    Use(u8),
    Wait(Duration),
    Fail(String),
}

fn seen(name: &NameState, now: Instant, wait: Duration) -> Seen {
    match name.step(now, now + wait) {
        Advice::Use(found) => match found.first() {
            Some(Address::Tcp(SocketAddr::V4(address))) => Seen::Use(address.ip().octets()[3]),
            other => panic!("{other:?}"),
        },
        Advice::Wait(until) => Seen::Wait(until - now),
        Advice::Fail(error) => Seen::Fail(error.to_string()),
    }
}

#[test]
fn a_name_that_was_never_looked_up_is_waited_for() {
    let (mut name, now) = name_after([]);
    assert!(name.is_due(now));
    name.begins(now);
    assert!(!name.is_due(now + WAIT), "one look-up at a time");
    assert_eq!(seen(&name, now, WAIT), Seen::Wait(WAIT));
    assert_eq!(seen(&name, now, Duration::ZERO), Seen::Fail("timed out".into()));
}

#[test]
fn addresses_are_used_until_they_are_old_and_then_looked_up_again() {
    let (mut name, now) = name_after([Ok(addresses(1))]);
    let (before, later) = (now + FRESH.saturating_sub(MOMENT), now + FRESH);
    assert!(!name.is_due(before));
    assert_eq!(seen(&name, before, WAIT), Seen::Use(1));
    assert!(name.is_due(later));
    name.begins(later);
    assert_eq!(seen(&name, later, WAIT), Seen::Wait(PATIENCE));
    name.ends(later, Ok(addresses(2)));
    assert_eq!(seen(&name, later, WAIT), Seen::Use(2));
}

#[test]
fn old_addresses_are_used_while_a_look_up_hangs() {
    let (mut name, now) = name_after([Ok(addresses(1))]);
    name.begins(now + FRESH);
    let (before, patient) = (now + FRESH + PATIENCE.saturating_sub(MOMENT), now + FRESH + PATIENCE);
    assert_eq!(seen(&name, before, WAIT), Seen::Wait(MOMENT));
    assert_eq!(seen(&name, patient, WAIT), Seen::Use(1));
    assert_eq!(seen(&name, now + FRESH, Duration::ZERO), Seen::Use(1), "who cannot wait takes them at once");
}

#[test]
fn old_addresses_are_used_while_look_ups_fail_and_nobody_waits_again() {
    let (mut name, now) = name_after([Ok(addresses(1)), failure(NO_ANSWER)]);
    assert_eq!(seen(&name, now, WAIT), Seen::Use(1));
    assert!(!name.is_due(now + PAUSE.saturating_sub(MOMENT)));
    assert!(name.is_due(now + PAUSE));
    name.begins(now + PAUSE);
    assert_eq!(seen(&name, now + PAUSE, WAIT), Seen::Use(1));
}

#[test]
fn the_addresses_of_a_name_that_is_unknown_now_are_used_no_more() {
    let nowhere = "failed to lookup address information: No address associated with hostname";
    for text in [UNKNOWN, nowhere, "failed to lookup address information: Name does not resolve"] {
        let (name, now) = name_after([Ok(addresses(1)), failure(text)]);
        assert_eq!(seen(&name, now, WAIT), Seen::Fail(text.into()));
    }
    let (name, now) = name_after([Ok(addresses(1)), Ok(vec![])]);
    assert_eq!(seen(&name, now, WAIT), Seen::Fail("entity not found".into()));
}

#[test]
fn a_failure_is_told_to_all_who_ask_within_the_pause_and_then_looked_at_again() {
    let (mut name, now) = name_after([failure(NO_ANSWER)]);
    assert_eq!(seen(&name, now, WAIT), Seen::Fail(NO_ANSWER.into()));
    assert!(!name.is_due(now) && name.is_due(now + PAUSE));
    name.begins(now + PAUSE);
    assert_eq!(seen(&name, now + PAUSE, WAIT), Seen::Wait(WAIT));
}

/// The standard library gives the text of the C library, which no standard fixes.
#[test]
fn the_system_says_of_a_name_that_cannot_be_that_it_is_unknown() {
    let error = std::net::ToSocketAddrs::to_socket_addrs("no..such..name:80").expect_err("there is none");
    assert!(says_unknown(&error), "{error}");
}
