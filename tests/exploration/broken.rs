//! Each rule broken on purpose: an exploration that does not notice a broken rule proves nothing about the kept ones.

use super::{
    client::Role::{self, Holder, Plain, Poster, Writer},
    explore::shortest,
    rules::{Mode, Rules},
    world::{Cast, World},
};

const WRITERS: &[Role] = &[Writer, Writer];

/// The start of the message for each broken promise.
const LOST: &str = "an update is lost";
const VIOLATED: &str = "a lease is violated";

/// The expected violation, and the mode and the clients that show it.
type Noticed = (&'static str, Mode, &'static [Role]);

const UPDATES: [Noticed; 3] =
    [(LOST, Mode::Version, WRITERS), (LOST, Mode::ContentExclusive, WRITERS), (LOST, Mode::ContentShared, WRITERS)];
const LEASES: Noticed = (VIOLATED, Mode::ContentShared, &[Holder, Plain]);

/// Explores a world with one fault, or one in which the record is forgotten once, and expects the violation.
fn is_noticed(rules: &Rules, noticed: &[Noticed]) {
    let faults = u8::from(rules.floor_is_raised);
    for (how, mode, roles) in noticed {
        let cast = Cast { roles, faults, forgets: 1 - faults };
        let violation = shortest(World::new(*mode, cast), rules, how);
        let violation = violation.unwrap_or_else(|| panic!("{mode:?}, {roles:?}: {how:?} is not noticed"));
        println!("{mode:?}, {roles:?}: {violation}");
    }
}

/// Breaks rule 7.
#[test]
fn a_verdict_on_another_revision_is_noticed() {
    let rules = Rules { verdict_is_bound: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Breaks rule 1.
#[test]
fn a_claim_that_is_given_back_before_its_write_is_settled_is_noticed() {
    let rules = Rules { claim_lasts_until_settled: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Breaks rule 3.
#[test]
fn a_timeout_that_is_taken_as_not_applied_is_noticed() {
    let rules = Rules { timeout_is_a_doubt: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Breaks rule 3.
#[test]
fn a_doubt_that_holds_nothing_is_noticed() {
    let rules = Rules { doubt_holds: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Breaks rule 3.
#[test]
fn a_dead_owner_whose_write_is_forgotten_is_noticed() {
    let rules = Rules { takeover_is_a_doubt: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Breaks rule 8.
#[test]
fn a_floor_that_is_not_raised_is_noticed() {
    let rules = Rules { floor_is_raised: false, ..Rules::KEPT };
    is_noticed(&rules, &[(LOST, Mode::Version, WRITERS)]);
    is_noticed(&rules, &[(LOST, Mode::ContentExclusive, WRITERS)]);
}

/// Breaks the lease operation of section 4: a mark blocks every grant.
#[test]
fn a_grant_beside_a_mark_is_noticed() {
    let rules = Rules { grant_waits_for_writes: false, ..Rules::KEPT };
    is_noticed(&rules, &[LEASES]);
    is_noticed(&rules, &[(VIOLATED, Mode::ContentShared, &[Holder, Holder])]);
}

/// Breaks the rule that a write of another client takes an ended lease from its holder.
#[test]
fn a_renewal_after_a_write_of_somebody_else_is_noticed() {
    let rules = Rules { ended_lease_is_taken: false, ..Rules::KEPT };
    is_noticed(&rules, &[LEASES]);
}

/// Breaks rule 3.
#[test]
fn an_unclear_outcome_that_mints_no_version_is_noticed() {
    let rules = Rules { unclear_mints: false, ..Rules::KEPT };
    is_noticed(&rules, &[(LOST, Mode::Version, WRITERS)]);
}

/// Breaks rule 2.
#[test]
fn a_tag_learned_beside_another_write_is_noticed() {
    let rules = Rules { disturbed_is_dropped: false, ..Rules::KEPT };
    is_noticed(&rules, &[("the record knows a tag", Mode::ContentExclusive, &[Writer, Poster])]);
}

/// Breaks rule 2.
#[test]
fn a_read_that_is_remembered_although_a_write_came_between_is_noticed() {
    let rules = Rules { reads_are_bound: false, ..Rules::KEPT };
    is_noticed(&rules, &[(LOST, Mode::ContentExclusive, WRITERS)]);
}

/// Breaks rule 2.
#[test]
fn a_version_read_after_the_content_is_noticed() {
    let rules = Rules { version_goes_first: false, ..Rules::KEPT };
    is_noticed(&rules, &[(LOST, Mode::Version, WRITERS)]);
}

/// Breaks rule 7: an owner begins although its mark may be taken over before its exchange is over.
#[test]
fn an_owner_that_does_not_look_at_the_clock_is_noticed() {
    let rules = Rules { clock_is_read_again: false, ..Rules::KEPT };
    // Two writers lose no update here: the new version after the doubt refuses the second one. A third would pass.
    is_noticed(&rules, &[("a version names two states", Mode::Version, WRITERS)]);
    is_noticed(&rules, &UPDATES[1..]);
    is_noticed(&rules, &[LEASES]);
}

/// Breaks the third condition of the promise, for which no rule makes up.
#[test]
fn an_upstream_that_applies_later_than_late_write_window_is_noticed() {
    let rules = Rules { upstream_keeps_late_write_window: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}
