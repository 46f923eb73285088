//! The console of the admin listener in a real browser (docs/admin.md). What a person does there stands in
//! `tests/console/console.cjs`.

use std::net::SocketAddr;

use crate::support::{
    admin::{ask, start, start_of, start_with, without_end},
    backend::{Answer, Backend},
    chromium::{Pages, drive},
    leases::{Grant, acquire, lease, put_with, view},
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    wait::until_some,
};

/// One visit; gives back what was seen, line by line.
async fn visit(admin: SocketAddr, word: &str, argument: &str) -> Vec<String> {
    drive("console/console.cjs", &[&format!("http://{admin}/"), word, argument]).await
}

/// A reader of the page needs nothing else, and the page asks before it breaks a lease.
#[tokio::test]
async fn the_console_shows_a_lease_and_breaking_it_there_stops_its_holder() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let addr = proxy.addr();
    let fields = [("Lease-Duration", "infinite"), ("Lease-Holder", "<b>ann's</b> desk")];
    let grant = Grant::of(&lease(addr, "POST", "/doc", &fields).await);
    let row = visit(admin, "keep", "backend:/doc").await.join(" ");
    assert!(row.contains("backend:/doc<b>ann's</b> desk") && row.contains("no end"), "{row}");
    assert!(!row.contains(&grant.id));
    assert_eq!(put_with(addr, "/doc", &grant.id, "still held").await.status, 201);
    visit(admin, "break", "backend:/doc").await;
    put_with(addr, "/doc", &grant.id, "too late").await.refused(412, "lease-lost");
    assert_eq!(proxy.logged(&["a lease was broken"]).await.len(), 1);
}

#[tokio::test]
async fn the_console_shows_what_clients_fight_over() {
    let backend = Backend::start().await;
    backend.put("/contended", "one");
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let folded = visit(admin, "fold", "Hot resources").await;
    assert_eq!(folded, ["Hot resources none in the last five minutes"]);
    put_if_match(proxy.addr(), "/contended", "\"stale\"", "x").await.refused(412, "precondition-failed");
    visit(admin, "see", "backend:/contended").await;
}

#[tokio::test]
async fn the_console_shows_refusals_in_columns_and_in_groups() {
    let backend = Backend::start().await;
    for path in ["/contended", "/elsewhere"] {
        backend.put(path, "one");
    }
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let addr = proxy.addr();
    put_if_match(addr, "/contended", "\"stale\"", "x").await.refused(412, "precondition-failed");
    put(addr, "/elsewhere", &[], "x").await.refused(428, "precondition-required");
    let fields = [("If-Match", "\"<b>stale</b>\""), ("Authorization", "Bearer secret-of-ann")];
    put(addr, "/contended", &fields, "x").await.refused(412, "precondition-failed");
    let seen = visit(admin, "refusals", "precondition-failed").await;
    let latest = ask(admin, "/refusals?limit=1").await["refusals"][0].clone();
    let text = |name: &str| latest[name].as_str().expect("a text").to_owned();
    let (id, ann) = (text("id"), text("principal"));
    assert_eq!((ann.len(), latest["client"].as_str()), (6, Some("127.0.0.1")));
    let [one, two, three, group, first, second, story] = &seen[..] else { panic!("{seen:?}") };
    let row = |row: &str, code: &str, key: &str, client: &str| {
        assert!(row.contains(&format!("{code} PUT backend:{key} {client}")), "{row}");
    };
    row(one, "412 precondition-failed (stale-tag)", "/contended", &ann);
    row(two, "428 precondition-required (no-precondition)", "/elsewhere", "127.0.0.1");
    row(three, "412 precondition-failed (stale-tag)", "/contended", "127.0.0.1");
    assert_eq!(group, "group 2 precondition-failed · all");
    assert_eq!([first, second], [one, three]);
    for part in ["Asked PUT /contended", "Tag sent \"<b>stale</b>\"", "Current tag \"", &format!("ifmatch why {id}")] {
        assert!(story.contains(part), "{part}: {story}");
    }
    assert!(!seen.concat().contains("secret-of-ann"));
}

