//! The collections around the resource of a request, and below it.

use super::Request;
use crate::core::{
    records::trees::TreeRoot,
    refusal::{Code, Refusal},
    resource::ResourceKey,
};

impl Request {
    /// True if a request on this route may change or lease a collection with all resources below it.
    pub(crate) fn has_trees(&self) -> bool {
        self.route().has_trees && self.rules().changes_trees()
    }

    /// Returns the tree of a request that removes a collection as an operation of its own. Where the keys do not tell what is
    /// in the collection, refuses the request if memory answers for it.
    pub(crate) fn named_tree(&self) -> Result<Option<TreeRoot>, Refusal> {
        let root = self.grammar().removed_tree(self.key.as_str()).filter(|_| self.has_trees());
        match root {
            Some(key) => Ok(Some(TreeRoot { key: key.into(), is_read: false })),
            None if self.rules().other_writers => Ok(None),
            None => Err(unknown_members()),
        }
    }

    /// The path by which clients know another resource of the upstream, whose key is its path there.
    pub(crate) fn path_of(&self, key: &ResourceKey) -> Option<String> {
        let path = key.as_str().strip_prefix(self.upstream().identity.as_str())?.strip_prefix(':')?;
        let path = self.route().mapping.to_client(path.as_bytes()).unwrap_or_else(|| path.into());
        Some(String::from_utf8_lossy(&path).into_owned())
    }
}

/// The refusal of the removal of a collection whose members no key tells.
fn unknown_members() -> Refusal {
    let detail = "the keys of the routes do not tell which resources the removal would also remove, so what is remembered of \
                  them would be wrong: remove the resources one by one. With other_writers = true on these routes, or \
                  without key, the removal is possible";
    Refusal::new(Code::NotSupported, detail)
}
