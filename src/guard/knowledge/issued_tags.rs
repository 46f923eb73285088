//! The latest tags that this process has issued for the current states of resources, each with the selection of its
//! representation (DESIGN, section 6).
//!
//! # Design
//!
//! *Why does a tag count only at the version that it was issued at?* A representation may show only a part of the
//! resource, so a write can leave it unchanged. Two writers who hold its tag must not both pass.
//!
//! *Why is a tag known only for the principal that got it?* A query may hold credentials, and a probe of the upstream
//! repeats the query.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{principal::Principal, selection::Selection};
use crate::{
    core::{
        records::record::Revision,
        resource::ResourceKey,
        tags::{entity_tag::EntityTag, parts_hash::half},
    },
    guard::request::Request,
};

/// The number of shelves. Multiplied by [`SHELF_SLOTS`] it is the number of tags that are remembered. A further tag
/// replaces another.
const SHELVES: usize = 256;

/// The number of slots of one shelf. A shelf takes its memory at its first use.
const SHELF_SLOTS: usize = 256;

/// The largest selection that is remembered, in bytes. All selections together take at most 64 MiB, and usually a
/// tenth of that.
const SELECTION_BYTES_MAX: usize = 1024;

/// A hash of a principal, a resource, and a tag of the resource that the principal was given.
type IssuedName = [u8; 16];

/// The name of the bodies of one type on one route: a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyKind(pub(crate) u64);

/// A tag that was issued.
struct Issued {
    name: IssuedName,
    /// The version of the resource when the tag was issued, or an earlier one.
    version: Revision,
    selection: Arc<Selection>,
    /// The kind of the body that the tag was made of, if that body has not been read since.
    told_of: Option<BodyKind>,
}

/// A part of the slots.
type Shelf = Box<[Mutex<Option<Issued>>]>;

/// The latest tags that were issued.
pub(crate) struct IssuedTags(Vec<OnceLock<Shelf>>);

impl IssuedTags {
    /// Starts without any tags.
    pub(crate) fn new() -> Self {
        Self((0..SHELVES).map(|_| OnceLock::new()).collect())
    }

    /// Remembers a tag that is sent to a client, with the selection of its representation.
    pub(crate) fn remember(
        &self,
        request: &Request,
        tag: &EntityTag,
        version: Revision,
        (selection, told_of): (Selection, Option<BodyKind>),
    ) {
        if selection.len() > SELECTION_BYTES_MAX {
            return;
        }
        let name = name(request.sender.principal, &request.key, tag);
        let Some(slot) = self.slot(name) else { return };
        let mut slot = slot.lock();
        let is_there = slot.as_ref().is_some_and(|one| {
            one.name == name && one.version == version && one.told_of == told_of && *one.selection == selection
        });
        if !is_there {
            *slot = Some(Issued { name, version, selection: Arc::new(selection), told_of });
        }
    }

    /// The selection of the representation that a tag was issued for at this version.
    pub(crate) fn selection_of(&self, request: &Request, tag: &EntityTag, version: Revision) -> Option<Arc<Selection>> {
        self.latest(request, tag, |issued| (issued.version == version).then(|| Arc::clone(&issued.selection))).flatten()
    }

    /// Returns the kind of the body that a tag was made of at this version, if that body has not been read since.
    pub(crate) fn kind_told(&self, request: &Request, tag: &EntityTag, version: Revision) -> Option<BodyKind> {
        self.latest(request, tag, |issued| issued.told_of.filter(|_| issued.version == version)).flatten()
    }

    /// True if a tag was issued at any version.
    pub(crate) fn knows(&self, request: &Request, tag: &EntityTag) -> bool {
        self.latest(request, tag, |_| ()).is_some()
    }

    fn latest<T>(&self, request: &Request, tag: &EntityTag, of: impl FnOnce(&Issued) -> T) -> Option<T> {
        let name = name(request.sender.principal, &request.key, tag);
        let slot = self.slot(name)?.lock();
        slot.as_ref().filter(|one| one.name == name).map(of)
    }

    fn slot(&self, name: IssuedName) -> Option<&Mutex<Option<Issued>>> {
        let [first, second, ..] = name.map(usize::from);
        let empty = || (0..SHELF_SLOTS).map(|_| Mutex::default()).collect();
        self.0.get(first)?.get_or_init(empty).get(second)
    }
}

fn name(principal: Principal, key: &ResourceKey, tag: &EntityTag) -> IssuedName {
    let tag = tag.to_header_value();
    half(&blake3::hash(&[&principal.name()[..], key.as_str().as_bytes(), b" ", tag.as_bytes()].concat()))
}
