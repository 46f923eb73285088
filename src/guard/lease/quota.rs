//! The number of leases that each client has (`lease.max_per_principal`, `lease.max_per_address`).
//!
//! # Design
//!
//! *Why two limits?* A client can make a new principal by sending other credentials, and a backend that is open to
//! everyone never checks them. It cannot change its address as easily. With a limit by address alone, the many clients
//! behind one gateway would share the quota of one.
//!
//! *Why are clients without credentials not one principal?* Any of them could use up the leases of all others.

use foldhash::{HashMap, HashSet};
use parking_lot::Mutex;

use crate::{
    core::{
        http::client_address::ClientAddress,
        lease::Lease,
        records::record::{Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    guard::knowledge::principal::Principal,
};

/// The number of leases below which the process looks for no ended ones.
const SWEEP_MIN: usize = 1_024;

/// The leases that this process has granted and that may still be held. An infinite lease counts until it is released.
#[derive(Debug, Default)]
pub(crate) struct LeaseQuota(Mutex<QuotaPlaces>);

/// The client that is granted a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) principal: Principal,
    pub(crate) address: ClientAddress,
}

/// The number of leases that a client may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) per_principal: usize,
    pub(crate) per_address: usize,
}

/// The reason why a client may have no further lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    /// The principal has all leases that it may have.
    Principal,
    /// The clients at the address together have all leases that they may have.
    Address,
}

/// The unit that leases are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum QuotaAccount {
    Principal(Principal),
    /// The clients without credentials at this address.
    Anonymous(ClientAddress),
    Address(ClientAddress),
}

#[derive(Debug, Default)]
struct QuotaPlaces {
    /// The granted leases of each resource.
    leases: HashMap<ResourceKey, Vec<GrantedLease>>,
    accounts: HashMap<QuotaAccount, HeldLeases>,
    /// The number of leased resources at which the next sweep takes place.
    sweep_at: usize,
}

/// A granted lease.
#[derive(Debug)]
pub(crate) struct GrantedLease {
    /// The fence, which names the lease among those of its resource.
    pub(crate) fence: Revision,
    pub(crate) holder: Holder,
    pub(crate) end: Option<StoreTime>,
    /// The revision of the record that tells this. An earlier one tells nothing of the lease.
    pub(crate) as_of: Revision,
}

/// The leases that count for one account.
#[derive(Debug, Default)]
struct HeldLeases {
    /// The resource of each lease, and its fence.
    leases: HashSet<(ResourceKey, Revision)>,
    /// The number of leases that are about to be granted.
    reserved: usize,
    /// No lease of the account ends before this moment; `None` if no lease ends at all. So a full account is seldom
    /// searched.
    first_end: Option<StoreTime>,
}

impl HeldLeases {
    fn ends_at(&mut self, end: Option<StoreTime>) {
        self.first_end = [self.first_end, end].into_iter().flatten().min();
    }
}

