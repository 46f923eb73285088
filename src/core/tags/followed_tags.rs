//! The purpose that a route follows the backend's tags for.

use crate::core::policy::GuardRules;

/// The tags of the backend that the proxy follows from write to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The tags that go out bare.
    Bare,
    /// The tags of the last states, to see whether they repeat although the configuration says that they are unique.
    Unique,
}

impl GuardRules {
    /// True if the backend makes the tags, and may give one tag to two states. `repeats`: whether it was seen to do so
    /// although the route says that it does not.
    pub const fn has_coarse_tags(&self, repeats: bool) -> bool {
        (!self.unique_tags || repeats) && self.etag.is_backends()
    }

    /// Returns the tags of the backend that the proxy follows. If others write too, they may have made states with any
    /// tag before the first write, so no tag can go out bare after it.
    pub fn follows(&self, repeats: bool) -> Option<Followed> {
        match (self.etag.is_backends(), self.has_coarse_tags(repeats)) {
            (false, _) => None,
            (true, false) => Some(Followed::Unique),
            (true, true) if self.other_writers => None,
            (true, true) => Some(Followed::Bare),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;
    use crate::{core::policy::TagSource, testing::guard};

    /// Rule 2: with other writers no tag is proved to be new.
    #[test]
    fn tags_are_followed_for_the_purpose_of_their_route() {
        let with = |etag: &TagSource, unique_tags, other_writers| {
            let rules = GuardRules { etag: etag.clone(), unique_tags, other_writers, ..guard() };
            [false, true].map(|repeats| rules.follows(repeats))
        };
        for etag in [TagSource::Upstream, TagSource::Delegate, TagSource::Header(header::AGE)] {
            let (bare, unique) = (Some(Followed::Bare), Some(Followed::Unique));
            assert_eq!(with(&etag, false, false), [bare, bare]);
            assert_eq!(with(&etag, false, true), [None, None]);
            assert_eq!(with(&etag, true, false), [unique, bare]);
            assert_eq!(with(&etag, true, true), [unique, None]);
        }
        assert_eq!(with(&TagSource::Content, false, false), [None, None]);
        assert_eq!(with(&TagSource::Version, false, false), [None, None]);
    }
}
