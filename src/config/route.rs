//! The `[[routes]]` table, and `[defaults]`: the keys that are rules of a guarded route, and those that `validate` reads.

use std::{path::PathBuf, sync::LazyLock, time::Duration};

use http::{HeaderName, Method, header};

use super::{
    client_tls::File,
    kinds::{Count, Flag, List, OneOf, PlainName, Size, Table, Time},
    lease::Prefix,
    lease_rules::LeaseTable,
    route_kinds::{
        LockSuffix, Methods, MirrorHeader, OwnerHeader, Suffix, TagMember, default_require, defaults_of,
        identity_cookie, identity_header, identity_parameter, member, tag_after_write, tag_suffix, version_source,
        way_to_new_tag,
    },
    table::section,
    units::{KIB, MIB, ZERO, hours, ms, seconds},
    written::{Text, Texts, WrittenWord},
};
use crate::core::{
    http::{
        credentials::{CREDENTIAL_FIELDS, CREDENTIAL_PARAMETERS},
        request_target::{EncodedSlash, PathParameters},
    },
    members::index_form::IndexForm,
    policy::{
        ClaimRules, Collections, Compare, Dialect, Guarantee, GuardRules, Idempotency, LeaseRules, MethodOverride,
        OnWrite, Policy, ProbeAuth, ProbeRules, ReadConsistency, RepeatedWrites, Require, StoreMethod, TagAfterWrite,
        TagSource,
    },
    quirks::Quirks,
    route::TouchTemplate,
    tags::{json::JsonPointer, version_source::VersionSource},
};

/// The default prefix of the URLs by which clients watch the resources of a route.
const DEFAULT_WATCH_PREFIX: &str = "/.watch";

/// The methods that change the resource by definition (RFC 9110 section 9.3, RFC 5789).
pub(super) const CHANGING_METHODS: [Method; 3] = [Method::PUT, Method::PATCH, Method::DELETE];

/// The methods that need a condition by default: those, and the ones that replace or remove by another way (RFC 4918).
fn demanding_methods() -> &'static [Method] {
    static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
        let of_webdav = [&b"COPY"[..], b"MOVE"].into_iter().filter_map(|name| Method::from_bytes(name).ok());
        CHANGING_METHODS.into_iter().chain(of_webdav).collect()
    });
    &METHODS
}

/// The request fields that carry credentials to the backend. Those for a proxy end here.
fn identity_headers() -> Vec<HeaderName> {
    CREDENTIAL_FIELDS.iter().filter(|name| **name != header::PROXY_AUTHORIZATION).cloned().collect()
}

