//! Warnings that a route's configuration does not suit its responses. Each is logged once per route and limit, with a
//! remedy.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::{
    config::Route,
    core::{cause::Untagged, http::request_target::split_query, policy::GuardRules, route::is_batch},
};

/// A reason why a backend and its route do not suit each other, as requests have shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unsuited {
    /// HEAD shows another state than GET.
    HeadIsNotGet,
    /// The backend's tags are weak, and `If-Match` never matches a weak tag.
    WeakTags,
    /// The backend demands or judges preconditions, which it does not get.
    BackendJudges,
    /// The backend keeps most bodies as they are sent, and changes some.
    ChangesSomeBodies,
}

impl Unsuited {
    /// The reason and the remedy.
    const fn text(self) -> &'static str {
        match self {
            Self::HeadIsNotGet => {
                "the backend answered HEAD and GET of one resource differently: what GET shows counts, and where HEAD \
                 would refuse a write, the backend gets a second request. Let the backend answer HEAD as GET"
            }
            Self::WeakTags => {
                "the backend's tags are weak, and If-Match never matches a weak tag: no client can write with one. If \
                 a weak tag of this backend changes with each state, set compare = \"opaque\""
            }
            Self::BackendJudges => {
                "the backend itself refused a write with 412 or 428, but the preconditions do not reach it, because \
                 they name tags of ifmatch: set etag = \"upstream\" or \"delegate\""
            }
            Self::ChangesSomeBodies => {
                "the backend has shown something else than a PUT had sent, although it usually keeps bodies as they are: \
                 clients whose PUTs got a wrong tag are refused once. If no other client wrote meanwhile, set \
                 verbatim_after = 0"
            }
        }
    }
}

/// The subject of a warning.
#[derive(Debug, PartialEq, Eq, Hash)]
enum About {
    Untagged(usize, Untagged),
    Unsuited(Unsuited),
    Batch,
}

/// The warnings that were already logged: at most a few per route.
#[derive(Debug, Default)]
pub(crate) struct WarnOnce(Mutex<HashSet<(String, About)>>);

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

    /// Logs that a backend and its route do not suit each other, once per route and reason.
    pub(crate) fn tell_of_backend(&self, route: &Route, why: Unsuited) {
        if self.is_first(&route.name, About::Unsuited(why)) {
            tracing::warn!(route = %route.name, "{}; this is logged once", why.text());
        }
    }

    /// Logs that a request which needs no precondition may change more than its path names, once per route. `check` reports
    /// a route whose own path says so.
    pub(crate) fn tell_of_batch(&self, route: &Route, rules: &GuardRules, target: &[u8]) {
        let path = String::from_utf8_lossy(split_query(target).0);
        let is_told = route.path.names_batch() || route.writes_to.is_some() || !rules.also_changes.is_empty();
        if !is_told && path.split('/').any(is_batch) && self.is_first(&route.name, About::Batch) {
            tracing::warn!(
                route = %route.name, %path,
                "the name of the path says that its requests name in their body what they change: no tag and no lease covers \
                 that. Give the path a route with also_changes, or with policy = \"last-writer-wins\" \
                 (docs/how-to/batches.md); this is logged once"
            );
        }
    }

    fn is_new(&self, route: &str, rules: &GuardRules, why: Untagged) -> bool {
        self.is_first(route, About::Untagged(rules.max_hash_size_bytes, why))
    }

    fn is_first(&self, route: &str, about: About) -> bool {
        // A panic under the lock leaves the set intact.
        self.0.lock().insert((route.to_owned(), about))
    }
}
