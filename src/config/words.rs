//! The words that stand for values. Each type has one table, which serves to read the file, to make hints and to show
//! values.

use std::borrow::Cow;

use http::HeaderName;

use super::{Balance, Forwarded, HashBy, HealthProbe};
use crate::{
    core::{
        http::{
            fields::Underscores,
            request_target::{EncodedSlash, PathParameters},
        },
        members::index_form::IndexForm,
        policy::{
            AbsentLease, Collections, Compare, Dialect, Guarantee, Idempotency, LeaseAuth, LeaseGuards, MethodOverride,
            OnWrite, Policy, ProbeAuth, ReadConsistency, RepeatedWrites, Require, StoreMethod, TagAfterWrite,
            TagSource,
        },
        tags::json::JsonPointer,
    },
    tls::ClientAuth,
};

/// The beginning of a tag source that continues with the name of a response field.
const HEADER_FORM: &str = "header:";

/// The beginning of a tag source that continues with a JSON pointer.
const JSON_FORM: &str = "json:";

/// A type whose values are words of the configuration.
pub trait Word: Clone + PartialEq + 'static {
    /// Each word with its value.
    const WORDS: &'static [(&'static str, Self)];

    /// Further forms, each a word with a part that the user chooses, as hints show them.
    const FORMS: &'static [&'static str] = &[];

    /// Returns the value that a word stands for.
    fn of(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(each, _)| *each == word).map(|(_, value)| value.clone())
    }

    /// Returns the word for this value; empty if the value has one of the [`Word::FORMS`].
    fn word(&self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| value == self).map_or("", |(word, _)| word)
    }

    /// Returns this value as a file spells it.
    fn spelled(&self) -> Cow<'static, str> {
        self.word().into()
    }
}

/// Gives each type its words.
macro_rules! words {
    ($($value:ident { $($word:literal: $variant:ident),+ })+) => {
        $(impl $crate::config::words::Word for $value {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        })+
    };
}
pub(super) use words;

words! {
    Policy { "last-writer-wins": LastWriterWins, "optimistic": Optimistic, "pessimistic": Pessimistic }
    Underscores { "keep": Keep, "drop": Drop }
    ClientAuth { "off": Off, "optional": Optional, "required": Required }
    Require { "never": Never, "existing": Existing, "always": Always }
    Compare { "strong": Strong, "opaque": Opaque }
    OnWrite { "probe": Probe, "omit": Omit }
    TagAfterWrite { "verbatim": Verbatim, "always": Always }
    MethodOverride { "refuse": Refuse, "judge": Judge }
    Collections { "detect": Detect, "webdav": WebDav, "none": None }
    ReadConsistency { "any": Any, "settled": Settled, "last": Last }
    RepeatedWrites { "refuse": Refuse, "succeed": Succeed }
    ProbeAuth { "client": Client, "none": None, "field": Field, "sigv4": SigV4 }
    StoreMethod { "as-sent": AsSent, "PUT": Put }
    Idempotency { "off": Off, "accept": Accept, "required": Required }
    PathParameters { "refuse": Refuse, "keep": Keep }
    EncodedSlash { "refuse": Refuse, "keep": Keep }
    Guarantee { "store": Store, "safety": Safety }
    LeaseAuth { "probe": Probe, "none": None }
    AbsentLease { "allow": Allow, "refuse": Refuse }
    Balance { "round-robin": RoundRobin, "consistent-hash": ConsistentHash }
    Forwarded { "off": Off, "x-forwarded": XForwarded, "forwarded": Standard, "both": Both }
    HealthProbe { "off": Off, "connect": Connect, "http": Http }
    StoreWord { "memory": Memory, "disk": Disk, "etcd": Etcd, "postgres": Postgres, "redis": Redis }
}

impl Word for TagSource {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("content", Self::Content),
        ("upstream", Self::Upstream),
        ("version", Self::Version),
        ("delegate", Self::Delegate),
    ];
    const FORMS: &'static [&'static str] = &["header:NAME", "json:/pointer"];

    fn of(word: &str) -> Option<Self> {
        match (word.strip_prefix(HEADER_FORM), word.strip_prefix(JSON_FORM)) {
            (Some(name), _) => name.parse::<HeaderName>().ok().map(Self::Header),
            (None, Some(pointer)) => JsonPointer::parse(pointer).map(Self::Json),
            (None, None) => Self::WORDS.iter().find(|(each, _)| *each == word).map(|(_, value)| value.clone()),
        }
    }

    fn spelled(&self) -> Cow<'static, str> {
        match self {
            Self::Header(name) => format!("{HEADER_FORM}{name}").into(),
            Self::Json(pointer) => format!("{JSON_FORM}{pointer}").into(),
            Self::Content | Self::Upstream | Self::Version | Self::Delegate => self.word().into(),
        }
    }
}

