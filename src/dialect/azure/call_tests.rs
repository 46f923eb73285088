//! The requests that are served, and the requests that the backend gets for them.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::dialect::description::DescriptionUse;

pub(in super::super) const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const ID: &str = "11111111-1111-4111-8111-111111111111";

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    fields.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect()
}

fn route(serves: AzureResource) -> BlobRoute<'static> {
    BlobRoute { serves, metadata_suffix: None }
}

/// Reads a request on a route.
pub(in super::super) fn read_on(
    method: &str,
    target: &str,
    fields: &[(&'static str, &'static str)],
    route: BlobRoute<'_>,
) -> Result<Call, Refusal> {
    let (method, headers) = (method.parse().unwrap(), headers(fields));
    super::read(Incoming { method: &method, other_methods: &[], target: target.as_bytes(), headers: &headers }, route)
}

fn read(method: &str, target: &str, fields: &[(&'static str, &'static str)]) -> Result<Call, Refusal> {
    let is_of_container = target.contains("container");
    read_on(method, target, fields, route(if is_of_container { AzureResource::Container } else { AzureResource::Blob }))
}

fn operation(call: &Call) -> AzureOperation {
    AzureOperation::named(call.operation.unwrap()).unwrap()
}

/// The status and the name of the error that a refused request gets.
fn refused(method: &str, target: &str, fields: &[(&'static str, &'static str)]) -> (u16, &'static str) {
    let refusal = read(method, target, fields).expect_err(target);
    let error = super::super::error_of(&refusal, super::super::AskedOperation::default());
    (error.status.as_u16(), error.code)
}

/// The operation of a request, and the method and target for the backend.
fn sent(method: &str, target: &str, fields: &[(&'static str, &'static str)]) -> (AzureOperation, String) {
    let call = read(method, target, fields).unwrap_or_else(|refusal| panic!("{target}: {refusal:?}"));
    let forwarded = call.forwarded.as_ref().unwrap();
    (operation(&call), format!("{} {}", forwarded.method, str::from_utf8(&forwarded.target).unwrap()))
}

fn pair(operation: AzureOperation, sent: &str) -> (AzureOperation, String) {
    (operation, sent.to_owned())
}

#[test]
fn the_list_of_operations_is_served() {
    use AzureOperation::{
        CreateContainer, DeleteBlob, DeleteContainer, GetBlockList, LeaseBlob, LeaseContainer, ListBlobs, PutBlob,
        PutBlock, PutBlockList, ReadBlob, ReadContainer,
    };
    assert_eq!(sent("GET", "/c/b", &[]), pair(ReadBlob, "GET /c/b"));
    assert_eq!(sent("HEAD", "/c/b?timeout=30", &[]), pair(ReadBlob, "HEAD /c/b"));
    assert_eq!(sent("PUT", "/c/b?sv=1&sig=x", &[BLOCK]), pair(PutBlob, "PUT /c/b?sv=1&sig=x"));
    assert_eq!(sent("DELETE", "/c/b", &[("x-ms-delete-snapshots", "include")]), pair(DeleteBlob, "DELETE /c/b"));
    assert_eq!(sent("PUT", "/c/b?comp=lease", &[("x-ms-lease-action", "break")]), pair(LeaseBlob, "PUT /c/b"));
    assert_eq!(sent("PUT", "/c/b?comp=block&blockid=YQ%3D%3D", &[]), pair(PutBlock, "PUT /c/b"));
    assert_eq!(sent("PUT", "/c/b?comp=blocklist&sig=x", &[]), pair(PutBlockList, "PUT /c/b?sig=x"));
    assert_eq!(sent("GET", "/c/b?comp=blocklist&blocklisttype=all", &[]), pair(GetBlockList, "HEAD /c/b"));
    let permanent = ("x-ms-delete-type-permanent", "true");
    assert_eq!(sent("DELETE", "/c/b", &[permanent]), pair(DeleteBlob, "DELETE /c/b"));
    let container = "/abc?restype=container";
    assert_eq!(sent("GET", container, &[]), pair(ReadContainer, "HEAD /abc/"));
    assert_eq!(sent("HEAD", container, &[]), pair(ReadContainer, "HEAD /abc/"));
    assert_eq!(sent("GET", "/abc?restype=container&comp=list&prefix=a", &[]), pair(ListBlobs, "HEAD /abc/"));
    assert_eq!(sent("PUT", container, &[]), pair(CreateContainer, "MKCOL /abc/"));
    assert_eq!(sent("DELETE", "/c/?restype=container&sig=x", &[]), pair(DeleteContainer, "DELETE /c/?sig=x"));
    assert_eq!(sent("PUT", "/c?comp=lease&restype=container", &[]), pair(LeaseContainer, "PUT /c/"));
}

