//! The tags that were issued for the current states of resources, and what selected the representations that they are
//! of (DESIGN, section 6): in this process alone, and only the latest ones.
//!
//! # Design
//!
//! *Why is a tag worth something only at the version that it was issued at?* A write may leave a representation as it
//! was, one that shows only a part of the resource: two writers who hold its tag must not both pass.
//!
//! *Why is a tag known only to the principal that it was given to?* A query may hold credentials, and the question to the
//! upstream repeats it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{principal::Principal, selection::Selection};
use crate::{
    core::{entity_tag::EntityTag, record::Revision, resource::ResourceKey},
    guard::request::Request,
};

/// How many tags are remembered, together with [`SHELF_SLOTS`]; a further one takes the place of another.
const SHELVES: usize = 256;

/// The slots of one shelf, which takes its memory with the first tag in it.
const SHELF_SLOTS: usize = 256;

/// The largest selection that is remembered, in bytes: in all 64 MiB at the most, and usually a tenth of that.
const SELECTION_BYTES_MAX: usize = 1024;

/// Who was given which tag of which resource: a hash.
type IssuedName = [u8; 16];

/// A tag that was issued.
struct Issued {
    name: IssuedName,
    /// The version of the resource at that time, or an earlier one.
    version: Revision,
    selection: Arc<Selection>,
}

/// A part of the slots.
type Shelf = Box<[Mutex<Option<Issued>>]>;

/// The latest tags that were issued.
pub(crate) struct IssuedTags(Vec<OnceLock<Shelf>>);

impl IssuedTags {
    /// None was.
    pub(crate) fn new() -> Self {
        Self((0..SHELVES).map(|_| OnceLock::new()).collect())
    }

    /// A tag goes out, of the representation that this selects.
    pub(crate) fn remember(&self, request: &Request, tag: &EntityTag, version: Revision, selection: Selection) {
        if selection.len() > SELECTION_BYTES_MAX {
            return;
        }
        let name = name(request.sender.principal, &request.key, tag);
        let Some(slot) = self.slot(name) else { return };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there =
            slot.as_ref().is_some_and(|one| one.name == name && one.version == version && *one.selection == selection);
        if !is_there {
            *slot = Some(Issued { name, version, selection: Arc::new(selection) });
        }
    }

    /// What selects the representation that a tag was issued for at this version.
    pub(crate) fn selection_of(&self, request: &Request, tag: &EntityTag, version: Revision) -> Option<Arc<Selection>> {
        self.latest(request, tag).filter(|(at, _)| *at == version).map(|(_, selection)| selection)
    }

    /// Whether a tag was issued at some version.
    pub(crate) fn knows(&self, request: &Request, tag: &EntityTag) -> bool {
        self.latest(request, tag).is_some()
    }

    fn latest(&self, request: &Request, tag: &EntityTag) -> Option<(Revision, Arc<Selection>)> {
        let name = name(request.sender.principal, &request.key, tag);
        let slot = self.slot(name)?.lock().unwrap_or_else(PoisonError::into_inner);
        let issued = slot.as_ref().filter(|one| one.name == name)?;
        Some((issued.version, Arc::clone(&issued.selection)))
    }

    fn slot(&self, name: IssuedName) -> Option<&Mutex<Option<Issued>>> {
        let [first, second, ..] = name.map(usize::from);
        let empty = || (0..SHELF_SLOTS).map(|_| Mutex::default()).collect();
        self.0.get(first)?.get_or_init(empty).get(second)
    }
}

fn name(principal: Principal, key: &ResourceKey, tag: &EntityTag) -> IssuedName {
    let mut name = [0; 16];
    let tag = tag.to_header_value();
    let hash = blake3::hash(&[&principal.name()[..], key.as_str().as_bytes(), b" ", tag.as_bytes()].concat());
    name.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
    name
}
