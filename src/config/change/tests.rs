//! Tests of what a reload has to wait for, route by route.

use std::{fmt::Write as _, sync::Arc};

use super::{ReloadPlan, plan};
use crate::config::{Config, Route, parse};

/// The subject, the old routes, the new ones, and the expected indexes among the old ones.
type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [usize]);

/// A configuration with these routes, each a table without its heading, and the upstreams `a` and `b`.
fn config(routes: &[&str]) -> Config {
    let mut text =
        "[upstreams.a]\nservers = [\"127.0.0.1:1\"]\n[upstreams.b]\nservers = [\"127.0.0.1:2\"]\n".to_owned();
    for route in routes {
        let upstream = if route.contains("upstream =") { "" } else { "upstream = \"a\"" };
        write!(text, "[[routes]]\n{upstream}\n{route}\n").expect("a String takes all");
    }
    parse("test.toml", &text).unwrap_or_else(|problems| panic!("{text}\n{problems}")).config
}

fn planned(old: &[&str], new: &[&str]) -> ReloadPlan {
    plan(&config(old), &[], &config(new))
}

const FREE: &str = "name = \"free\"\npath = \"/{*rest}\"\npolicy = \"last-writer-wins\"";
const DOCS: &str = "name = \"docs\"\npath = \"/docs/{id}\"\npolicy = \"optimistic\"";
const LEASED: &str = "name = \"docs\"\npath = \"/docs/{id}\"\npolicy = \"pessimistic\"";
const OPEN_DOCS: &str = "name = \"docs\"\npath = \"/docs/{id}\"\npolicy = \"last-writer-wins\"";
const EXCLUSIVE: &str = "name = \"docs\"\npath = \"/docs/{id}\"\npolicy = \"optimistic\"\nother_writers = false";

fn with(route: &str, lines: &str) -> String {
    format!("{route}\n{lines}")
}

#[test]
fn the_same_file_changes_nothing() {
    for routes in [&[FREE, DOCS][..], &[LEASED], &[EXCLUSIVE]] {
        let continued = (0..routes.len()).map(Some).collect();
        assert_eq!(planned(routes, routes), ReloadPlan { continued, ..ReloadPlan::default() });
    }
}

#[test]
fn routes_are_told_by_their_names() {
    let plan = planned(
        &[FREE, DOCS],
        &[&with(DOCS, "max_hash_size = \"2MiB\""), "name = \"new\"\npath = \"/new\"\npolicy = \"last-writer-wins\""],
    );
    assert_eq!(
        (plan.added, plan.removed, plan.changed),
        (vec!["new".into()], vec!["free".into()], vec!["docs".into()])
    );
    let plan = planned(&[OPEN_DOCS], &[OPEN_DOCS, "name = \"guarded\"\npath = \"/x\"\npolicy = \"optimistic\""]);
    assert_eq!(plan.changed, Vec::<String>::new(), "a change beside a route is no change of the route");
}

