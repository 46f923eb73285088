//! Tests of every cell of the state tables of Azure's leases, which specify [`step`](crate::core::lease::step) and
//! [`judge_use`].
//!
//! The lease of each resource belongs to A. It was granted for 60 seconds. If it is fixed, 40 of them are left, and
//! if it is breaking, 25.

use std::{sync::Arc, time::Duration};

use super::{AskedOperation, AzureError, LeaseVerb, error_of, refuse, refuse_use};
use crate::core::{
    lease::{
        Action, Denied, Done, LeaseDuration, LeaseId, LeaseState, Standing, Usage, UseDenied, judge_use,
        testing::{Resource, acquire, fixed, id, rules},
    },
    policy::{LeaseGuards, LeaseRules},
    records::steps::Outcome,
};

const A: u8 = 0xa;
const B: u8 = 0xb;
const C: u8 = 0xc;

/// The result of each operation in each state. A cell begins with the status. If the operation is done, the new state
/// of the lease, its id and the seconds left follow (`-`: no end). If it is denied, Azure's code follows. N is a
/// random id. An acquisition requests 30 seconds.
const OPERATIONS: &str = "
operation  | Available        | Leased           | Infinite         | Breaking               | Broken          | Expired
acquire    | 201 Leased N 30  | 409 Present      | 409 Present      | 409 Present            | 201 Leased N 30 | 201 Leased N 30
acquire A  | 201 Leased A 30  | 201 Leased A 30  | 201 Leased A 30  | 409 BreakingNoAcquire  | 201 Leased A 30 | 201 Leased A 30
acquire B  | 201 Leased B 30  | 409 Present      | 409 Present      | 409 Present            | 201 Leased B 30 | 201 Leased B 30
renew A    | 409 Mismatch     | 200 Leased A 60  | 200 Leased A -   | 409 BrokenNoRenew      | 409 BrokenNoRenew | 200 Leased A 60
renew B    | 409 Mismatch     | 409 Mismatch     | 409 Mismatch     | 409 Mismatch           | 409 Mismatch    | 409 Mismatch
change A B | 409 NotPresent   | 200 Leased B 40  | 200 Leased B -   | 409 BreakingNoChange   | 409 NotPresent  | 409 NotPresent
change B A | 409 NotPresent   | 200 Leased A 40  | 200 Leased A -   | 409 Mismatch           | 409 NotPresent  | 409 NotPresent
change B C | 409 NotPresent   | 409 Mismatch     | 409 Mismatch     | 409 Mismatch           | 409 NotPresent  | 409 NotPresent
release A  | 409 Mismatch     | 200 Available    | 200 Available    | 200 Available          | 200 Available   | 200 Available
release B  | 409 Mismatch     | 409 Mismatch     | 409 Mismatch     | 409 Mismatch           | 409 Mismatch    | 409 Mismatch
break      | 409 NotPresent   | 202 Breaking A 40 | 202 Broken A 0  | 202 Breaking A 25      | 202 Broken A 0  | 202 Broken A 0
break 0    | 409 NotPresent   | 202 Broken A 0   | 202 Broken A 0   | 202 Broken A 0         | 202 Broken A 0  | 202 Broken A 0
break 10   | 409 NotPresent   | 202 Breaking A 10 | 202 Breaking A 10 | 202 Breaking A 10    | 202 Broken A 0  | 202 Broken A 0
break 60   | 409 NotPresent   | 202 Breaking A 40 | 202 Breaking A 60 | 202 Breaking A 25    | 202 Broken A 0  | 202 Broken A 0
";