#[test]
fn what_is_not_on_the_list_is_refused() {
    let (not_implemented, bad_verb) = ((501, "NotImplemented"), (405, "UnsupportedHttpVerb"));
    let unsupported = (400, "UnsupportedHeader");
    for (method, target, fields, expected) in [
        ("PUT", "/c/b", &[][..], (400, "MissingRequiredHeader")),
        ("PUT", "/c/b", &[("x-ms-blob-type", "AppendBlob")], not_implemented),
        ("PUT", "/c/b", &[("x-ms-blob-type", "PageBlob")], not_implemented),
        ("PUT", "/c/b", &[("x-ms-blob-type", "blob")], (400, "InvalidHeaderValue")),
        ("PUT", "/c/b", &[BLOCK, ("x-ms-blob-type", "BlockBlob")], (400, "InvalidHeaderValue")),
        ("PUT", "/c/b", &[BLOCK, ("x-ms-copy-source", "http://a/b")], unsupported),
        ("PUT", "/c/b", &[BLOCK, ("x-ms-meta-owner", "me")], unsupported),
        ("PUT", "/c/b", &[BLOCK, ("x-ms-encryption-key", "a")], unsupported),
        ("PUT", "/c/b", &[BLOCK, ("x-ms-lease-action", "acquire")], unsupported),
        ("PUT", "/c/b", &[BLOCK, ("content-range", "bytes 0-1/2")], unsupported),
        ("GET", "/c/b", &[("x-ms-range-get-content-md5", "true")], (400, "InvalidHeaderValue")),
        ("GET", "/c/b", &[("x-ms-lease-action", "acquire")], unsupported),
        ("DELETE", "/c/b", &[("x-ms-delete-snapshots", "only")], not_implemented),
        ("DELETE", "/c/b", &[("x-ms-delete-type-permanent", "yes")], (400, "InvalidHeaderValue")),
        ("PUT", "/A_B?restype=container", &[], (400, "InvalidResourceName")),
        ("PUT", "/a?restype=container", &[], (400, "OutOfRangeInput")),
        ("PUT", "/c/b?comp=block&blockid=YQ==", &[BLOCK], unsupported),
        ("PUT", "/c/b?comp=block&blockid=YQ", &[], (400, "InvalidBlockId")),
        ("PUT", "/c/b?comp=block&blockid=", &[], (400, "InvalidBlockId")),
        ("PUT", "/c/b?comp=block", &[], (400, "MissingRequiredQueryParameter")),
        ("PUT", "/c/b?comp=block&blockid=YQ==", &[("if-match", "a")], (400, "ConditionHeadersNotSupported")),
        ("PUT", "/c/b?comp=block&blockid=YQ==", &[("x-ms-copy-source", "http://a/b")], unsupported),
        ("PUT", "/c/b?comp=block&blockid=YQ==", &[("content-md5", "a")], (400, "InvalidMd5")),
        ("PUT", "/c/b?comp=blocklist", &[BLOCK], unsupported),
        ("PUT", "/c/b?comp=blocklist", &[("x-ms-blob-content-md5", "a")], (400, "InvalidMd5")),
        ("GET", "/c/b?comp=blocklist&blocklisttype=new", &[], (400, "InvalidQueryParameterValue")),
        ("GET", "/c/b?blockid=YQ==", &[], (400, "UnsupportedQueryParameter")),
        ("GET", "/c/b?comp=block&blockid=YQ==", &[], bad_verb),
        ("DELETE", "/c/b?comp=blocklist", &[], bad_verb),
        ("PUT", "/c/b?comp=metadata", &[], not_implemented),
        ("GET", "/c/b?snapshot=2020", &[], (400, "UnsupportedQueryParameter")),
        ("GET", "/c/b?comp=lease", &[], bad_verb),
        ("DELETE", "/c/b?comp=lease", &[], bad_verb),
        ("POST", "/c/b", &[], bad_verb),
        ("PATCH", "/c/b", &[], bad_verb),
        ("OPTIONS", "/c/b", &[], bad_verb),
        ("GET", "/c?restype=container&comp=list&maxresults=0", &[], (400, "OutOfRangeQueryParameterValue")),
        ("GET", "/c?restype=container&comp=list&include=tags", &[], (400, "UnsupportedQueryParameter")),
        ("GET", "/c?restype=container&comp=list", &[("if-modified-since", "a")], (400, "ConditionHeadersNotSupported")),
        ("HEAD", "/c?restype=container&comp=list", &[], bad_verb),
        ("GET", "/c?restype=container&prefix=a", &[], (400, "UnsupportedQueryParameter")),
        ("PUT", "/c?restype=container&comp=acl", &[], not_implemented),
        ("GET", "/account?comp=list", &[], not_implemented),
        ("PUT", "/c?restype=container", &[("x-ms-meta-owner", "me")], unsupported),
        ("POST", "/c?restype=container", &[], bad_verb),
        ("GET", "/?restype=service&comp=properties", &[], not_implemented),
    ] {
        assert_eq!(refused(method, target, fields), expected, "{method} {target} {fields:?}");
    }
}

