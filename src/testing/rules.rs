//! The rules of a guarded route.

use std::time::Duration;

use http::{HeaderName, Method};

use crate::core::{
    members::index_form::IndexForm,
    policy::{
        ClaimRules, Collections, Compare, Dialect, Guarantee, GuardRules, Idempotency, MethodOverride, OnWrite,
        ProbeAuth, ProbeRules, ReadConsistency, RepeatedWrites, Require, StoreMethod, TagAfterWrite, TagSource,
    },
};

/// Returns rules with the documented defaults.
pub(crate) fn guard() -> GuardRules {
    GuardRules {
        etag: TagSource::Content,
        ignored_json: Vec::new(),
        unique_tags: false,
        etag_suffixes: Vec::new(),
        accept_weak_own: false,
        mirror_header: None,
        tag_member: None,
        has_members: false,
        other_writers: true,
        compare: Compare::Strong,
        require: Require::Always,
        require_methods: ["PUT", "PATCH", "DELETE", "COPY", "MOVE"].map(|name| name.parse().expect("a method")).into(),
        repeated_writes: RepeatedWrites::Refuse,
        lenient_tags: false,
        version_sources: Vec::new(),
        allow_any: false,
        on_write: OnWrite::Probe,
        tag_after_write: TagAfterWrite::Verbatim,
        verbatim_after: 32,
        safe_methods: vec![Method::from_bytes(b"PROPFIND").expect("a token")],
        append_methods: vec![Method::POST],
        reads: ReadConsistency::Any,
        method_override: MethodOverride::Refuse,
        collections: Collections::Detect,
        websocket: false,
        guarantee: Guarantee::Store,
        observe: false,
        max_hash_size_bytes: 1 << 20,
        hash_wait: None,
        identity_cookies: Vec::new(),
        identity_query: Vec::new(),
        identity_headers: vec![HeaderName::from_static("authorization")],
        identity_ttl: Duration::from_secs(600),
        claim: wait_at_most(Duration::from_secs(30)),
        probe: ProbeRules { timeout: Duration::from_secs(5) },
        probe_auth: ProbeAuth::Client,
        idempotency: Idempotency::Off,
        idempotency_ttl: Duration::ZERO,
        probe_region: Box::default(),
        probe_field_file: None,
        metadata_suffix: None,
        index: IndexForm::WebDav,
        store_method: StoreMethod::AsSent,
        lock_suffix: None,
        owner_header: None,
        watch: false,
        watch_prefix: "/.watch".to_owned(),
        watch_probe: None,
        watch_max_wait: Duration::from_secs(60),
        dialect: Dialect::default(),
        quirks: Dialect::default().quirks(),
        also_changes: Vec::new(),
        lease: None,
    }
}

/// Returns the queue with the default number of waiters, each of which waits for this time.
pub(crate) const fn wait_at_most(max_wait: Duration) -> ClaimRules {
    ClaimRules { max_wait, max_waiters: 64 }
}