impl Word for IndexForm {
    const WORDS: &'static [(&'static str, Self)] =
        &[("webdav", Self::WebDav), ("nginx-json", Self::NginxJson), ("s3", Self::S3)];
    const FORMS: &'static [&'static str] = &["json:/pointer"];

    fn of(word: &str) -> Option<Self> {
        match word.strip_prefix(JSON_FORM) {
            Some(pointer) => JsonPointer::parse(pointer).map(Self::Json),
            None => Self::WORDS.iter().find(|(each, _)| *each == word).map(|(_, value)| value.clone()),
        }
    }

    fn spelled(&self) -> Cow<'static, str> {
        match self {
            Self::Json(pointer) => format!("{JSON_FORM}{pointer}").into(),
            Self::WebDav | Self::NginxJson | Self::S3 => self.word().into(),
        }
    }
}

impl Word for Dialect {
    const WORDS: &'static [(&'static str, Self)] = Self::NAMES;
}

/// Returns the words of the `lease.guards` list, in alphabetical order.
pub fn guard_words(guards: LeaseGuards) -> &'static [&'static str] {
    match guards {
        LeaseGuards::Write => &["write"],
        LeaseGuards::Read => &["read"],
        LeaseGuards::ReadAndWrite => &["read", "write"],
        LeaseGuards::Delete => &["delete"],
    }
}

impl Word for HashBy {
    const WORDS: &'static [(&'static str, Self)] = &[("path", Self::Path), ("client", Self::Client)];
    const FORMS: &'static [&'static str] = &["header:NAME"];

    fn of(word: &str) -> Option<Self> {
        match word.strip_prefix(HEADER_FORM) {
            Some(name) => name.parse::<HeaderName>().ok().map(Self::Header),
            None => Self::WORDS.iter().find(|(each, _)| *each == word).map(|(_, value)| value.clone()),
        }
    }

    fn spelled(&self) -> Cow<'static, str> {
        match self {
            Self::Header(name) => format!("{HEADER_FORM}{name}").into(),
            Self::Path | Self::Client => self.word().into(),
        }
    }
}

/// The kinds of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreWord {
    /// The memory of this process; records end with it.
    Memory,
    /// The memory of this process, with the leases also in a file.
    Disk,
    /// An etcd cluster.
    Etcd,
    /// A PostgreSQL server.
    Postgres,
    /// A Redis server.
    Redis,
}

/// Returns the known word that was probably meant: at most one in three of its letters differs (one is always allowed).
pub(super) fn similar<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|each| (strsim::damerau_levenshtein(word, each), each));
    distances.filter(|(distance, each)| *distance <= (each.len() / 3).max(1)).min().map(|(_, each)| each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_near_and_nothing_else() {
        let known = ["policy", "path", "upstream"];
        assert_eq!(similar("polcy", known), Some("policy"));
        assert_eq!(similar("paht", known), Some("path"));
        assert_eq!(similar("upstreams", known), Some("upstream"));
        assert_eq!(similar("listen", known), None);
        assert_eq!(similar("", known), None);
    }

    #[test]
    fn a_tag_source_can_name_a_field() {
        let source = TagSource::of("header:X-Version");
        assert_eq!(source, Some(TagSource::Header(HeaderName::from_static("x-version"))));
        assert_eq!(source.map(|source| source.spelled()), Some("header:x-version".into()));
        assert_eq!(TagSource::of("header:"), None);
        assert_eq!(TagSource::of("header:two words"), None);
    }

    #[test]
    fn a_tag_source_can_name_a_field_of_a_json_text() {
        let source = TagSource::of("json:/meta/version").expect("a pointer");
        assert!(matches!(source, TagSource::Json(_)));
        assert_eq!(source.spelled(), "json:/meta/version");
        assert_eq!(TagSource::of("json:version"), None);
        assert_eq!(TagSource::of("json:"), None);
    }
}
