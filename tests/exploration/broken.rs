//! Each rule broken on purpose: an exploration that does not notice it would prove nothing of the kept ones.

use super::{
    client::Role::{self, Holder, Plain, Poster, Writer},
    explore::shortest,
    rules::{Mode, Rules},
    world::{Cast, World},
};

const WRITERS: &[Role] = &[Writer, Writer];

/// A promise that is broken.
const LOST: &str = "an update is lost";
const VIOLATED: &str = "a lease is violated";

/// What a rule guards, and where.
type Noticed = (&'static str, Mode, &'static [Role]);

const UPDATES: [Noticed; 3] =
    [(LOST, Mode::Version, WRITERS), (LOST, Mode::ContentExclusive, WRITERS), (LOST, Mode::ContentShared, WRITERS)];
const LEASES: Noticed = (VIOLATED, Mode::ContentShared, &[Holder, Plain]);

/// Looks for it in a world where a failure happens, or where the record is forgotten once.
fn is_noticed(rules: &Rules, noticed: &[Noticed]) {
    let faults = u8::from(rules.floor_is_raised);
    for (how, mode, roles) in noticed {
        let cast = Cast { roles, faults, forgets: 1 - faults };
        let violation = shortest(World::new(*mode, cast), rules, how);
        let violation = violation.unwrap_or_else(|| panic!("{mode:?}, {roles:?}: {how:?} is not noticed"));
        println!("{mode:?}, {roles:?}: {violation}");
    }
}

/// Rule 7.
#[test]
fn a_verdict_on_another_revision_is_noticed() {
    let rules = Rules { verdict_is_bound: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Rule 1.
#[test]
fn a_claim_that_is_given_back_before_its_write_is_settled_is_noticed() {
    let rules = Rules { claim_lasts_until_settled: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Rule 3.
#[test]
fn a_timeout_that_is_taken_as_not_applied_is_noticed() {
    let rules = Rules { timeout_is_a_doubt: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Rule 3.
#[test]
fn a_doubt_that_holds_nothing_is_noticed() {
    let rules = Rules { doubt_holds: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Rule 3.
#[test]
fn a_dead_owner_whose_write_is_forgotten_is_noticed() {
    let rules = Rules { takeover_is_a_doubt: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}

/// Rule 8.
#[test]
fn a_floor_that_is_not_raised_is_noticed() {
    let rules = Rules { floor_is_raised: false, ..Rules::KEPT };
    is_noticed(&rules, &[(LOST, Mode::Version, WRITERS)]);
    is_noticed(&rules, &[(LOST, Mode::ContentExclusive, WRITERS)]);
}

/// The lease operation of section 4: a mark blocks every grant.
#[test]
fn a_grant_beside_a_mark_is_noticed() {
    let rules = Rules { grant_waits_for_writes: false, ..Rules::KEPT };
    is_noticed(&rules, &[LEASES]);
    is_noticed(&rules, &[(VIOLATED, Mode::ContentShared, &[Holder, Holder])]);
}

/// A lease that has ended is taken from its holder by whoever writes then.
#[test]
fn a_renewal_after_a_write_of_somebody_else_is_noticed() {
    let rules = Rules { ended_lease_is_taken: false, ..Rules::KEPT };
    is_noticed(&rules, &[LEASES]);
}

/// Rule 3.
#[test]
fn an_unclear_outcome_that_mints_no_version_is_noticed() {
    let rules = Rules { unclear_mints: false, ..Rules::KEPT };
    is_noticed(&rules, &[(LOST, Mode::Version, WRITERS)]);
}

/// Rule 2.
#[test]
fn a_tag_learned_beside_another_write_is_noticed() {
    let rules = Rules { disturbed_is_dropped: false, ..Rules::KEPT };
    is_noticed(&rules, &[("the record knows a tag", Mode::ContentExclusive, &[Writer, Poster])]);
}

/// Rule 2.
#[test]
fn a_read_that_is_remembered_although_a_write_came_between_is_noticed() {
    let rules = Rules { reads_are_bound: false, ..Rules::KEPT };
    is_noticed(&rules, &[(LOST, Mode::ContentExclusive, WRITERS)]);
}

/// Rule 2.
#[test]
fn a_version_read_after_the_content_is_noticed() {
    let rules = Rules { version_goes_first: false, ..Rules::KEPT };
    is_noticed(&rules, &[(LOST, Mode::Version, WRITERS)]);
}

/// Rule 7: an owner that begins although its mark may be taken over before its exchange is over.
#[test]
fn an_owner_that_does_not_look_at_the_clock_is_noticed() {
    let rules = Rules { clock_is_read_again: false, ..Rules::KEPT };
    // Two writers do not lose an update here: the new version after the doubt refuses the second one. A third would pass.
    is_noticed(&rules, &[("a version names two states", Mode::Version, WRITERS)]);
    is_noticed(&rules, &UPDATES[1..]);
    is_noticed(&rules, &[LEASES]);
}

/// The third condition of the promise is needed: no rule makes up for it.
#[test]
fn an_upstream_that_applies_later_than_late_max_is_noticed() {
    let rules = Rules { upstream_keeps_late_max: false, ..Rules::KEPT };
    is_noticed(&rules, &UPDATES);
    is_noticed(&rules, &[LEASES]);
}
