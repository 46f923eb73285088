//! How many leases each principal has (`lease.max_per_principal`).

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::principal::Principal;
use crate::core::{resource::ResourceKey, time::StoreTime};

/// The leases that this process has granted, by resource and by principal. One without an end counts until it is given
/// up.
#[derive(Debug, Default)]
pub(super) struct Holdings(Mutex<Leases>);

#[derive(Debug, Default)]
struct Leases {
    holders: HashMap<ResourceKey, (Principal, Option<StoreTime>)>,
    resources: HashMap<Principal, HashSet<ResourceKey>>,
}

impl Holdings {
    /// Takes a place for the lease of a resource until `end`, if the principal has fewer than `most` others.
    pub(super) fn take(
        &self,
        principal: Principal,
        key: &ResourceKey,
        now: StoreTime,
        end: Option<StoreTime>,
        most: usize,
    ) -> bool {
        let mut leases = self.lock();
        if leases.others_of(principal, key) >= most {
            leases.drop_ended_of(principal, now);
            if leases.others_of(principal, key) >= most {
                return false;
            }
        }
        leases.remove(key);
        leases.holders.insert(key.clone(), (principal, end));
        leases.resources.entry(principal).or_default().insert(key.clone());
        true
    }

    /// Lets the lease of a resource count until `end` and no longer.
    pub(super) fn end_at(&self, key: &ResourceKey, end: StoreTime) {
        if let Some((_, known)) = self.lock().holders.get_mut(key) {
            *known = Some(end);
        }
    }

    /// Gives the place of the lease of a resource back.
    pub(super) fn give_back(&self, key: &ResourceKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Leases> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leases {
    fn others_of(&self, principal: Principal, key: &ResourceKey) -> usize {
        self.resources.get(&principal).map_or(0, |held| held.len() - usize::from(held.contains(key)))
    }

    fn drop_ended_of(&mut self, principal: Principal, now: StoreTime) {
        let held = self.resources.get(&principal).into_iter().flatten();
        let has_ended =
            |key: &&ResourceKey| self.holders.get(*key).is_none_or(|(_, end)| end.is_some_and(|end| end <= now));
        for key in held.filter(has_ended).cloned().collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &ResourceKey) {
        let Some((principal, _)) = self.holders.remove(key) else { return };
        if let Some(held) = self.resources.get_mut(&principal) {
            held.remove(key);
            if held.is_empty() {
                self.resources.remove(&principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::*;

    fn principal(name: &'static str) -> Principal {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(name))]);
        Principal::of(&headers, &[header::AUTHORIZATION])
    }

    fn key(name: &str) -> ResourceKey {
        ResourceKey::from_text(name)
    }

    #[test]
    fn a_principal_has_so_many_leases_and_no_more() {
        let (holdings, start) = (Holdings::default(), StoreTime::default());
        let end = Some(StoreTime::from_milliseconds(10));
        assert!(holdings.take(principal("ann"), &key("a"), start, end, 1));
        assert!(!holdings.take(principal("ann"), &key("b"), start, end, 1));
        assert!(holdings.take(principal("ann"), &key("a"), start, end, 1), "the same lease again");
        assert!(holdings.take(principal("bob"), &key("b"), start, end, 1), "somebody else");
        assert!(holdings.take(principal("bob"), &key("a"), start, end, 2), "a lease that has changed hands");
        assert!(holdings.take(principal("ann"), &key("c"), start, end, 1), "counts for its new holder alone");
    }

    #[test]
    fn what_has_ended_or_was_given_back_does_not_count() {
        let holdings = Holdings::default();
        let (ann, end) = (principal("ann"), StoreTime::from_milliseconds(10));
        assert!(holdings.take(ann, &key("a"), StoreTime::default(), Some(end), 1));
        assert!(holdings.take(ann, &key("b"), end, None, 1), "the lease of a has ended");
        assert!(!holdings.take(ann, &key("c"), end, None, 1), "that of b has no end");
        holdings.give_back(&key("b"));
        assert!(holdings.take(ann, &key("c"), end, None, 1));
        holdings.end_at(&key("c"), end);
        assert!(holdings.take(ann, &key("d"), end, None, 1), "that of c was broken");
    }
}
