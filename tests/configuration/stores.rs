//! Stores in the configuration (DESIGN, sections 7 and 9).

use std::path::PathBuf;

use ifmatch::config::{Etcd, Login, Postgres, Redis, StoreKind, Tls};

use super::{BASE, config, problems};

fn engine(lines: &str) -> StoreKind {
    config(&format!("{BASE}[store]\n{lines}\n")).store.kind
}

#[test]
fn what_is_not_said_about_a_store_has_its_default() {
    assert_eq!(engine(""), StoreKind::Memory);
    let etcd = Etcd {
        endpoints: vec!["http://127.0.0.1:2379".to_owned()],
        prefix: "ifmatch".to_owned(),
        login: None,
        tls: None,
    };
    assert_eq!(engine("kind = \"etcd\""), StoreKind::Etcd(etcd));
}

#[test]
fn what_is_said_about_etcd_is_what_it_is() {
    let lines = "kind = \"etcd\"\nendpoints = [\"https://a:2379/\", \"https://b:2379\"]\nprefix = \"one/two\"\n\
                 user = \"proxy\"\npassword_file = \"/etc/password\"\n\
                 tls = { ca = \"/etc/ca\", cert = \"/etc/cert\", key = \"/etc/key\" }";
    let file = PathBuf::from;
    let etcd = Etcd {
        endpoints: vec!["https://a:2379".to_owned(), "https://b:2379".to_owned()],
        prefix: "one/two".to_owned(),
        login: Some(Login { user: "proxy".to_owned(), password_file: Some(file("/etc/password")) }),
        tls: Some(Tls { ca: Some(file("/etc/ca")), identity: Some((file("/etc/cert"), file("/etc/key"))) }),
    };
    assert_eq!(engine(lines), StoreKind::Etcd(etcd));
}

#[test]
fn what_is_said_about_redis_is_what_it_is() {
    let lines = "kind = \"redis\"\nurl = \"rediss://r:6380/2\"\nuser = \"default\"\ntls = { ca = \"/etc/ca\" }";
    let redis = Redis {
        url: "rediss://r:6380/2".to_owned(),
        prefix: "ifmatch".to_owned(),
        login: Some(Login { user: "default".to_owned(), password_file: None }),
        tls: Some(Tls { ca: Some(PathBuf::from("/etc/ca")), identity: None }),
    };
    assert_eq!(engine(lines), StoreKind::Redis(redis));
}

#[test]
fn the_keys_of_postgresql_are_read() {
    let lines = "kind = \"postgres\"\nurl = \"postgres://a,b:6000/app?sslmode=verify-full\"\nschema = \"one\"\n\
                 user = \"proxy\"\ntls = { ca = \"/etc/ca\" }";
    let postgres = Postgres {
        url: "postgres://a,b:6000/app?sslmode=verify-full".to_owned(),
        hosts: vec![("a".to_owned(), 5_432), ("b".to_owned(), 6_000)],
        database: "app".to_owned(),
        is_secure: true,
        schema: "one".to_owned(),
        login: Some(Login { user: "proxy".to_owned(), password_file: None }),
        tls: Some(Tls { ca: Some(PathBuf::from("/etc/ca")), identity: None }),
    };
    assert_eq!(engine(lines), StoreKind::Postgres(postgres));
}

/// A password in a file that all users read is a mistake, and the warning must not show it.
#[test]
fn a_password_in_a_url_is_refused_and_not_shown() {
    for line in [
        "redis\"\nurl = \"redis://:hunter2#@r\"",
        "postgres\"\nurl = \"postgres://u:hunter2@h/d\"",
        "etcd\"\nendpoints = [\"http://u:hunter2@e:2379\"]",
    ] {
        let text = format!("{BASE}[store]\nkind = \"{line}\n");
        let shown = ifmatch::config::parse("test.toml", &text).expect_err("it is refused").to_string();
        assert!(shown.contains("of the store holds a user or a password") && !shown.contains("hunter2"), "{shown}");
    }
}

