//! Leases in the configuration (DESIGN, sections 5, 8 and 9).

use std::time::Duration;

use ifmatch::core::policy::{
    AbsentLease, Compare, Dialect, LeaseAuth, LeaseGuards, LeaseRules, OnWrite, Policy, Require, TagAfterWrite,
};

use super::{BASE, config, problems};

/// [`BASE`] with leases on its route.
fn leased(added: &str) -> String {
    format!("{}{added}\n", BASE.replace("optimistic", "pessimistic"))
}

/// The lease rules of the first route.
fn lease_rules(text: &str) -> LeaseRules {
    let rules = config(text).routes.first().and_then(|route| route.guard.as_ref()?.lease.clone());
    rules.unwrap_or_else(|| panic!("the first route has no leases in\n{text}"))
}

/// A backend that sees the credentials of the proxy says nothing of the client that wants a lease.
#[test]
fn leases_for_every_client_are_written_out() {
    for probing in ["probe_auth = \"sigv4\"", "probe_auth = \"field\"\nprobe_field_file = \"/nowhere\""] {
        let is_told = |lines: &str| {
            let found = problems(&leased(&format!("{probing}\n{lines}")));
            found.iter().any(|problem| problem.contains("lease.auth = \"probe\" and probe_auth"))
        };
        assert!(is_told(""), "{probing}");
        assert!(!is_told("lease.auth = \"none\""), "{probing}");
    }
    assert!(problems(&leased("probe_auth = \"none\"")).is_empty());
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// The defaults of DESIGN, sections 5, 8 and 9, for leases.
#[test]
fn what_is_not_said_about_leases_has_its_default() {
    let config = config(&leased(""));
    let guard = config.routes[0].guard.as_ref().expect("a pessimistic route is guarded");
    assert_eq!(
        (config.routes[0].policy, guard.require, guard.compare),
        (Policy::Pessimistic, Require::Never, Compare::Strong)
    );
    let expected = LeaseRules {
        prefix: "/.leases".to_owned(),
        guards: LeaseGuards::Write,
        auth: LeaseAuth::Probe,
        bind: false,
        shared: false,
        delete_pending: false,
        sharing_violation: false,
        show: false,
        acquire_on_read: false,
        client_break: false,
        absent: AbsentLease::Refuse,
        remember_time: minutes(10),
        max_per_principal: 100,
        max_per_address: 1_000,
        default: Duration::from_secs(30),
        min: Duration::from_secs(15),
        max: minutes(1),
        infinite: false,
        required: false,
        max_wait: Duration::from_secs(30),
        max_waiters: 64,
        max_hold_time: minutes(60),
        linger: Duration::from_secs(5),
    };
    assert_eq!(guard.lease.as_ref(), Some(&expected));
}

#[test]
fn what_is_said_about_leases_is_what_they_are() {
    let text = "[routes.lease]\nprefix = \"/locks/v1\"\nguards = [\"write\", \"read\"]\nauth = \"none\"\nbind = true\nshared = true\ndelete_pending = true\n\
                show = true\nacquire_on_read = true\nclient_break = true\nabsent = \"allow\"\nremember_time = \"0s\"\nmax_per_principal = 7\nmax_per_address = 8\n\
                default = \"2s\"\nmin = \"1s\"\nmax = \"3s\"\ninfinite = true\nrequired = true\nmax_wait = \"4s\"\n\
                max_waiters = 5\nmax_hold_time = \"6s\"\nlinger = \"0s\"";
    let expected = LeaseRules {
        prefix: "/locks/v1".to_owned(),
        guards: LeaseGuards::ReadAndWrite,
        auth: LeaseAuth::None,
        bind: true,
        shared: true,
        delete_pending: true,
        sharing_violation: false,
        show: true,
        acquire_on_read: true,
        client_break: true,
        absent: AbsentLease::Allow,
        remember_time: Duration::ZERO,
        max_per_principal: 7,
        max_per_address: 8,
        default: Duration::from_secs(2),
        min: Duration::from_secs(1),
        max: Duration::from_secs(3),
        infinite: true,
        required: true,
        max_wait: Duration::from_secs(4),
        max_waiters: 5,
        max_hold_time: Duration::from_secs(6),
        linger: Duration::ZERO,
    };
    assert_eq!(lease_rules(&leased(text)), expected);
}

/// By default, Azure's clients meet the behaviour of Azure.
#[test]
fn the_azure_dialect_has_defaults_of_its_own() {
    let guard = |added: &str| {
        let routes = config(&leased(&format!("{added}\ndialect = \"azure\""))).routes;
        routes[0].guard.clone().expect("a guard")
    };
    let content = guard("");
    let rules = content.lease.as_ref().expect("leases");
    assert_eq!((rules.bind, rules.client_break, rules.infinite), (false, true, true));
    assert_eq!((content.dialect, content.on_write), (Dialect::Azure, OnWrite::Probe));
    assert_eq!(content.tag_after_write, TagAfterWrite::Verbatim);
    let version = guard("etag = \"version\"\nother_writers = false");
    assert_eq!((version.on_write, version.tag_after_write), (OnWrite::Probe, TagAfterWrite::Always));
    let chosen =
        guard("etag = \"version\"\nother_writers = false\non_write = \"omit\"\netag_after_write = \"verbatim\"");
    assert_eq!((chosen.on_write, chosen.tag_after_write), (OnWrite::Omit, TagAfterWrite::Verbatim));
    let forty = guard("lease.min = \"40s\"").lease.clone().expect("leases");
    assert_eq!((forty.min, forty.max), (Duration::from_secs(40), minutes(1)));
}

/// A table: what is added to a valid file with leases, and the one message that it must lead to.
#[test]
fn each_broken_rule_about_leases_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("observe = true", "a pessimistic route cannot only observe: no client holds a lease that is not granted"),
        ("lease = true", "`lease` takes a table, not boolean `true`"),
        ("[routes.lease]\nmaks = \"15s\"", "unknown key `maks`"),
        ("[routes.lease]\ninfinite = \"yes\"", "`infinite` takes true or false, not string \"yes\""),
        ("dialect = \"ftp\"", "dialect cannot be \"ftp\""),
        ("dialect = \"azur\"", "dialect cannot be \"azur\""),
        ("[routes.lease]\nauth = \"client\"", "lease.auth cannot be \"client\""),
        ("[routes.lease]\nabsent = \"create\"", "lease.absent cannot be \"create\""),
        ("[routes.lease]\nguards = []", "lease.guards cannot be []"),
        ("[routes.lease]\nguards = [\"read\", \"delete\"]", "lease.guards cannot be [\"delete\", \"read\"]"),
        ("[routes.lease]\nguards = [\"write\", \"write\"]", "lease.guards cannot be [\"write\", \"write\"]"),
        (
            "[routes.lease]\nprefix = \"leases\"",
            "lease.prefix is \"leases\": a path begins with \"/\" and ends before its query",
        ),
        ("[routes.lease]\nprefix = \"/\"", "lease.prefix is \"/\", where the resources themselves are"),
        (
            "[routes.lease]\nprefix = \"/.leases/\"",
            "lease.prefix is \"/.leases/\", which is not how ifmatch spells that path",
        ),
        ("[routes.lease]\nmin = \"0s\"", "lease.min is 0s, the least is 1s"),
        ("[routes.lease]\nmax = \"infinite\"", "lease.max is \"infinite\", which is no duration"),
        ("[routes.lease]\nmax = \"8d\"", "lease.max is 8days, the limit is 7days"),
        ("[routes.lease]\ndefault = \"20500ms\"", "lease.default is 20s 500ms, and leases last whole seconds"),
        ("[routes.lease]\nmin = \"40s\"", "lease.min is 40s, and lease.default is 30s"),
        ("[routes.lease]\nmax = \"20s\"", "lease.default is 30s, and lease.max is 20s"),
        ("[routes.lease]\nmax = \"2h\"", "lease.max is 2h, and lease.max_hold_time is 1h"),
        ("[routes.lease]\nmax_hold_time = \"30s\"", "lease.max is 1m, and lease.max_hold_time is 30s"),
        ("[routes.lease]\nremember_time = \"8d\"", "lease.remember_time is 8days, the limit is 7days"),
        ("[routes.lease]\nmax_wait = \"2h\"", "lease.max_wait is 2h, the limit is 1h"),
        ("[routes.lease]\nmax_waiters = -1", "lease.max_waiters is -1, it is from 0 to 100000"),
        ("[routes.lease]\nmax_per_principal = 0", "lease.max_per_principal is 0, it is from 1 to 1000000"),
        (
            "dialect = \"azure\"\n[routes.lease]\nmin = \"10s\"",
            "lease.min is 10s: the least in the azure dialect is 15s",
        ),
        (
            "dialect = \"azure\"\n[routes.lease]\nmax = \"61s\"",
            "lease.max is 1m 1s: the limit in the azure dialect is 1m",
        ),
        (
            "dialect = \"azure\"\n[routes.lease]\nprefix = \"/.leases\"",
            "lease.prefix has no effect in the azure dialect",
        ),
        ("dialect = \"azure\"\n[routes.lease]\ndefault = \"30s\"", "lease.default has no effect in the azure dialect"),
        (
            "dialect = \"azure\"\n[routes.lease]\nsharing_violation = true",
            "lease.sharing_violation = true needs dialect = \"native\"",
        ),
        (
            "[routes.lease]\ndelete_pending = true",
            "lease.delete_pending = true needs lease.shared = true: an exclusive lease has no other holder to wait for",
        ),
        (
            "[routes.lease]\nshared = true\ndelete_pending = true\nguards = [\"read\"]",
            "lease.delete_pending = true needs lease.guards with \"write\" or \"delete\": a DELETE waits for a lease",
        ),
        (
            "etag = \"delegate\"\n[routes.lease]\nshared = true\ndelete_pending = true",
            "lease.delete_pending = true needs another etag: the backend judges conditions, and does not see the DELETE",
        ),
        (
            "key = \"{path}#{header.X-Tenant}\"\n[routes.lease]\nshared = true\ndelete_pending = true",
            "lease.delete_pending = true needs a key without {header.NAME}: only the target of a DELETE that waits is kept",
        ),
        (
            "dialect = \"s3\"\netag = \"upstream\"\nprobe_auth = \"none\"\n[routes.lease]\nshared = true\ndelete_pending = true",
            "lease.delete_pending = true needs dialect = \"native\": other clients do not expect a DELETE to wait",
        ),
        ("dialect = \"azure\"\n[routes.lease]\nshared = true", "lease.shared has no effect in the azure dialect"),
        ("dialect = \"azure\"\n[routes.lease]\nmax_wait = \"1s\"", "lease.max_wait has no effect in the azure dialect"),
        (
            "dialect = \"azure\"\n[routes.lease]\nmax_waiters = 1",
            "lease.max_waiters has no effect in the azure dialect",
        ),
        ("append_methods = [\"POST\"]\ndialect = \"azure\"", "append_methods has no effect in the azure dialect"),
        ("safe_methods = [\"REPORT\"]\ndialect = \"azure\"", "safe_methods has no effect in the azure dialect"),
        (
            "dialect = \"azure\"\n[routes.lease]\nacquire_on_read = true",
            "the azure dialect cannot acquire a lease with a read",
        ),
        (
            "dialect = \"webdav\"\n[routes.lease]\nguards = [\"delete\"]",
            "lease.guards in the webdav dialect is [\"write\"]",
        ),
        ("dialect = \"webdav\"\n[routes.lease]\nshared = true", "lease.shared has no effect in the webdav dialect"),
        (
            "[[routes]]\npath = \"/static\"\nupstream = \"files\"\npolicy = \"last-writer-wins\"\n[routes.lease]\n",
            "`lease` has no effect on a last-writer-wins route",
        ),
    ];
    for (added, expected) in cases {
        assert_eq!(problems(&leased(added)), [*expected], "added:\n{added}");
    }
}

