//! How many leases each principal has (`lease.max_per_principal`).

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::principal::Principal;
use crate::core::{resource::ResourceKey, time::StoreTime};

/// The leases that this process has granted, by principal. A lease without an end counts until it is given up.
#[derive(Debug, Default)]
pub(super) struct Holdings(Mutex<HashMap<Principal, HashMap<ResourceKey, Option<StoreTime>>>>);

impl Holdings {
    /// Takes a place for the lease of a resource, if the principal has fewer than `most` others.
    pub(super) fn take(
        &self,
        principal: Principal,
        key: &ResourceKey,
        now: StoreTime,
        end: Option<StoreTime>,
        most: usize,
    ) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let leases = all.entry(principal).or_default();
        if leases.len() >= most && !leases.contains_key(key) {
            leases.retain(|_, end| end.is_none_or(|end| now < end));
            if leases.len() >= most {
                return false;
            }
        }
        leases.insert(key.clone(), end);
        true
    }

    /// Gives the place of a lease back.
    pub(super) fn give_back(&self, principal: Principal, key: &ResourceKey) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leases) = all.get_mut(&principal) {
            leases.remove(key);
            if leases.is_empty() {
                all.remove(&principal);
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
    }

    #[test]
    fn what_has_ended_or_was_given_back_does_not_count() {
        let holdings = Holdings::default();
        let (ann, end) = (principal("ann"), StoreTime::from_milliseconds(10));
        assert!(holdings.take(ann, &key("a"), StoreTime::default(), Some(end), 1));
        assert!(holdings.take(ann, &key("b"), end, None, 1), "the lease of a has ended");
        assert!(!holdings.take(ann, &key("c"), end, None, 1), "that of b has no end");
        holdings.give_back(ann, &key("b"));
        assert!(holdings.take(ann, &key("c"), end, None, 1));
    }
}
