//! What must hold at the backend, and of leases (DESIGN, section 1): beside the register, whose history only clients
//! tell.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Base, Granted, History, Seen, State, Step};

/// Everything that is wrong with what the backend saw of one resource, given what clients were told.
pub fn anomalies_at_backend(history: &History, seen: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    let mut state: State = None;
    let mut values = BTreeSet::new();
    for applied in &seen.applied {
        if let Base::Is(base) = applied.base
            && base != state
        {
            found.push(format!("write {} is based on {base:?} and was applied on {state:?}", applied.value));
        }
        if !values.insert(applied.value) {
            found.push(format!("write {} was applied twice", applied.value));
        }
        state = Some(applied.value);
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

/// Everything that is wrong with the leases of one resource.
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
    for applied in seen.applied.iter().filter(|applied| applied.base == Base::Any) {
        let (Some(fence), Some(leased)) = (applied.fence, leased.get(&applied.value)) else {
            found.push(format!("write {} was applied without a lease", applied.value));
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
    found
}

/// What two grants of one resource, by their fences, must not be to each other.
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
    // From when on it may be over, at the earliest.
    let may_end = earlier.invoked + earlier.duration;
    let may_end = earlier.released.map_or(may_end, |(invoked, _)| may_end.min(invoked));
    (later.answered < may_end).then(|| format!("{} were held at once", pair()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::history::{Applied, Leased, Operation};
    use super::*;

    /// Moments of one test.
    struct Clock(Instant);

    impl Clock {
        fn at(&self, milliseconds: u64) -> Instant {
            self.0 + Duration::from_millis(milliseconds)
        }

        /// A grant for 100 ms.
        fn grant(&self, fence: u64, invoked: u64, answered: u64) -> Granted {
            let (invoked, answered) = (self.at(invoked), self.at(answered));
            Granted { client: 0, fence, invoked, answered, duration: Duration::from_millis(100), released: None }
        }

        fn applied(&self, value: u32, fence: u64, at: u64) -> Applied {
            Applied { value, base: Base::Any, fence: Some(fence), at: self.at(at) }
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

    /// Writes on each other, each with its base; 0 for nothing.
    fn chain(writes: &[(u32, u32)]) -> Seen {
        let clock = clock();
        let base = |base: u32| Base::Is((base > 0).then_some(base));
        let applied = writes.iter().map(|&(on, value)| Applied { value, base: base(on), fence: None, at: clock.at(0) });
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
        let step = Step::Write { base: Base::Is(Some(1)), value: 2 };
        let mut operation = Operation { client: 0, step, invoked: at, answered: Some(at) };
        let history = |operation| History { operations: vec![operation], ..History::default() };
        assert_found(&anomalies_at_backend(&history(operation), &chain(&[(0, 1)])), "never applied");
        operation.answered = None;
        assert_eq!(anomalies_at_backend(&history(operation), &chain(&[(0, 1)])), [""; 0], "nobody was told so");
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
}