section! {
    fills GuardRules of RouteKeys
    given (policy: Policy, dialect: Dialect) {
        by hand {
            /// The name in logs.
            name: Option<Text>;
            /// The hosts that the route matches.
            host: Option<Text>;
            /// The paths that the route matches.
            path: Option<Text>;
            /// The name of the upstream that receives the requests.
            upstream: Option<Text>;
            /// The beginning of the path that is removed on the way to the upstream.
            strip_prefix: Option<Text>;
            /// The beginning of the path that is added then.
            add_prefix: Option<Text>;
            /// The policy that the route enforces.
            policy: Option<WrittenWord<Policy>>;
            /// The template of the resource keys.
            key: Option<Text>;
            /// The treatment of `;` in a path.
            path_params: Option<WrittenWord<PathParameters>>;
            /// The treatment of an encoded slash in a path.
            encoded_slash: Option<WrittenWord<EncodedSlash>>;
            /// The other resources that a write changes.
            also_changes: Option<Texts>;
            /// The resource that the body of a write names.
            writes_to: Option<Text>;
            /// The resources that are members of this collection.
            members: Option<Text>;
        }
        /// The source of the tags.
        etag: TagSource = OneOf(TagSource::Content);
        /// The members of JSON bodies that a content tag leaves out.
        ignored_json["ignore_json"]: Vec<JsonPointer> = List(Vec::new(), member);
        /// True if the backend never gives one tag to two states.
        unique_tags: bool = Flag(defaults_of(dialect).unique_tags);
        /// How `If-Match` is compared.
        compare: Compare = OneOf(Compare::Strong);
        /// The suffixes that intermediaries append to a tag, inside its quotes.
        etag_suffixes: Vec<String> = List(Vec::new(), tag_suffix);
        /// True if a weak tag counts as the strong one that was issued.
        accept_weak_own: bool = Flag(false);
        /// The response field that has the tag a second time.
        mirror_header: Option<HeaderName> = MirrorHeader(());
        /// The member of JSON objects that has their tag.
        tag_member: Option<JsonPointer> = TagMember(());
        /// True if others may write to the resources without passing through this process.
        other_writers: bool = Flag(true);
        /// Which writes need a precondition.
        require: Require = OneOf(default_require(policy, dialect));
        /// The methods that `require` applies to.
        require_methods: Vec<Method> = Methods(demanding_methods());
        /// The answer to a PUT of the very bytes that are there, if its tag is stale.
        repeated_writes: RepeatedWrites = OneOf(RepeatedWrites::Refuse);
        /// True if tags in conditions may lack their quotes, or the mark of a weak tag.
        lenient_tags: bool = Flag(false);
        /// The places other than `If-Match` where a write names the version that it is based on.
        version_sources["precondition"]: Vec<VersionSource> = List(Vec::new(), version_source);
        /// True if `If-Match: *` counts as a precondition for `require`.
        allow_any: bool = Flag(false);
        /// How the tag of an applied write is learned.
        on_write: OnWrite = OneOf(way_to_new_tag(dialect, &etag));
        /// When the answer to a write has the new tag.
        tag_after_write["etag_after_write"]: TagAfterWrite = OneOf(tag_after_write(dialect, &etag));
        /// How many re-reads in a row must show what PUTs have sent before a PUT gets its tag without one.
        verbatim_after: usize = Count(32) in 0..=100_000;
        /// Methods other than GET and HEAD that read.
        safe_methods: Vec<Method> = Methods(&[]);
        /// Methods that append instead of replacing, and run beside other writes.
        append_methods: Vec<Method> = Methods(defaults_of(dialect).append_methods);
        /// Which states reads may show.
        reads: ReadConsistency = OneOf(ReadConsistency::Any);
        /// The treatment of a request that names its method in a header field.
        method_override: MethodOverride = OneOf(MethodOverride::Refuse);
        /// How the proxy learns whether a DELETE, COPY or MOVE would change a collection.
        collections: Collections = OneOf(Collections::Detect);
        /// True if a WebSocket handshake may open a tunnel.
        websocket: bool = Flag(false);
        /// The guarantee that the store must give.
        guarantee: Guarantee = OneOf(Guarantee::Store);
        /// True if requests are only watched: verdicts are logged and never enforced.
        observe: bool = Flag(false);
        /// The largest body that a content tag is computed from.
        max_hash_size_bytes["max_hash_size"]: usize = Size(MIB) in KIB..=256 * MIB;
        /// How long a body may take to arrive before the response is sent without a content tag. If the key is absent, a
        /// body of known length has the time of `read_timeout`.
        hash_wait: Option<Duration> = Time(None) in ZERO..=seconds(60);
        /// The request fields that identify a client.
        identity_headers: Vec<HeaderName> = List(identity_headers(), identity_header);
        /// The cookies that identify a client; if there are none, the whole Cookie field does.
        identity_cookies: Vec<String> = List(Vec::new(), identity_cookie);
        /// The parameters of the query that identify a client.
        identity_query: Vec<String> = List(CREDENTIAL_PARAMETERS.map(str::to_owned).to_vec(), identity_parameter);
        /// How long a client gets answers from memory after the backend has let it read the resource.
        identity_ttl: Duration = Time(seconds(600)) in ZERO..=hours(24 * 7);
        /// The queue for writes on one resource.
        claim: ClaimRules = Table(());
        /// The limits of probes.
        probe: ProbeRules = Table(());
        /// Whose credentials a probe carries.
        probe_auth: ProbeAuth = OneOf(ProbeAuth::Client);
        /// The region that a probe is signed for.
        probe_region: Box<str> = PlainName("us-east-1".to_owned());
        /// The file of the field that a probe carries.
        probe_field_file: Option<PathBuf> = File(());
        /// The dialect of the route's clients.
        dialect: Dialect = OneOf(Dialect::default());
        /// The end of the names of the documents that keep metadata.
        metadata_suffix: Option<Box<str>> = Suffix(dialect);
        /// The form in which the backend lists the members of a collection.
        index: IndexForm = OneOf(IndexForm::WebDav);
        /// The method by which the backend gets a state that Terraform sends with POST.
        store_method: StoreMethod = OneOf(defaults_of(dialect).store_method);
        /// The end of the paths of locks, for clients that lock a state by POST and DELETE.
        lock_suffix: Option<Box<str>> = LockSuffix(());
        /// The field with the name of the client, which git-lfs shows with its locks.
        owner_header: Option<HeaderName> = OwnerHeader(());
        /// True if clients may watch the resources.
        watch: bool = Flag(false);
        /// The path below which clients watch the resources.
        watch_prefix: String = Prefix(DEFAULT_WATCH_PREFIX);
        /// How often the backend is asked about a watched resource that others write too.
        watch_probe: Option<Duration> = Time(Some(seconds(10))) in seconds(1)..=hours(24);
        /// The longest time that a client may wait for one change.
        watch_max_wait: Duration = Time(seconds(60)) in ZERO..=hours(1);
        /// Whether writes are recognised by their idempotency keys.
        idempotency: Idempotency = OneOf(Idempotency::Off);
        /// How long a success is replayed to retries.
        idempotency_ttl: Duration = Time(seconds(600)) in seconds(1)..=hours(24);
        /// The rules for leases.
        lease: Option<LeaseRules> = LeaseTable(policy, dialect);
        besides {
            /// The differences between the dialect and plain HTTP.
            quirks: &'static Quirks = dialect.quirks();
            /// The other resources that a write changes.
            also_changes: Vec<TouchTemplate> = Vec::new();
            /// True if the route is that of collections, whose members it names (`members`).
            has_members: bool = false;
        }
    }
}

section! {
    fills ClaimRules of ClaimKeys {
        /// How long a write waits for the claim, and a settled read for the end of writes.
        max_wait: Duration = Time(seconds(30)) in ZERO..=hours(1);
        /// How many writes may wait for the claim of one resource, and how many settled reads.
        max_waiters: usize = Count(64) in 0..=100_000;
    }
}

section! {
    fills ProbeRules of ProbeKeys {
        /// How long a probe may take.
        timeout: Duration = Time(seconds(5)) in ms(10)..=seconds(600);
    }
}
