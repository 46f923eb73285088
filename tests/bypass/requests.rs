//! Random requests of a client that has neither the lease nor the tag of the resource.

use crate::{
    backends::Backend,
    bodies, routes,
    spellings::{self, one},
    support::random::Random,
};

/// The document, file or object that is leased.
pub const LEASED: &str = "k1";

/// The resources that a server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/docs/k1`, which is `/document?doc_id=k1` too, and may be named by a body that is sent to `/docs`.
    Documents,
    /// `/d/k1`, a file in a folder.
    Files,
    /// `/bucket/k1`.
    Objects,
}

const METHODS: [&str; 16] = [
    "GET", "GET", "HEAD", "PUT", "PUT", "POST", "POST", "PATCH", "DELETE", "DELETE", "OPTIONS", "MERGE", "LINK",
    "MKCOL", "MOVE", "COPY",
];

/// Fields in which some server looks for another method, and other paths.
const METHOD_FIELDS: [&str; 6] = [
    "X-HTTP-Method-Override",
    "X-HTTP-Method",
    "X-Method-Override",
    "X_HTTP_Method_Override",
    "x-http-method-override",
    "X-HTTP-Method-Override",
];
const PATH_FIELDS: [&str; 9] = [
    "X-Original-URL",
    "X-Rewrite-URL",
    "X-Forwarded-Prefix",
    "X-Forwarded-Path",
    "X-Script-Name",
    "Script-Name",
    "X-Original-URI",
    "Content-Location",
    "Destination",
];

/// The path that names the leased resource plainly.
pub fn plain_path(kind: Kind) -> &'static str {
    match kind {
        Kind::Documents => "/docs/k1",
        Kind::Files => "/d/k1",
        Kind::Objects => "/bucket/k1",
    }
}

/// The method and the bytes of a request to this server.
pub fn request(random: &mut Random, backend: &Backend) -> (String, Vec<u8>) {
    let kind = backend.kind;
    let method = one(random, &METHODS);
    let method = spellings::method(random, method);
    let (target, is_by_body) = target(random, kind);
    let mut lines = vec![format!("Host: {}\r\n", routes::host(backend))];
    lines.extend(backend.credentials.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
    if random.is_one_of(15) {
        let other = one(random, &["GET", "PUT", "DELETE", "PATCH", "delete", "get"]);
        lines.push(format!("{}: {other}\r\n", one(random, &METHOD_FIELDS)));
    }
    if random.is_one_of(12) {
        let plain = plain_path(kind);
        let path = one(random, &[plain, plain, "/docs", "/d", "/bucket"]);
        lines.push(format!("{}: {path}\r\n", one(random, &PATH_FIELDS)));
    }
    for _ in 0..random.below(3) {
        lines.push(odd_field(random).to_owned());
    }
    let mut body = String::new();
    if is_by_body || !matches!(&*method, "GET" | "HEAD" | "OPTIONS" | "DELETE" | "get" | "head") || random.is_one_of(5)
    {
        let (types, content) = bodies::body(random, kind, LEASED);
        lines.extend([types, format!("Content-Length: {}\r\n", content.len())]);
        body = content;
    }
    let head = format!("{method} {target} HTTP/1.1\r\n{}\r\n", lines.concat());
    (method, [head.as_bytes(), body.as_bytes()].concat())
}

/// The target, and whether the resource is rather named by the body.
fn target(random: &mut Random, kind: Kind) -> (String, bool) {
    let (plain, choice) = (plain_path(kind), random.below(10));
    let (path, query, is_by_body) = match (kind, choice) {
        (Kind::Documents, 0..3) => ("/document", document_query(random), false),
        (Kind::Documents, 3..6) => ("/docs", String::new(), true),
        (Kind::Files, 0..2) => ("/d", String::new(), false),
        (Kind::Files, 2) => ("/d/", String::new(), false),
        (Kind::Objects, 0..4) => (one(random, &["/bucket", "/bucket/", "/bucket//"]), bucket_query(random), true),
        (_, 9) => (one(random, &["/docs/other", "/d/other", "/bucket/other"]), String::new(), false),
        _ => (plain, extra_query(random), false),
    };
    let path = spellings::path(random, path);
    let path = if random.is_one_of(2) { format!("http://test{path}") } else { path };
    (format!("{path}{query}"), is_by_body)
}

fn document_query(random: &mut Random) -> String {
    let name = spellings::parameter(random, "doc_id");
    let value = if random.is_one_of(20) { spellings::encoded(random, LEASED) } else { LEASED.to_owned() };
    match random.below(6) {
        0 => format!("?doc_id=other&{name}={value}"),
        1 => format!("?{name}={value}&doc_id=other"),
        2 => format!("?x=1;{name}={value}"),
        3 => format!("?{name}={value}&_method={}", one(random, &["DELETE", "PUT", "GET"])),
        _ => format!("?{name}={value}"),
    }
}

fn bucket_query(random: &mut Random) -> String {
    let name = one(random, &["delete", "delete", "uploads", "tagging", "versions"]);
    let name = match random.below(3) {
        0 => name.to_owned(),
        1 => spellings::encoded(random, name),
        _ => spellings::parameter(random, name),
    };
    match random.below(5) {
        0 => format!("?{name}="),
        1 => format!("?x=1&{name}"),
        2 => format!("?{name}=&x-id=DeleteObjects"),
        3 => String::new(),
        _ => format!("?{name}"),
    }
}

fn extra_query(random: &mut Random) -> String {
    match random.below(8) {
        0 => format!("?_method={}", one(random, &["DELETE", "PUT", "GET", "delete"])),
        1 => "?%5fmethod=DELETE".to_owned(),
        2 => one(random, &["?tagging", "?partNumber=1&uploadId=1", "?append&position=0", "?x-id=PutObject"]).to_owned(),
        _ => String::new(),
    }
}

/// A field that changes what a server does with the request, or that claims a right.
fn odd_field(random: &mut Random) -> &'static str {
    one(
        random,
        &[
            "If-Match: \"stale\"\r\n",
            "If-Match: *\r\n",
            "If-None-Match: *\r\n",
            "If-None-Match: \"other\"\r\n",
            "If-Unmodified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n",
            "Lease-Id: 22222222-2222-4222-8222-222222222222\r\n",
            "Lease_Id: 11111111-1111-4111-8111-111111111111\r\n",
            "Fencing-Token: 999\r\n",
            "Range: bytes=0-0\r\n",
            "Content-Range: bytes 0-0/6\r\n",
            "Depth: infinity\r\n",
            "Depth: 0\r\n",
            "Overwrite: T\r\n",
            "Expect: 100-continue\r\n",
            "Connection: close\r\n",
            "Connection: X-HTTP-Method-Override\r\n",
            "Upgrade: websocket\r\n",
            "Prefer: return=representation\r\n",
            "X-Amz-Copy-Source: /bucket/other\r\n",
            "X-Forwarded-Host: other\r\n",
            "Idempotency-Key: \"1\"\r\n",
        ],
    )
}
