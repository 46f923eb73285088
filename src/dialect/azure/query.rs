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
                b"comp" => return Err(not_served(unserved_operation(value))),
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

/// Names the operation that a value of `comp` stands for, and the remedy if there is one.
fn unserved_operation(comp: &[u8]) -> &'static str {
    match comp.to_ascii_lowercase().as_slice() {
        b"block" | b"blocklist" => {
            "Blocks (Put Block, Put Block List) are not served here: upload the blob in one request, by a \
             max_single_put_size (Python) or maxSingleShotSize (Node) above its size. A stream of unknown length has \
             to be read first."
        }
        b"metadata" => "Set Blob Metadata is not served here: the backend cannot store metadata.",
        b"properties" => "Properties of a blob or of the service cannot be set or read by comp=properties here.",
        b"tags" | b"blobs" => "Blob tags are not served here: the backend cannot store them.",
        b"tier" => "Set Blob Tier is not served here: the backend has no tiers.",
        b"snapshot" => "Snapshot Blob is not served here: the backend keeps only the current state.",
        b"undelete" => "Undelete Blob is not served here: the backend keeps nothing that was deleted.",
        b"copy" => "Copies are not served here: read the blob, and upload it under its other name.",
        b"batch" => "Blob Batch is not served here: send each operation in a request of its own.",
        b"list" => "Lists of blobs and containers are not served here: the client must know the names.",
        b"acl" => "Access policies of containers are not served here.",
        b"page" | b"pagelist" | b"appendblock" => "Page blobs and append blobs are not served here: use block blobs.",
        _ => "This operation (comp in the query) is not served here; of those with comp, only comp=lease is.",
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
        for (query, name) in [
            ("comp=block&blockid=x", "Put Block"),
            ("comp=BlockList", "max_single_put_size"),
            ("restype=container&comp=list", "Lists"),
            ("comp=metadata", "Set Blob Metadata"),
            ("comp=new", "only comp=lease"),
        ] {
            let detail = Query::read(query.as_bytes()).expect_err(query).detail;
            assert!(detail.contains(name), "{query}: {detail}");
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
