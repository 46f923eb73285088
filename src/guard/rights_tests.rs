//! The limits of what a client without rights can learn and change. It gets one answer to each request, in any state of
//! the resource, and leaves that state as it was (DESIGN, sections 4 and 8).
//!
//! A machine makes the family: each way to ask, each status with which a backend refuses, and each state. The backend
//! refuses by credentials alone, in this process.

mod ways;

use std::{fmt::Write as _, time::Duration};

use http::Method;

use super::testing::{Fixture, OWNER, Response, dialect};
use crate::{
    core::{
        lease::{Command, LeaseId, TargetName, step, testing},
        policy::{
            AbsentLease, Dialect, GuardRules, Idempotency, LeaseAuth, LeaseGuards, LeaseRules, ReadConsistency,
            Require, TagSource,
        },
        records::{
            record::{Mark, Snapshot},
            steps::{Outcome, Settlement, claim, settle},
        },
        resource::ResourceKey,
    },
    patience::within,
    testing::{PATIENCE, guard, wait_at_most},
};
use ways::{DATA, KINDS, STATUSES, Way, azure_ways, container_ways, native_ways, plain_ways};

/// The states that a client without rights must not distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has come through the proxy.
    Fresh,
    /// Its owner has read it, and written it with an idempotency key.
    Known,
    /// Its owner holds a lease.
    Leased,
    /// The same, and no client has read it.
    LeasedUnread,
    /// The lease of its owner has ended, and is remembered.
    Released,
    /// Another process writes it.
    Written,
    /// A write of it is in doubt.
    InDoubt,
    /// Another process writes it under a lease.
    LeasedAndWritten,
    /// This process writes it.
    InFlight,
}

const STATES: [State; 9] = [
    State::Fresh,
    State::Known,
    State::Leased,
    State::LeasedUnread,
    State::Released,
    State::Written,
    State::InDoubt,
    State::LeasedAndWritten,
    State::InFlight,
];

/// A route, the ways to ask there, and its statuses.
struct Family {
    rules: GuardRules,
    ways: Vec<Way>,
    statuses: &'static [u16],
    states: Vec<State>,
}

fn versions() -> GuardRules {
    let millisecond = Duration::from_millis(1);
    GuardRules {
        etag: TagSource::Version,
        other_writers: false,
        require: Require::Never,
        claim: wait_at_most(20 * millisecond),
        idempotency: Idempotency::Accept,
        idempotency_ttl: Duration::from_secs(600),
        lease: Some(LeaseRules {
            auth: LeaseAuth::Probe,
            absent: AbsentLease::Refuse,
            bind: false,
            max_wait: 20 * millisecond,
            ..testing::rules()
        }),
        ..guard()
    }
}

fn with_lease(rules: GuardRules, change: impl FnOnce(&mut LeaseRules)) -> GuardRules {
    let mut lease = rules.lease.expect("rules of leases");
    change(&mut lease);
    GuardRules { lease: Some(lease), ..rules }
}

fn family(rules: GuardRules, statuses: &'static [u16]) -> Family {
    Family { rules, ways: native_ways(), statuses, states: STATES.into() }
}

fn key(state: State) -> String {
    format!("{state:?}")
}

/// Puts a lease of the owner into the record.
async fn lease(fixture: &Fixture, state: State, rules: &GuardRules, releases: bool) {
    let key = ResourceKey::from_text(&key(state));
    let id = LeaseId::from_random([1; 16]);
    let rules = rules.lease.clone().unwrap_or_else(testing::rules);
    let target = TargetName::of(DATA.as_bytes(), false);
    let mut actions = vec![testing::acquire(Some(id), testing::fixed(30))];
    if releases {
        actions.push(crate::core::lease::Action::Release { id });
    }
    for action in actions {
        let snapshot = fixture.store.look(&key).await;
        let (next, _) = step(&snapshot, Command { action, principal: None, target, has_signed: false }, &rules)
            .expect("it is granted");
        fixture.store.put(&key, next).await;
    }
}

/// Marks the record for a write of another process, which may end in doubt.
async fn write_elsewhere(fixture: &Fixture, state: State, is_in_doubt: bool) {
    let key = ResourceKey::from_text(&key(state));
    let snapshot = fixture.store.look(&key).await;
    let (deadline, late_write_window) = (snapshot.now.plus(Duration::from_secs(60)), Duration::from_secs(60));
    let mark = Mark { owner: 99, nonce: 1, deadline, late_write_window, leaves_lease: true };
    fixture.store.put(&key, claim(&snapshot, mark).expect("it is free")).await;
    if is_in_doubt {
        let marked = fixture.store.look(&key).await;
        let (marked_at, outcome) = (marked.revision, Outcome::Doubt);
        let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
        fixture.store.put(&key, settle(&marked, settlement).expect("it is marked")).await;
    }
}

