//! How the tags of a route are spelled for its clients.

use crate::{
    core::{coarse_tag::Spelling, policy::GuardRules, record::Snapshot},
    guard::Guard,
};

impl Guard {
    /// The spelling of tags by the record as it was read; without a record, tags that can be coarse are withheld.
    pub(crate) fn spelling(&self, rules: &GuardRules, snapshot: Option<&Snapshot>) -> Spelling {
        if rules.has_coarse_tags() { Spelling::of(self.records.incarnation().0, snapshot) } else { Spelling::Bare }
    }
}