/// Each case has the old routes, the new ones, and the old ones whose writes have to end.
#[test]
fn writes_settle_where_others_would_no_longer_see_them() {
    let key = with(DOCS, "key = \"{id}\"");
    let elsewhere = with(DOCS, "upstream = \"b\"");
    let observed = with(DOCS, "observe = true");
    let reading = with(DOCS, "safe_methods = [\"REPORT\"]");
    let narrow_open = "name = \"one\"\npath = \"/docs/1\"\npolicy = \"last-writer-wins\"";
    let narrow_same = "name = \"one\"\npath = \"/docs/1\"\npolicy = \"optimistic\"";
    let wide_same = "name = \"all\"\npath = \"/docs/{*rest}\"\npolicy = \"optimistic\"";
    let list = "name = \"list\"\npath = \"/docs\"\npolicy = \"optimistic\"";
    let named = with(list, "writes_to = \"/docs/{json./id}\"");
    let cases: &[Case<'_>] = &[
        ("another key", &[DOCS], &[&key], &[0]),
        ("another name in the body", &[DOCS, list], &[DOCS, &named], &[1]),
        ("another upstream", &[DOCS], &[&elsewhere], &[0]),
        ("guarded from now on", &[OPEN_DOCS], &[DOCS], &[0]),
        ("guarded no longer", &[DOCS], &[OPEN_DOCS], &[0]),
        ("only watched from now on", &[DOCS], &[&observed], &[0]),
        ("enforced from now on", &[&observed], &[DOCS], &[0]),
        ("other methods write", &[&reading], &[DOCS], &[0]),
        ("leases from now on", &[DOCS], &[LEASED], &[0]),
        ("gone", &[FREE, DOCS], &[FREE], &[1]),
        ("a guarded part of an open route", &[FREE], &[FREE, DOCS], &[0]),
        ("an open part of a guarded route", &[DOCS], &[DOCS, narrow_open], &[0]),
        ("a part with the same rules", &[DOCS], &[DOCS, narrow_same], &[]),
        ("a wider route with the same rules", &[DOCS], &[wide_same], &[0]),
        ("another name", &[DOCS], &[&DOCS.replace("\"docs\"", "\"documents\"")], &[]),
        ("other limits", &[DOCS], &[&with(DOCS, "max_hash_size = \"2MiB\"\nrequire = \"never\"")], &[]),
        ("an open route with another path", &[OPEN_DOCS], &[FREE], &[]),
        ("a wider open route under a guarded one", &[DOCS], &[DOCS, FREE], &[]),
        ("elsewhere", &[DOCS, FREE], &[DOCS, &FREE.replace("/{*rest}", "/other/{*rest}")], &[]),
    ];
    for (what, old, new, expected) in cases {
        assert_eq!(planned(old, new).must_settle, *expected, "{what}");
    }
}

#[test]
fn a_captured_name_is_not_the_same_under_another_path() {
    let old = "name = \"docs\"\npath = \"/{kind}/{id}\"\npolicy = \"optimistic\"\nkey = \"{id}\"";
    let new = "name = \"one\"\npath = \"/docs/{id}\"\npolicy = \"optimistic\"\nkey = \"{id}\"";
    assert_eq!(planned(&[old], &[old, new]).must_settle, [0]);
}

/// Rule 20: an item's write marks its project under the key that the project's route gives it.
#[test]
fn writes_settle_where_what_they_touch_is_marked_elsewhere() {
    let item = "name = \"items\"\npath = \"/docs/{id}/items/{item}\"\npolicy = \"optimistic\"";
    let touching = with(item, "also_changes = [\"/docs/{id}\"]");
    let other = "name = \"other\"\npath = \"/other/{id}\"\npolicy = \"optimistic\"";
    let narrow = "name = \"one\"\npath = \"/docs/1\"\npolicy = \"optimistic\"";
    let key = with(DOCS, "key = \"{id}\"");
    let cases: &[Case<'_>] = &[
        ("what is touched has another key", &[DOCS, &touching], &[&key, &touching], &[0, 1]),
        (
            "what is touched is at another upstream",
            &[DOCS, &touching],
            &[&with(DOCS, "upstream = \"b\""), &touching],
            &[0, 1],
        ),
        ("more is touched", &[DOCS, item], &[DOCS, &touching], &[1]),
        ("less is touched", &[DOCS, &touching], &[DOCS, item], &[1]),
        ("a part of what is touched has a route of its own", &[DOCS, &touching], &[DOCS, narrow, &touching], &[1]),
        ("the same is touched", &[DOCS, &touching], &[&with(DOCS, "max_hash_size = \"2MiB\""), &touching], &[]),
        ("a route beside it is new", &[DOCS, &touching], &[DOCS, &touching, other], &[]),
    ];
    for (what, old, new, expected) in cases {
        assert_eq!(planned(old, new).must_settle, *expected, "{what}");
    }
}

/// The names of upstreams, each with its server.
type Upstreams<'a> = &'a [(&'a str, &'a str)];

/// A configuration with these upstreams, and a route for each of them.
fn served(upstreams: Upstreams<'_>, lines: &str) -> Config {
    let mut text = String::new();
    for (name, server) in upstreams {
        write!(
            text,
            "[upstreams.{name}]\nservers = [\"{server}\"]\n[[routes]]\nname = \"{name}\"\npath = \"/{name}/{{id}}\"\n\
             upstream = \"{name}\"\n{lines}\n"
        )
        .expect("a String takes all");
    }
    parse("test.toml", &text).unwrap_or_else(|problems| panic!("{text}\n{problems}")).config
}

const ONE: &str = "127.0.0.1:1";
const TWO: &str = "127.0.0.1:2";
const THREE: &str = "127.0.0.1:3";