/// Like the picture in the README: two clients read, one of them writes first, and the other one is refused.
#[tokio::test]
async fn the_console_draws_what_happened_to_a_resource() {
    let backend = Backend::start().await;
    backend.put("/milk", "milk");
    let (proxy, admin) = start(&without_end(&backend)).await;
    let addr = proxy.addr();
    let fields = |client: &'static str| [("Authorization", client), ("If-Match", "*")];
    let written = put(addr, "/milk", &fields("Bearer ann"), "milk, bread").await.status;
    let stale = [("Authorization", "Bearer bob"), ("If-Match", "\"stale\"")];
    put(addr, "/milk", &stale, "milk, tea").await.refused(412, "precondition-failed");
    let holder = [("Authorization", "Bearer ann"), ("Lease-Duration", "infinite"), ("Lease-Holder", "ann's desk")];
    let grant = Grant::of(&lease(addr, "POST", "/milk", &holder).await);
    put(addr, "/milk", &fields("Bearer bob"), "tea").await.refused(412, "lease-id-missing");
    let timeline = ask(admin, "/timeline?key=backend:/milk").await;
    let (ann, bob) = (&timeline["writes"][0]["principal"], &timeline["refusals"][0]["principal"]);
    let (ann, bob) = (ann.as_str().expect("a name"), bob.as_str().expect("a name"));
    let version = timeline["writes"][1]["version"].as_u64().expect("a version");
    let seen = visit(admin, "resource", "backend:/milk").await;
    let [left, middle, right, facts, axis, write, stale, taken, refused] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!([left.as_str(), middle, right], [ann, "ifmatch", bob]);
    assert!(facts.starts_with("facts Version "), "{facts}");
    assert_eq!(*axis, format!("ann's desk, fence {}: no end", grant.fence));
    assert_eq!(*write, format!("{ann}: | PUT | {written}, version {version}"));
    assert_eq!(*stale, format!("{bob}: | PUT, based on \"stale\" | 412 precondition-failed (stale-tag)"));
    assert_eq!(*taken, format!("{ann}: | POST | 201, answered here"));
    assert_eq!(*refused, format!("{bob}: | PUT, based on * | 412 lease-id-missing (lease-held), held by ann's desk"));
    assert!(!seen.concat().contains(&grant.id) && !timeline.to_string().contains(&grant.id), "ids are secrets");
    visit(admin, "unknown", "no key").await;
}

/// A write in doubt, and a server that fails its checks, are what an operator sees first.
#[tokio::test]
async fn the_console_shows_trouble_first() {
    let scene = Scene::start().await;
    let [tile, row] = &visit(scene.admin, "tile", "Writes in doubt").await[..] else { panic!("one tile and one row") };
    assert_eq!(tile, "Writes in doubt 1 resources held back");
    assert!(row.starts_with("backend:/orders/7 "), "{row}");
    let seen = visit(scene.admin, "tile", "Servers down").await;
    let [tile, down, up] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(tile, "Servers down 1 of 2 servers");
    assert!(down.contains("down: its checks fail") && up.contains(" up"), "{seen:?}");
}

#[tokio::test]
async fn the_console_draws_the_last_hour_and_shows_the_settings_of_a_route() {
    let scene = Scene::start().await;
    let seen = visit(scene.admin, "hour", "orders in the last hour").await;
    let [label] = &seen[..] else { panic!("{seen:?}") };
    assert!(label.contains(" conflicts, ") && label.contains("1 failed; at most "), "{label}");
    let settings = visit(scene.admin, "route", "orders").await.concat();
    for part in ["path /orders/{id}", "policy optimistic", "etag content"] {
        assert!(settings.contains(part), "{part}: {settings}");
    }
    assert_eq!(visit(scene.admin, "idle", "archive").await, ["2 idle routes without a request in the last hour"]);
}

/// One stream brings everything, and the page asks for nothing else.
#[tokio::test]
async fn the_console_lives_by_one_stream() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let seen = visit(admin, "live", &format!("http://{}/.leases/doc", proxy.addr())).await;
    assert_eq!(seen, ["/watch"]);
    visit(admin, "back", "").await;
}

/// On a telephone as on a desk, light and dark: an operator can break a lease, and a person with weak sight can read
/// the page. `WRITE_SCREENSHOTS=1` writes the pictures of docs/admin.md.
#[tokio::test]
async fn the_console_can_be_read_and_used_at_every_width_and_in_both_schemes() {
    let scene = Scene::start().await;
    let (url, key) = (format!("http://{}/", scene.admin), "backend:/documents/plans/spring");
    for (width, scheme) in [("390", "light"), ("390", "dark"), ("1280", "light"), ("1280", "dark")] {
        let seen = drive("console/console.cjs", &[&url, "inspect", key, width, scheme]).await;
        assert_eq!(seen, [format!("{width} {scheme}: graphics and no finding")]);
    }
}

/// A proxy with some of everything: leases, conflicts, refusals, a write in doubt, and a server that is down.
struct Scene {
    backend: Backend,
    proxy: Proxy,
    admin: SocketAddr,
}

impl Scene {
    async fn start() -> Self {
        let (backend, down) = (Backend::start().await, Backend::start().await);
        down.always("GET", "/healthz", |_| Answer::status(503));
        let (proxy, admin) = start_of(&configuration(backend.addr(), down.addr())).await;
        let scene = Self { backend, proxy, admin };
        scene.play().await;
        until_some("the server to be down", || scene.proxy.log().contains("the server is down").then_some(())).await;
        scene
    }

