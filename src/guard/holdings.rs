//! How many leases each principal has (`lease.max_per_principal`).

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::principal::Principal;
use crate::core::{resource::ResourceKey, time::StoreTime};

/// So many leases are kept before those that have run out are looked for.
const SWEEP_MIN: usize = 1_024;

/// The leases that this process has granted and that may still be held. One without an end counts until it is given up.
#[derive(Debug, Default)]
pub(super) struct Holdings(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    /// By resource: who was granted its lease, and when that ends.
    leases: HashMap<ResourceKey, (Principal, Option<StoreTime>)>,
    /// By principal: which of them are its own.
    holders: HashMap<Principal, Holder>,
    /// How many leases there may be before the next sweep.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Holder {
    keys: HashSet<ResourceKey>,
    /// How many more are about to be granted.
    reserved: usize,
}

/// A place for a lease that is about to be granted, given back when it is dropped: then the lease counts by itself.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    holdings: &'a Holdings,
    principal: Principal,
}

impl Holdings {
    /// Reserves a place for the lease of a resource, if the principal has fewer than `most` others.
    pub(super) fn reserve(
        &self,
        principal: Principal,
        key: &ResourceKey,
        now: StoreTime,
        most: usize,
    ) -> Option<Reservation<'_>> {
        let mut places = self.lock();
        if places.others(principal, key) >= most {
            let own = places.holders.get(&principal).map(|holder| holder.keys.clone()).unwrap_or_default();
            places.forget_ended(&own, now);
            if places.others(principal, key) >= most {
                return None;
            }
        }
        places.holders.entry(principal).or_default().reserved += 1;
        Some(Reservation { holdings: self, principal })
    }

    /// Counts the lease of a resource for the principal that was granted it.
    pub(super) fn hold(&self, principal: Principal, key: &ResourceKey, now: StoreTime, end: Option<StoreTime>) {
        let mut places = self.lock();
        if places.leases.len() >= places.sweep_at.max(SWEEP_MIN) {
            let all = places.leases.keys().cloned().collect();
            places.forget_ended(&all, now);
            // Twice as many, so that each lease is looked at a few times at the most.
            places.sweep_at = places.leases.len() * 2;
        }
        places.free(key);
        places.leases.insert(key.clone(), (principal, end));
        places.holders.entry(principal).or_default().keys.insert(key.clone());
    }

    /// The lease of a resource, if it was granted here, ends at another moment.
    pub(super) fn change_end(&self, key: &ResourceKey, end: Option<StoreTime>) {
        if let Some(lease) = self.lock().leases.get_mut(key) {
            lease.1 = end;
        }
    }

    /// The lease of a resource has ended.
    pub(super) fn free(&self, key: &ResourceKey) {
        self.lock().free(key);
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// How many leases a principal has beside that of a resource.
    fn others(&self, principal: Principal, key: &ResourceKey) -> usize {
        let own = |holder: &Holder| holder.keys.len() - usize::from(holder.keys.contains(key)) + holder.reserved;
        self.holders.get(&principal).map_or(0, own)
    }

    fn free(&mut self, key: &ResourceKey) {
        if let Some((principal, _)) = self.leases.remove(key) {
            self.change(principal, |holder| {
                holder.keys.remove(key);
            });
        }
    }

    fn change(&mut self, principal: Principal, change: impl FnOnce(&mut Holder)) {
        if let Some(holder) = self.holders.get_mut(&principal) {
            change(holder);
            if holder.keys.is_empty() && holder.reserved == 0 {
                self.holders.remove(&principal);
            }
        }
    }

    /// Forgets those of some leases that have run out.
    fn forget_ended(&mut self, keys: &HashSet<ResourceKey>, now: StoreTime) {
        for key in keys {
            let end = self.leases.get(key).and_then(|(_, end)| *end);
            if end.is_some_and(|end| end <= now) {
                self.free(key);
            }
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.holdings.lock().change(self.principal, |holder| holder.reserved -= 1);
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::*;

    fn principal(name: &'static str) -> Principal {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(name))]);
        Principal::of(&headers, &[header::AUTHORIZATION], None)
    }

    fn key(name: &str) -> ResourceKey {
        ResourceKey::from_text(name)
    }

    fn at(milliseconds: u64) -> StoreTime {
        StoreTime::from_milliseconds(milliseconds)
    }

    fn has_room(holdings: &Holdings, name: &'static str, resource: &str, now: u64) -> bool {
        holdings.reserve(principal(name), &key(resource), at(now), 1).is_some()
    }

    #[test]
    fn a_principal_has_so_many_leases_and_no_more() {
        let holdings = Holdings::default();
        holdings.hold(principal("ann"), &key("a"), at(0), Some(at(10)));
        assert!(!has_room(&holdings, "ann", "b", 0));
        assert!(has_room(&holdings, "ann", "a", 0), "the same lease again");
        assert!(has_room(&holdings, "bob", "b", 0), "somebody else");
    }

    #[test]
    fn what_is_about_to_be_granted_counts_until_it_is_not() {
        let holdings = Holdings::default();
        let place = holdings.reserve(principal("ann"), &key("a"), at(0), 1);
        assert!(place.is_some() && !has_room(&holdings, "ann", "b", 0));
        drop(place);
        assert!(has_room(&holdings, "ann", "b", 0));
    }

    #[test]
    fn what_has_ended_does_not_count() {
        let holdings = Holdings::default();
        let ann = principal("ann");
        holdings.hold(ann, &key("a"), at(0), Some(at(10)));
        holdings.change_end(&key("a"), Some(at(20)));
        assert!(!has_room(&holdings, "ann", "b", 10), "it was renewed");
        assert!(has_room(&holdings, "ann", "b", 20));
        holdings.hold(ann, &key("b"), at(20), None);
        assert!(!has_room(&holdings, "ann", "c", 1_000), "it has no end");
        holdings.free(&key("b"));
        assert!(has_room(&holdings, "ann", "c", 1_000));
        assert_eq!(holdings.lock().holders.len(), 0);
    }

    #[test]
    fn a_lease_that_was_granted_to_another_counts_for_that_one() {
        let holdings = Holdings::default();
        holdings.hold(principal("ann"), &key("a"), at(0), Some(at(10)));
        holdings.hold(principal("bob"), &key("a"), at(10), Some(at(20)));
        assert!(has_room(&holdings, "ann", "b", 10));
        assert!(!has_room(&holdings, "bob", "b", 10));
    }

    #[test]
    fn leases_that_ran_out_are_not_kept_for_ever() {
        let holdings = Holdings::default();
        for number in 0..10_000 {
            holdings.hold(principal("ann"), &key(&number.to_string()), at(number), Some(at(number + 1)));
        }
        assert!(holdings.lock().leases.len() <= SWEEP_MIN, "{}", holdings.lock().leases.len());
    }
}
