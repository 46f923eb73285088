//! `ifmatch why` and `/refusals`: the cause of each refusal, for operators, and the part of it that clients may know.

use std::{
    net::SocketAddr,
    process::{Command, Output},
};

use serde_json::Value;

use crate::support::{
    admin::{ask, look, problem, start, without_end},
    backend::{Answer, Backend},
    leases::{acquire, assert_silent_about, lease, put_with},
    proxy::Proxy,
    raw::{Connection, get, put, put_if_match, send},
    response::Problem,
    wait::until,
};

/// As many refusals as are kept.
const KEPT: usize = 1_000;

async fn why(admin: SocketAddr, arguments: &[&str]) -> Output {
    command("why", admin, arguments).await
}

/// The output of a command that finds the listener by its variable.
async fn command(name: &str, admin: SocketAddr, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
    command.arg(name).args(arguments).env("IFMATCH_ADMIN", format!("http://{admin}")).env_remove("IFMATCH_ADMIN_TOKEN");
    tokio::task::spawn_blocking(move || command.output().expect("ifmatch runs")).await.expect("no panic")
}

/// The five lines of a story, by the word that each begins with.
struct Story(String);

impl Story {
    async fn of(admin: SocketAddr, refused: &Problem) -> Self {
        let output = why(admin, &[&id(refused)]).await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        assert_eq!(text.lines().count(), 5, "{text}");
        Self(text)
    }

    #[track_caller]
    fn says(&self, line: &str, part: &str) {
        let told = self.0.lines().find(|told| told.starts_with(line)).unwrap_or_else(|| panic!("{line} in {}", self.0));
        assert!(told.contains(part), "{part:?} in {told}");
    }
}

/// RFC 9457 section 3.1.5: the id of the request.
#[track_caller]
fn id(refused: &Problem) -> String {
    refused.json["instance"].as_str().expect("an instance").to_owned()
}

#[tokio::test]
async fn a_stale_tag_is_told_with_the_current_one_and_its_age() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    for other_writers in [true, false] {
        let setup = Proxy::to(backend.addr()).route(&format!("etag = \"content\"\nother_writers = {other_writers}"));
        let (proxy, admin) = start(&setup).await;
        let old = get(proxy.addr(), "/doc").await.etag();
        let content = format!("new for {other_writers}");
        let current = put_if_match(proxy.addr(), "/doc", &old, &content).await.etag();
        let refused = put_if_match(proxy.addr(), "/doc", &old, "lost").await.refused(412, "precondition-failed");
        let shortened = |tag: &str| format!("{}\"...", &tag[..17]);
        assert_eq!(refused.json["reason"], "stale-tag");
        assert_eq!(refused.json["sent_tag"], shortened(&old));
        assert_eq!(refused.json["current_tag"], shortened(&current));
        assert!(refused.json["last_change_seconds"].is_u64(), "{}", refused.json);
        let story = Story::of(admin, &refused).await;
        story.says("asked:", "PUT /doc; refused with 412 precondition-failed (stale-tag)");
        story.says("where:", "route all (optimistic), resource backend:/doc");
        story.says("sent:", &shortened(&old));
        story.says("found:", &format!("current tag {}; last changed through ifmatch ", shortened(&current)));
        story.says("remedy:", "read it again");
        let probed = ask(admin, &format!("/refusals/{}", id(&refused).replace("urn:ifmatch:request:", ""))).await;
        assert_eq!(probed["probe_status"] == 200, other_writers, "{probed}");
        until("the access line", || proxy.log().contains("reason=\"stale-tag\"")).await;
        let line = format!("request_id=\"{}\"", probed["id"].as_str().expect("an id"));
        assert!(proxy.log().contains(&line), "{line} in {}", proxy.log());
    }
}

/// Bob has read the version before Ann's, and none since.
#[tokio::test]
async fn a_stale_tag_is_told_with_what_its_client_has_not_read() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let (proxy, admin) = start(&Proxy::to(backend.addr()).route("etag = \"content\"")).await;
    let [ann, bob] = ["ann", "bob"].map(|name| ("Authorization", name));
    let tag = send(proxy.addr(), "GET", "/doc", &[bob], "").await.etag();
    let based = ("If-Match", tag.as_str());
    assert!(send(proxy.addr(), "PUT", "/doc", &[ann, based], "two").await.status < 300);
    let refused = send(proxy.addr(), "PUT", "/doc", &[bob, based], "lost").await.refused(412, "precondition-failed");
    let unread = "and this client has not read it through this process since";
    Story::of(admin, &refused).await.says("found:", unread);
    send(proxy.addr(), "GET", "/doc", &[bob], "").await.etag();
    let refused = send(proxy.addr(), "PUT", "/doc", &[bob, based], "lost").await.refused(412, "precondition-failed");
    assert!(!Story::of(admin, &refused).await.0.contains(unread), "Bob has read it");
}

