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
