//! The ways to ask about a resource, and the statuses that refuse them.

use http::Method;

/// The statuses with which backends refuse a client. 408 and 5xx say nothing of its rights.
pub(super) const STATUSES: [u16; 27] = [
    300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 415, 418, 421, 422, 423,
    424, 428, 429, 451,
];

/// One of each kind, for the routes that differ from the first in one respect.
pub(super) const KINDS: [u16; 6] = [302, 401, 403, 404, 410, 429];

/// One way to ask about a resource. `{tag}` is the tag that the owner knows.
pub(super) struct Way(pub(super) Method, pub(super) &'static str, pub(super) &'static str);

pub(super) const DATA: &str = "/doc";
const LEASE: &str = "/.leases/doc";
const AZURE_LEASE: &str = "/doc?comp=lease";

/// The ways that HTTP itself has.
pub(super) fn plain_ways() -> Vec<Way> {
    let of = |method: Method, all: &[&'static str]| -> Vec<Way> {
        all.iter().map(|fields| Way(method.clone(), DATA, fields)).collect()
    };
    let reads = [
        "",
        "If-None-Match: {tag}\r\n",
        "If-Match: {tag}\r\n",
        "If-Match: \"w\"\r\n",
        "Range: bytes=0-0\r\n",
        "Lease-Id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\n",
        "Lease-Duration: 30\r\n",
        "Origin: https://a.example\r\n",
    ];
    let writes = [
        "",
        "If-Match: {tag}\r\n",
        "If-Match: \"w\"\r\n",
        "If-Match: *\r\n",
        "If-None-Match: *\r\n",
        "If-None-Match: {tag}\r\n",
        "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "Lease-Id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\n",
        "If-Match: \"w\"\r\nLease-Id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\n",
        "Idempotency-Key: \"of the owner\"\r\n",
        "Idempotency-Key: \"of a stranger\"\r\nIf-Match: \"w\"\r\n",
        "Origin: https://a.example\r\n",
    ];
    let asks = "Origin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\n";
    let mut ways = of(Method::GET, &reads);
    ways.extend(of(Method::HEAD, &reads[..4]));
    ways.extend(of(Method::from_bytes(b"PROPFIND").unwrap(), &["", reads[5]]));
    ways.extend(of(Method::PUT, &writes));
    ways.extend(of(Method::PATCH, &writes[..3]));
    ways.extend(of(Method::DELETE, &writes[..8]));
    ways.extend(of(Method::POST, &[writes[0], writes[1], writes[2], writes[7]]));
    let posted = ["Idempotency-Key: \"posted by the owner\"\r\n", "Idempotency-Key: \"posted by a stranger\"\r\n"];
    ways.extend(of(Method::POST, &posted));
    ways.extend(of(Method::OPTIONS, &["", asks]));
    ways
}

/// The lease operations of the native dialect.
fn lease_ways() -> Vec<Way> {
    let id = "Lease-Id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\n";
    let proposal = "Lease-Id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\nProposed-Lease-Id: \
                    9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c12\r\n";
    let asks = "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n";
    [
        (Method::GET, ""),
        (Method::POST, ""),
        (Method::POST, id),
        (Method::POST, "Lease-Duration: infinite\r\nLease-Mode: shared\r\n"),
        (Method::POST, "Prefer: wait=1\r\n"),
        (Method::POST, "If-Match: \"w\"\r\n"),
        (Method::PUT, id),
        (Method::PATCH, proposal),
        (Method::DELETE, id),
        (Method::DELETE, "Lease-Break-Period: 0\r\n"),
        (Method::OPTIONS, asks),
    ]
    .map(|(method, fields)| Way(method, LEASE, fields))
    .into()
}

/// The operations of Azure's dialect.
pub(super) fn azure_ways() -> Vec<Way> {
    let lease = [
        "x-ms-lease-action: acquire\r\nx-ms-lease-duration: 15\r\n",
        "x-ms-lease-action: renew\r\nx-ms-lease-id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\n",
        "x-ms-lease-action: release\r\nx-ms-lease-id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\n",
        "x-ms-lease-action: break\r\nx-ms-lease-break-period: 0\r\n",
    ];
    let writes = [
        "x-ms-blob-type: BlockBlob\r\n",
        "x-ms-blob-type: BlockBlob\r\nIf-Match: {tag}\r\n",
        "x-ms-blob-type: BlockBlob\r\nIf-Match: \"w\"\r\n",
        "x-ms-blob-type: BlockBlob\r\nIf-None-Match: *\r\n",
        "x-ms-blob-type: BlockBlob\r\nx-ms-lease-id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\n",
    ];
    let uses = ["", "If-Match: \"w\"\r\n", "x-ms-lease-id: 9a1f4f0e-8f5e-4f57-9b0a-2f4f7d8a1c11\r\n"];
    let mut ways: Vec<Way> = lease.iter().map(|fields| Way(Method::PUT, AZURE_LEASE, fields)).collect();
    ways.extend(writes.iter().map(|fields| Way(Method::PUT, DATA, fields)));
    for method in [Method::GET, Method::HEAD, Method::DELETE] {
        ways.extend(uses.iter().map(|fields| Way(method.clone(), DATA, fields)));
    }
    ways
}

/// The operations on one of Azure's containers.
pub(super) fn container_ways() -> Vec<Way> {
    let list = "/doc?restype=container&comp=list";
    let lease = "/doc?restype=container&comp=lease";
    vec![
        Way(Method::GET, list, ""),
        Way(Method::GET, "/doc?restype=container", ""),
        Way(Method::DELETE, "/doc?restype=container", ""),
        Way(Method::PUT, lease, "x-ms-lease-action: acquire\r\nx-ms-lease-duration: 15\r\n"),
        Way(Method::PUT, lease, "x-ms-lease-action: break\r\nx-ms-lease-break-period: 0\r\n"),
    ]
}

/// All ways of the native dialect.
pub(super) fn native_ways() -> Vec<Way> {
    plain_ways().into_iter().chain(lease_ways()).collect()
}
