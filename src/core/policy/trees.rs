//! The routes whose requests can change collections with all that is in them.

use super::{Collections, GuardRules};
use crate::core::quirks::ServiceKind;

impl GuardRules {
    /// Whether one request may change a collection with all resources below it. Each request then reads one more record
    /// of the store, so only a route that says what its backend is has it.
    pub fn changes_trees(&self) -> bool {
        let of_service = self.quirks.service == ServiceKind::WebDav && self.collections != Collections::None;
        (of_service || self.collections == Collections::WebDav) && !self.quirks.is_flat
    }
}
