//! How many leases each client has (`lease.max_per_principal`, `lease.max_per_address`).
//!
//! # Design
//!
//! *Why by two things?* A client makes a new principal by sending other credentials, which a backend that lets everybody
//! in does not even look at. It does not as easily come from another address. By address alone the many behind one gateway
//! would share what one of them may have.
//!
//! *Why are clients without credentials not one principal?* Any of them could take all leases of all others.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    core::{client_address::ClientAddress, resource::ResourceKey, time::StoreTime},
    guard::knowledge::principal::Principal,
};

/// So many leases are kept before those that have run out are looked for.
const SWEEP_MIN: usize = 1_024;

/// The leases that this process has granted and that may still be held. One without an end counts until it is given up.
#[derive(Debug, Default)]
pub(crate) struct LeaseQuota(Mutex<QuotaPlaces>);

/// Who is granted a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) principal: Principal,
    pub(crate) address: ClientAddress,
}

/// How many leases a client may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) per_principal: usize,
    pub(crate) per_address: usize,
}

/// Why there is no place for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    /// The principal has all that it may have.
    Principal,
    /// All who come from the address have together.
    Address,
}

/// What leases are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum QuotaAccount {
    Principal(Principal),
    /// Those without credentials who come from there.
    Anonymous(ClientAddress),
    Address(ClientAddress),
}

#[derive(Debug, Default)]
struct QuotaPlaces {
    /// By resource: who was granted its lease, and when that ends.
    leases: HashMap<ResourceKey, (Holder, Option<StoreTime>)>,
    accounts: HashMap<QuotaAccount, HeldLeases>,
    /// How many leases there may be before the next sweep.
    sweep_at: usize,
}

/// What is counted by one account.
#[derive(Debug, Default)]
struct HeldLeases {
    keys: HashSet<ResourceKey>,
    /// How many more are about to be granted.
    reserved: usize,
    /// None of them has ended before this moment, if there is one. So an account that is full is seldom looked through.
    first_end: Option<StoreTime>,
}

impl HeldLeases {
    fn ends_at(&mut self, end: Option<StoreTime>) {
        self.first_end = [self.first_end, end].into_iter().flatten().min();
    }
}

/// A place for a lease that is about to be granted, given back when it is dropped: then the lease counts by itself.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    lease_quota: &'a LeaseQuota,
    holder: Holder,
}

impl Holder {
    fn accounts(self) -> [QuotaAccount; 2] {
        let own = if self.principal.is_anonymous() {
            QuotaAccount::Anonymous(self.address)
        } else {
            QuotaAccount::Principal(self.principal)
        };
        [own, QuotaAccount::Address(self.address)]
    }
}

impl LeaseQuota {
    /// Reserves a place for the lease of a resource, if its holder, and all from the same address, have few enough others.
    pub(crate) fn reserve(
        &self,
        holder: Holder,
        key: &ResourceKey,
        now: StoreTime,
        most: Most,
    ) -> Result<Reservation<'_>, QuotaExceeded> {
        let mut places = self.lock();
        let limits = [(most.per_principal, QuotaExceeded::Principal), (most.per_address, QuotaExceeded::Address)];
        for (account, (most, no_place)) in holder.accounts().into_iter().zip(limits) {
            if places.others(account, key) < most {
                continue;
            }
            places.forget_ended_of(account, now);
            if places.others(account, key) >= most {
                return Err(no_place);
            }
        }
        for account in holder.accounts() {
            places.accounts.entry(account).or_default().reserved += 1;
        }
        Ok(Reservation { lease_quota: self, holder })
    }

    /// Counts the lease of a resource for the client that was granted it.
    pub(crate) fn hold(&self, holder: Holder, key: &ResourceKey, now: StoreTime, end: Option<StoreTime>) {
        let mut places = self.lock();
        if places.leases.len() >= places.sweep_at.max(SWEEP_MIN) {
            let all = places.leases.keys().cloned().collect();
            places.forget_ended(&all, now);
            // Twice as many, so that each lease is looked at a few times at the most.
            places.sweep_at = places.leases.len() * 2;
        }
        places.free(key);
        places.leases.insert(key.clone(), (holder, end));
        for account in holder.accounts() {
            let held = places.accounts.entry(account).or_default();
            held.keys.insert(key.clone());
            held.ends_at(end);
        }
    }

    /// The lease of a resource, if it was granted here, ends at another moment.
    pub(crate) fn change_end(&self, key: &ResourceKey, end: Option<StoreTime>) {
        let mut places = self.lock();
        if let Some(lease) = places.leases.get_mut(key) {
            lease.1 = end;
            let holder = lease.0;
            places.change(holder, |held| held.ends_at(end));
        }
    }

    /// The lease of a resource has ended.
    pub(crate) fn free(&self, key: &ResourceKey) {
        self.lock().free(key);
    }

    fn lock(&self) -> MutexGuard<'_, QuotaPlaces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaPlaces {
    /// How many leases an account has beside that of a resource.
    fn others(&self, account: QuotaAccount, key: &ResourceKey) -> usize {
        let own = |held: &HeldLeases| held.keys.len() - usize::from(held.keys.contains(key)) + held.reserved;
        self.accounts.get(&account).map_or(0, own)
    }

    fn free(&mut self, key: &ResourceKey) {
        if let Some((holder, _)) = self.leases.remove(key) {
            self.change(holder, |held| {
                held.keys.remove(key);
            });
        }
    }

    fn change(&mut self, holder: Holder, change: impl Fn(&mut HeldLeases)) {
        for account in holder.accounts() {
            if let Some(held) = self.accounts.get_mut(&account) {
                change(held);
                if held.keys.is_empty() && held.reserved == 0 {
                    self.accounts.remove(&account);
                }
            }
        }
    }

    /// Forgets those leases of an account that have run out.
    fn forget_ended_of(&mut self, account: QuotaAccount, now: StoreTime) {
        let Some(held) = self.accounts.get(&account).filter(|held| held.first_end.is_some_and(|end| end <= now)) else {
            return;
        };
        let own = held.keys.clone();
        self.forget_ended(&own, now);
        let ends = own.iter().filter_map(|key| self.leases.get(key)?.1);
        let first_end = ends.min();
        if let Some(held) = self.accounts.get_mut(&account) {
            held.first_end = first_end;
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
        self.lease_quota.lock().change(self.holder, |held| held.reserved -= 1);
    }
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
