//! Warnings that a route's configuration does not suit its responses. Each is logged once per route, with a remedy.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::{
    config::Route,
    core::policy::GuardRules,
    upstream::{BufferedBody, Exchange},
};

/// The reason for a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Notice {
    /// A body was too large to hash.
    TooLarge,
    /// A body was too slow.
    TooSlow,
    /// A body is a stream, with no end to wait for.
    Stream,
}

/// The warnings that were already logged: at most a few per route.
#[derive(Debug, Default)]
pub(crate) struct WarnOnce(Mutex<HashSet<(String, Notice)>>);

impl WarnOnce {
    /// Logs why a response got no tag of its bytes, once per route and reason.
    pub(crate) fn tell_of(&self, route: &Route, rules: &GuardRules, exchange: &Exchange, whole: &BufferedBody) {
        let notice = match whole {
            BufferedBody::Complete(_) => return,
            BufferedBody::TooLarge(_) if exchange.is_stream() => Notice::Stream,
            BufferedBody::TooLarge(_) => Notice::TooLarge,
            BufferedBody::TooSlow(_) => Notice::TooSlow,
        };
        if !self.is_new(&route.name, notice) {
            return;
        }
        let tag = if rules.other_writers { "no tag" } else { "the tag of its version" };
        let why = match notice {
            Notice::TooLarge => {
                "is larger than max_hash_size (or than the room in max_body_memory_total): raise that limit, or set etag to a \
                 source that does not need the body"
            }
            Notice::TooSlow => {
                "did not arrive within hash_wait: raise it, let the backend send Content-Length, or set etag to a source \
                 that does not need the body"
            }
            Notice::Stream => {
                "is a stream (text/event-stream, or with trailers): if these responses need a tag, set etag to a \
                 source that does not need the body"
            }
        };
        tracing::warn!(
            route = %route.name, max_hash_size_bytes = rules.max_hash_size_bytes, hash_wait = ?rules.hash_wait,
            "a response is relayed as it arrives, with {tag}, because its body {why}; this is logged once"
        );
    }

    fn is_new(&self, route: &str, notice: Notice) -> bool {
        // A panic under the lock leaves the set intact.
        self.0.lock().insert((route.to_owned(), notice))
    }
}
