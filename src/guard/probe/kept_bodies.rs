//! The backends that keep bodies as they get them, learned from the re-reads after PUTs ([`VerbatimRow`]).
//!
//! # Design
//!
//! *Why only beside other writers?* There each write is judged by what the backend shows, so a wrong tag is refused and
//! its client reads again. Without them the record would keep the wrong tag, and would refuse the clients with the right
//! one.
//!
//! *What may a backend do to one body and not to another?* Change it by its type or coding. So each `Content-Type` has a
//! row of its own, and bodies with a coding or a range have none.
//!
//! *Who notices a wrong tag before the next check?* The write that names it: the backend shows other bytes than those
//! that were sent, although the version is still that of the PUT.
//!
//! *Who else knows?* No other process. Each process, and this one after a restart, learns it anew.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue, Method, header};
use parking_lot::Mutex;

use super::{Probes, head::probe_head};
use crate::{
    core::{
        policy::{TagAfterWrite, TagSource},
        records::record::Snapshot,
        tags::verbatim_row::VerbatimRow,
    },
    guard::{
        knowledge::{issued_tags::BodyKind, selection::Selection, unstable_tags::hash_of, warn_once::Unsuited},
        request::Request,
    },
};

/// The number of kinds of bodies that are watched at once. A further one replaces another.
const SLOTS: usize = 1 << 8;

/// The knowledge about the bodies of one kind.
#[derive(Default)]
struct BodyRow {
    kind: BodyKind,
    row: VerbatimRow,
    /// The field `Vary` of the last re-read, which names the fields that a tag covers.
    vary: HeaderMap,
}

/// The rows of re-reads, by the kind of bodies.
pub(super) struct KeptBodies(LazyLock<Box<[Mutex<BodyRow>]>>);

impl KeptBodies {
    /// Starts without any.
    pub(super) fn new() -> Self {
        Self(LazyLock::new(|| (0..SLOTS).map(|_| Mutex::default()).collect()))
    }

    fn with<T>(&self, kind: BodyKind, of: impl FnOnce(&mut BodyRow) -> T) -> Option<T> {
        let slot = usize::try_from(kind.0 % SLOTS as u64).ok().and_then(|index| self.0.get(index))?;
        let mut slot = slot.lock();
        if slot.kind != kind {
            *slot = BodyRow { kind, ..BodyRow::default() };
        }
        Some(of(&mut slot))
    }
}

/// Returns the kind of the body of a PUT whose tag can be made of the sent content; `None` if it must be read.
pub(crate) fn kind_of_body(request: &Request) -> Option<BodyKind> {
    let (rules, fields) = (request.rules(), &request.head.headers);
    let is_told_by_bytes = rules.etag == TagSource::Content && !rules.hashes_parts() && rules.other_writers;
    let needs_no_date = !rules.quirks.date_after_write && request.content.description.is_none();
    let is_whole = ![header::CONTENT_ENCODING, header::CONTENT_RANGE].iter().any(|name| fields.contains_key(name));
    (is_told_by_bytes && needs_no_date && is_whole && rules.tag_after_write == TagAfterWrite::Verbatim).then(|| {
        let types: Vec<_> = fields.get_all(header::CONTENT_TYPE).iter().map(HeaderValue::as_bytes).collect();
        BodyKind(hash_of(&(&request.route().name, &request.upstream().identity, types)))
    })
}

impl Probes {
    /// Returns the field `Vary` that a re-read of a body of this kind would have, if it would only show the content
    /// that was sent.
    pub(crate) fn spared_reread(&self, request: &Request, kind: BodyKind) -> Option<HeaderMap> {
        let after = request.rules().verbatim_after;
        self.kept_bodies.with(kind, |slot| slot.row.spares(after).then(|| slot.vary.clone())).flatten()
    }

    /// Notes whether a re-read with these fields has shown the body that was sent.
    pub(crate) fn was_reread(&self, request: &Request, kind: BodyKind, response: &HeaderMap, is_verbatim: bool) {
        let after = request.rules().verbatim_after;
        let vary = only_vary(response);
        let was_wrong = self.kept_bodies.with(kind, |slot| {
            let was_wrong = (!is_verbatim || slot.vary != vary) && slot.row.breaks(after);
            slot.vary = vary;
            if is_verbatim {
                slot.row.continues();
            }
            was_wrong
        });
        if was_wrong == Some(true) {
            self.knowledge.is_unsuited(request, Unsuited::ChangesSomeBodies);
        }
    }

    /// Notes that a probe has shown another tag than a write names. If that tag was made of the content that was sent,
    /// either others have written or the backend has changed the body.
    pub(super) fn was_refuted(&self, request: &Request, snapshot: &Snapshot) {
        for kind in self.knowledge.kinds_told(request, snapshot) {
            self.kept_bodies.with(kind, |slot| slot.row.breaks(request.rules().verbatim_after));
        }
    }

    /// The selection of the representation that a GET for the bytes of a resource would show, if its answer had these
    /// fields.
    pub(crate) fn selection_of_bytes(&self, request: &Request, response: &HeaderMap) -> Option<Selection> {
        let mut head = probe_head(request, Method::GET, true)?;
        self.set_credentials(request, &mut head).ok()?;
        Some(Selection::of(request.rules(), &head, response))
    }
}

fn only_vary(fields: &HeaderMap) -> HeaderMap {
    fields.get_all(header::VARY).iter().map(|value| (header::VARY, value.clone())).collect()
}

#[cfg(test)]
#[path = "kept_bodies_tests.rs"]
mod tests;
