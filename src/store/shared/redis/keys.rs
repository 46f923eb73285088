//! The keys of the store in Redis. All have the same hash tag, so that they are on one node of a cluster and a script
//! may access them together.

use crate::core::resource::ResourceKey;

/// The keys of one store.
pub(super) struct RedisKeys {
    prefix: String,
    /// The hash of buckets and their floors.
    pub(super) floors: String,
    /// The last revision that was given.
    pub(super) counter: String,
    /// The sorted set of all resources that have a record, in the order of their keys.
    pub(super) records: String,
    /// The sorted set of the resources that become idle without a swap, by the time when they do.
    pub(super) idle: String,
    /// The incarnation, which begins this store's version tags.
    pub(super) incarnation: String,
    /// The channel on which the keys of changed resources are published.
    pub(super) channel: String,
}

impl RedisKeys {
    pub(super) fn new(prefix: &str) -> Self {
        let key = |name: &str| format!("{{{prefix}}}:{name}");
        Self {
            floors: key("floors"),
            counter: key("revision"),
            records: key("records"),
            idle: key("idle"),
            incarnation: key("incarnation"),
            channel: key("changed"),
            prefix: key("record:"),
        }
    }

    /// The key of a resource's record. The value is the revision, a blank, and JSON.
    pub(super) fn record(&self, key: &ResourceKey) -> String {
        format!("{}{key}", self.prefix)
    }
}
