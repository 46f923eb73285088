//! The meaning of the names of paths.

use super::{DecidedPath, PathRole, UndecidedPoint};
use crate::{
    core::route::is_batch,
    openapi::place::{PathPlace, PathPlaces, shape},
};

/// Names of paths whose POST only reads.
const READS: [&str; 14] = [
    "search",
    "query",
    "find",
    "lookup",
    "count",
    "validate",
    "verify",
    "check",
    "preview",
    "render",
    "estimate",
    "calculate",
    "diff",
    "test",
];

/// Names that mean a lock of the backend, with anything beside them.
const LOCKS: [&str; 2] = ["lock", "unlock"];

/// Names that mean a lock of the backend together. Alone, they mean much else: shops have a checkout, and flats a lease.
const PAIRS: [(&str, &str); 4] =
    [("checkout", "checkin"), ("check-out", "check-in"), ("lease", "release"), ("acquire", "release")];

/// Returns the decision that the name of a path leaves open.
pub(super) fn by_name(place: &PathPlace<'_>, places: &PathPlaces<'_>) -> Option<UndecidedPoint> {
    let names_batch = |text: &str| is_batch(text) || text.split(['-', '_']).any(is_batch);
    if place.path.pattern.texts().any(|(is_capture, text)| !is_capture && names_batch(text)) {
        return Some(UndecidedPoint::Batch);
    }
    let verb = place.verb().or(place.last_text())?;
    let mut parts = verb.split(['.', ':', '_']);
    if place.replacing().next().is_none() && parts.clone().any(|part| is_one_of(&READS, part)) {
        return Some(UndecidedPoint::ReadsByPost);
    }
    let is_lock = |part: &str| is_one_of(&LOCKS, part) || has_partner(part, place, places);
    parts.any(is_lock).then_some(UndecidedPoint::BackendLocks)
}

/// Names, with each resource, the operations by which the backend locks it.
pub(super) fn name_locks<'p>(all: &mut [DecidedPath<'p>], places: &PathPlaces<'p>) {
    let locks = places.all.iter().filter(|place| by_name(place, places) == Some(UndecidedPoint::BackendLocks));
    for place in locks {
        let locked = place.above().find_map(|(_, pattern)| places.find(&pattern));
        let locked = locked.and_then(|index| all.get_mut(index)).filter(|above| above.role == PathRole::Resource);
        if let Some(above) = locked {
            above.locks.extend(place.writes());
        }
    }
}

/// Whether a word has the other one of its pair beside it, in the same place of the path.
fn has_partner(word: &str, place: &PathPlace<'_>, places: &PathPlaces<'_>) -> bool {
    let word = word.to_ascii_lowercase();
    let own = shape(&place.path.pattern).to_ascii_lowercase();
    let partners = PAIRS.iter().flat_map(|&(take, give)| [(take, give), (give, take)]);
    partners.filter(|(one, _)| *one == word).any(|(_, partner)| {
        let there = own.rsplit_once(&word).map(|(before, after)| format!("{before}{partner}{after}"));
        there
            .is_some_and(|there| places.all.iter().any(|other| shape(&other.path.pattern).eq_ignore_ascii_case(&there)))
    })
}

fn is_one_of(words: &[&str], part: &str) -> bool {
    words.iter().any(|word| part.eq_ignore_ascii_case(word))
}
