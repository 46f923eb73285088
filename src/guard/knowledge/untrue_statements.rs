//! Statements of the configuration about a backend that the backend was seen to break. From then on this process
//! follows the facts that it has seen. Each process finds them out itself, from the records that all of them read.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use parking_lot::Mutex;

use super::Knowledge;
use crate::{
    core::{
        policy::TagSource,
        records::record::Snapshot,
        tags::{coarse_tag::Spelling, entity_tag::EntityTag, followed_tags::Followed, recent_tags::is_hash_of_content},
    },
    guard::request::Request,
    telemetry::metrics,
};

/// A statement about the backend of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// The backend never gives one tag to two states (`unique_tags = true`).
    TagsAreUnique,
    /// The backend checks `If-Match` (`etag = "delegate"`).
    BackendChecks,
}

impl Statement {
    /// The name of the statement in metrics.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::TagsAreUnique => "unique-tags",
            Self::BackendChecks => "delegate",
        }
    }
}

/// A statement that was seen to be untrue, of a route with this source of tags.
struct UntrueStatement {
    route: String,
    etag: TagSource,
    statement: Statement,
}

/// The statements that were seen to be untrue: at most two for each route of a configuration.
#[derive(Default)]
pub(crate) struct UntrueStatements {
    /// True if there are any, so that the usual case takes no lock.
    any: AtomicBool,
    all: Mutex<Vec<UntrueStatement>>,
}

impl UntrueStatements {
    /// True if a statement of the route of a request is untrue.
    pub(crate) fn has(&self, request: &Request, statement: Statement) -> bool {
        self.any.load(Ordering::Acquire) && self.all.lock().iter().any(|untrue| untrue.is(request, statement))
    }

    /// Adds a statement. Returns whether it is new.
    fn add(&self, request: &Request, statement: Statement) -> bool {
        let mut all = self.all.lock();
        if all.iter().any(|untrue| untrue.is(request, statement)) {
            return false;
        }
        all.push(UntrueStatement {
            route: request.route().name.clone(),
            etag: request.rules().etag.clone(),
            statement,
        });
        self.any.store(true, Ordering::Release);
        true
    }
}

impl UntrueStatement {
    fn is(&self, request: &Request, statement: Statement) -> bool {
        self.statement == statement && self.route == request.route().name && self.etag == request.rules().etag
    }
}

impl Knowledge {
    /// True if the tags of a route can be coarse, by its configuration and by the observed facts.
    pub(crate) fn has_coarse_tags(&self, request: &Request) -> bool {
        request.rules().has_coarse_tags(self.untrue.has(request, Statement::TagsAreUnique))
    }

    /// True if the backend may show one tag for the states before and after a write in flight or in doubt. The client
    /// of the write may have its answer already.
    pub(crate) fn tags_may_outlive_state(&self, request: &Request, snapshot: Option<&Snapshot>) -> bool {
        self.has_coarse_tags(request) && snapshot.is_some_and(|snapshot| !snapshot.has_no_pending_writes())
    }

    /// True if the backend of a route judges `If-Match`, by its configuration and by the observed facts.
    pub(crate) fn backend_judges(&self, request: &Request) -> bool {
        request.rules().etag == TagSource::Delegate && !self.untrue.has(request, Statement::BackendChecks)
    }

    /// Returns the tags of the backend that a write follows after the backend has shown these. Hashes of content repeat
    /// with the content, and a POST may leave its target as it was.
    pub(crate) fn follows(&self, request: &Request, tags: [Option<&EntityTag>; 2]) -> Option<Followed> {
        let followed = request.rules().follows(self.untrue.has(request, Statement::TagsAreUnique))?;
        let are_hashes = request.rules().quirks.tags_are_hashes && tags.into_iter().flatten().any(is_hash_of_content);
        let may_stay = are_hashes || request.method == Method::POST;
        (followed == Followed::Bare || !may_stay).then_some(followed)
    }

    /// Returns a tag of the backend in the form that clients get. A tag that should not come back and does is noticed.
    pub(crate) fn issue(&self, request: &Request, spelling: &Spelling, tag: &EntityTag) -> Option<EntityTag> {
        if spelling.is_repeated(tag) {
            self.is_untrue(request, Statement::TagsAreUnique);
        }
        spelling.issued(tag)
    }

    /// Notices that the backend has broken a statement: counts it, and warns once for each route.
    pub(crate) fn is_untrue(&self, request: &Request, statement: Statement) {
        let route = &request.route().name;
        if let Some(metrics) = metrics::get() {
            metrics.untrue_statement(route, statement.word());
        }
        if !self.untrue.add(request, statement) {
            return;
        }
        let key = &request.key;
        match statement {
            Statement::TagsAreUnique => tracing::warn!(
                %route, %key,
                "after a write the backend shows a tag that an earlier state had, although unique_tags says that it \
                 gives no tag to two states. From now on the tags of this route get a suffix: set unique_tags = false"
            ),
            Statement::BackendChecks => tracing::warn!(
                %route, %key,
                "the backend has applied a write whose If-Match names an earlier state, so it does not check the \
                 field. From now on ifmatch checks the tags of this route itself: set etag = \"upstream\""
            ),
        }
    }
}
