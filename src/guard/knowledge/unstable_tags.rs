//! Tags that change although nothing was written. For example, a body that contains the time of its creation has
//! another hash each time, and its readers can never write.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::LazyLock,
};

use http::{HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use pingora::http::ResponseHeader;

use super::{Knowledge, responses::selecting_fields};
use crate::{
    core::{
        policy::{GuardRules, TagSource},
        records::record::{Revision, Snapshot},
        tags::entity_tag::EntityTag,
    },
    guard::request::Request,
    telemetry::metrics,
};

/// The number of representations that are watched at once. A further one replaces another.
const SLOTS: usize = 1 << 12;

/// The number of changes in a row that count if others may write too, because their writes change tags as well.
const CHANGES_BESIDE_OTHERS: u8 = 2;

/// The last tag that was seen of a representation.
#[derive(Clone, Copy, Debug, Default)]
struct LastTag {
    /// A hash of the variant and the method.
    variant: u64,
    /// The revision of the last event on the data path when the tag was seen.
    touched: Revision,
    /// A hash of the tag.
    tag: u64,
    /// The number of times in a row that the tag differed from the one before.
    changes: u8,
}

/// The tags seen in responses, and counts of those that changed without a write.
pub(crate) struct UnstableTags {
    /// The slots. A process that answers no read takes no memory for them.
    seen: LazyLock<Box<[Mutex<LastTag>]>>,
    /// The number of changes without a write on each route.
    counts: Mutex<BTreeMap<String, u64>>,
}

impl UnstableTags {
    /// Starts without any tags.
    pub(crate) fn new() -> Self {
        let none = || (0..SLOTS).map(|_| Mutex::default()).collect();
        Self { seen: LazyLock::new(none), counts: Mutex::default() }
    }

    /// Notes a tag, and returns the number of changes in a row with no write between them.
    fn see(&self, variant: u64, touched: Revision, tag: &EntityTag) -> u8 {
        let slot = usize::try_from(variant % SLOTS as u64).ok().and_then(|index| self.seen.get(index));
        let Some(slot) = slot else { return 0 };
        let mut seen = slot.lock();
        let tag = hash_of(tag);
        let changes = match *seen {
            LastTag { variant: of, touched: at, .. } if (of, at) != (variant, touched) => 0,
            LastTag { tag: before, .. } if before == tag => 0,
            LastTag { changes, .. } => changes.saturating_add(1),
        };
        *seen = LastTag { variant, touched, tag, changes };
        changes
    }

    /// Returns the number of changes in a row that were noted since the last event on the data path.
    fn changes(&self, variant: u64, touched: Revision) -> u8 {
        let slot = usize::try_from(variant % SLOTS as u64).ok().and_then(|index| self.seen.get(index));
        let seen = slot.map(|slot| *slot.lock()).filter(|seen| (seen.variant, seen.touched) == (variant, touched));
        seen.map_or(0, |seen| seen.changes)
    }

    /// Counts a change on a route, and returns the number so far.
    fn count(&self, route: &str) -> u64 {
        let mut counts = self.counts.lock();
        let count = counts.entry(route.to_owned()).or_default();
        *count += 1;
        *count
    }
}

impl Knowledge {
    /// Watches the tag of a response to a read. A tag that changes with no write between is counted, and a warning is
    /// logged once per route.
    pub(crate) async fn watch_tag(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        head: &ResponseHeader,
        tag: Option<&EntityTag>,
    ) {
        let is_seen =
            head.status == StatusCode::OK && request.is_named_by_head() && request.rules().etag != TagSource::Version;
        let (Some(snapshot), Some(tag), true) =
            (snapshot.filter(|snapshot| snapshot.has_no_pending_writes()), tag, is_seen)
        else {
            return;
        };
        if request.method == Method::GET {
            self.note_shown(request, snapshot, tag);
        }
        let Some(selecting) = selecting_fields(&request.head.headers, &head.headers) else { return };
        // A backend may answer HEAD and GET with different tags, each consistently.
        let variant = hash_of(&(request.variant(), selecting, &request.method));
        let changes = self.unstable_tags.see(variant, snapshot.touched(), tag);
        let enough = if request.rules().other_writers { CHANGES_BESIDE_OTHERS } else { 1 };
        // A write may have begun after the record was read and before the backend was asked.
        if changes < enough || !Box::pin(self.is_untouched(request, snapshot)).await {
            return;
        }
        if let Some(metrics) = metrics::get() {
            metrics.flapped(&request.route().name);
        }
        let (route, count) = (&request.route().name, self.unstable_tags.count(&request.route().name));
        if count > 1 {
            tracing::debug!(%route, key = %request.key, count, "a tag changed again with no write between two reads");
            return;
        }
        tracing::warn!(
            %route,
            key = %request.key,
            "two reads gave different tags although no write came between, so clients are refused for no reason: {}",
            remedy(request.rules())
        );
    }
}

impl Knowledge {
    /// Notes the tag that the resource of a request was shown with, by a read or a probe.
    pub(crate) fn note_shown(&self, request: &Request, snapshot: &Snapshot, tag: &EntityTag) {
        if request.rules().etag.needs_body() && snapshot.has_no_pending_writes() {
            self.unstable_tags.see(shown(request), snapshot.touched(), tag);
        }
    }

    /// True if the resource of a request was shown with another tag each time, and nothing was written meanwhile.
    pub(super) fn changes_each_time(&self, request: &Request, snapshot: &Snapshot) -> bool {
        request.rules().etag.needs_body()
            && self.unstable_tags.changes(shown(request), snapshot.touched()) >= CHANGES_BESIDE_OTHERS
    }
}

/// A name for all that a client is shown of a resource, by reads and by probes for its writes.
fn shown(request: &Request) -> u64 {
    let preferences =
        [header::ACCEPT, header::ACCEPT_LANGUAGE].map(|name| request.head.headers.get(name).map(HeaderValue::as_bytes));
    hash_of(&(request.variant(), preferences, "shown"))
}

fn remedy(rules: &GuardRules) -> &'static str {
    match (&rules.etag, rules.other_writers) {
        (TagSource::Content, _) => {
            "if the body contains the time of its creation, name that member in ignore_json. Or take the tag from a \
             field that changes with the resource (etag = \"json:/pointer\" or \"header:NAME\"). If there are other \
             writers, set other_writers = true"
        }
        (_, false) => {
            "take the tag from a source that changes only with the resource; if others write, set other_writers = true"
        }
        (_, true) => "take the tag from a source that changes only with the resource (etag)",
    }
}

/// A hash that only tells values apart.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_as_long_as_nothing_is_written_and_each_tag_is_new() {
        let unstable_tags = UnstableTags::new();
        let tag = |text: &str| EntityTag::strong(text).unwrap();
        for (variant, touched, text, changes) in [
            (1, 1, "a", 0),
            (1, 1, "a", 0),
            (1, 1, "b", 1),
            (1, 1, "c", 2),
            (1, 1, "c", 0),
            (1, 1, "d", 1),
            (1, 2, "e", 0),
            (1, 2, "f", 1),
            (2, 2, "g", 0),
            (1 + SLOTS as u64, 2, "h", 0),
            (1, 2, "i", 0),
        ] {
            assert_eq!(
                unstable_tags.see(variant, Revision(touched), &tag(text)),
                changes,
                "{variant} {touched} {text}"
            );
        }
    }
}
