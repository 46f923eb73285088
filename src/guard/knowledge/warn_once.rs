//! Warnings that a route's configuration does not suit its responses. Each is logged once per route and limit, with a
//! remedy.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::{
    config::Route,
    core::{cause::Untagged, policy::GuardRules},
};

/// The warnings that were already logged: at most a few per route.
#[derive(Debug, Default)]
pub(crate) struct WarnOnce(Mutex<HashSet<(String, usize, Untagged)>>);

impl WarnOnce {
    /// Logs why a response got no tag of its bytes, once per route and reason.
    pub(crate) fn tell_of_read(&self, route: &Route, rules: &GuardRules, why: Untagged) {
        if self.is_new(&route.name, rules, why) {
            let tag = if rules.other_writers { "no tag" } else { "the tag of its version" };
            tracing::warn!(
                route = %route.name, max_hash_size_bytes = rules.max_hash_size_bytes, hash_wait = ?rules.hash_wait,
                "a response is relayed as it arrives, with {tag}, because {}; this is logged once", why.because()
            );
        }
    }

    /// Logs why a resource has no tag after a write, once per route and reason.
    pub(crate) fn tell_of_write(&self, route: &Route, rules: &GuardRules, why: Untagged) {
        if self.is_new(&route.name, rules, why) {
            tracing::warn!(
                route = %route.name, max_hash_size_bytes = rules.max_hash_size_bytes,
                "a resource that was written has no tag, so no If-Match can name its state, because {}; this is \
                 logged once", why.because()
            );
        }
    }

    fn is_new(&self, route: &str, rules: &GuardRules, why: Untagged) -> bool {
        // A panic under the lock leaves the set intact.
        self.0.lock().insert((route.to_owned(), rules.max_hash_size_bytes, why))
    }
}