/// The subject, the old upstreams, the new ones, and the expected indexes among the old ones.
type ServedCase<'a> = (&'a str, Upstreams<'a>, Upstreams<'a>, &'a [usize]);

/// Rule 20: a server that changes its identity may still be at work on writes that were marked under the old one.
#[test]
fn writes_settle_at_servers_that_another_identity_gets() {
    let cases: [ServedCase<'_>; 7] = [
        ("swapped", &[("blue", ONE), ("green", TWO)], &[("blue", TWO), ("green", ONE)], &[0, 1]),
        ("handed on", &[("blue", ONE), ("green", TWO)], &[("blue", THREE), ("green", ONE)], &[0]),
        ("by another spelling", &[("blue", ONE), ("green", TWO)], &[("blue", THREE), ("green", "[::1]:1")], &[0]),
        ("to a new upstream", &[("blue", ONE)], &[("blue", TWO), ("green", ONE)], &[0]),
        ("replaced by new ones", &[("blue", ONE), ("green", TWO)], &[("blue", THREE), ("green", TWO)], &[]),
        ("the same", &[("blue", ONE), ("green", TWO)], &[("blue", ONE), ("green", TWO)], &[]),
        ("in another order", &[("blue", ONE), ("green", TWO)], &[("green", TWO), ("blue", ONE)], &[]),
    ];
    for (what, old, new, expected) in cases {
        let plan_of = |lines: &str| plan(&served(old, lines), &[], &served(new, lines));
        let guarded = plan_of("policy = \"optimistic\"");
        assert_eq!(guarded.must_settle, expected, "{what}");
        assert_eq!(plan_of("policy = \"pessimistic\"").must_be_unleased, expected, "{what}");
        assert_eq!(plan_of("policy = \"last-writer-wins\"").must_settle, Vec::<usize>::new(), "{what}");
        let trusting = plan_of("policy = \"optimistic\"\nother_writers = false");
        assert_eq!(
            trusting.untrusted.is_empty(),
            expected.is_empty(),
            "{what}: its records miss what was written there"
        );
    }
}

/// Rule 21: a retry is recognised by the key of its resource.
#[test]
fn retries_are_forgotten_where_resources_get_other_keys() {
    let keyed = with(DOCS, "idempotency = \"accept\"");
    let other_key = with(&keyed, "key = \"{id}\"");
    let cases: &[(&str, &[&str], &[&str], bool)] = &[
        ("another key", &[&keyed], &[&other_key], true),
        ("another upstream", &[&keyed], &[&with(&keyed, "upstream = \"b\"")], true),
        (
            "a route of its own for a part",
            &[&keyed],
            &[&keyed, &other_key.replace("/docs/{id}", "/docs/{id}/x").replace("\"docs\"", "\"x\"")],
            false,
        ),
        ("heeded no more", &[&keyed], &[&with(DOCS, "key = \"{id}\"")], false),
        ("not heeded before", &[DOCS], &[&other_key], false),
        ("the same key", &[&keyed], &[&with(&keyed, "require = \"never\"")], false),
        ("another policy", &[&keyed], &[&with(LEASED, "idempotency = \"accept\"")], false),
    ];
    for (what, old, new, expected) in cases {
        assert_eq!(!planned(old, new).forgetful.is_empty(), *expected, "{what}");
    }
}

#[test]
fn other_servers_of_one_identity_are_the_same_upstream() {
    let text = |server: &str| {
        let head = format!("[upstreams.a]\nservers = [\"{server}\"]\n");
        parse("test.toml", &format!("{head}[[routes]]\nupstream = \"a\"\n{DOCS}\n")).expect("valid").config
    };
    let plan = plan(&text("127.0.0.1:1"), &[], &text("127.0.0.1:2"));
    assert_eq!((plan.changed, plan.must_settle), (vec!["docs".into()], vec![]));
}