/// The verdict of a lease that guards writes, and the state after a use that it permits and that is applied.
const USES_UNDER_WRITE: &str = "
use      | Available      | Leased        | Infinite      | Breaking      | Broken         | Expired
write    | ok Available   | 412 Missing   | 412 Missing   | 412 Missing   | ok Available   | ok Available
write A  | 412 NotPresent | ok Leased     | ok Leased     | ok Breaking   | 412 Lost       | 412 Lost
write B  | 412 NotPresent | 412 Mismatch  | 412 Mismatch  | 412 Mismatch  | 412 NotPresent | 412 NotPresent
delete   | ok Available   | 412 Missing   | 412 Missing   | 412 Missing   | ok Available   | ok Available
delete A | 412 NotPresent | ok Available  | ok Available  | ok Available  | 412 Lost       | 412 Lost
delete B | 412 NotPresent | 412 Mismatch  | 412 Mismatch  | 412 Mismatch  | 412 NotPresent | 412 NotPresent
read     | ok Available   | ok Leased     | ok Leased     | ok Breaking   | ok Broken      | ok Expired
read A   | 412 NotPresent | ok Leased     | ok Leased     | ok Breaking   | 412 Lost       | 412 Lost
read B   | 412 NotPresent | 412 Mismatch  | 412 Mismatch  | 412 Mismatch  | 412 NotPresent | 412 NotPresent
";

/// If a lease guards reads too, they need it like writes.
const USES_UNDER_READ_AND_WRITE: &str = "
use      | Available      | Leased        | Infinite      | Breaking      | Broken         | Expired
write    | ok Available   | 412 Missing   | 412 Missing   | 412 Missing   | ok Available   | ok Available
delete   | ok Available   | 412 Missing   | 412 Missing   | 412 Missing   | ok Available   | ok Available
read     | ok Available   | 412 Missing   | 412 Missing   | 412 Missing   | ok Broken      | ok Expired
read A   | 412 NotPresent | ok Leased     | ok Leased     | ok Breaking   | 412 Lost       | 412 Lost
read B   | 412 NotPresent | 412 Mismatch  | 412 Mismatch  | 412 Mismatch  | 412 NotPresent | 412 NotPresent
";

/// If a lease guards only reads, writes and deletions by others leave it unchanged.
const USES_UNDER_READ: &str = "
use      | Available      | Leased        | Infinite      | Breaking      | Broken         | Expired
write    | ok Available   | ok Leased     | ok Leased     | ok Breaking   | ok Broken      | ok Expired
write A  | 412 NotPresent | ok Leased     | ok Leased     | ok Breaking   | 412 Lost       | 412 Lost
write B  | 412 NotPresent | 412 Mismatch  | 412 Mismatch  | 412 Mismatch  | 412 NotPresent | 412 NotPresent
delete   | ok Available   | ok Leased     | ok Leased     | ok Breaking   | ok Broken      | ok Expired
delete A | 412 NotPresent | ok Leased     | ok Leased     | ok Breaking   | 412 Lost       | 412 Lost
read     | ok Available   | 412 Missing   | 412 Missing   | 412 Missing   | ok Broken      | ok Expired
read A   | 412 NotPresent | ok Leased     | ok Leased     | ok Breaking   | 412 Lost       | 412 Lost
";

/// If a lease guards only deletion, as that of a container does, other writes leave it unchanged.
const USES_UNDER_DELETE: &str = "
use      | Available      | Leased        | Infinite      | Breaking      | Broken         | Expired
write    | ok Available   | ok Leased     | ok Leased     | ok Breaking   | ok Broken      | ok Expired
write A  | 412 NotPresent | ok Leased     | ok Leased     | ok Breaking   | 412 Lost       | 412 Lost
write B  | 412 NotPresent | 412 Mismatch  | 412 Mismatch  | 412 Mismatch  | 412 NotPresent | 412 NotPresent
delete   | ok Available   | 412 Missing   | 412 Missing   | 412 Missing   | ok Available   | ok Available
delete A | 412 NotPresent | ok Available  | ok Available  | ok Available  | 412 Lost       | 412 Lost
read     | ok Available   | ok Leased     | ok Leased     | ok Breaking   | ok Broken      | ok Expired
";

/// If a lease is required, a use that it guards needs one even while no client holds it.
const USES_WHERE_REQUIRED: &str = "
use      | Available      | Leased        | Infinite      | Breaking      | Broken         | Expired
write    | 412 Required   | 412 Missing   | 412 Missing   | 412 Missing   | 412 Required   | 412 Required
write A  | 412 NotPresent | ok Leased     | ok Leased     | ok Breaking   | 412 Lost       | 412 Lost
delete   | 412 Required   | 412 Missing   | 412 Missing   | 412 Missing   | 412 Required   | 412 Required
read     | ok Available   | ok Leased     | ok Leased     | ok Breaking   | ok Broken      | ok Expired
";

