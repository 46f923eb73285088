//! The name of a resource: its key, and the template that a route makes it by (DESIGN, section 3, rule 10; section 9).

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use thiserror::Error;

mod origin;
mod template;
#[cfg(test)]
mod tests;
mod values;

pub use template::KeyTemplate;
pub use values::KeyParts;

/// The one spelling of a resource's name: the identity of its upstream, `:`, and what the template makes of the request.
/// Equal keys are the same resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceKey {
    text: Arc<str>,
    /// The first bytes of the text's BLAKE3 hash: asked for several times a request.
    hash: u64,
}

/// Nobody can choose keys whose hashes are equal, so that of the text is as good for a table as the text.
impl Hash for ResourceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl ResourceKey {
    /// The key with this text: one that a store has kept, or of a test that does not care how keys are made.
    pub fn from_text(text: &str) -> Self {
        Self::new(text)
    }

    /// The key of no resource: where it is noted that collections of an upstream were removed, and what was in them too.
    /// No request makes it, since a key that is made of a request holds no space.
    pub fn of_collections(upstream: &str) -> Self {
        Self::new(format!("{upstream} collections"))
    }

    fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let (mut first, hash) = ([0; 8], blake3::hash(text.as_bytes()));
        first.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
        Self { text, hash: u64::from_be_bytes(first) }
    }

    /// The key as text: visible ASCII.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Which of the store's 65,536 floor buckets it belongs to. It never changes for a key: stores write it down.
    pub fn bucket(&self) -> u16 {
        let [first, second, ..] = self.hash.to_be_bytes();
        u16::from_be_bytes([first, second])
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Why a request has no one key. The text says what to send instead; it names only what the configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AmbiguousKey {
    /// A query parameter occurs with two values.
    #[error("the query parameter {0:?} names the resource; send it once")]
    RepeatedParameter(String),
    /// A header field occurs with two values.
    #[error("the header field {0:?} names the resource; send it once")]
    RepeatedField(String),
    /// The value of a query parameter is not percent-encoded UTF-8.
    #[error("the query parameter {0:?} names the resource; send it as percent-encoded UTF-8")]
    BadEncoding(String),
    /// The query holds `;` or `#`, at which some servers cut it.
    #[error("the query names the resource; encode \";\" as %3B and \"#\" as %23, and put \"&\" between parameters")]
    Separator,
}
