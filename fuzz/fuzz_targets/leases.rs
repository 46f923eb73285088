//! Lease operations, native and of Azure: no fields make a reader panic, and an id that is presented can be read again.
//!
//! The first byte says the method, the first line the query; each further line is a field: its first byte says which.
#![no_main]

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ifmatch::{
    config,
    core::{lease::LeaseId, policy::LeaseRules},
    dialect::{Incoming, azure, native},
};
use libfuzzer_sys::fuzz_target;

const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

const FIELDS: [HeaderName; 13] = [
    HeaderName::from_static("lease-id"),
    HeaderName::from_static("proposed-lease-id"),
    HeaderName::from_static("delete-pending"),
    HeaderName::from_static("lease-duration"),
    HeaderName::from_static("lease-break-period"),
    HeaderName::from_static("lease-holder"),
    HeaderName::from_static("prefer"),
    HeaderName::from_static("x-ms-lease-action"),
    HeaderName::from_static("x-ms-lease-id"),
    HeaderName::from_static("x-ms-lease-duration"),
    HeaderName::from_static("x-ms-lease-break-period"),
    HeaderName::from_static("x-ms-proposed-lease-id"),
    HeaderName::from_static("x-ms-blob-type"),
    HeaderName::from_static("lease-mode"),
];

const FILE: &str = r#"
[upstreams.one]
servers = ["127.0.0.1:9"]
[[routes]]
path = "/{id}"
upstream = "one"
policy = "pessimistic"
lease = { infinite = true, shared = true, client_break = true, acquire_on_read = true, auth = "none" }
"#;

static RULES: LazyLock<LeaseRules> = LazyLock::new(|| {
    let loaded = config::parse("fuzz.toml", FILE).unwrap_or_else(|problems| panic!("{problems}"));
    let guard = loaded.config.routes[0].guard.as_ref().expect("the route is guarded");
    guard.lease.clone().expect("it can be leased")
});

fuzz_target!(|input: &[u8]| {
    let Some((&which, rest)) = input.split_first() else { return };
    let method = &METHODS[usize::from(which) % METHODS.len()];
    let mut lines = rest.split(|&byte| byte == b'\n');
    let target = [b"/container/blob?", lines.next().unwrap_or_default()].concat();
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some((&which, value)) = line.split_first() else { continue };
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        headers.append(FIELDS[usize::from(which) % FIELDS.len()].clone(), value);
    }
    let fresh = || Ok(LeaseId::from_random([7; 16]));
    let _operation = native::read(method, &headers, &RULES, fresh);
    let _receipt = native::read_on_get(&headers, &RULES, fresh);
    if let Ok(Some(id)) = native::presented_id(&headers) {
        assert!(LeaseId::parse(id.reveal().as_bytes()) == Ok(id));
    }
    let _wait = native::wait(&headers);
    use azure::AzureResource::{Account, Blob, Container};
    for (serves, metadata_suffix) in
        [(Blob, None), (Blob, Some(".metadata")), (Container, None), (Container, Some(".metadata")), (Account, None)]
    {
        let route = azure::BlobRoute { serves, metadata_suffix };
        let _call = azure::read(Incoming { method, target: &target, headers: &headers }, route);
    }
});
