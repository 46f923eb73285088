//! What the log says once for each route: that its configuration does not suit what it serves, and what would.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use crate::{
    config::Route,
    core::policy::{GuardRules, Writers},
    upstream::{BufferedBody, Exchange},
};

/// What can be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Notice {
    /// A body was too large to hash.
    TooLarge,
    /// It was too slow.
    TooSlow,
    /// It has no end that could be waited for.
    Stream,
}

/// What was said already: at most a few notices a route.
#[derive(Debug, Default)]
pub(crate) struct WarnOnce(Mutex<HashSet<(String, Notice)>>);

impl WarnOnce {
    /// Tells why a response got no tag of its bytes, once for each route and reason.
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
        let tag = if rules.writers == Writers::Exclusive { "the tag of its version" } else { "no tag" };
        let why = match notice {
            Notice::TooLarge => {
                "is larger than hash_max (or than body_memory_total has room for): raise it, or set etag to something \
                 that is not made of the body"
            }
            Notice::TooSlow => {
                "did not arrive within hash_wait: raise it, or set etag to something that is not made of the body"
            }
            Notice::Stream => {
                "is a stream (text/event-stream, or with trailers): where such responses need a tag set etag to something \
                 that is not made of the body"
            }
        };
        tracing::warn!(
            route = %route.name, hash_max_bytes = rules.hash_max_bytes, hash_wait = ?rules.hash_wait,
            "a response is sent on as it comes, with {tag}, because its body {why}; this is said once"
        );
    }

    fn is_new(&self, route: &str, notice: Notice) -> bool {
        // A panic under the lock leaves a whole set behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((route.to_owned(), notice))
    }
}
