//! The query of a request: its part in naming the operation, and the rest for the backend.

use percent_encoding::percent_decode;

use super::refusals::{bad_query, not_served, unknown_query};
use crate::core::refusal::Refusal;

/// The parameters of a shared access signature. They are the client's credentials, so the backend gets them unchanged.
const SIGNATURE: [&str; 24] = [
    "sv", "ss", "srt", "sr", "sp", "se", "st", "spr", "sip", "si", "sig", "sdd", "ses", "saoid", "suoid", "scid",
    "skoid", "sktid", "skt", "ske", "sks", "skv", "sduoid", "skdutid",
];

/// The parameters that single operations take.
const OF_OPERATIONS: [&str; 8] =
    ["blockid", "blocklisttype", "copyid", "prefix", "delimiter", "marker", "maxresults", "include"];

/// The part of a resource that a request is about (`comp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component {
    /// The lease.
    Lease,
    /// A block of an upload.
    Block,
    /// The list of blocks.
    BlockList,
    /// The list of blobs.
    List,
    /// The metadata.
    Metadata,
    /// The properties.
    Properties,
    /// A copy that has not ended.
    Copy,
}

impl Component {
    const WORDS: [(&'static str, Self); 7] = [
        ("lease", Self::Lease),
        ("block", Self::Block),
        ("blocklist", Self::BlockList),
        ("list", Self::List),
        ("metadata", Self::Metadata),
        ("properties", Self::Properties),
        ("copy", Self::Copy),
    ];

    fn of(word: &[u8]) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes())).map(|(_, part)| *part)
    }
}

/// A query that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// True if the request is about a container.
    pub(super) container: bool,
    /// The part of the resource that the request is about, if not the whole.
    pub(super) component: Option<Component>,
    /// The parameters for the operation, with decoded values.
    pub(super) parameters: Vec<(&'static str, String)>,
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
                b"comp" if read.component.is_some() => return Err(bad_query("comp")),
                b"comp" => {
                    let component = Component::of(value);
                    read.component = Some(component.ok_or_else(|| not_served(unserved_operation(value)))?);
                }
                b"restype" if read.container => return Err(bad_query("restype")),
                b"restype" if value.eq_ignore_ascii_case(b"container") => read.container = true,
                b"restype" => return Err(not_served("the only resources served here are blobs and containers")),
                b"timeout" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {}
                b"timeout" => return Err(bad_query("timeout")),
                name if is_of_signature(name) => {
                    if !read.forwarded.is_empty() {
                        read.forwarded.push(b'&');
                    }
                    read.forwarded.extend_from_slice(pair);
                }
                name => {
                    let known = OF_OPERATIONS.into_iter().find(|known| known.as_bytes() == name);
                    let name = known.ok_or_else(unknown_query)?;
                    let value = percent_decode(value).decode_utf8().map_err(|_error| bad_query(name))?;
                    if read.value(name).is_some() {
                        return Err(bad_query(name));
                    }
                    read.parameters.push((name, value.into_owned()));
                }
            }
        }
        Ok(read)
    }

    /// Returns the decoded value of a parameter for the operation.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// True if a parameter with this name in lower case is part of a shared access signature.
pub(in crate::dialect) fn is_of_signature(name: &[u8]) -> bool {
    SIGNATURE.iter().any(|known| known.as_bytes() == name)
}

/// Names the operation that a value of `comp` stands for, and the remedy if there is one.
fn unserved_operation(comp: &[u8]) -> &'static str {
    match comp.to_ascii_lowercase().as_slice() {
        b"tags" | b"blobs" => "Blob tags are not served here: the backend cannot store them.",
        b"tier" => "Set Blob Tier is not served here: the backend has no tiers.",
        b"snapshot" => "Snapshot Blob is not served here: the backend keeps only the current state.",
        b"undelete" => "Undelete Blob is not served here: the backend keeps nothing that was deleted.",
        b"batch" => "Blob Batch is not served here: send each operation in a request of its own.",
        b"acl" => "Container ACLs are not served here: the backend decides who may read and write.",
        b"page" | b"pagelist" | b"appendblock" => "Page blobs and append blobs are not served here: use block blobs.",
        b"stats" | b"userdelegationkey" => "Operations on the account are not served here: the backend has none.",
        _ => "This operation (comp in the query) is not served here: docs/azure.md lists those that are.",
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
        let lease = Query { component: Some(Component::Lease), ..Query::default() };
        assert_eq!(read("comp=lease&timeout=30"), lease);
        let all = read("sv=2021&RESTYPE=Container&sig=a%2Bb%3D&&Comp=LEASE&se=x");
        assert_eq!(all, Query { container: true, forwarded: b"sv=2021&sig=a%2Bb%3D&se=x".to_vec(), ..lease });
        let block = read("comp=block&BlockId=YQ%3D%3D");
        assert_eq!((block.component, block.value("blockid")), (Some(Component::Block), Some("YQ==")));
    }

    #[test]
    fn what_is_not_served_is_refused() {
        for query in ["comp=page", "comp=tags", "comp=", "comp", "comp=leas%65", "restype=account"] {
            assert_eq!(code(query), Some((501, "NotImplemented")), "{query}");
        }
        for (query, name) in
            [("comp=Page", "use block blobs"), ("comp=tags", "Blob tags"), ("comp=new", "comp in the query")]
        {
            let detail = Query::read(query.as_bytes()).expect_err(query).detail;
            assert!(detail.contains(name), "{query}: {detail}");
        }
        for query in
            ["snapshot=2020", "versionid=1", "%63omp=lease", "comp%3Dlease", "x", "a=b", "deletetype=permanent"]
        {
            assert_eq!(code(query), Some((400, "UnsupportedQueryParameter")), "{query}");
        }
        let invalid = ["blockid=a&blockid=a", "blockid=%ff"];
        for query in invalid {
            assert_eq!(code(query), Some((400, "InvalidQueryParameterValue")), "{query}");
        }
        for query in ["comp=lease&comp=lease", "restype=container&restype=container", "timeout=soon", "timeout="] {
            assert_eq!(code(query), Some((400, "InvalidQueryParameterValue")), "{query}");
        }
    }
}