#[test]
fn leases_are_looked_for_where_their_route_ends_or_loses_targets() {
    let guards = with(LEASED, "lease.guards = [\"delete\"]");
    let narrow = "name = \"one\"\npath = \"/docs/1\"\npolicy = \"optimistic\"";
    let cases: &[Case<'_>] = &[
        ("another policy", &[LEASED], &[DOCS], &[0]),
        ("another key", &[LEASED], &[&with(LEASED, "key = \"{id}\"")], &[0]),
        ("they guard something else", &[LEASED], &[&guards], &[0]),
        ("gone", &[FREE, LEASED], &[FREE], &[1]),
        ("a part without leases", &[LEASED], &[LEASED, narrow], &[0]),
        ("other durations", &[LEASED], &[&with(LEASED, "lease.max = \"59s\"")], &[]),
        ("no leases before", &[DOCS], &[LEASED], &[]),
    ];
    for (what, old, new, expected) in cases {
        assert_eq!(planned(old, new).must_be_unleased, *expected, "{what}");
    }
}

#[test]
fn memory_is_believed_only_where_every_write_was_seen() {
    let cases: &[(&str, &[&str], &[&str], bool)] = &[
        ("open before", &[OPEN_DOCS], &[EXCLUSIVE], true),
        ("others wrote before", &[DOCS], &[EXCLUSIVE], true),
        ("another key before", &[&with(EXCLUSIVE, "key = \"{id}\"")], &[EXCLUSIVE], true),
        ("a part of an open route", &[FREE], &[FREE, EXCLUSIVE], true),
        ("as before", &[EXCLUSIVE], &[&with(EXCLUSIVE, "etag = \"version\"")], false),
        ("not reached before", &["name = \"x\"\npath = \"/x\"\npolicy = \"last-writer-wins\""], &[EXCLUSIVE], false),
        ("not believed", &[OPEN_DOCS], &[DOCS], false),
    ];
    for (what, old, new, expected) in cases {
        assert_eq!(!planned(old, new).untrusted.is_empty(), *expected, "{what}");
    }
}

/// Writes without a record may be in flight on a route that an earlier reload removed.
#[test]
fn routes_of_earlier_reloads_settle_where_a_guarded_one_comes() {
    let lingering: Vec<Arc<Route>> = config(&[OPEN_DOCS]).routes;
    let plan = |new: &[&str]| plan(&config(&[FREE]), &lingering, &config(new)).must_settle;
    assert_eq!(plan(&[FREE, DOCS]), [0, 1]);
    assert_eq!(plan(&[OPEN_DOCS]), Vec::<usize>::new());
}

#[test]
fn what_is_read_at_the_start_alone_is_named_and_stays() {
    let text = |server: &str, store: &str| {
        let upstream = "[upstreams.a]\nservers = [\"127.0.0.1:9\"]";
        parse(
            "test.toml",
            &format!("[server]\n{server}\n[store]\n{store}\n{upstream}\n[[routes]]\nupstream = \"a\"\n{DOCS}\n"),
        )
        .expect("valid")
        .config
    };
    let old = text("", "");
    let server = "listen = [\"127.0.0.1:1\"]\nthreads = 7\nmax_body_memory_total = \"1GiB\"\nmax_spool_size = \"99GiB\"\n\
                  max_staged_uploads = 9\nmax_claim_waiters = 7\nkeepalive_timeout = \"7s\"\nheader_timeout = \"7s\"\n\
                  max_header_size = \"7KiB\"\nmax_header_memory_total = \"7MiB\"\nmax_connections = 7\n\
                  max_connections_per_client = 7\ncontrol_socket = \"/x\"";
    let new = text(server, "capacity = 7");
    let named = plan(&old, &[], &new).needs_restart;
    let expected = [
        "listen",
        "threads",
        "max_body_memory_total",
        "max_spool_size",
        "max_staged_uploads",
        "max_claim_waiters",
        "keepalive_timeout",
        "header_timeout",
        "max_header_size",
        "max_header_memory_total",
        "max_connections",
        "max_connections_per_client",
        "control_socket",
    ];
    assert_eq!(
        named,
        expected.map(|key| format!("server.{key}")).into_iter().chain(["[store]".into()]).collect::<Vec<_>>()
    );
    assert_eq!(plan(&old, &[], &new.beside(&old)).needs_restart, Vec::<String>::new());
    let live = text(
        "max_body_memory = \"2MiB\"\nmax_body_size = \"2GiB\"\nbody_timeout = \"7s\"\nspool_dir = \"/x\"\nshutdown_timeout = \"7s\"",
        "",
    );
    assert_eq!(plan(&old, &[], &live).needs_restart, Vec::<String>::new());
    assert_eq!(live.beside(&old).server.max_body_size_bytes, 2 << 30);
}