#[test]
fn a_name_ends_with_itself() {
    for target in ["/c/b/", "/c/b/.", "/c/b/..", "/", "/c//"] {
        for method in ["GET", "DELETE", "PUT"] {
            assert_eq!(
                refused(method, target, &[BLOCK][..usize::from(method == "PUT")]),
                (400, "InvalidUri"),
                "{target}"
            );
        }
    }
    for target in ["/c//?restype=container", "/c/..?restype=container", "/?restype=container"] {
        assert_eq!(refused("DELETE", target, &[]), (400, "InvalidUri"), "{target}");
    }
}

#[test]
fn metadata_are_served_on_routes_that_keep_them() {
    let upload = [BLOCK, ("x-ms-meta-a", "1")];
    assert_eq!(refused("PUT", "/c/b", &upload), (400, "UnsupportedHeader"));
    assert_eq!(refused("PUT", "/c/b?comp=metadata", &[]), (501, "NotImplemented"));
    assert_eq!(refused("GET", "/c/b?comp=metadata", &[]), (501, "NotImplemented"));
    assert_eq!(refused("PUT", "/c/b?comp=properties", &[]), (501, "NotImplemented"));
    assert_eq!(refused("GET", "/container?restype=container&comp=metadata", &[]), (501, "NotImplemented"));
    let keeping = |method: &str, target: &str, fields: &[(&'static str, &'static str)]| {
        let route = BlobRoute { serves: AzureResource::Blob, metadata_suffix: Some(".meta") };
        read_on(method, target, fields, route)
            .map_err(|refusal| refusal.service.map(|service| (service.status, service.code)))
    };
    let put = keeping("PUT", "/c/b", &upload).unwrap();
    assert!(put.forwarded.unwrap().fields.keys().all(|name| !is_of_azure(name)), "the document has them");
    assert!(matches!(put.description, Some(DescriptionUse::ReplacedWithContent(kept)) if !kept.is_empty()));
    let get = keeping("GET", "/c/b?comp=metadata&sig=x", &[]).unwrap();
    let head = get.forwarded.unwrap();
    assert_eq!(
        (head.method, head.target, get.description),
        (Method::HEAD, b"/c/b?sig=x".to_vec(), Some(DescriptionUse::Shown))
    );
    assert!(keeping("PUT", "/c/b?comp=metadata", &[]).unwrap().description.unwrap().is_alone());
    assert!(
        keeping("PUT", "/c/b?comp=properties", &[("x-ms-blob-content-type", "a/b")])
            .unwrap()
            .description
            .unwrap()
            .is_alone()
    );
    assert_eq!(keeping("PUT", "/c/b?comp=properties", &upload[1..]).err(), Some(Some((400, "UnsupportedHeader"))));
    assert_eq!(keeping("GET", "/c/b", &[("x-ms-meta-a", "1")]).err(), Some(Some((400, "UnsupportedHeader"))));
    for target in ["/c/b.meta", "/c/b%2Emeta", "/c/b.META", "/c/b.meta/d"] {
        for method in ["GET", "PUT", "DELETE"] {
            let refused = keeping(method, target, &[BLOCK]).err();
            assert_eq!(refused, Some(Some((400, "InvalidResourceName"))), "{method} {target}");
        }
    }
}