    async fn play(&self) {
        let (backend, addr) = (&self.backend, self.proxy.addr());
        let plan = "/documents/plans/spring";
        for path in [plan, "/orders/3", "/orders/7"] {
            backend.put(path, "one");
        }
        let as_client = |client: &'static str, tag: &'static str| [("Authorization", client), ("If-Match", tag)];
        for number in 0..3 {
            let (writer, late) =
                if number % 2 == 0 { ("Bearer ann", "Bearer bob") } else { ("Bearer bob", "Bearer ann") };
            put(addr, plan, &as_client(writer, "*"), format!("{number}")).await;
            put(addr, plan, &as_client(late, "\"before\""), "late").await.refused(412, "precondition-failed");
            put_if_match(addr, "/orders/3", "\"stale\"", "x").await.refused(412, "precondition-failed");
        }
        let fields = [("Authorization", "Bearer ann"), ("Lease-Duration", "infinite"), ("Lease-Holder", "Ann's desk")];
        Grant::of(&lease(addr, "POST", plan, &fields).await);
        put(addr, plan, &as_client("Bearer bob", "*"), "beside").await.refused(412, "lease-id-missing");
        for (name, holder) in [("budget", "worker 7"), ("of/the/second/department/a-rather-long-name", "a person")] {
            let fields = [("Lease-Duration", "60"), ("Lease-Holder", holder)];
            Grant::of(&lease(addr, "POST", &format!("/documents/{name}"), &fields).await);
        }
        put(addr, "/orders/3", &[], "x").await.refused(428, "precondition-required");
        send(addr, "PATCH", "/orders/3", &[("X-HTTP-Method-Override", "PUT")], "x")
            .await
            .refused(400, "method-override");
        let tag = get(addr, "/orders/7").await.etag();
        backend.once("PUT", "/orders/7", Answer::close());
        put_if_match(addr, "/orders/7", &tag, "lost").await.refused(502, "upstream-failed");
    }
}

fn configuration(backend: SocketAddr, down: SocketAddr) -> String {
    format!(
        r#"[server]
{{listen}}
spool_dir = "{{spool}}"
threads = 2

[upstreams.backend]
servers = ["{backend}"]
late_write_window = "10m"

[upstreams.search]
servers = ["{down}"]
health = {{ check = "http", path = "/healthz", status = "204", interval = "50ms", unhealthy_after = 2 }}

[defaults]
upstream = "backend"
collections = "none"

[[routes]]
name = "documents"
path = "/documents/{{*rest}}"
policy = "pessimistic"
lease.max = "1h"
lease.infinite = true
lease.absent = "allow"

[[routes]]
name = "orders"
path = "/orders/{{id}}"
policy = "optimistic"

[[routes]]
name = "archive"
path = "/archive/{{*rest}}"
policy = "last-writer-wins"

[[routes]]
name = "search"
path = "/search"
upstream = "search"
policy = "last-writer-wins"
"#
    )
}

#[tokio::test]
async fn the_console_asks_for_the_token() {
    let backend = Backend::start().await;
    let secret = "correct-horse-battery";
    let (proxy, admin) = start_with(&without_end(&backend), "token_env = \"ADMIN\"", &[("ADMIN", secret)]).await;
    acquire(proxy.addr(), "/doc", "infinite").await;
    visit(admin, "login", secret).await;
}

/// DNS rebinding, with a browser that believes it.
#[tokio::test]
async fn a_name_that_was_made_to_lead_here_shows_nothing() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start(&without_end(&backend)).await;
    assert_eq!(visit(admin, "rebound", "").await, ["421"]);
}

/// No attempt of a page of another origin breaks anything, or reads anything.
#[tokio::test]
async fn a_page_of_another_origin_breaks_no_lease() {
    let (backend, pages) = (Backend::start().await, Pages::start().await);
    let (proxy, admin) = start(&without_end(&backend)).await;
    acquire(proxy.addr(), "/doc", "infinite").await;
    let script = format!(
        "const at = path => 'http://{admin}' + path;
         const body = JSON.stringify({{key: 'backend:/doc'}});
         const tries = async (what, promise) => say(what, await promise.then(answer => answer.type, () => 'refused'));
         await tries('plain', fetch(at('/leases/break'), {{method: 'POST', mode: 'no-cors', body}}));
         await tries('asking', fetch(at('/leases/break'), {{method: 'POST', headers: {{'Ifmatch-Admin': '1',
             'Content-Type': 'application/json'}}, body}}));
         await tries('reading', fetch(at('/leases')));
         say('beacon', navigator.sendBeacon(at('/leases/break'), body));"
    );
    // A request that a page may send without asking arrives, and its answer is for pages of its own origin alone.
    let expected = ["plain refused", "asking refused", "reading refused", "beacon true"];
    assert_eq!(pages.run(&script).await, expected);
    assert_eq!(view(proxy.addr(), "/doc").await["state"], "leased");
    assert_eq!(ask(admin, "/leases").await["leases"][0]["state"], "leased");
}
