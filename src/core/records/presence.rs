//! Whether a target has content since the last write, as the record of its resource keeps it.
//!
//! # Design
//!
//! *What is the purpose?* The version of a resource names the state after a deletion as well. A client that gets that
//! version alone must not take it for the tag of content.
//!
//! *Why of one target?* Several targets can share a record, and the deletion of one leaves the others.
//!
//! *Why does absence never decide alone?* Something else may create the target again, such as a POST to its collection. So
//! the upstream is asked.

use crate::core::lease::TargetName;

/// The state of its target that an applied write has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Presence {
    /// The target.
    pub target: TargetName,
    /// True if it has content.
    pub is_present: bool,
}

impl Presence {
    /// A target that a write has given content.
    pub const fn present(target: TargetName) -> Self {
        Self { target, is_present: true }
    }

    /// A target that a write has removed.
    pub const fn removed(target: TargetName) -> Self {
        Self { target, is_present: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        lease::{
            Standing,
            testing::{Resource, TARGET},
        },
        records::steps::{Outcome, add_unclaimed, touch},
    };

    const PART: TargetName = TargetName([9; 16]);

    fn left(resource: &Resource, target: TargetName) -> Option<bool> {
        resource.snapshot.presence_of(|| target).map(|presence| presence.is_present)
    }

    /// A resource with content, as its record shows.
    fn present() -> Resource {
        let mut resource = Resource::new();
        assert_eq!(left(&resource, TARGET), None, "nobody has written");
        let begun = resource.begin(Standing::Unguarded);
        resource.end_leaving(begun, Outcome::Applied, Some(Presence::present(TARGET)));
        assert_eq!(left(&resource, TARGET), Some(true));
        resource
    }

    #[test]
    fn a_record_knows_what_the_last_write_has_left_of_its_target() {
        for (leaves, expected) in [
            (Some(Presence::present(TARGET)), (Some(true), None)),
            (Some(Presence::removed(TARGET)), (Some(false), None)),
            (Some(Presence::removed(PART)), (None, Some(false))),
            (None, (None, None)),
        ] {
            let mut resource = present();
            let begun = resource.begin(Standing::Unguarded);
            assert_eq!(left(&resource, TARGET), None, "a write is in flight");
            resource.end_leaving(begun, Outcome::Applied, leaves);
            assert_eq!((left(&resource, TARGET), left(&resource, PART)), expected, "{leaves:?}");
        }
    }

    /// Rule 3: unknown is not a value.
    #[test]
    fn what_does_not_tell_leaves_nothing_known() {
        for (outcome, expected) in [
            (Outcome::NotApplied, Some(true)),
            (Outcome::NotAppliedAsKnown, None),
            (Outcome::Unclear, None),
            (Outcome::Doubt, None),
        ] {
            let mut resource = present();
            let begun = resource.begin(Standing::Unguarded);
            resource.end_leaving(begun, outcome, Some(Presence::removed(TARGET)));
            resource.pass_seconds(60);
            assert_eq!(left(&resource, TARGET), expected, "{outcome:?}");
        }
        let mut resource = present();
        let touched = touch(&resource.snapshot, None);
        resource.swap(touched);
        assert_eq!(left(&resource, TARGET), None, "a write elsewhere has changed it");
    }

    /// Rule 2: of two writes at the same time, it is unknown which came last.
    #[test]
    fn a_write_beside_another_leaves_nothing_known() {
        let mut resource = present();
        let begun = resource.begin(Standing::Unguarded);
        let mut beside = begun.0;
        beside.nonce += 1;
        let marked = add_unclaimed(&resource.snapshot, beside).expect("there is room");
        let beside = (beside, resource.swap(marked));
        resource.end_leaving(beside, Outcome::Applied, None);
        resource.end_leaving(begun, Outcome::Applied, Some(Presence::present(TARGET)));
        assert_eq!(left(&resource, TARGET), None);
    }
}
