//! The trees of an upstream, as text within their record.

use serde::{Deserialize, Serialize};

use super::{read_stamp, stamp};
use crate::core::records::trees::{TreeChange, TreeRoot, Trees};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenTrees {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roots: Vec<WrittenRoot>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<WrittenChange>,
    changed_before: Option<u64>,
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
}

impl WrittenTrees {
    pub(super) fn of(trees: &Trees) -> Self {
        let root = |root: &TreeRoot| WrittenRoot { key: root.key.to_string(), is_read: root.is_read };
        let change = |change: &TreeChange| WrittenChange { root: change.root.to_string(), at: stamp(change.at) };
        Self {
            roots: trees.roots.iter().map(root).collect(),
            changes: trees.changes.iter().map(change).collect(),
            changed_before: stamp(trees.changed_before),
        }
    }

    pub(super) fn read(self) -> Trees {
        let root = |root: WrittenRoot| TreeRoot { key: root.key.into(), is_read: root.is_read };
        let change = |change: WrittenChange| TreeChange { root: change.root.into(), at: read_stamp(change.at) };
        Trees {
            roots: self.roots.into_iter().map(root).collect(),
            changes: self.changes.into_iter().map(change).collect(),
            changed_before: read_stamp(self.changed_before),
        }
    }
}
