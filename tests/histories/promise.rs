//! The promise at the backend and for leases (DESIGN, section 1). The register checks the rest, which only clients see.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Applied, Base, Encounter, Granted, History, Kind, Operation, Seen, State, Step};

/// Returns everything that is wrong with the backend's view of one resource, given the clients' answers.
pub fn anomalies_at_backend(history: &History, seen: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    let operations = by_value(history);
    let mut values = BTreeSet::new();
    for (index, applied) in seen.applied.iter().enumerate() {
        let before = &seen.applied[..index];
        if let Base::Is(base) = applied.base
            && !is_based_on(base, applied, before, &operations)
        {
            let state = before.last().and_then(|last| last.kind.leaves(last.value));
            found.push(format!("write {} is based on {base:?} and was applied on {state:?}", applied.value));
        }
        if !values.insert(applied.value) {
            found.push(format!("write {} was applied twice", applied.value));
        }
    }
    for operation in history.operations.iter().filter(|operation| operation.answered.is_some()) {
        if let Step::Write { value, .. } = operation.step
            && !values.contains(&value)
        {
            found.push(format!("write {value} was acknowledged and never applied"));
        }
    }
    let arrived: BTreeSet<u32> = seen.arrived.iter().copied().collect();
    if arrived.len() < seen.arrived.len() {
        found.push("a write was sent twice".to_owned());
    }
    let touched = history.refused.iter().filter(|value| arrived.contains(value));
    found.extend(touched.map(|value| format!("write {value} was refused and has reached the backend")));
    found
}

/// Returns the clients' operation for each write.
fn by_value(history: &History) -> BTreeMap<u32, &Operation> {
    let value = |operation: &Operation| match operation.step {
        Step::Write { value, .. } => Some(value),
        Step::Read(_) | Step::Differs(_) => None,
    };
    history.operations.iter().filter_map(|operation| Some((value(operation)?, operation))).collect()
}

/// True if a write was applied on its base: on that state itself, or on later changes that ran beside the write.
fn is_based_on(base: State, write: &Applied, before: &[Applied], operations: &BTreeMap<u32, &Operation>) -> bool {
    let invoked = operations.get(&write.value).map(|operation| operation.invoked);
    // Nothing is known of a write that no client has sent; it is wrong for another reason.
    let is_beside = |other: &&Applied| {
        let answered = operations.get(&other.value).and_then(|operation| operation.answered);
        other.kind.is_unclaimed() && invoked.is_some_and(|invoked| answered.is_none_or(|answered| answered >= invoked))
    };
    let beside = before.iter().rev().take_while(is_beside).count();
    let leaves = |index: usize| index.checked_sub(1).and_then(|index| before[index].kind.leaves(before[index].value));
    (before.len() - beside..=before.len()).any(|length| leaves(length) == base)
}