/// Returns the cells of a table: the words of its row, its column, and its own words.
fn cells(table: &'static str) -> Vec<(Vec<&'static str>, &'static str, String)> {
    let mut lines = table.trim().lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    lines
        .flat_map(|row| {
            assert_eq!(row.len(), columns.len(), "{row:?}");
            let words: Vec<&str> = row[0].split_whitespace().collect();
            let cell = |place: usize| (words.clone(), columns[place], row[place].to_owned());
            (1..row.len()).map(cell).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns resources in a state. The available ones have no lease, a released one, or one that is no longer remembered.
fn resources(state: &str) -> Vec<Resource> {
    let held = |duration| {
        let mut resource = Resource::new();
        resource.must(acquire(Some(id(A)), duration));
        resource.pass_seconds(20);
        resource
    };
    let broken_off = |period| {
        let mut resource = held(fixed(60));
        resource.must(Action::Break { period: Some(Duration::from_secs(period)) });
        resource
    };
    let after = |mut resource: Resource, seconds| {
        resource.pass_seconds(seconds);
        resource
    };
    let released = || {
        let mut resource = held(fixed(60));
        resource.must(Action::Release { id: id(A) });
        resource
    };
    match state {
        "Available" => vec![
            Resource::new(),
            released(),
            after(released(), 601),
            after(held(fixed(60)), 640),
            after(broken_off(0), 600),
        ],
        "Leased" => vec![held(fixed(60))],
        "Infinite" => vec![held(LeaseDuration::Infinite)],
        "Breaking" => vec![broken_off(25)],
        "Broken" => vec![broken_off(0), after(broken_off(25), 25), after(broken_off(0), 599)],
        "Expired" => vec![after(held(fixed(60)), 40), after(held(fixed(60)), 639)],
        _ => panic!("{state} is no state"),
    }
}

fn named(word: &str) -> LeaseId {
    id(match word {
        "A" => A,
        "B" => B,
        "C" => C,
        _ => panic!("{word} is no id"),
    })
}

fn action(words: &[&str]) -> Action {
    match words {
        ["acquire", proposed @ ..] => acquire(proposed.first().map(|word| named(word)), fixed(30)),
        ["renew", id] => Action::Renew { id: named(id), duration: None },
        ["change", id, proposed] => Action::Change { id: named(id), proposed: named(proposed) },
        ["release", id] => Action::Release { id: named(id) },
        ["break"] => Action::Break { period: None },
        ["break", seconds] => Action::Break { period: Some(Duration::from_secs(seconds.parse().unwrap())) },
        _ => panic!("{words:?} is no operation"),
    }
}

/// Returns the state of a resource in the words of a cell.
fn described(resource: &Resource) -> String {
    let (state, now) = (resource.snapshot.lease_state(), resource.snapshot.now);
    let Some(lease) = resource.snapshot.lease().filter(|_| state != LeaseState::Available) else {
        return "Available".to_owned();
    };
    let name = [(A, "A"), (B, "B"), (C, "C"), (0xff, "N")].into_iter().find(|(number, _)| id(*number) == lease.id);
    let remaining = lease.remaining(now).map_or("-".to_owned(), |left| left.as_secs().to_string());
    format!("{state:?} {} {remaining}", name.unwrap().1)
}

/// Returns a denial in the table's words, which shorten Azure's. The dialect supplies those.
fn denied(operation: &str, denied: &Denied) -> String {
    let asked = AskedOperation { lease: LeaseVerb::of(operation.as_bytes()), ..AskedOperation::default() };
    told(&error_of(&refuse(denied), asked))
}

/// Returns the refusal of a use in the table's words.
fn use_denied(denied: UseDenied) -> String {
    told(&error_of(&refuse_use(denied), AskedOperation::default()))
}

fn told(error: &AzureError) -> String {
    let word = match error.code {
        "LeaseAlreadyPresent" => "Present",
        "LeaseIdMismatchWithLeaseOperation" | "LeaseIdMismatchWithBlobOperation" => "Mismatch",
        "LeaseNotPresentWithLeaseOperation" | "LeaseNotPresentWithBlobOperation" => "NotPresent",
        "LeaseIsBreakingAndCannotBeAcquired" => "BreakingNoAcquire",
        "LeaseIsBreakingAndCannotBeChanged" => "BreakingNoChange",
        "LeaseIsBrokenAndCannotBeRenewed" => "BrokenNoRenew",
        "LeaseIdMissing" => "Missing",
        "LeaseLost" => "Lost",
        code => panic!("{code} is in no table"),
    };
    format!("{} {word}", error.status.as_u16())
}

fn done(done: &Done, resource: &Resource) -> String {
    let status = match done {
        Done::Acquired { .. } => 201,
        Done::Broken { remaining } => {
            let lease = resource.snapshot.lease().unwrap();
            assert_eq!(Some(*remaining), lease.remaining(resource.snapshot.now));
            202
        }
        // The native dialect repeats its success, but Azure's does not.
        Done::AlreadyReleased => return denied("release", &Denied::NotPresent),
        _ => 200,
    };
    format!("{status} {}", described(resource))
}

#[test]
fn every_operation_does_in_every_state_what_the_table_says() {
    let mut count = 0;
    for (row, state, expected) in cells(OPERATIONS) {
        for mut resource in resources(state) {
            let before = resource.snapshot.clone();
            let result = match resource.lease(action(&row)) {
                Ok(what) => done(&what, &resource),
                Err(reason) => denied(row[0], &reason),
            };
            assert_eq!(result, expected, "{row:?} in {state}");
            let after = &resource.snapshot;
            assert_eq!((after.version(), after.touched()), (before.version(), before.touched()), "{row:?} in {state}");
            count += 1;
        }
    }
    assert_eq!(count, 14 * (5 + 1 + 1 + 1 + 3 + 2));
}

fn usage(word: &str) -> Usage {
    match word {
        "write" => Usage::Write,
        "delete" => Usage::Delete,
        "read" => Usage::Read,
        _ => panic!("{word} is no use"),
    }
}

fn check_uses(table: &'static str, rules: &LeaseRules) {
    for (row, state, expected) in cells(table) {
        let (usage, presented) = (usage(row[0]), row.get(1).map(|word| named(word)));
        for mut resource in resources(state) {
            for lease in &mut Arc::make_mut(&mut resource.snapshot.record).leases {
                lease.guards = rules.guards;
            }
            let result = match judge_use(&resource.snapshot, Some(rules), usage, presented, None) {
                Ok(standing) => {
                    if usage != Usage::Read {
                        let begun = resource.begin(standing);
                        resource.end(begun, Outcome::Applied, usage == Usage::Delete);
                    }
                    assert_eq!(standing == Standing::Holder, presented.is_some(), "{row:?} in {state}");
                    format!("ok {:?}", resource.snapshot.lease_state())
                }
                // Clients get the same refusal for both.
                Err(UseDenied::LeaseRequired) => {
                    assert_eq!(use_denied(UseDenied::LeaseRequired), use_denied(UseDenied::IdMissing));
                    "412 Required".to_owned()
                }
                Err(denied) => use_denied(denied),
            };
            assert_eq!(result, expected, "{row:?} in {state} under {:?}", rules.guards);
        }
    }
}

#[test]
fn every_use_is_judged_in_every_state_as_the_table_says() {
    let guarding = |guards| LeaseRules { guards, ..rules() };
    check_uses(USES_UNDER_WRITE, &guarding(LeaseGuards::Write));
    check_uses(USES_UNDER_READ_AND_WRITE, &guarding(LeaseGuards::ReadAndWrite));
    check_uses(USES_UNDER_READ, &guarding(LeaseGuards::Read));
    check_uses(USES_UNDER_DELETE, &guarding(LeaseGuards::Delete));
    check_uses(USES_WHERE_REQUIRED, &LeaseRules { required: true, ..guarding(LeaseGuards::Write) });
}