#[tokio::test]
async fn a_weak_tag_is_told_with_the_setting_that_would_have_saved_the_request() {
    let backend = Backend::start().await;
    backend.always("*", "/doc", |_| Answer::status(200).header("ETag", "W/\"3\"").body("one"));
    for (route, weakened, setting) in [
        ("etag = \"content\"", true, Some("accept_weak_own = true")),
        ("etag = \"upstream\"", false, Some("compare = \"opaque\"")),
        ("etag = \"upstream\"", true, None),
    ] {
        let (proxy, admin) = start(&Proxy::to(backend.addr()).route(route)).await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        let sent = match (route, weakened) {
            ("etag = \"content\"", true) => format!("W/{tag}"),
            (_, true) => "W/\"another\"".to_owned(),
            _ => tag,
        };
        let refused = put_if_match(proxy.addr(), "/doc", &sent, "x").await.refused(412, "precondition-failed");
        let story = Story::of(admin, &refused).await;
        match setting {
            Some(setting) => story.says("remedy:", &format!("; with {setting} on the route it would have passed")),
            None => assert!(!story.0.contains("it would have passed"), "{}", story.0),
        }
    }
}

#[tokio::test]
async fn a_missing_precondition_is_told_with_why_there_was_no_tag() {
    let backend = Backend::start().await;
    backend.put("/small", "x");
    backend.put("/large", "x".repeat(2000));
    let setup = Proxy::to(backend.addr()).route("etag = \"content\"\nmax_hash_size = \"1KiB\"");
    let (proxy, admin) = start(&setup).await;
    get(proxy.addr(), "/small").await.etag();
    let refused = put(proxy.addr(), "/small?sig=secret", &[], "y").await.refused(428, "precondition-required");
    assert_eq!((&refused.json["reason"], refused.json.get("untagged")), (&"no-precondition".into(), None));
    let story = Story::of(admin, &refused).await;
    story.says("sent:", "no tag");
    story.says("found:", "the code says it all");
    assert_eq!(get(proxy.addr(), "/large").await.header("etag"), None);
    let refused = put(proxy.addr(), "/large", &[], "y").await.refused(428, "precondition-required");
    assert_eq!(refused.json["untagged"], "too-large");
    Story::of(admin, &refused).await.says("found:", "an earlier read by the client got no tag: too-large");
    until("the access line", || proxy.log().contains("untagged=\"too-large\"")).await;
    let metrics = look(admin, "/metrics").await;
    let counted = "ifmatch_responses_untagged_total{ifmatch_reason=\"too-large\"";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
    assert!(!ask(admin, "/refusals").await.to_string().contains("secret"), "queries are not kept");
}

#[tokio::test]
async fn a_write_in_doubt_is_told_as_the_cause() {
    let backend = Backend::start().await;
    backend.always("PUT", "/doc", |_| Answer::never());
    let setup = Proxy::to(backend.addr()).upstream("timeout = \"400ms\"\nlate_write_window = \"1h\"");
    let (proxy, admin) = start(&setup).await;
    let create = [("If-None-Match", "*")];
    let first = put(proxy.addr(), "/doc", &create, "x").await.refused(504, "upstream-timeout");
    Story::of(admin, &first).await.says("found:", "the outcome of the write is unknown");
    let second = put(proxy.addr(), "/doc", &create, "x").await.refused(409, "write-in-flight");
    assert_eq!(second.json["reason"], "write-in-doubt");
    let story = Story::of(admin, &second).await;
    story.says("asked:", "409 write-in-flight (write-in-doubt)");
    story.says("found:", "a retry may succeed 59m");
    let id = id(&first).replace("urn:ifmatch:request:", "");
    story.says("found:", &format!("a PUT 0s before is in doubt (ifmatch why {id})"));
    let doubts = command("doubts", admin, &[]).await;
    let doubts = String::from_utf8(doubts.stdout).expect("text");
    let rows: Vec<Vec<&str>> = doubts.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["KEY", "SINCE", "REMAINING", "METHOD", "ROUTE", "ID"]);
    assert_eq!((rows[1][0], &rows[1][3..]), ("backend:/doc", &["PUT", "all", &id][..]), "{doubts}");
    let timeline = why(admin, &["--key", "backend:/doc"]).await;
    let timeline = String::from_utf8(timeline.stdout).expect("text");
    let codes: Vec<&str> = timeline.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
    assert_eq!(codes, ["REASON", "upstream-timeout", "write-in-flight"], "{timeline}");
}

