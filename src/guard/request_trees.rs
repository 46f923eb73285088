//! The collections around the resource of a request, and below it.

use super::Request;
use crate::core::{lease::Usage, resource::ResourceKey};

impl Request {
    /// Whether a request on this route may change or lease a collection with all resources below it.
    pub(crate) fn has_trees(&self) -> bool {
        self.route().has_trees && self.rules().changes_trees()
    }

    /// Whether the request may change a collection with all resources below it.
    pub(crate) fn may_change_tree(&self) -> bool {
        self.route().has_trees && (self.place.usages.contains(Usage::Delete) || self.destination().is_some())
    }

    /// The path by which clients know another resource of the upstream, whose key is its path there.
    pub(crate) fn path_of(&self, key: &ResourceKey) -> Option<String> {
        let path = key.as_str().strip_prefix(self.upstream().identity.as_str())?.strip_prefix(':')?;
        let path = self.route().mapping.to_client(path.as_bytes()).unwrap_or_else(|| path.into());
        Some(String::from_utf8_lossy(&path).into_owned())
    }
}