/// Brings the resource of a state into it. Returns the tag that the owner knows.
async fn prepare(fixture: &Fixture, state: State, rules: &GuardRules) -> String {
    let mut tag = "\"w\"".to_owned();
    if !matches!(state, State::Fresh | State::LeasedUnread) {
        let read = fixture.send_to(&key(state), Method::GET, OWNER, "").await;
        assert_eq!(read.status, 200, "{}", read.head);
        let tag_read = read.tag().unwrap_or("\"w\"").to_owned();
        let owner = format!("{OWNER}Idempotency-Key: \"of the owner\"\r\nx-ms-blob-type: BlockBlob\r\nIf-Match: ");
        let written = fixture.send_to(&key(state), Method::PUT, &format!("{owner}{tag_read}\r\n"), "one").await;
        assert!(written.status < 300, "{} {}", written.head, written.body);
        if rules.dialect != dialect("azure") {
            let posted = format!("{OWNER}Idempotency-Key: \"posted by the owner\"\r\n");
            let posted = fixture.send_to(&key(state), Method::POST, &posted, "one").await;
            assert!(posted.status < 300, "{} {}", posted.head, posted.body);
        }
        let read = fixture.send_to(&key(state), Method::GET, OWNER, "").await;
        tag = read.tag().unwrap_or("\"w\"").to_owned();
    }
    match state {
        State::Fresh | State::Known | State::InFlight => {}
        State::Leased | State::LeasedUnread => lease(fixture, state, rules, false).await,
        State::Released => lease(fixture, state, rules, true).await,
        State::Written => write_elsewhere(fixture, state, false).await,
        State::InDoubt => write_elsewhere(fixture, state, true).await,
        State::LeasedAndWritten => {
            lease(fixture, state, rules, false).await;
            write_elsewhere(fixture, state, false).await;
        }
    }
    tag
}

/// Returns the parts of a record that other clients can notice.
fn noticed(snapshot: &Snapshot, is_version_kept: bool) -> String {
    let record = &snapshot.record;
    let mut text = String::new();
    if is_version_kept {
        write!(text, "version {:?} ", snapshot.version()).unwrap();
    }
    let marks = record.marks().count();
    // Nor is it known what it has done to a lease that has ended.
    if snapshot.leases().next().is_some() && (is_version_kept || snapshot.lease_state().is_held()) {
        write!(text, "fence {:?} leases {:?} ", snapshot.fence(), snapshot.lease_draft()).unwrap();
    }
    write!(text, "marks {marks} doubt {:?} ", record.doubt.map(|doubt| doubt.until)).unwrap();
    write!(text, "signs {} {:?} ", record.waiting.len(), record.exclusive_awaited_until).unwrap();
    write!(text, "removed {:?}", record.pending_delete).unwrap();
    text
}

/// The answer, without what differs from one answer to the next.
fn answer(response: &Response) -> String {
    let is_same = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        !matches!(name.as_str(), "date" | "x-ms-request-id" | "x-amz-request-id" | "x-amz-id-2")
    };
    let head: Vec<&str> = response.head.lines().filter(is_same).collect();
    let without = |body: &str, from: &str, to: &str| match body.split_once(from) {
        Some((before, rest)) => format!("{before}{}", rest.split_once(to).map_or("", |(_, after)| after)),
        None => body.to_owned(),
    };
    let body = without(&response.body, "RequestId:", "</Message>");
    let body = without(&body, "<RequestId>", "</HostId>");
    let body = without(&body, "urn:ifmatch:request:", "\"");
    // The part that the client itself has sent.
    let body = without(&body, "\"sent_tag\"", "}");
    let length = format!("Content-Length: {}", response.body.len());
    format!("{}\n\n{body}", head.join("\n").replace(&length, "Content-Length: that of the body"))
}

/// Sends one request of each way as a client without rights. Returns the answers, and what they changed.
async fn ask(fixture: &Fixture, family: &Family, (state, tag, status): (State, &str, u16)) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for Way(method, target, fields) in &family.ways {
        let fields = fields.replace("{tag}", tag);
        let key = ResourceKey::from_text(&key(state));
        // The effect of a redirect on a write that names no version is not known.
        let is_version_kept = status >= 304;
        let before = noticed(&fixture.store.look(&key).await, is_version_kept);
        let body =
            if matches!(*method, Method::PUT | Method::POST | Method::PATCH) && *target == DATA { "x" } else { "" };
        let sent = fixture.exchange(key.as_str(), target, method.clone(), &fields, body);
        let response = within(PATIENCE, Box::pin(sent)).await.expect("an answer");
        let after = noticed(&fixture.store.look(&key).await, is_version_kept);
        let changed = if before == after { String::new() } else { format!("{before}\n  became {after}") };
        all.push((answer(&response), changed));
    }
    all
}

