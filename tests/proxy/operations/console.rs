//! The console of the admin listener in a real browser (docs/admin.md). What a person does there stands in
//! `tests/console/console.cjs`.

use std::net::SocketAddr;

use crate::support::{
    admin::{ask, start, start_with, without_end},
    backend::Backend,
    chromium::{Pages, drive},
    leases::{Grant, acquire, lease, put_with, view},
    proxy::Proxy,
    raw::{put, put_if_match, send},
};

/// One visit; gives back what was seen, line by line.
async fn visit(admin: SocketAddr, word: &str, argument: &str) -> Vec<String> {
    drive("console/console.cjs", &[&format!("http://{admin}/"), word, argument]).await
}

/// Who reads the page needs nothing else, and it asks before it breaks.
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
    visit(admin, "see", "No lease is held").await;
    put_if_match(proxy.addr(), "/contended", "\"stale\"", "x").await.refused(412, "precondition-failed");
    visit(admin, "see", "backend:/contended").await;
}

#[tokio::test]
async fn the_console_shows_the_last_refusals_of_a_resource_as_a_timeline() {
    let backend = Backend::start().await;
    for path in ["/contended", "/elsewhere"] {
        backend.put(path, "one");
    }
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let addr = proxy.addr();
    put(addr, "/contended", &[], "x").await.refused(428, "precondition-required");
    put_if_match(addr, "/elsewhere", "\"stale\"", "x").await.refused(412, "precondition-failed");
    put_if_match(addr, "/contended", "\"<b>stale</b>\"", "x").await.refused(412, "precondition-failed");
    let seen = visit(admin, "refusals", "backend:/contended").await;
    let id = ask(admin, "/refusals?limit=1").await["refusals"][0]["id"].as_str().expect("an id").to_owned();
    let [latest, earlier, story] = &seen[..] else { panic!("{seen:?}") };
    assert!(
        latest.contains("412 precondition-failed (stale-tag) PUT backend:/contended") && latest.ends_with("ago"),
        "{latest}"
    );
    assert!(earlier.contains("428 precondition-required (no-precondition) PUT backend:/contended"), "{earlier}");
    for part in ["Asked PUT /contended", "Tag sent \"<b>stale</b>\"", "Current tag \"", &format!("ifmatch why {id}")] {
        assert!(story.contains(part), "{part}: {story}");
    }
}

/// On a telephone as on a desk, light and dark: an operator can break a lease, and whoever sees little can read it.
#[tokio::test]
async fn the_console_can_be_read_and_used_at_every_width_and_in_both_schemes() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let (addr, key) = (proxy.addr(), "/documents/of/the/second/department/a-rather-long-name-of-a-report");
    let fields = [("Lease-Duration", "infinite"), ("Lease-Holder", "the desk of somebody with a name")];
    let grant = Grant::of(&lease(addr, "POST", key, &fields).await);
    assert_eq!(put_with(addr, key, &grant.id, "one").await.status, 201);
    put(addr, key, &[], "two").await.refused(412, "lease-id-missing");
    put_if_match(addr, "/contended", "\"stale\"", "x").await.refused(412, "precondition-failed");
    send(addr, "PATCH", "/contended", &[("X-HTTP-Method-Override", "PUT")], "x").await.refused(400, "method-override");
    let seen = visit(admin, "inspect", key).await;
    let expected = ["390 light", "390 dark", "1280 light", "1280 dark"];
    assert_eq!(seen, expected.map(|place| format!("{place}: graphics and no finding")));
}

#[tokio::test]
async fn the_console_draws_the_conflicts_of_the_last_rounds() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let visit = tokio::spawn(async move { visit(admin, "history", "Conflicts").await });
    while !visit.is_finished() {
        put_if_match(proxy.addr(), "/contended", "\"stale\"", "x").await.refused(412, "precondition-failed");
    }
    assert_eq!(visit.await.expect("no panic"), [""; 0]);
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

/// Whatever a page of another origin tries, it breaks nothing and reads nothing.
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
    // What can be sent without asking arrives, and its answer is for pages of its own origin alone.
    let expected = ["plain refused", "asking refused", "reading refused", "beacon true"];
    assert_eq!(pages.run(&script).await, expected);
    assert_eq!(view(proxy.addr(), "/doc").await["state"], "leased");
    assert_eq!(ask(admin, "/leases").await["leases"][0]["state"], "leased");
}
