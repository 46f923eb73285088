//! The trees of an upstream: collections, each with all resources below it, and their last changes
//! ([`under_trees`](super::under_trees)).

use super::{
    availability::Availability,
    revision::{Revision, Stamp},
};
use crate::core::{lease::Lease, resource::ResourceKey, time::StoreTime};

/// The maximum number of changes that the record keeps apart. Each resource that is read is compared with each of them.
/// Earlier changes count for all resources.
pub const CHANGES_MAX: usize = 64;

/// The maximum length of their roots together, in bytes: every swap of the record copies them.
pub const CHANGES_BYTES_MAX: usize = 16 * 1024;

/// A collection with all below it, which a write changes or copies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TreeRoot {
    /// The key of the collection.
    pub key: Box<str>,
    /// True if the tree stays as it is: it is the source of a COPY.
    pub is_read: bool,
}

/// The effect of the end of a tree's write on all resources below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeEffect {
    /// All resources have changed, or may have.
    Changed,
    /// The resources are as they were. But the refusal by the upstream shows that their known state may be wrong.
    Forgotten,
}

/// The end of a write of a tree that has an effect on all resources below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TreeChange {
    /// The key of the collection.
    pub root: Box<str>,
    /// The moment.
    pub at: Stamp,
    /// The effect of the end.
    pub effect: TreeEffect,
}

/// The trees of an upstream, which the store keeps in a record of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trees {
    /// The trees of the write whose claim or doubt is in the record.
    pub roots: Vec<TreeRoot>,
    /// The last changes, in their order.
    pub changes: Vec<TreeChange>,
    /// The last one of all changes before, which count for all resources. Zero if there was none.
    pub changed_before: Stamp,
    /// The same for the ends that have changed nothing.
    pub forgotten_before: Stamp,
    /// The leases of collections that reach the resources below, and some that have ended.
    pub leases: Vec<TreeLease>,
}

/// How far the lease of a collection reaches below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseReach {
    /// Nowhere: it is the lease of one resource, in a list that tells what is leased.
    Itself,
    /// To its list of members: no other client adds one, or removes one.
    Membership,
    /// To all resources below it, as if each of them were leased.
    Tree,
}

/// A lease in the list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TreeLease {
    /// The key of the collection.
    pub root: Box<str>,
    /// The fence of the lease.
    pub fence: Revision,
    /// How far it reaches.
    pub reach: LeaseReach,
}

/// A lease of a collection around a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseAround {
    /// The collection.
    pub root: ResourceKey,
    /// The lease. Its fence is resolved.
    pub lease: Lease,
    /// How far it reaches.
    pub reach: LeaseReach,
    /// The revision of the record of the collection.
    pub seen: Revision,
}

/// The write of a tree that is in the way of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeInTheWay {
    /// The availability of the resource to a write.
    pub availability: Availability,
    /// The revision of the record of trees.
    pub seen: Revision,
    /// The time from which nothing of the write can arrive any more, while its mark stands; `None` if it changes nothing here.
    pub mark_over_from: Option<StoreTime>,
}

impl TreeRoot {
    /// True if this resource is below the collection.
    pub fn is_above(&self, key: &ResourceKey) -> bool {
        is_below(key.as_str(), &self.key)
    }

    /// Returns the beginning of the keys of all resources below the collection.
    pub fn prefix(&self) -> String {
        if self.key.ends_with(['/', '(']) { self.key.to_string() } else { format!("{}/", self.key) }
    }
}

/// True if a resource is below a collection. Both are named by their keys. A root that ends with a parenthesis is the
/// beginning of the keys of all members, as those of a table are spelled.
pub fn is_below(key: &str, root: &str) -> bool {
    if root.ends_with('(') {
        return key.starts_with(root);
    }
    let root = root.strip_suffix('/').unwrap_or(root);
    key.strip_prefix(root).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1)
}

impl Default for Trees {
    fn default() -> Self {
        let never = Stamp::At(Revision(0));
        Self {
            roots: Vec::new(),
            changes: Vec::new(),
            changed_before: never,
            forgotten_before: never,
            leases: Vec::new(),
        }
    }
}

impl Trees {
    /// Writes the record's own revision into it.
    pub fn resolve(&mut self, own: Revision) {
        let listed = self.changes.iter_mut().map(|change| &mut change.at);
        for stamp in listed.chain([&mut self.changed_before, &mut self.forgotten_before]) {
            *stamp = Stamp::At(stamp.resolve(own));
        }
    }

    /// The bytes of the roots.
    pub fn bytes(&self) -> usize {
        let roots = self.roots.iter().map(|root| root.key.len());
        let leased = self.leases.iter().map(|lease| lease.root.len());
        roots.chain(leased).sum::<usize>() + self.changes_bytes()
    }

    /// Ends the write whose trees are in the record, with this effect on those that it did not only read. A refusal may
    /// speak of any of them.
    pub(super) fn end(&mut self, at: Stamp, effect: TreeEffect) {
        let is_meant = |root: &TreeRoot| !root.is_read || effect == TreeEffect::Forgotten;
        for TreeRoot { key, .. } in std::mem::take(&mut self.roots).into_iter().filter(is_meant) {
            // A later change of the same tree, or of one around it, says all that an earlier one does.
            let is_covered = |change: &TreeChange| change.root == key || is_below(&change.root, &key);
            let says_more = |change: &TreeChange| effect == TreeEffect::Forgotten && change.effect != effect;
            self.changes.retain(|change| says_more(change) || !is_covered(change));
            self.changes.push(TreeChange { root: key, at, effect });
        }
        while self.changes.len() > CHANGES_MAX || self.changes_bytes() > CHANGES_BYTES_MAX {
            self.drop_one();
        }
    }

    /// Lets the first entry of the list count for all resources. One that has changed nothing goes first, so that refused
    /// writes keep the changes of others apart.
    fn drop_one(&mut self) {
        let first = self.changes.iter().position(|change| change.effect == TreeEffect::Forgotten);
        let TreeChange { at, effect, .. } = self.changes.remove(first.unwrap_or_default());
        match effect {
            TreeEffect::Changed => self.changed_before = at,
            TreeEffect::Forgotten => self.forgotten_before = at,
        }
    }

    fn changes_bytes(&self) -> usize {
        self.changes.iter().map(|change| change.root.len()).sum()
    }

    /// The moments at which writes of trees around a resource have ended with this effect: those that are listed, and the
    /// last one before.
    pub(super) fn ended<'a>(&'a self, key: &'a str, effect: TreeEffect) -> impl Iterator<Item = Stamp> + 'a {
        let listed = self.changes.iter().filter(move |change| change.effect == effect && is_below(key, &change.root));
        let before = match effect {
            TreeEffect::Changed => self.changed_before,
            TreeEffect::Forgotten => self.forgotten_before,
        };
        listed.map(|change| change.at).chain([before])
    }

    pub(super) fn covers(&self, key: &str) -> bool {
        self.roots.iter().any(|root| is_below(key, &root.key))
    }

    pub(super) fn changes_below(&self, key: &str) -> bool {
        self.roots.iter().any(|root| !root.is_read && is_below(key, &root.key))
    }
}