#[tokio::test]
async fn a_lease_is_told_with_its_holder_and_never_with_its_id() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let fields = [("Lease-Duration", "60"), ("Lease-Holder", "ann's desk")];
    let granted = lease(proxy.addr(), "POST", "/doc", &fields).await;
    let held = lease(proxy.addr(), "POST", "/doc", &[("Lease-Duration", "60")]).await.refused(409, "lease-held");
    let story = Story::of(admin, &held).await;
    story.says("asked:", "POST /.leases/doc; refused with 409 lease-held");
    story.says("found:", "leased by \"ann's desk\" for ");
    let missing = put(proxy.addr(), "/doc", &[], "x").await.refused(412, "lease-id-missing");
    assert_eq!(missing.json["reason"], "lease-held");
    assert_eq!(missing.json.get("holder"), None, "nothing shows that this client may know of the resource");
    Story::of(admin, &missing).await.says("found:", "leased by \"ann's desk\" for ");
    let id = granted.header("lease-id").expect("an id");
    put_with(proxy.addr(), "/other", id, "x").await.refused(412, "lease-not-present");
    assert_silent_about(id, &look(admin, "/refusals").await);
    let another = acquire(proxy.addr(), "/another", "infinite").await;
    put_with(proxy.addr(), "/doc", &another.id, "x").await.refused(412, "lease-id-mismatch");
    assert_silent_about(&another.id, &look(admin, "/refusals").await);
}

/// The proxy may read what this client may not.
#[tokio::test]
async fn a_client_that_may_not_know_sees_no_current_tag() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let stale = [("If-Match", "\"stale\""), ("Authorization", "bob")];
    for (probe_auth, may_know) in [("none", false), ("client", true)] {
        let setup = Proxy::to(backend.addr()).route(&format!("etag = \"content\"\nprobe_auth = \"{probe_auth}\""));
        let (proxy, admin) = start(&setup).await;
        let refused = put(proxy.addr(), "/doc", &stale, "x").await.refused(412, "precondition-failed");
        assert_eq!(refused.json["sent_tag"], "\"stale\"", "its own tag is no secret");
        for member in ["current_tag", "probe_status"] {
            assert_eq!(refused.json.get(member).is_some(), may_know, "{member} in {}", refused.json);
        }
        Story::of(admin, &refused).await.says("found:", "current tag ");
    }
}

#[tokio::test]
async fn the_oldest_refusal_is_dropped_when_there_are_too_many() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let mut connection = Connection::open(proxy.addr()).await;
    let mut ids = Vec::new();
    for _ in 0..=KEPT {
        ids.push(id(&connection.exchange("PUT", "/doc", &[], "x").await.refused(428, "precondition-required")));
    }
    let kept = ask(admin, "/refusals?limit=1000").await;
    assert_eq!(kept["refusals"].as_array().map(Vec::len), Some(KEPT));
    let oldest = why(admin, &[&ids[0]]).await;
    assert_eq!(oldest.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&oldest.stderr).contains("refusal-not-present"), "{oldest:?}");
    assert_eq!(why(admin, &[&ids[1]]).await.status.code(), Some(0));
    assert_eq!(why(admin, &[&ids[KEPT]]).await.status.code(), Some(0));
    assert_eq!(problem(&look(admin, "/refusals/soon").await, 400), "malformed-request");
    assert_eq!(problem(&look(admin, "/refusals?limit=0").await, 400), "malformed-request");
    let nonsense: Value = ask(admin, "/refusals?key=backend:/none").await;
    assert_eq!(nonsense["refusals"], Value::Array(Vec::new()));
}
