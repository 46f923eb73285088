//! Tests of the rules that need more than a look at one of them.

use super::*;
use crate::testing::guard;

#[test]
fn a_body_that_is_known_to_end_is_waited_for() {
    let rules = GuardRules { max_hash_size_bytes: 1000, hash_wait: None, ..guard() };
    let upstream = Duration::from_secs(30);
    for (length, waits) in
        [(None, WAIT_FOR_UNKNOWN_LENGTH), (Some(1001), WAIT_FOR_UNKNOWN_LENGTH), (Some(1000), upstream)]
    {
        assert_eq!(rules.wait_for_body(length, upstream), waits, "{length:?}");
        let said = GuardRules { hash_wait: Some(Duration::ZERO), ..rules.clone() };
        assert_eq!(said.wait_for_body(length, upstream), Duration::ZERO, "{length:?}");
    }
}

#[test]
fn a_route_demands_nothing_of_a_method_that_it_does_not_name() {
    for require in [Require::Never, Require::Existing, Require::Always] {
        let rules = GuardRules { require, require_methods: vec![Method::PUT], ..guard() };
        assert_eq!(rules.demand(&Method::PUT), require);
        assert_eq!(rules.demand(&Method::DELETE), Require::Never);
    }
}

/// A COPY changes its destination alone. What it would replace there needs a condition, what it creates needs none.
#[test]
fn a_destination_needs_a_condition_only_if_something_is_there() {
    let method = |name: &str| name.parse::<Method>().expect("a method");
    for (require, at_source, at_destination) in [
        (Require::Never, Require::Never, Require::Never),
        (Require::Existing, Require::Existing, Require::Existing),
        (Require::Always, Require::Always, Require::Existing),
    ] {
        let rules = GuardRules { require, ..guard() };
        for (name, at_source) in [("COPY", Require::Never), ("MOVE", at_source)] {
            let demands = (rules.demand(&method(name)), rules.demand_at_destination(&method(name)));
            assert_eq!(demands, (at_source, at_destination), "{name} {require:?}");
            let rules = GuardRules { require_methods: vec![Method::PUT], ..rules.clone() };
            let demands = (rules.demand(&method(name)), rules.demand_at_destination(&method(name)));
            assert_eq!(demands, (Require::Never, Require::Never), "{name} {require:?}");
        }
    }
}
