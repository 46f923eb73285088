//! The part of the requested operation that the name of an error depends on.

use http::{HeaderMap, Method, header};

use super::LEASE_ACTION;
use crate::core::http::request_target::split_query;

/// A requested lease action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseVerb {
    /// `acquire`.
    Acquire,
    /// `renew`.
    Renew,
    /// `change`.
    Change,
    /// `release`.
    Release,
    /// `break`.
    Break,
}

impl LeaseVerb {
    /// Each action with its word.
    const WORDS: [(&'static str, Self); 5] = [
        ("acquire", Self::Acquire),
        ("renew", Self::Renew),
        ("change", Self::Change),
        ("release", Self::Release),
        ("break", Self::Break),
    ];

    /// Parses the value of `x-ms-lease-action`, in any case.
    pub fn of(word: &[u8]) -> Option<Self> {
        let word = word.trim_ascii();
        Self::WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes())).map(|(_, verb)| *verb)
    }
}

/// The requested operation. It is read from the head even if the request makes no sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedOperation {
    /// True if the operation acts on a container.
    pub container: bool,
    /// The action on a lease, if the operation is one on a lease.
    pub lease: Option<LeaseVerb>,
    /// True if the operation creates something that must not exist yet.
    pub creates: bool,
}

impl AskedOperation {
    /// Reads the operation from the head of a request.
    pub fn of(method: &Method, target: &[u8], headers: &HeaderMap) -> Self {
        let (_, query) = split_query(target);
        let says = |pair: &[u8]| {
            query.unwrap_or_default().split(|&octet| octet == b'&').any(|found| found.eq_ignore_ascii_case(pair))
        };
        let container = says(b"restype=container");
        let is_lease = says(b"comp=lease");
        let any = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes().trim_ascii() == b"*");
        Self {
            container,
            lease: headers.get(LEASE_ACTION).filter(|_| is_lease).and_then(|word| LeaseVerb::of(word.as_bytes())),
            creates: *method == Method::PUT && !is_lease && (container && !says(b"comp=metadata") || any),
        }
    }
}
