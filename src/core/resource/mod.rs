//! The name of a resource: its key, and the template of a route that makes it (DESIGN, section 3, rule 10; section 9).

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use thiserror::Error;

use super::tags::parts_hash::half;

mod meeting;
mod origin;
mod template;
#[cfg(test)]
mod tests;
mod values;

pub use meeting::KeySource;
pub use template::KeyTemplate;
pub use values::KeyParts;

/// The one spelling of a resource's name: the identity of its upstream, `:`, and the template filled in from the
/// request. Equal keys are the same resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceKey {
    text: Arc<str>,
    /// A hash of the text, kept because each request needs it several times.
    digest: KeyDigest,
}

/// The beginning of the keys of writes. A key of a resource begins with the identity of its upstream and `:`.
const KEYED_WRITE: &str = "write ";
/// The beginning of the keys of uploads in blocks.
const UPLOAD: &str = "upload ";

/// Half of the hash of a key. It tells keys apart as well as the key itself, and has a fixed size.
pub type KeyDigest = [u8; 16];

impl ResourceKey {
    /// The key with this text: one that a store has kept, or one in a test that does not care how keys are made.
    pub fn from_text(text: &str) -> Self {
        Self::new(text)
    }

    /// The key of no resource, under which the store keeps the trees of an upstream. No request makes this key, since a key
    /// made from a request holds no space.
    pub fn of_collections(upstream: &str) -> Self {
        Self::new(format!("{upstream} collections"))
    }

    /// The key of no resource, under which the proxy lists the leases below a collection. No request makes this key either.
    pub fn of_leases_below(collection: &Self) -> Self {
        Self::new(format!("{collection} leases"))
    }

    /// The key of no resource, under which proxies that share a store remember a write with an idempotency key. No
    /// request makes this key either.
    pub fn of_keyed_write(name: [u8; 32]) -> Self {
        Self::new(format!("{KEYED_WRITE}{}", blake3::Hash::from_bytes(name).to_hex()))
    }

    /// The key of no resource, under which proxies that share a store take turns at an upload in blocks. No request makes
    /// this key either.
    pub fn of_upload(name: KeyDigest) -> Self {
        Self::new(format!("{UPLOAD}{:032x}", u128::from_be_bytes(name)))
    }

    /// True if the key belongs to what a client does, and not to a resource.
    pub fn is_of_no_resource(&self) -> bool {
        self.is_of_keyed_write() || self.text.starts_with(UPLOAD)
    }

    /// True if the key belongs to a write, and not to a resource.
    pub fn is_of_keyed_write(&self) -> bool {
        self.text.starts_with(KEYED_WRITE)
    }

    fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let digest = half(&blake3::hash(text.as_bytes()));
        Self { text, digest }
    }

    /// The key as text: visible ASCII.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key as text that takes no further memory.
    pub fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The bucket of the key, out of the store's 65,536 floor buckets. It never changes for a key, because stores
    /// persist it.
    pub fn bucket(&self) -> u16 {
        let [first, second, ..] = self.digest;
        u16::from_be_bytes([first, second])
    }

    /// Half of the hash of the key's text.
    pub fn digest(&self) -> KeyDigest {
        self.digest
    }
}

impl Hash for ResourceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Hashes without the length, which is always the same.
        state.write(&self.digest);
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Why a request has no single key. The text tells what to send instead, and names only what the configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AmbiguousKey {
    /// A query parameter occurs twice.
    #[error("the query parameter {0:?} names the resource; send it once")]
    RepeatedParameter(String),
    /// The name of a parameter is one that some server reads as the one that names the resource.
    #[error(
        "some servers read another parameter of the query as {0:?}, which names the resource; spell it so, and once"
    )]
    OtherSpelling(String),
    /// The query holds more parameters than some servers read.
    #[error("the query names the resource, and some servers read a thousand parameters; send fewer")]
    TooManyParameters,
    /// A header field has several lines.
    #[error("the header field {0:?} names the resource; send it once")]
    RepeatedField(String),
    /// A header field is absent, or holds no JSON with one reading.
    #[error("the header field {0:?} names the resource; send it as one JSON value in ASCII, each member once")]
    BadJson(String),
    /// The value of a query parameter is not percent-encoded UTF-8.
    #[error("the query parameter {0:?} names the resource; send it as percent-encoded UTF-8")]
    BadEncoding(String),
    /// The query holds `;` or `#`, at which some servers cut it.
    #[error("the query names the resource; encode \";\" as %3B and \"#\" as %23, and put \"&\" between parameters")]
    Separator,
}