/// Returns everything that is wrong with the leases of one resource.
pub fn anomalies_of_leases(history: &History, seen: &Seen) -> Vec<String> {
    let mut grants = history.grants.clone();
    grants.sort_by_key(|grant| grant.fence);
    let mut found = Vec::new();
    for (index, later) in grants.iter().enumerate() {
        for earlier in &grants[..index] {
            found.extend(anomaly_of_grants(earlier, later));
        }
    }
    let leased: BTreeMap<u32, _> = history.leased.iter().map(|leased| (leased.value, leased)).collect();
    let mut greatest = 0;
    for applied in seen.applied.iter().filter(|applied| applied.kind != Kind::Touches) {
        let own = leased.get(&applied.value).map(|leased| leased.fence);
        let is_held = |grant: &&Granted| {
            own.is_none_or(|own| grant.fence < own) && grant.answered < applied.at && applied.at < grant.may_end()
        };
        found.extend(grants.iter().find(is_held).map(|grant| {
            format!("write {} was applied while client {} held the lease {}", applied.value, grant.client, grant.fence)
        }));
        let Some(leased) = leased.get(&applied.value) else {
            if applied.base == Base::Any && !applied.kind.is_beside() {
                found.push(format!("write {} was applied without a lease", applied.value));
            }
            continue;
        };
        let Some(fence) = applied.fence else {
            found.push(format!("write {} was applied without its fence {}", applied.value, leased.fence));
            continue;
        };
        if fence != leased.fence {
            found
                .push(format!("write {} carries the fence {fence}, and its lease has {}", applied.value, leased.fence));
        }
        if fence < greatest {
            found.push(format!("write {} carries the fence {fence} after one with {greatest}", applied.value));
        }
        greatest = greatest.max(fence);
        if grants.iter().any(|grant| grant.fence > fence && grant.answered < applied.at) {
            found.push(format!("write {} with the fence {fence} came after a later grant", applied.value));
        }
        let is_over = |grant: &Granted| {
            let released = grant.released.and_then(|(_, answered)| answered);
            grant.fence == fence && released.is_some_and(|answered| answered < leased.invoked)
        };
        if grants.iter().any(is_over) {
            found.push(format!("write {} was asked for after the release of its lease {fence}", applied.value));
        }
    }
    found.extend(anomalies_of_encounters(history));
    found
}

/// Returns reads that another client's lease guarded all the while, and refusals of leases that their clients still
/// held.
fn anomalies_of_encounters(history: &History) -> Vec<String> {
    let is_held = |grant: &Granted, at: &Encounter| grant.answered < at.invoked && at.answered < grant.may_end();
    let mut found = Vec::new();
    for read in &history.guarded_reads {
        let foreign = history.grants.iter().find(|grant| Some(grant.fence) != read.fence && is_held(grant, read));
        found.extend(foreign.map(|grant| format!("what the lease {} guards was read", grant.fence)));
    }
    for refusal in &history.disowned {
        let own = history.grants.iter().find(|grant| Some(grant.fence) == refusal.fence && is_held(grant, refusal));
        found.extend(own.map(|grant| format!("the lease {} was lost before its end", grant.fence)));
    }
    found
}