#[test]
fn the_order_of_durations_looks_at_the_defaults_too() {
    let rules = lease_rules(&leased("[routes.lease]\nmin = \"2m\"\n[defaults.lease]\ndefault = \"3m\"\nmax = \"4m\""));
    assert_eq!((rules.min, rules.default, rules.max), (minutes(2), minutes(3), minutes(4)));
}

/// A lease lies where no other route, and no other lease, is: `/.leases/documents/{id}` here.
#[test]
fn a_lease_that_another_route_would_take_is_one_problem() {
    let beside =
        |route: &str| problems(&leased(&format!("[[routes]]\nname = \"other\"\nupstream = \"files\"\n{route}")));
    let message = |what: &str| vec![format!("the leases of route \"documents\" and {what} match common requests")];
    let unguarded = |path: &str| beside(&format!("path = {path:?}\npolicy = \"last-writer-wins\""));
    assert_eq!(unguarded("/.leases/documents/{name}"), message("route \"other\" (line 14)"));
    assert_eq!(unguarded("/.leases/documents/new"), message("route \"other\" (line 14)"));
    assert_eq!(unguarded("/{any}/documents/new"), message("route \"other\" (line 14)"));
    // The lease is the more specific of the two.
    assert_eq!(unguarded("/{*rest}"), Vec::<String>::new());
    assert_eq!(unguarded("/.leases/{*rest}"), Vec::<String>::new());
    assert_eq!(unguarded("/.leases/drawings/{id}"), Vec::<String>::new());
    // A narrower host goes before a more specific path; one that takes the documents too leaves no leases there.
    let elsewhere = |path: &str| {
        beside(&format!("host = \"a.example.com\"\npath = {path:?}\npolicy = \"optimistic\"\netag = \"upstream\""))
    };
    assert_eq!(elsewhere("/.leases/{*rest}"), message("route \"other\" (line 15)"));
    assert_eq!(elsewhere("/{*rest}"), Vec::<String>::new());
}

