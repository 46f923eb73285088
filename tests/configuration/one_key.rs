//! Routes that make one key share its lease (DESIGN, section 3, rule 10).

use super::{config, problems, warnings};

/// An upstream and two routes with these lines.
fn two(first: &str, second: &str) -> String {
    format!(
        "[upstreams.docs]\nservers = [\"127.0.0.1:9000\"]\n[defaults]\nupstream = \"docs\"\n\
         [[routes]]\nname = \"first\"\n{first}\n[[routes]]\nname = \"second\"\n{second}\n"
    )
}

const LEASED: &str = "path = \"/leased/{id}\"\npolicy = \"pessimistic\"\nkey = \"{id}\"";
const PLAIN: &str = "path = \"/plain/{id}\"\npolicy = \"optimistic\"\nkey = \"{id}\"";

fn differ_in(what: &str) -> Vec<String> {
    vec![format!("routes \"second\" and \"first\" (line 7) can make the same key, and differ in {what}")]
}

#[test]
fn routes_of_one_key_that_do_not_agree_on_leases_are_told_of() {
    let also = |lines: &str| format!("{}\n{lines}", LEASED.replace("/leased", "/also"));
    let bound = format!("{LEASED}\nlease.bind = true");
    let azure = format!("{LEASED}\ndialect = \"azure\"\netag = \"version\"\nother_writers = false");
    let keeping = also("dialect = \"azure\"\netag = \"version\"\nother_writers = false\nmetadata_suffix = \".meta\"");
    for (first, second, what) in [
        (azure.as_str(), keeping, "metadata_suffix"),
        (LEASED, PLAIN.to_owned(), "policy"),
        (PLAIN, LEASED.to_owned(), "policy"),
        (LEASED, also("lease.guards = [\"read\", \"write\"]"), "lease.guards"),
        (LEASED, also("lease.required = true\nlease.bind = true"), "lease.required, lease.bind"),
        (LEASED, also("lease.shared = true\nlease.delete_pending = true"), "lease.shared, lease.delete_pending"),
        (&bound, also("lease.bind = true\nidentity_headers = [\"X-Tenant\"]"), "identity_headers"),
        (&bound, also("lease.bind = true\nidentity_query = [\"ticket\"]"), "identity_query"),
        (&bound, also("lease.bind = true\nidentity_cookies = [\"session\"]"), "identity_cookies"),
    ] {
        assert_eq!(warnings(&two(first, &second)), differ_in(what), "{second}");
    }
}

#[test]
fn routes_that_agree_or_never_meet_are_not_told_of() {
    let pessimistic = |path: &str, key: &str| format!("path = \"{path}\"\npolicy = \"pessimistic\"\nkey = \"{key}\"");
    let optimistic = |path: &str, key: &str| format!("path = \"{path}\"\npolicy = \"optimistic\"\nkey = \"{key}\"");
    for (first, second) in [
        (pessimistic("/a/{id}", "{id}"), pessimistic("/b/{id}", "{id}")),
        (optimistic("/a/{id}", "{id}"), optimistic("/b/{id}", "{id}")),
        (pessimistic("/a/{id}", "a#{id}"), optimistic("/b/{id}", "b#{id}")),
        (pessimistic("/a/{id}", "{path}"), optimistic("/{*rest}", "{path}")),
        (pessimistic("/jobs/{job}/{stage}", "{job}#{stage}"), optimistic("/{*rest}", "{path}")),
        (pessimistic("/a/{id}", "{id}"), optimistic("/b/{id}", "{id}") + "\nobserve = true"),
    ] {
        assert_eq!(warnings(&two(&first, &second)), [""; 0], "{first}\n{second}");
    }
}

/// Under another host the same path makes the same key.
#[test]
fn routes_of_two_hosts_make_one_key_of_one_path() {
    let route = |host: &str, policy: &str| format!("host = \"{host}\"\npath = \"/{{*rest}}\"\npolicy = \"{policy}\"");
    let (first, second) = (route("a.example", "pessimistic"), route("b.example", "optimistic"));
    let told = ["routes \"second\" and \"first\" (line 8) can make the same key, and differ in policy"];
    assert_eq!(warnings(&two(&first, &second)), told);
    let apart = |text: String| format!("{text}\nkey = \"{{host}}{{path}}\"");
    assert_eq!(warnings(&two(&apart(first), &apart(second))), [""; 0]);
}

/// Without the store it is unknown whether a lease keeps readers away, so a read there is refused (rule 12).
#[test]
fn a_route_knows_whether_another_leases_its_resources_against_readers() {
    let flags = |first: &str, second: &str| {
        let routes = config(&two(first, second)).routes;
        [0, 1].map(|index: usize| routes[index].reads_may_be_leased)
    };
    let both = format!("{LEASED}\nlease.guards = [\"read\", \"write\"]");
    assert_eq!(flags(LEASED, PLAIN), [false, false]);
    assert_eq!(flags(&both, PLAIN), [true, true]);
    assert_eq!(flags(PLAIN, &both), [true, true]);
    assert_eq!(flags(&both, &PLAIN.replace("key = \"{id}\"", "key = \"#{id}\"")), [true, false]);
    assert_eq!(flags(&both, &format!("{PLAIN}\nobserve = true")), [true, false]);
    assert_eq!(flags(&both, "path = \"/open/{id}\"\npolicy = \"last-writer-wins\""), [true, false]);
}

/// A resource that waits to be deleted is hidden on every route that reaches it.
#[test]
fn a_route_knows_whether_deletes_of_its_resources_may_wait() {
    let flags = |first: &str, second: &str| {
        let routes = config(&two(first, second)).routes;
        [0, 1].map(|index: usize| routes[index].deletes_may_be_pending)
    };
    let waiting = format!("{LEASED}\nlease.shared = true\nlease.delete_pending = true");
    assert_eq!(flags(LEASED, PLAIN), [false, false]);
    assert_eq!(flags(&waiting, PLAIN), [true, true]);
    assert_eq!(flags(PLAIN, &waiting), [true, true]);
    assert_eq!(flags(&waiting, &PLAIN.replace("key = \"{id}\"", "key = \"#{id}\"")), [true, false]);
}

#[test]
fn a_route_says_whether_a_websocket_may_open_a_tunnel() {
    let of = |lines: &str| {
        let routes = config(&two(&format!("{PLAIN}\n{lines}"), LEASED)).routes;
        routes[0].guard.as_ref().expect("a guard").websocket
    };
    assert!(!of("") && !of("websocket = false") && of("websocket = true"));
    let azure = format!("{LEASED}\nwebsocket = true\ndialect = \"azure\"");
    let said = |text: &str, what: &str| problems(text).iter().any(|problem| problem == what);
    assert!(said(&two(&azure, PLAIN), "websocket has no effect in the azure dialect"));
    let open = "path = \"/open/{id}\"\npolicy = \"last-writer-wins\"\nwebsocket = true";
    assert!(said(&two(open, PLAIN), "`websocket` has no effect on a last-writer-wins route"));
}