/// A place for a lease that is about to be granted. Dropping it releases the place; a granted lease then counts by
/// itself.
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
    /// Reserves a place for a lease of a resource, if its holder, and all clients at the same address, have few enough
    /// others. If the client holds the lease already, `own` is its fence.
    pub(crate) fn reserve(
        &self,
        holder: Holder,
        (key, own): (&ResourceKey, Option<Revision>),
        now: StoreTime,
        most: Most,
    ) -> Result<Reservation<'_>, QuotaExceeded> {
        let own = own.map(|fence| (key.clone(), fence));
        let mut places = self.0.lock();
        let limits = [(most.per_principal, QuotaExceeded::Principal), (most.per_address, QuotaExceeded::Address)];
        for (account, (most, no_place)) in holder.accounts().into_iter().zip(limits) {
            if places.others(account, own.as_ref()) < most {
                continue;
            }
            places.forget_ended_of(account, now);
            if places.others(account, own.as_ref()) >= most {
                return Err(no_place);
            }
        }
        for account in holder.accounts() {
            places.accounts.entry(account).or_default().reserved += 1;
        }
        Ok(Reservation { lease_quota: self, holder })
    }

    /// Counts a lease for the client that was granted it.
    pub(crate) fn hold(&self, key: &ResourceKey, granted: GrantedLease, now: StoreTime) {
        let mut places = self.0.lock();
        if places.leases.len() >= places.sweep_at.max(SWEEP_MIN) {
            let all = places.leases.keys().cloned().collect();
            places.forget_ended(&all, now);
            // Twice as many, so that the sweeps look at each lease only a few times.
            places.sweep_at = places.leases.len() * 2;
        }
        places.keep(key, |lease| lease.fence != granted.fence);
        for account in granted.holder.accounts() {
            let held = places.accounts.entry(account).or_default();
            held.leases.insert((key.clone(), granted.fence));
            held.ends_at(granted.end);
        }
        places.leases.entry(key.clone()).or_default().push(granted);
    }

    /// Notes which leases of a resource are held, and until when. The others have ended.
    pub(crate) fn follow(&self, key: &ResourceKey, snapshot: &Snapshot) {
        let mut places = self.0.lock();
        places.keep(key, |granted| {
            if snapshot.revision < granted.as_of {
                return true;
            }
            let held = snapshot.held_lease(granted.fence);
            (granted.end, granted.as_of) = (held.and_then(Lease::end), snapshot.revision);
            held.is_some()
        });
    }
}

impl QuotaPlaces {
    /// Returns the number of leases that an account has besides this one.
    fn others(&self, account: QuotaAccount, own: Option<&(ResourceKey, Revision)>) -> usize {
        let is_own = |held: &HeldLeases| own.is_some_and(|own| held.leases.contains(own));
        let others = |held: &HeldLeases| held.leases.len() - usize::from(is_own(held)) + held.reserved;
        self.accounts.get(&account).map_or(0, others)
    }

    /// Frees the places of all leases of a resource but these. The end of a kept lease may have changed.
    fn keep(&mut self, key: &ResourceKey, mut is_kept: impl FnMut(&mut GrantedLease) -> bool) {
        let Some(leases) = self.leases.get_mut(key) else { return };
        for lease in leases.extract_if(.., |lease| !is_kept(lease)) {
            let name = (key.clone(), lease.fence);
            change(&mut self.accounts, lease.holder, |held| {
                held.leases.remove(&name);
            });
        }
        for lease in leases.iter() {
            change(&mut self.accounts, lease.holder, |held| held.ends_at(lease.end));
        }
        if leases.is_empty() {
            self.leases.remove(key);
        }
    }

    /// Drops the expired leases of an account.
    fn forget_ended_of(&mut self, account: QuotaAccount, now: StoreTime) {
        let Some(held) = self.accounts.get(&account).filter(|held| held.first_end.is_some_and(|end| end <= now)) else {
            return;
        };
        let own: HashSet<ResourceKey> = held.leases.iter().map(|(key, _)| key.clone()).collect();
        self.forget_ended(&own, now);
        let leases = own.iter().filter_map(|key| self.leases.get(key)).flatten();
        let first_end =
            leases.filter(|lease| lease.holder.accounts().contains(&account)).filter_map(|lease| lease.end).min();
        if let Some(held) = self.accounts.get_mut(&account) {
            held.first_end = first_end;
        }
    }

    /// Drops the leases of these resources that have expired.
    fn forget_ended(&mut self, keys: &HashSet<ResourceKey>, now: StoreTime) {
        for key in keys {
            self.keep(key, |lease| lease.end.is_none_or(|end| now < end));
        }
    }
}

/// Changes both accounts of a holder. An account that counts nothing is removed.
fn change(accounts: &mut HashMap<QuotaAccount, HeldLeases>, holder: Holder, change: impl Fn(&mut HeldLeases)) {
    for account in holder.accounts() {
        if let Some(held) = accounts.get_mut(&account) {
            change(held);
            if held.leases.is_empty() && held.reserved == 0 {
                accounts.remove(&account);
            }
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        change(&mut self.lease_quota.0.lock().accounts, self.holder, |held| held.reserved -= 1);
    }
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