/// Asks in each way in each state. Returns what a client without rights has learned and changed.
async fn leaks(family: &Family, status: u16) -> (usize, Vec<String>) {
    let fixture = Fixture::with(family.rules.clone()).await;
    fixture.refuse_with(status);
    fixture.answer_reads(|_| "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: 3\r\n\r\none".to_owned()).await;
    let (mut leaks, mut count, mut expected) = (Vec::new(), 0, None);
    for &state in &family.states {
        let tag = prepare(&fixture, state, &family.rules).await;
        let writes = fixture.writes();
        let answers = if state == State::InFlight {
            let held = fixture.hold_writes().await;
            let fields = format!("{OWNER}x-ms-blob-type: BlockBlob\r\nIf-Match: {tag}\r\n");
            let write = fixture.send_to("InFlight", Method::PUT, &fields, "one");
            let asked = async {
                let key = ResourceKey::from_text("InFlight");
                while fixture.store.look(&key).await.has_no_pending_writes() && !fixture.has_line(&key) {
                    tokio::task::yield_now().await;
                }
                let answers = ask(&fixture, family, (state, &tag, status)).await;
                drop(held);
                answers
            };
            tokio::join!(write, asked).1
        } else {
            ask(&fixture, family, (state, &tag, status)).await
        };
        count += answers.len();
        let expected = expected.get_or_insert_with(|| answers.clone());
        for ((Way(method, target, fields), (got, changed)), (wanted, _)) in
            family.ways.iter().zip(&answers).zip(expected.iter())
        {
            let asked = format!("{status} {method} {target} {fields:?} {state:?}");
            if got != wanted {
                leaks.push(format!("{asked} tells\n{got}\n-- instead of\n{wanted}"));
            }
            if !changed.is_empty() {
                leaks.push(format!("{asked} changes\n  {changed}"));
            }
        }
        assert!(fixture.writes() - writes <= 1, "no write of a client without rights is applied");
    }
    (count, leaks)
}

async fn assert_nothing_leaks(family: Family) {
    let (mut count, mut all) = (0, Vec::new());
    for &status in family.statuses {
        let (asked, leaks) = leaks(&family, status).await;
        count += asked;
        all.extend(leaks);
    }
    println!("{count} requests of a client without rights");
    let shown = all.iter().take(12).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(all.is_empty(), "{} of {count} tell or change something:\n\n{shown}", all.len());
}

/// Rule 15: a client that the backend refuses learns nothing else, and its request is not in effect.
#[tokio::test]
async fn a_client_without_rights_learns_and_changes_nothing_under_versions() {
    assert_nothing_leaks(family(versions(), &STATUSES[..14])).await;
}

#[tokio::test]
async fn a_client_without_rights_learns_and_changes_nothing_whatever_refuses_it() {
    assert_nothing_leaks(family(versions(), &STATUSES[14..])).await;
}

#[tokio::test]
async fn a_client_without_rights_learns_and_changes_nothing_where_reads_are_leased() {
    let rules = GuardRules { etag: TagSource::Content, other_writers: true, require: Require::Always, ..versions() };
    let rules = with_lease(rules, |lease| {
        (lease.guards, lease.acquire_on_read) = (LeaseGuards::ReadAndWrite, true);
    });
    assert_nothing_leaks(family(rules, &KINDS)).await;
}

#[tokio::test]
async fn a_client_without_rights_learns_and_changes_nothing_where_reads_wait() {
    let rules = GuardRules { etag: TagSource::Upstream, reads: ReadConsistency::Settled, ..versions() };
    let rules = GuardRules { other_writers: true, require: Require::Existing, ..rules };
    let rules = with_lease(rules, |lease| lease.guards = LeaseGuards::Read);
    assert_nothing_leaks(family(rules, &KINDS)).await;
}

#[tokio::test]
async fn a_client_without_rights_learns_and_changes_nothing_where_another_route_leases() {
    let rules = GuardRules { etag: TagSource::Upstream, require: Require::Always, lease: None, ..versions() };
    assert_nothing_leaks(Family { ways: plain_ways(), ..family(rules, &KINDS) }).await;
}

/// A resource that no client has seen may be leased: then a 404 that hides is the same as one that tells the truth.
#[tokio::test]
async fn a_client_without_rights_learns_and_changes_nothing_where_absent_resources_are_leased() {
    let rules = with_lease(versions(), |lease| lease.absent = AbsentLease::Allow);
    let states = vec![State::Known, State::Leased, State::Released, State::Written, State::InDoubt, State::InFlight];
    assert_nothing_leaks(Family { states, ..family(rules, &KINDS) }).await;
}

#[tokio::test]
async fn a_client_without_rights_learns_and_changes_nothing_in_other_dialects() {
    for (name, dialect) in Dialect::NAMES.iter().filter(|(name, _)| matches!(*name, "s3" | "azure")) {
        let rules = GuardRules { etag: TagSource::Upstream, other_writers: true, ..versions() };
        let rules = GuardRules { dialect: *dialect, quirks: dialect.quirks(), ..rules };
        let ways = if *name == "azure" { azure_ways() } else { native_ways() };
        assert_nothing_leaks(Family { ways, ..family(rules, &KINDS) }).await;
    }
}

#[tokio::test]
async fn a_client_without_rights_learns_and_changes_nothing_of_a_container() {
    let rules = GuardRules {
        dialect: dialect("azure"),
        quirks: dialect("azure").quirks(),
        etag: TagSource::Version,
        ..versions()
    };
    let rules = with_lease(rules, |lease| lease.guards = LeaseGuards::Delete);
    let states = vec![State::Fresh, State::LeasedUnread];
    assert_nothing_leaks(Family { ways: container_ways(), states, ..family(rules, &KINDS) }).await;
}
