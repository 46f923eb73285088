//! Git LFS as it is, in front of the real nginx, which knows neither batches nor locks. The configuration is
//! `config/git-lfs.toml`.

use std::{fs, net::SocketAddr, path::Path};

use serde_json::{Value, json};

use crate::support::{
    engines::Engine,
    git_lfs::{Clone, Team},
    nginx::Nginx,
    proxy::Proxy,
    raw::send,
    response::Response,
    wait::within,
};

const ANN: (&str, &str) = ("Authorization", "Basic YW5uOnNlY3JldA==");
const BOB: (&str, &str) = ("Authorization", "Basic Ym9iOnNlY3JldA==");
const HERO: &str = "art/hero.psd";
const MEMORY: &str = "kind = \"memory\"";

/// The configuration in front of this server, with this table `[store]`, and these lines of the table of leases.
fn configuration(backend: SocketAddr, store: &str, lease: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/git-lfs.toml");
    let mut text = fs::read_to_string(file).expect("the file");
    for (from, to) in [
        ("listen = [\"127.0.0.1:8080\"]", "{listen}"),
        ("kind = \"disk\"\npath = \"/var/lib/ifmatch/locks\"", store),
        // After a death, writes are held back for this long.
        ("127.0.0.1:9000\"]", &format!("{backend}\"]\nlate_write_window = \"0s\"")),
        ("[routes.lease]", &format!("[routes.lease]\n{lease}")),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, to);
    }
    text
}