/// A route that demands what its store cannot give is refused before the first request.
#[test]
fn a_route_that_demands_safety_needs_a_store_that_gives_it() {
    let problems =
        |store: &str, route: &str| problems(&format!("{BASE}guarantee = \"safety\"\n{route}\n[store]\n{store}\n"));
    let redis = "route \"documents\" demands safety: a failover of Redis may lose what it has acknowledged";
    assert_eq!(problems("kind = \"redis\"", ""), [redis]);
    for store in [
        "kind = \"etcd\"",
        "kind = \"postgres\"\nurl = \"postgres://h/d\"",
        "kind = \"disk\"\npath = \"/x\"",
        "kind = \"memory\"",
    ] {
        assert!(problems(store, "").is_empty(), "{store}");
    }
    let leases =
        BASE.replace("optimistic", "pessimistic") + "guarantee = \"safety\"\n[routes.lease]\ninfinite = true\n";
    let message = "route \"documents\" demands safety: in memory even an infinite lease ends with the process";
    assert_eq!(super::problems(&leases), [message]);
    assert!(super::problems(&format!("{leases}[store]\nkind = \"etcd\"\n")).is_empty());
    let by_default = format!("{BASE}[defaults]\nguarantee = \"safety\"\n[store]\nkind = \"redis\"\n");
    assert_eq!(super::problems(&by_default), [redis]);
}

#[test]
fn each_mistake_about_a_store_is_named() {
    let unused = |key: &str| format!("{key} has no effect for this kind of store");
    for (lines, expected) in [
        ("endpoints = [\"http://etcd:2379\"]", unused("endpoints")),
        ("kind = \"etcd\"\nurl = \"redis://redis\"", unused("url")),
        ("prefix = \"mine\"", unused("prefix")),
        ("user = \"me\"", unused("user")),
        ("tls = { ca = \"/etc/ca\" }", unused("tls")),
        (
            "kind = \"redis\"\nmax_size = \"1GiB\"",
            "max_size limits the memory of records in this process, but this kind keeps them elsewhere".to_owned(),
        ),
        ("max_size = \"1KiB\"", "max_size is 1KiB, the least is 1MiB".to_owned()),
        ("kind = \"etcd\"\nendpoints = []", "endpoints is empty".to_owned()),
        (
            "kind = \"etcd\"\nendpoints = [\"etcd:2379\"]",
            "endpoint \"etcd:2379\" is not the URL of an etcd member".to_owned(),
        ),
        (
            "kind = \"etcd\"\nendpoints = [\"http://a:1\", \"https://b:1\"]",
            "some endpoints use https and some http".to_owned(),
        ),
        ("kind = \"etcd\"\nprefix = \"a/\"", "prefix \"a/\" cannot be a prefix of keys".to_owned()),
        ("kind = \"etcd\"\npassword_file = \"/x\"", "password_file without user".to_owned()),
        (
            "kind = \"etcd\"\nuser = \"a\"\npassword_file = \"x\"",
            "password_file is \"x\", which is no absolute path".to_owned(),
        ),
        ("kind = \"etcd\"\ntls = { ca = \"/etc/ca\" }", "tls is set, but the store is reached without it".to_owned()),
        (
            "kind = \"etcd\"\nendpoints = [\"https://a:1\"]\ntls = { cert = \"/etc/cert\" }",
            "tls.cert and tls.key belong together".to_owned(),
        ),
        ("kind = \"redis\"\nurl = \"http://r\"", "url \"http://r\" is not a Redis URL".to_owned()),
        ("kind = \"redis\"\nurl = \"redis://r/x\"", "url \"redis://r/x\" is not a Redis URL".to_owned()),
        ("kind = \"redis\"\nprefix = \"a}b\"", "prefix \"a}b\" cannot be a prefix of keys".to_owned()),
        ("kind = \"postgres\"", "kind = \"postgres\" needs a url".to_owned()),
        (
            "kind = \"postgres\"\nurl = \"postgres://h/d?sslmode=require\"",
            "url \"postgres://h/d?sslmode=require\" is not a PostgreSQL URL".to_owned(),
        ),
        (
            "kind = \"postgres\"\nurl = \"postgres://h/d\"\nschema = \"A-b\"",
            "schema \"A-b\" cannot be the name of a schema".to_owned(),
        ),
        ("kind = \"postgres\"\nurl = \"postgres://h/d\"\nprefix = \"mine\"", unused("prefix")),
        ("schema = \"mine\"", unused("schema")),
        ("tls = { crt = \"/etc/cert\" }", "unknown key `crt`".to_owned()),
    ] {
        assert_eq!(problems(&format!("{BASE}[store]\n{lines}\n")), [expected], "{lines}");
    }
}
