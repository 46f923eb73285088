//! The trees of an upstream, as text within their record.

use serde::{Deserialize, Serialize};

use super::{read_stamp, stamp};
use crate::core::records::{
    record::Revision,
    tree_leases::{LeaseReach, TreeLease},
    trees::{TreeChange, TreeEffect, TreeRoot, Trees},
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenTrees {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roots: Vec<WrittenRoot>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<WrittenChange>,
    changed_before: Option<u64>,
    forgotten_before: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    leases: Vec<WrittenTreeLease>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRoot {
    key: String,
    is_read: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenChange {
    root: String,
    at: Option<u64>,
    effect: WrittenEffect,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenEffect {
    Changed,
    Forgotten,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTreeLease {
    root: String,
    fence: u64,
    reach: WrittenReach,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenReach {
    Itself,
    Membership,
    Tree,
}

impl WrittenChange {
    fn of(change: &TreeChange) -> Self {
        let effect = match change.effect {
            TreeEffect::Changed => WrittenEffect::Changed,
            TreeEffect::Forgotten => WrittenEffect::Forgotten,
        };
        Self { root: change.root.to_string(), at: stamp(change.at), effect }
    }

    fn read(self) -> TreeChange {
        let effect = match self.effect {
            WrittenEffect::Changed => TreeEffect::Changed,
            WrittenEffect::Forgotten => TreeEffect::Forgotten,
        };
        TreeChange { root: self.root.into(), at: read_stamp(self.at), effect }
    }
}

impl WrittenTreeLease {
    fn of(lease: &TreeLease) -> Self {
        let reach = match lease.reach {
            LeaseReach::Itself => WrittenReach::Itself,
            LeaseReach::Membership => WrittenReach::Membership,
            LeaseReach::Tree => WrittenReach::Tree,
        };
        Self { root: lease.root.to_string(), fence: lease.fence.0, reach }
    }

    fn read(self) -> TreeLease {
        let reach = match self.reach {
            WrittenReach::Itself => LeaseReach::Itself,
            WrittenReach::Membership => LeaseReach::Membership,
            WrittenReach::Tree => LeaseReach::Tree,
        };
        TreeLease { root: self.root.into(), fence: Revision(self.fence), reach }
    }
}

impl WrittenTrees {
    pub(super) fn of(trees: &Trees) -> Self {
        let root = |root: &TreeRoot| WrittenRoot { key: root.key.to_string(), is_read: root.is_read };
        Self {
            roots: trees.roots.iter().map(root).collect(),
            changes: trees.changes.iter().map(WrittenChange::of).collect(),
            changed_before: stamp(trees.changed_before),
            forgotten_before: stamp(trees.forgotten_before),
            leases: trees.leases.iter().map(WrittenTreeLease::of).collect(),
        }
    }

    pub(super) fn read(self) -> Trees {
        let root = |root: WrittenRoot| TreeRoot { key: root.key.into(), is_read: root.is_read };
        Trees {
            roots: self.roots.into_iter().map(root).collect(),
            changes: self.changes.into_iter().map(WrittenChange::read).collect(),
            changed_before: read_stamp(self.changed_before),
            forgotten_before: read_stamp(self.forgotten_before),
            leases: self.leases.into_iter().map(WrittenTreeLease::read).collect(),
        }
    }
}
