//! The keys of the store in etcd.

use crate::{
    core::resource::ResourceKey,
    store::shared::engine::{KeyRange, first_beyond},
};

/// The keys under one prefix.
pub(super) struct EtcdKeys {
    prefix: String,
}

impl EtcdKeys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// The prefix of the keys of all records.
    pub(super) fn records(&self) -> String {
        format!("{}/record/", self.prefix)
    }

    /// The key of a resource's record.
    pub(super) fn record(&self, key: &ResourceKey) -> String {
        format!("{}/record/{key}", self.prefix)
    }

    /// The key of a bucket's floor. Its `mod_revision` is later than that of each forgotten record of the bucket.
    pub(super) fn floor(&self, bucket: u16) -> String {
        format!("{}/floor/{bucket:04x}", self.prefix)
    }

    /// The key of the incarnation, which begins this store's version tags.
    pub(super) fn incarnation(&self) -> String {
        format!("{}/incarnation", self.prefix)
    }

    /// The key that marks the last pass of any process that looked for records to forget.
    pub(super) fn collected(&self) -> String {
        format!("{}/collected", self.prefix)
    }

    /// Returns the resource whose record has this key.
    pub(super) fn resource(&self, key: &[u8]) -> Option<ResourceKey> {
        let key = std::str::from_utf8(key).ok()?;
        key.strip_prefix(&self.records()).map(ResourceKey::from_text)
    }

    /// The range of a selection of records: the first key, and the first key beyond.
    pub(super) fn selected(&self, KeyRange { prefix, after }: KeyRange<'_>) -> (Vec<u8>, Vec<u8>) {
        let all = self.records() + prefix;
        let beyond = first_beyond(&all);
        // Keys are compared byte by byte, so the next key is the same key with a zero byte appended.
        (after.map_or(all, |after| self.record(after) + "\0").into_bytes(), beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_record_names_its_resource() {
        let (keys, resource) = (EtcdKeys::new("a/b"), ResourceKey::from_text("docs:/x/y?z"));
        assert_eq!(keys.record(&resource), "a/b/record/docs:/x/y?z");
        assert_eq!(keys.resource(keys.record(&resource).as_bytes()), Some(resource));
        assert_eq!(keys.resource(keys.floor(7).as_bytes()), None);
        assert_eq!(keys.floor(7), "a/b/floor/0007");
    }

    #[test]
    fn the_range_of_records_holds_them_and_nothing_else() {
        let keys = EtcdKeys::new("p");
        let (start, end) = keys.selected(KeyRange::default());
        let within = |key: &str| (start.as_slice()..end.as_slice()).contains(&key.as_bytes());
        assert!(within("p/record/") && within("p/record/~~~") && within("p/record/\u{7f}"));
        assert!(!within("p/incarnation") && !within("p/floor/0000") && !within("p/record") && !within("p/recorder"));
        let one = ResourceKey::from_text("a");
        let (start, _) = keys.selected(KeyRange { after: Some(&one), ..KeyRange::default() });
        assert!(start.as_slice() > b"p/record/a".as_slice() && start.as_slice() < b"p/record/a!".as_slice());
        let (start, end) = keys.selected(KeyRange { prefix: "u:/a/", after: None });
        let within = |key: &str| (start.as_slice()..end.as_slice()).contains(&key.as_bytes());
        assert!(within("p/record/u:/a/b") && within("p/record/u:/a/~") && within("p/record/u:/a/b/c"));
        assert!(!within("p/record/u:/a.b") && !within("p/record/u:/a0") && !within("p/record/u:/b/c"));
    }
}