#[test]
fn a_route_serves_blobs_or_containers() {
    let call = |target: &str, serves| {
        let refusal = read_on("DELETE", target, &[], route(serves)).err()?;
        refusal.service.map(|service| service.code)
    };
    assert_eq!(call("/c?restype=container", AzureResource::Blob), Some("NotImplemented"));
    assert_eq!(call("/c", AzureResource::Container), Some("NotImplemented"));
}

#[test]
fn a_list_of_blocks_does_not_describe_the_blob() {
    let fields = [
        ("content-type", "application/xml"),
        ("content-md5", "kAFQmDzST7DWlj99KOF/cg=="),
        ("content-length", "17"),
        ("x-ms-blob-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
        ("x-ms-blob-content-language", "de"),
    ];
    let call = read("PUT", "/c/b?comp=blocklist", &fields).unwrap();
    assert_eq!(call.forwarded.unwrap().fields, headers(&[("content-language", "de")]));
    let SentContent::BlockList { checksums } = call.content else { panic!("{:?}", call.content) };
    assert_eq!((call.checksums.len(), checksums.len()), (1, 1));
    assert_ne!(call.checksums, checksums, "one is of the list, the other of the blob");
}

#[test]
fn the_backend_gets_fields_of_http_and_none_of_azure() {
    let fields = [
        ("authorization", "Bearer a"),
        ("content-type", "text/plain"),
        ("x-ms-blob-content-type", "image/png"),
        ("x-ms-blob-content-encoding", "gzip"),
        ("x-ms-blob-cache-control", "no-cache"),
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-lease-id", ID),
        ("x-ms-date", "today"),
        ("x-ms-version", "2021-12-02"),
        ("if-match", "0x8D1"),
        ("range", "bytes=0-1"),
    ];
    let call = read("PUT", "/c/b", &fields).unwrap();
    assert_eq!(call.lease_id, LeaseId::parse(ID.as_bytes()).ok());
    let mut forwarded: Vec<_> = call
        .forwarded
        .unwrap()
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    forwarded.sort_unstable();
    let expected = [
        "authorization: Bearer a",
        "cache-control: no-cache",
        "content-encoding: gzip",
        "content-type: image/png",
        "if-match: \"0x8D1\"",
    ];
    assert_eq!(forwarded, expected);
}

#[test]
fn the_range_of_azure_goes_before_that_of_http_and_a_head_has_none() {
    let fields = [("range", "bytes=0-1"), ("x-ms-range", "bytes=2-3")];
    let range = |method: &str| {
        let forwarded = read(method, "/c/b", &fields).unwrap().forwarded.unwrap();
        forwarded.fields.get(header::RANGE).cloned()
    };
    assert_eq!(range("GET"), Some(HeaderValue::from_static("bytes=2-3")));
    assert_eq!(range("HEAD"), None);
}

#[test]
fn a_range_that_is_none_is_not_sent() {
    for (range, is_sent) in [
        ("bytes=0-0", true),
        ("bytes=5-", true),
        ("bytes=-5", true),
        ("bytes=0--1", false),
        ("bytes=1-0", false),
        ("bytes=0-1,3-4", false),
        ("lines=0-1", false),
    ] {
        for name in ["range", "x-ms-range"] {
            let forwarded = read("GET", "/c/b", &[(name, range)]).unwrap().forwarded.unwrap();
            assert_eq!(forwarded.fields.contains_key(header::RANGE), is_sent, "{name}: {range}");
        }
    }
}

#[test]
fn a_lease_id_is_a_guid_in_any_spelling() {
    let id = |value| read("GET", "/c/b", &[("x-ms-lease-id", value)]).map(|call| call.lease_id);
    assert_eq!(id("{11111111-1111-4111-8111-111111111111}"), Ok(LeaseId::parse(ID.as_bytes()).ok()));
    assert_eq!(refused("GET", "/c/b", &[("x-ms-lease-id", "mine")]), (400, "InvalidHeaderValue"));
}

/// Words with a meaning in Azure, and similar words.
const WORDS: [&str; 22] = [
    "comp=lease",
    "comp=block",
    "comp",
    "restype=container",
    "restype=service",
    "timeout=30",
    "sig=a%2Bb",
    "sv=1",
    "snapshot=1",
    "%63omp=lease",
    "a=b",
    "",
    "=",
    "COMP=LEASE",
    "x-ms-lease-action",
    "x-ms-blob-type",
    "x-ms-copy-source",
    "x-ms-meta-a",
    "x-ms-range",
    "x-ms-lease-id",
    "if-match",
    "range",
];

proptest! {
    /// Every request that is served reaches the backend as a plain request, without Azure's words in its target.
    #[test]
    fn what_is_served_is_plain_to_the_backend(
        method in select(vec!["GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "MKCOL"]),
        path in "(/[a-z.]{0,3}){1,4}/?",
        pairs in vec(select(WORDS.to_vec()), 0..4),
        names in vec(select(WORDS[14..].to_vec()), 0..4),
        value in select(vec!["BlockBlob", "acquire", "*", "bytes=0-1", "11111111-1111-4111-8111-111111111111", ""]),
        is_block_blob in any::<bool>(),
        serves in select(vec![AzureResource::Account, AzureResource::Container, AzureResource::Blob]),
    ) {
        let mut headers: HeaderMap = names.iter().map(|name| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect();
        if is_block_blob {
            headers.insert(BLOB_TYPE, HeaderValue::from_static(BLOCK_BLOB));
        }
        let target = format!("{path}?{}", pairs.join("&"));
        let method: Method = method.parse().unwrap();
        let request = Incoming { method: &method, other_methods: &[], target: target.as_bytes(), headers: &headers };
        if let Ok(call) = super::read(request, route(serves)) {
            let ForwardedHead { method, target, fields } = call.forwarded.as_ref().unwrap();
            prop_assert!(["GET", "HEAD", "PUT", "DELETE", "MKCOL"].contains(&method.as_str()));
            let (sent, query) = split_query(target);
            let said = String::from_utf8_lossy(query.unwrap_or_default()).to_lowercase();
            prop_assert!(["comp", "restype", "timeout", "snapshot"].iter().all(|word| !said.contains(word)), "{said}");
            prop_assert_eq!(sent.ends_with(b"/"), serves != AzureResource::Blob, "a collection and nothing else");
            prop_assert_eq!(operation(&call).resource(), serves);
            let is_plain = |name: &HeaderName| !is_of_azure(name) && (*name == header::IF_MATCH || !is_conditional(name));
            prop_assert!(fields.keys().all(is_plain), "{:?}", fields);
            let writes_blob = matches!(operation(&call), AzureOperation::PutBlob | AzureOperation::CopyBlob);
            let puts = writes_blob || operation(&call).is_lease();
            prop_assert_eq!(*method == Method::PUT, puts, "only blobs are put; a lease operation is never sent");
        }
    }
}