/// Returns what is wrong with two grants of one resource, which are in the order of their fences.
fn anomaly_of_grants(earlier: &Granted, later: &Granted) -> Option<String> {
    let pair = || {
        format!("the grants {} and {} of clients {} and {}", earlier.fence, later.fence, earlier.client, later.client)
    };
    if earlier.fence == later.fence {
        return Some(format!("{} have one fence", pair()));
    }
    if later.answered < earlier.invoked {
        return Some(format!("{} came in the other order", pair()));
    }
    (later.answered < earlier.may_end()).then(|| format!("{} were held at once", pair()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::history::Leased;
    use super::*;

    /// The moments of one test.
    struct Clock(Instant);

    impl Clock {
        fn at(&self, milliseconds: u64) -> Instant {
            self.0 + Duration::from_millis(milliseconds)
        }

        /// Returns a grant for 100 ms.
        fn grant(&self, fence: u64, invoked: u64, answered: u64) -> Granted {
            let (invoked, answered) = (self.at(invoked), self.at(answered));
            Granted { client: 0, fence, invoked, answered, duration: Duration::from_millis(100), released: None }
        }

        fn applied(&self, value: u32, fence: u64, at: u64) -> Applied {
            Applied { value, base: Base::Any, kind: Kind::Replaces, fence: Some(fence), at: self.at(at) }
        }

        fn leased(&self, value: u32, fence: u64, invoked: u64) -> Leased {
            Leased { value, fence, invoked: self.at(invoked) }
        }
    }

    fn clock() -> Clock {
        Clock(Instant::now())
    }

    fn seen(applied: Vec<Applied>) -> Seen {
        Seen { arrived: applied.iter().map(|applied| applied.value).collect(), applied }
    }

    /// Returns writes on each other, each with its base; base 0 is nothing.
    fn chain(writes: &[(u32, u32)]) -> Seen {
        let clock = clock();
        let base = |base: u32| Base::Is((base > 0).then_some(base));
        let kind = Kind::Replaces;
        let applied = |&(on, value)| Applied { value, base: base(on), kind, fence: None, at: clock.at(0) };
        let applied = writes.iter().map(applied);
        seen(applied.collect())
    }

    #[track_caller]
    fn assert_found(found: &[String], what: &str) {
        assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
    }

    #[test]
    fn a_chain_of_writes_is_good() {
        assert_eq!(anomalies_at_backend(&History::default(), &chain(&[(0, 1), (1, 2), (2, 3)])), [""; 0]);
    }

    #[test]
    fn two_writes_on_one_version_are_found() {
        let found = anomalies_at_backend(&History::default(), &chain(&[(0, 1), (1, 2), (1, 3)]));
        assert_found(&found, "was applied on Some(2)");
    }

    #[test]
    fn an_acknowledged_write_that_was_not_applied_is_found() {
        let at = Instant::now();
        let step = Step::Write { base: Base::Is(Some(1)), value: 2, kind: Kind::Replaces };
        let mut operation = Operation { client: 0, step, invoked: at, answered: Some(at) };
        let history = |operation| History { operations: vec![operation], ..History::default() };
        assert_found(&anomalies_at_backend(&history(operation), &chain(&[(0, 1)])), "never applied");
        operation.answered = None;
        assert_eq!(anomalies_at_backend(&history(operation), &chain(&[(0, 1)])), [""; 0], "no client was told so");
    }

    #[test]
    fn a_refused_write_that_arrived_is_found() {
        let history = History { refused: vec![1], ..History::default() };
        assert_found(&anomalies_at_backend(&history, &chain(&[(0, 1)])), "was refused");
    }

    #[test]
    fn a_write_that_was_sent_twice_is_found() {
        let seen = Seen { arrived: vec![1, 1], ..chain(&[(0, 1)]) };
        assert_found(&anomalies_at_backend(&History::default(), &seen), "sent twice");
    }

    #[test]
    fn leases_one_after_another_are_good() {
        let clock = clock();
        let mut first = clock.grant(5, 0, 10);
        first.released = Some((clock.at(30), Some(clock.at(40))));
        let grants = vec![first, clock.grant(9, 20, 35), clock.grant(12, 130, 140)];
        let leased = vec![clock.leased(1, 5, 15), clock.leased(2, 9, 40)];
        let history = History { grants, leased, ..History::default() };
        let seen = seen(vec![clock.applied(1, 5, 20), clock.applied(2, 9, 50)]);
        assert_eq!(anomalies_of_leases(&history, &seen), [""; 0]);
    }

    #[test]
    fn two_holders_at_once_are_found() {
        let clock = clock();
        let grants = vec![clock.grant(5, 0, 10), clock.grant(9, 50, 99)];
        let history = History { grants, ..History::default() };
        assert_found(&anomalies_of_leases(&history, &Seen::default()), "held at once");
    }

    #[test]
    fn a_fence_that_is_not_greater_is_found() {
        let clock = clock();
        let with =
            |fence| History { grants: vec![clock.grant(9, 0, 10), clock.grant(fence, 200, 210)], ..History::default() };
        assert_found(&anomalies_of_leases(&with(9), &Seen::default()), "one fence");
        assert_found(&anomalies_of_leases(&with(5), &Seen::default()), "the other order");
    }

    #[test]
    fn a_write_after_a_later_grant_is_found() {
        let clock = clock();
        let grants = vec![clock.grant(5, 0, 10), clock.grant(9, 110, 120)];
        let history = History { grants, leased: vec![clock.leased(1, 5, 90)], ..History::default() };
        let late = seen(vec![clock.applied(1, 5, 121)]);
        assert_found(&anomalies_of_leases(&history, &late), "after a later grant");
    }

    #[test]
    fn fences_that_go_down_are_found() {
        let clock = clock();
        let grants = vec![clock.grant(5, 0, 10), clock.grant(9, 110, 200)];
        let leased = vec![clock.leased(1, 5, 90), clock.leased(2, 9, 150)];
        let history = History { grants, leased, ..History::default() };
        let seen = seen(vec![clock.applied(2, 9, 160), clock.applied(1, 5, 170)]);
        assert_found(&anomalies_of_leases(&history, &seen), "after one with 9");
    }

    #[test]
    fn a_write_after_the_release_is_found() {
        let clock = clock();
        let mut grant = clock.grant(5, 0, 10);
        grant.released = Some((clock.at(20), Some(clock.at(30))));
        let history = History { grants: vec![grant], leased: vec![clock.leased(1, 5, 40)], ..History::default() };
        assert_found(&anomalies_of_leases(&history, &seen(vec![clock.applied(1, 5, 50)])), "after the release");
    }

    #[test]
    fn a_write_without_a_lease_is_found() {
        let clock = clock();
        assert_found(&anomalies_of_leases(&History::default(), &seen(vec![clock.applied(1, 5, 0)])), "without a lease");
    }

    #[test]
    fn a_write_while_another_client_holds_the_lease_is_found() {
        let clock = clock();
        let history = History { grants: vec![clock.grant(5, 0, 10)], ..History::default() };
        let write = Applied { base: Base::Is(None), fence: None, ..clock.applied(1, 0, 50) };
        assert_found(&anomalies_of_leases(&history, &seen(vec![write])), "held the lease 5");
        let touch = Applied { kind: Kind::Touches, ..write };
        assert_eq!(anomalies_of_leases(&history, &seen(vec![touch])), [""; 0], "an item is not the document");
        let later = Applied { at: clock.at(101), ..write };
        assert_eq!(anomalies_of_leases(&history, &seen(vec![later])), [""; 0]);
    }

    #[test]
    fn a_read_that_a_lease_guards_and_a_lease_that_is_lost_are_found() {
        let clock = clock();
        let encounter = |fence| Encounter { fence, invoked: clock.at(20), answered: clock.at(30) };
        let history = History { grants: vec![clock.grant(5, 0, 10)], ..History::default() };
        let with = |guarded_reads, disowned| History { guarded_reads, disowned, ..history.clone() };
        let foreign = with(vec![encounter(None), encounter(Some(5))], Vec::new());
        assert_found(&anomalies_of_leases(&foreign, &Seen::default()), "was read");
        let lost = with(Vec::new(), vec![encounter(Some(5)), encounter(Some(9))]);
        assert_found(&anomalies_of_leases(&lost, &Seen::default()), "lost before its end");
    }

    #[test]
    fn an_append_that_was_there_before_the_write_must_not_be_replaced() {
        let clock = clock();
        let operation = |step, invoked, answered| Operation {
            client: 0,
            step,
            invoked: clock.at(invoked),
            answered: Some(clock.at(answered)),
        };
        let first = Step::Write { base: Base::Is(None), value: 1, kind: Kind::Replaces };
        let append = Step::Write { base: Base::Any, value: 2, kind: Kind::Appends };
        let write = Step::Write { base: Base::Is(Some(1)), value: 3, kind: Kind::Replaces };
        let mut seen = chain(&[(0, 1), (0, 2), (1, 3)]);
        (seen.applied[1].base, seen.applied[1].kind) = (Base::Any, Kind::Appends);
        let with = |asked| History {
            operations: vec![operation(first, 0, 1), operation(append, 2, 5), operation(write, asked, 9)],
            ..History::default()
        };
        assert_eq!(anomalies_at_backend(&with(4), &seen), [""; 0], "it ran beside the write");
        assert_found(&anomalies_at_backend(&with(6), &seen), "was applied on Some(2)");
    }
}
