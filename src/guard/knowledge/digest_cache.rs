//! Bounded memories whose keys are hashes that nobody can make collide. So their tables need no second hash of that kind.

use std::hash::Hash;

use foldhash::fast::RandomState;
use moka::sync::{Cache, CacheBuilder};

/// A bounded memory of what can be learned again.
pub(super) type DigestCache<K, V> = Cache<K, V, RandomState>;

/// Creates an empty memory with this number of entries at most.
pub(super) fn of_entries<K, V>(entries_max: u64) -> DigestCache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    build(Cache::builder().max_capacity(entries_max))
}

/// Creates an empty memory with these limits.
pub(super) fn build<K, V>(builder: CacheBuilder<K, V, Cache<K, V>>) -> DigestCache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    builder.build_with_hasher(RandomState::default())
}
