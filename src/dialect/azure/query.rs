//! The query of a request: its part in naming the operation, and the rest for the backend.

use super::refusals::{bad_query, not_served, unknown_query};
use crate::core::refusal::Refusal;

/// The parameters of a shared access signature. They are the client's credentials, so the backend gets them unchanged.
const SIGNATURE: [&str; 24] = [
    "sv", "ss", "srt", "sr", "sp", "se", "st", "spr", "sip", "si", "sig", "sdd", "ses", "saoid", "suoid", "scid",
    "skoid", "sktid", "skt", "ske", "sks", "skv", "sduoid", "skdutid",
];

/// A query that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Whether the request is about a container.
    pub(super) container: bool,
    /// Whether the request is about a lease.
    pub(super) lease: bool,
    /// The parameters for the backend.
    pub(super) forwarded: Vec<u8>,
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    ///
    /// The query contains something that is not served. A name is recognised only in its plain spelling, because the
    /// backend might read another spelling differently.
    pub(super) fn read(query: &[u8]) -> Result<Self, Refusal> {
        let mut read = Self::default();
        for pair in query.split(|&octet| octet == b'&').filter(|pair| !pair.is_empty()) {
            let mut halves = pair.splitn(2, |&octet| octet == b'=');
            let name = halves.next().unwrap_or_default().to_ascii_lowercase();
            let value = halves.next().unwrap_or_default();
            match name.as_slice() {
                b"comp" if read.lease => return Err(bad_query("comp")),
                b"comp" if value.eq_ignore_ascii_case(b"lease") => read.lease = true,
                b"comp" => return Err(not_served("the only comp operation served here is comp=lease")),
                b"restype" if read.container => return Err(bad_query("restype")),
                b"restype" if value.eq_ignore_ascii_case(b"container") => read.container = true,
                b"restype" => return Err(not_served("the only resources served here are blobs and containers")),
                b"timeout" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {}
                b"timeout" => return Err(bad_query("timeout")),
                name if SIGNATURE.iter().any(|known| known.as_bytes() == name) => {
                    if !read.forwarded.is_empty() {
                        read.forwarded.push(b'&');
                    }
                    read.forwarded.extend_from_slice(pair);
                }
                _ => return Err(unknown_query()),
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Query {
        Query::read(query.as_bytes()).unwrap_or_else(|refusal| panic!("{query}: {refusal:?}"))
    }

    fn code(query: &str) -> Option<(u16, &'static str)> {
        let service = Query::read(query.as_bytes()).err()?.service?;
        Some((service.status, service.code))
    }

    #[test]
    fn what_is_for_us_is_taken_out_and_credentials_stay_as_they_came() {
        assert_eq!(read(""), Query::default());
        assert_eq!(read("comp=lease&timeout=30"), Query { lease: true, ..Query::default() });
        let all = read("sv=2021&RESTYPE=Container&sig=a%2Bb%3D&&Comp=LEASE&se=x");
        assert_eq!(all, Query { container: true, lease: true, forwarded: b"sv=2021&sig=a%2Bb%3D&se=x".to_vec() });
    }

    #[test]
    fn what_is_not_served_is_refused() {
        for query in ["comp=block&blockid=x", "comp=metadata", "comp=", "comp", "comp=leas%65", "restype=account"] {
            assert_eq!(code(query), Some((501, "NotImplemented")), "{query}");
        }
        for query in
            ["snapshot=2020", "versionid=1", "%63omp=lease", "comp%3Dlease", "x", "a=b", "deletetype=permanent"]
        {
            assert_eq!(code(query), Some((400, "UnsupportedQueryParameter")), "{query}");
        }
        for query in ["comp=lease&comp=lease", "restype=container&restype=container", "timeout=soon", "timeout="] {
            assert_eq!(code(query), Some((400, "InvalidQueryParameterValue")), "{query}");
        }
    }
}
