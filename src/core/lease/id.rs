//! Lease ids: the secrets that prove a lease (DESIGN, section 3, rule 11).

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use subtle::ConstantTimeEq;
use uuid::{Builder, Uuid, Variant};

/// The id of one lease: a UUID, compared in constant time. Only [`LeaseId::reveal`] prints it.
#[derive(Clone, Copy)]
pub struct LeaseId(Uuid);

/// The error for a value that is no UUID. The message repeats no part of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a lease id is a UUID: 8-4-4-4-12 hexadecimal digits")]
pub struct MalformedLeaseId;

impl LeaseId {
    /// Makes an id with 122 random bits out of 128.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Reads any common spelling of a UUID: with or without hyphens, braces or parentheses, in either case.
    pub fn parse(field_value: &[u8]) -> Result<Self, MalformedLeaseId> {
        let trimmed = field_value.trim_ascii();
        let bare = trimmed.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")).unwrap_or(trimmed);
        Uuid::try_parse_ascii(bare).map(Self).map_err(|_which| MalformedLeaseId)
    }

    /// True if the id is a UUID of the version that is made of random bits (RFC 9562 section 5.4).
    pub fn is_random(&self) -> bool {
        self.0.get_version_num() == 4 && self.0.get_variant() == Variant::RFC4122
    }

    /// Returns the canonical spelling, in lower case. It belongs only in the answer to the client that acquired the
    /// lease.
    pub fn reveal(&self) -> String {
        self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()).to_owned()
    }
}

impl PartialEq for LeaseId {
    fn eq(&self, other: &Self) -> bool {
        // By two numbers: a comparison byte by byte takes several times as long, for any bytes.
        let ((first, second), (other_first, other_second)) = (self.0.as_u64_pair(), other.0.as_u64_pair());
        (first.ct_eq(&other_first) & second.ct_eq(&other_second)).into()
    }
}

impl Eq for LeaseId {}

impl Hash for LeaseId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LeaseId(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANONICAL: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    fn id(text: &str) -> LeaseId {
        LeaseId::parse(text.as_bytes()).expect(text)
    }

    #[test]
    fn every_spelling_of_one_id_is_the_same_id() {
        for spelling in [
            "0F8FAD5B-D9CB-469F-A165-70867728950E",
            "0f8fad5bd9cb469fa16570867728950e",
            "{0f8fad5b-d9cb-469f-a165-70867728950e}",
            "(0F8FAD5B-D9CB-469f-a165-70867728950e)",
            "  0f8fad5b-d9cb-469f-a165-70867728950e\t",
        ] {
            assert_eq!(id(spelling), id(CANONICAL), "{spelling}");
            assert_eq!(id(spelling).reveal(), CANONICAL);
        }
        assert_ne!(id("0f8fad5b-d9cb-469f-a165-70867728950f"), id(CANONICAL));
    }

    #[test]
    fn what_is_no_uuid_is_no_id() {
        for text in
            ["", "1", "0f8fad5b", "0f8fad5b-d9cb-469f-a165-70867728950", "{0f8fad5b-d9cb-469f-a165-70867728950e"]
        {
            assert_eq!(LeaseId::parse(text.as_bytes()), Err(MalformedLeaseId), "{text}");
        }
        assert_eq!(LeaseId::parse(b"0f8fad5b-d9cb-469f-a165-70867728950\xff"), Err(MalformedLeaseId));
    }

    /// RFC 9562 section 5.4: version 4 of the variant 10xx.
    #[test]
    fn only_version_four_is_random() {
        assert!(id(CANONICAL).is_random());
        assert!(!id("0f8fad5b-d9cb-169f-a165-70867728950e").is_random(), "version 1");
        assert!(!id("0f8fad5b-d9cb-469f-c165-70867728950e").is_random(), "another variant");
        assert!(!id("00000000-0000-0000-0000-000000000000").is_random());
        assert!(LeaseId::from_random([0xff; 16]).is_random());
    }

    #[test]
    fn an_id_is_not_printed_by_accident() {
        let printed = format!("{:?}", Some(id(CANONICAL)));
        assert_eq!(printed, "Some(LeaseId(secret))");
    }
}
