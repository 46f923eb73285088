//! The routes whose requests can change collections with all that is in them.

use super::{Collections, GuardRules, LeaseGuards};
use crate::core::quirks::ServiceKind;

impl GuardRules {
    /// True if one request may change a collection with all resources below it. Each request then reads one more record
    /// of the store, so only a route that says what its backend is has it.
    pub fn changes_trees(&self) -> bool {
        let of_service = self.quirks.service == ServiceKind::WebDav && self.collections != Collections::None;
        (of_service || self.collections == Collections::WebDav) && !self.quirks.is_flat || self.removes_trees()
    }

    /// True if an operation of the dialect removes a collection on this route. If the proxy asks the upstream about
    /// each entity of a table, no write relies on earlier knowledge of an entity.
    pub fn removes_trees(&self) -> bool {
        let has_containers = self.lease.as_ref().is_some_and(|rules| rules.guards == LeaseGuards::Delete);
        self.quirks.removes_trees && if self.quirks.is_flat { !self.other_writers } else { has_containers }
    }
}