#[test]
fn two_routes_may_share_a_prefix_but_not_a_lease() {
    let beside = |path: &str, prefix: &str| {
        let route =
            format!("[[routes]]\nname = \"other\"\nupstream = \"files\"\npolicy = \"pessimistic\"\npath = {path:?}");
        problems(&leased(&format!("{route}\n[routes.lease]\nprefix = {prefix:?}")))
    };
    let shared = "the leases of route \"other\" and the leases of route \"documents\" (line 8) match common requests";
    assert_eq!(beside("/{id}", "/.leases/documents"), [shared]);
    assert_eq!(beside("/{*rest}", "/.leases/documents"), [shared]);
    assert_eq!(beside("/documents/{id}/text", "/.leases"), Vec::<String>::new());
    assert_eq!(beside("/{*rest}", "/.leases"), Vec::<String>::new());
    assert_eq!(beside("/{*rest}", "/.locks"), Vec::<String>::new());
}

/// It is open whether `/p/x/x/1` is the lease of `/x/x/1` or a resource.
#[test]
fn a_lease_that_could_be_a_resource_of_its_own_route_is_one_problem() {
    let text = leased("[routes.lease]\nprefix = \"/p\"").replace("/documents/{id}", "/{a}/x/{*rest}");
    let expected = "the leases of route \"documents\" and route \"documents\" (line 8) match common requests";
    assert_eq!(problems(&text), [expected]);
    let text = leased("").replace("/documents/{id}", "/{*rest}");
    assert_eq!(problems(&text), Vec::<String>::new());
}