fn on_disk(directory: &tempfile::TempDir) -> String {
    format!("kind = \"disk\"\npath = {:?}", directory.path().join("locks").to_str().expect("UTF-8"))
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// An nginx with two users, and their passwords in this directory.
async fn server(directory: &tempfile::TempDir) -> Nginx {
    let users = directory.path().join("users");
    fs::write(&users, "ann:{PLAIN}secret\nbob:{PLAIN}secret\n").expect("a file");
    Nginx::with(&format!("auth_basic game; auth_basic_user_file {};", users.to_str().expect("UTF-8"))).await
}

/// Two members of a team. Ann has pushed a file that can be locked.
async fn team(addr: SocketAddr) -> (Team, [Clone; 2]) {
    let team = Team::new().await;
    let ann = team.clone_of("ann", addr).await;
    ann.succeeds(&["lfs", "track", "--lockable", "*.psd"]).await;
    ann.commits(HERO, "one").await;
    ann.succeeds(&["push", "origin", "HEAD:main"]).await;
    let bob = team.clone_of("bob", addr).await;
    bob.succeeds(&["lfs", "pull"]).await;
    (team, [ann, bob])
}

/// Asks for an operation below the repository, and returns the status and the document.
async fn ask(addr: SocketAddr, user: (&str, &str), request: (&str, &str), body: &Value) -> (u16, Value) {
    let (method, path) = request;
    let body = if method == "GET" { String::new() } else { body.to_string() };
    let answer = send(addr, method, &format!("/game/{path}"), &[user], &body).await;
    (answer.status, document(&answer))
}

fn document(answer: &Response) -> Value {
    assert_eq!(answer.header("content-type"), Some("application/vnd.git-lfs+json"), "{answer:?}");
    serde_json::from_str(answer.text()).expect("JSON")
}

async fn lock(addr: SocketAddr, user: (&str, &str), path: &str) -> (u16, Value) {
    ask(addr, user, ("POST", "locks"), &json!({ "path": path })).await
}

/// The paths of the locks of a client, and of those of others.
async fn verified(addr: SocketAddr, user: (&str, &str)) -> [Vec<String>; 2] {
    let (status, told) = ask(addr, user, ("POST", "locks/verify"), &json!({})).await;
    assert_eq!((status, &told["next_cursor"]), (200, &Value::Null), "{told}");
    ["ours", "theirs"].map(|part| {
        let locks = told[part].as_array().expect("a list");
        let mut paths: Vec<_> = locks.iter().map(|lock| lock["path"].as_str().expect("a path").to_owned()).collect();
        paths.sort_unstable();
        paths
    })
}

/// Waits until the proxy answers operations on locks: after a death, it grants none for a while.
async fn until_granted(addr: SocketAddr, path: &str) {
    let asked = async {
        loop {
            let (status, told) = lock(addr, ANN, path).await;
            match status {
                201 => return,
                _ => assert_eq!(status, 503, "{told}"),
            }
        }
    };
    within("a lock", asked).await;
}

/// Ann locks a file. Bob cannot lock it or push it, and learns whose lock it is.
async fn lock_keeps_from_a_push(addr: SocketAddr, [ann, bob]: &[Clone; 2]) {
    ann.succeeds(&["lfs", "lock", HERO]).await;
    let refused = bob.fails(&["lfs", "lock", HERO]).await;
    assert!(refused.contains("ann has locked the path"), "{refused}");
    let shown = bob.succeeds(&["lfs", "locks"]).await;
    assert!(shown.contains(HERO) && shown.contains("\tann\t"), "{shown}");
    assert!(ann.succeeds(&["lfs", "locks", "--verify"]).await.starts_with(&format!("O {HERO}")));
    assert!(bob.succeeds(&["lfs", "locks", "--verify"]).await.starts_with(&format!("  {HERO}")));
    assert_eq!(verified(addr, BOB).await, [vec![], vec![HERO.to_owned()]]);
    bob.commits(HERO, "bob's").await;
    push_is_refused(bob).await;
    let refused = bob.fails(&["lfs", "unlock", HERO]).await;
    assert!(refused.contains("ann has locked the path"), "{refused}");
}

async fn push_is_refused(bob: &Clone) {
    let refused = bob.fails(&["push", "origin", "HEAD:main"]).await;
    assert!(refused.contains("Unable to push locked files") && refused.contains(&format!("{HERO} - ann")), "{refused}");
}

/// Bob ends the lock of Ann, and pushes. Ann gets his file.
async fn force_lets_push(addr: SocketAddr, [ann, bob]: &[Clone; 2]) {
    bob.succeeds(&["lfs", "unlock", "--force", HERO]).await;
    assert_eq!(verified(addr, BOB).await, [vec![], vec![]] as [Vec<String>; 2]);
    bob.succeeds(&["lfs", "lock", HERO]).await;
    bob.succeeds(&["push", "origin", "HEAD:main"]).await;
    let refused = ann.fails(&["lfs", "unlock", HERO]).await;
    assert!(refused.contains("bob has locked the path"), "{refused}");
    bob.succeeds(&["lfs", "unlock", HERO]).await;
    ann.succeeds(&["pull", "origin", "main"]).await;
    assert_eq!(ann.content(HERO), "bob's");
}

#[tokio::test]
async fn clones_exchange_objects_and_keep_locks_of_each_other() {
    let directory = directory();
    let nginx = server(&directory).await;
    let proxy = Proxy::start(&configuration(nginx.addr(), MEMORY, "")).await;
    let (_team, clones) = team(proxy.addr()).await;
    assert_eq!(clones[1].content(HERO), "one");
    lock_keeps_from_a_push(proxy.addr(), &clones).await;
    force_lets_push(proxy.addr(), &clones).await;
    proxy.logged(&["has ended the lock of another", "ann"]).await;
    let kept = fs::read_dir(nginx.root().join("game")).expect("a directory");
    let kept: Vec<_> = kept.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(kept, ["objects"], "the server keeps no lock");
}

/// Rule 20: a lock on disk outlives the process that granted it.
#[tokio::test]
async fn locks_outlive_the_death_of_the_proxy() {
    let directory = directory();
    let nginx = server(&directory).await;
    let mut proxy = Proxy::start(&configuration(nginx.addr(), &on_disk(&directory), "")).await;
    let (_team, clones) = team(proxy.addr()).await;
    lock_keeps_from_a_push(proxy.addr(), &clones).await;
    proxy.signal("KILL");
    proxy.restart().await;
    until_granted(proxy.addr(), "other").await;
    assert_eq!(verified(proxy.addr(), BOB).await, [vec![], vec![HERO.to_owned(), "other".to_owned()]]);
    push_is_refused(&clones[1]).await;
    clones[0].succeeds(&["lfs", "unlock", "--id", &id_of(proxy.addr(), "other").await]).await;
    force_lets_push(proxy.addr(), &clones).await;
}

/// Rules 1 and 10: two proxies with one store have one list of locks, and each knows it after the death of the other.
#[tokio::test]
async fn two_proxies_with_one_store_have_the_same_locks() {
    for engine in Engine::all().await {
        let directory = directory();
        let nginx = server(&directory).await;
        let store = format!("{}\ntimeout = \"10s\"", engine.store());
        let configuration = configuration(nginx.addr(), &store, "");
        let [one, two] = [Proxy::start(&configuration).await, Proxy::start(&configuration).await];
        let at = |number: usize| if number.is_multiple_of(2) { one.addr() } else { two.addr() };
        let both = (0..40).map(|number| async move {
            let path = format!("art/{}", number / 2);
            lock(at(number), if number.is_multiple_of(2) { ANN } else { BOB }, &path).await.0
        });
        let statuses = futures_util::future::join_all(both).await;
        for pair in statuses.chunks(2) {
            assert!(matches!(pair, [201, 409] | [409, 201]), "{}: {statuses:?}", engine.name());
        }
        let [ours, theirs] = verified(two.addr(), ANN).await;
        assert_eq!((ours.len() + theirs.len(), [theirs, ours]), (20, verified(one.addr(), BOB).await));
        one.signal("KILL");
        let id = id_of(two.addr(), "art/7").await;
        let forced = ask(two.addr(), ANN, ("POST", &format!("locks/{id}/unlock")), &json!({ "force": true })).await;
        assert_eq!(forced.0, 200, "{}", forced.1);
        assert_eq!(lock(two.addr(), BOB, "art/7").await.0, 201);
        assert!(verified(two.addr(), BOB).await[0].contains(&"art/7".to_owned()));
    }
}

/// The id of the lock of a path.
async fn id_of(addr: SocketAddr, path: &str) -> String {
    let (status, told) = ask(addr, BOB, ("GET", &format!("locks?path={path}")), &Value::Null).await;
    let locks = told["locks"].as_array().expect("a list");
    assert_eq!((status, locks.len(), &locks[0]["path"]), (200, 1, &path.into()), "{told}");
    locks[0]["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_list_of_many_locks_has_pages() {
    let directory = directory();
    let nginx = server(&directory).await;
    let proxy = Proxy::start(&configuration(nginx.addr(), MEMORY, "")).await;
    let addr = proxy.addr();
    let mut expected: Vec<String> = (0..250).map(|number| format!("levels/{number} ä.umap")).collect();
    for path in &expected {
        assert_eq!(lock(addr, ANN, path).await.0, 201);
    }
    expected.sort_unstable();
    for (limit, pages) in [("", 3), ("&limit=60", 5)] {
        let (mut found, mut cursor, mut count) = (Vec::new(), String::new(), 0);
        loop {
            let (status, told) = ask(addr, BOB, ("GET", &format!("locks?cursor={cursor}{limit}")), &Value::Null).await;
            assert_eq!(status, 200, "{told}");
            let paths = told["locks"].as_array().expect("a list").iter().map(|lock| lock["path"].as_str());
            found.extend(paths.map(|path| path.expect("a path").to_owned()));
            count += 1;
            match told["next_cursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None => break,
            }
        }
        found.sort_unstable();
        assert_eq!((count, &found), (pages, &expected), "{limit}");
    }
    let told = ask(addr, BOB, ("POST", "locks/verify"), &json!({ "limit": 10 })).await.1;
    assert_eq!((told["theirs"].as_array().expect("a list").len(), told["next_cursor"].is_string()), (10, true));
}

/// Rule 4: what a client may not do leaves no trace.
#[tokio::test]
async fn the_server_decides_who_may_use_a_repository() {
    let directory = directory();
    let nginx = server(&directory).await;
    let proxy = Proxy::start(&configuration(nginx.addr(), MEMORY, "client_break = false")).await;
    let addr = proxy.addr();
    let (status, held) = lock(addr, ANN, HERO).await;
    assert_eq!((status, &held["lock"]["owner"]["name"]), (201, &"ann".into()), "{held}");
    let id = held["lock"]["id"].as_str().expect("an id");
    let empty = json!({ "operation": "download", "objects": [] }).to_string();
    let object = json!({ "operation": "upload", "objects": [{ "oid": "0".repeat(64), "size": 1 }] }).to_string();
    for (method, path, body) in [
        ("POST", "locks", r#"{"path":"other"}"#),
        ("GET", "locks", ""),
        ("GET", &*format!("locks?path={HERO}"), ""),
        ("POST", "locks/verify", "{}"),
        ("POST", &format!("locks/{id}/unlock"), r#"{"force":true}"#),
        ("POST", "objects/batch", &empty),
        ("POST", "objects/batch", &object),
    ] {
        let refused = send(addr, method, &format!("/game/{path}"), &[], body).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Basic realm=\"game\"")), "{path}");
    }
    for body in [json!({}), json!({ "force": true })] {
        let (status, told) = ask(addr, BOB, ("POST", &format!("locks/{id}/unlock")), &body).await;
        assert_eq!((status, told["message"].as_str().is_some_and(|text| text.contains("client_break"))), (403, true));
    }
    let (status, told) = ask(addr, BOB, ("POST", "locks/0123/unlock"), &json!({})).await;
    assert_eq!(status, 404, "{told}");
    let (status, told) = lock(addr, BOB, HERO).await;
    assert_eq!((status, &told["lock"]), (409, &held["lock"]), "{told}");
    assert_eq!(verified(addr, ANN).await, [vec![HERO.to_owned()], vec![]]);
    assert_eq!(ask(addr, ANN, ("POST", &format!("locks/{id}/unlock")), &json!({})).await.0, 200);
    assert_eq!(ask(addr, ANN, ("POST", &format!("locks/{id}/unlock")), &json!({})).await.0, 404, "it has ended");
}

/// Rule 14: an object has the content that its name says.
#[tokio::test]
async fn an_object_is_stored_as_its_name_says_and_told_with_its_url() {
    const ID: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let (object, directory) = (format!("/game/objects/ba/78/{ID}"), directory());
    let nginx = server(&directory).await;
    let proxy = Proxy::start(&configuration(nginx.addr(), MEMORY, "")).await;
    let addr = proxy.addr();
    let batch = async |operation: &str, size: u64, fields: &[(&str, &str)]| {
        let objects = json!([{ "oid": ID, "size": size }, { "oid": "x", "size": 1 }]);
        let body = json!({ "operation": operation, "transfers": ["basic"], "objects": objects }).to_string();
        let answer = send(addr, "POST", "/game/objects/batch", &[&[ANN], fields].concat(), &body).await;
        let told = document(&answer);
        assert_eq!((answer.status, &told["objects"][1]["error"]["code"]), (200, &422.into()), "{told}");
        told["objects"][0].clone()
    };
    assert_eq!(batch("download", 3, &[]).await["error"]["code"], 404);
    let told = batch("upload", 3, &[]).await;
    assert_eq!(told["actions"]["upload"]["href"], format!("http://test{object}"), "{told}");
    let told = batch("upload", 3, &[("X-Forwarded-Proto", "https")]).await;
    assert_eq!(told["actions"]["upload"]["href"], format!("https://test{object}"), "{told}");
    let damaged = send(addr, "PUT", &object, &[ANN], "abd").await;
    assert_eq!((damaged.status, &document(&damaged)["code"]), (422, &"malformed-request".into()), "{damaged:?}");
    assert_eq!(send(addr, "PUT", &object, &[ANN], "abc").await.status, 201);
    let told = batch("upload", 3, &[]).await;
    assert_eq!((&told["actions"], &told["size"]), (&Value::Null, &3.into()), "it is there");
    assert!(batch("upload", 4, &[]).await["actions"]["upload"].is_object(), "it may be a part");
    assert_eq!(batch("download", 4, &[]).await["error"]["code"], 404);
    assert_eq!(batch("download", 3, &[]).await["actions"]["download"]["href"], format!("http://test{object}"));
    let read = send(addr, "GET", &object, &[ANN], "").await;
    assert_eq!((read.status, read.text()), (200, "abc"));
    assert_eq!(send(addr, "DELETE", &object, &[ANN], "").await.status, 405);
}

/// A proxy in front may know the names of clients with any credentials.
#[tokio::test]
async fn a_lock_can_be_shown_with_the_name_in_a_field() {
    let nginx = Nginx::start().await;
    let configuration = configuration(nginx.addr(), MEMORY, "");
    let lines = "etag = \"version\"\nowner_header = \"X-Forwarded-User\"\nidentity_headers = [\"X-Forwarded-User\"]";
    let proxy = Proxy::start(&configuration.replace("etag = \"version\"", lines)).await;
    let (ann, bob) = (("X-Forwarded-User", "Ann"), ("X-Forwarded-User", "Bob"));
    let (status, told) = lock(proxy.addr(), ann, HERO).await;
    assert_eq!((status, &told["lock"]["owner"]["name"]), (201, &"Ann".into()), "{told}");
    assert_eq!(verified(proxy.addr(), ann).await, [vec![HERO.to_owned()], vec![]]);
    assert_eq!(verified(proxy.addr(), bob).await, [vec![], vec![HERO.to_owned()]]);
}
