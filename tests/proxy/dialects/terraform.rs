//! Terraform as it is, in front of the real nginx, which knows no locks. The configuration is `config/terraform.toml`.

use std::{fs, net::SocketAddr, path::Path};

use serde_json::Value;

use crate::support::{
    backend::Backend,
    engines::Etcd,
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, send},
    response::Response,
    terraform::{Running, Workspace},
    wait::within,
};

const STATE: &str = "/prod/network";
const BOB: &str = r#"{"ID":"bob-1","Operation":"OperationTypePlan","Who":"bob@host"}"#;

/// The configuration in front of this server, with this table `[store]`, and these lines of the route.
fn configuration(backend: SocketAddr, store: &str, route: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/terraform.toml");
    let mut text = fs::read_to_string(file).expect("the file");
    for (from, to) in [
        ("listen = [\"127.0.0.1:8080\"]", "{listen}"),
        ("kind = \"disk\"\npath = \"/var/lib/ifmatch/locks\"", store),
        // After a death, writes are held back for this long.
        ("127.0.0.1:9000\"]", &format!("{backend}\"]\nlate_write_window = \"0s\"")),
        ("dialect = \"terraform\"", &format!("dialect = \"terraform\"\n{route}")),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, to);
    }
    text
}

fn on_disk(directory: &tempfile::TempDir) -> String {
    format!("kind = \"disk\"\npath = {:?}", directory.path().join("locks").to_str().expect("UTF-8"))
}

/// An nginx, and a proxy in front of it with its locks in this directory.
async fn start(directory: &tempfile::TempDir) -> (Nginx, Proxy) {
    let nginx = Nginx::start().await;
    let proxy = Proxy::start(&configuration(nginx.addr(), &on_disk(directory), "")).await;
    (nginx, proxy)
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// The value and the serial of the state that the server has. Versions begin to count serials at different numbers.
async fn stored(addr: SocketAddr) -> (String, u64) {
    let state: Value = serde_json::from_str(get(addr, STATE).await.text()).expect("a state");
    let value = state.pointer("/outputs/value/value").and_then(Value::as_str).expect("a value").to_owned();
    (value, state["serial"].as_u64().expect("a serial"))
}

async fn lock(addr: SocketAddr, info: &str) -> Response {
    send(addr, "LOCK", STATE, &[], info).await
}

async fn unlock(addr: SocketAddr, info: &str) -> Response {
    send(addr, "UNLOCK", STATE, &[], info).await
}

/// Returns the ID of the lock as another client gets it, and the name of its holder.
async fn holder(addr: SocketAddr) -> (String, String) {
    let refused = lock(addr, BOB).await;
    assert_eq!(refused.status, 423, "{refused:?}");
    let told: Value = serde_json::from_str(refused.text()).expect("JSON");
    let text = |name: &str| told[name].as_str().expect("a text").to_owned();
    (text("ID"), text("Who"))
}

/// Waits until the proxy reports the lock: after a death, it grants none for a while.
async fn until_locked(addr: SocketAddr) {
    let asked = async {
        loop {
            let asked = lock(addr, BOB).await;
            match asked.status {
                423 => return,
                _ => assert_eq!(asked.status, 503, "{asked:?}"),
            }
        }
    };
    within("the lock", asked).await;
}

async fn applied(mut running: Running) {
    running.answer("yes");
    let ran = running.ended().await;
    assert!(ran.succeeded, "{}", ran.said);
}

#[tokio::test]
async fn terraform_plans_applies_and_destroys_on_a_plain_server() {
    let directory = directory();
    let (nginx, proxy) = start(&directory).await;
    let ann = Workspace::new(proxy.addr(), STATE, "").await;
    ann.wants("one");
    ann.succeeds(&["plan"]).await;
    ann.apply().await;
    let (value, serial) = stored(proxy.addr()).await;
    assert_eq!(value, "one");
    // Another machine reads what the first has stored.
    let bob = Workspace::new(proxy.addr(), STATE, "").await;
    assert!(bob.succeeds(&["output"]).await.contains("\"one\""));
    bob.wants("two");
    bob.apply().await;
    assert_eq!(stored(nginx.addr()).await, ("two".to_owned(), serial + 1));
    bob.succeeds(&["destroy", "-auto-approve"]).await;
    let lines = nginx.access_lines().await;
    let writes: Vec<_> = lines.iter().filter(|line| !line.starts_with("GET ") && !line.starts_with("HEAD ")).collect();
    assert_eq!(writes, ["PUT /prod/network 201", "PUT /prod/network 204", "PUT /prod/network 204"].each_ref());
    assert_eq!(lock(proxy.addr(), BOB).await.status, 200, "no lock is left behind");
}

#[tokio::test]
async fn a_second_apply_is_told_who_holds_the_lock_and_a_patient_one_waits() {
    let directory = directory();
    let (_nginx, proxy) = start(&directory).await;
    let [ann, bob] = [Workspace::new(proxy.addr(), STATE, "").await, Workspace::new(proxy.addr(), STATE, "").await];
    ann.wants("ann's");
    bob.wants("bob's");
    let first = ann.hold_at_question().await;
    let (id, who) = holder(proxy.addr()).await;
    assert!(who.contains('@'), "{who}");
    let refused = bob.fails(&["apply", "-auto-approve"]).await;
    // It breaks its lines at any space.
    let refused = refused.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(refused.contains(&format!("HTTP remote state already locked: ID={id}")), "{refused}");
    // With -lock-timeout, Terraform repeats its request from version 1.2.4 on. This one is older, so the test does.
    let patient = async {
        let mut refused = 0;
        loop {
            match lock(proxy.addr(), BOB).await.status {
                200 => return refused,
                423 | 503 => refused += 1,
                other => panic!("{other}"),
            }
        }
    };
    let ((), refused) = within("both", async { tokio::join!(applied(first), patient) }).await;
    assert!(refused > 0, "the first one held the lock");
    assert_eq!(stored(proxy.addr()).await.0, "ann's", "the lock came after the state");
    let refused = bob.fails(&["apply", "-auto-approve"]).await;
    assert!(refused.contains("ID=bob-1"), "{refused}");
    assert_eq!(unlock(proxy.addr(), BOB).await.status, 200);
    bob.apply().await;
    assert_eq!(stored(proxy.addr()).await.0, "bob's");
}

/// Rule 20: a lock on disk outlives the process that granted it.
#[tokio::test]
async fn a_lock_outlives_the_death_of_the_proxy() {
    let directory = directory();
    let (_nginx, mut proxy) = start(&directory).await;
    let [ann, bob] = [Workspace::new(proxy.addr(), STATE, "").await, Workspace::new(proxy.addr(), STATE, "").await];
    ann.wants("ann's");
    bob.wants("bob's");
    let first = ann.hold_at_question().await;
    let before = holder(proxy.addr()).await;
    proxy.signal("KILL");
    proxy.restart().await;
    until_locked(proxy.addr()).await;
    assert_eq!(holder(proxy.addr()).await, before);
    let refused = bob.fails(&["apply", "-auto-approve"]).await;
    assert!(refused.contains(&before.0), "{refused}");
    applied(first).await;
    bob.apply().await;
    assert_eq!(stored(proxy.addr()).await.0, "bob's");
}

/// Rule 1: two proxies with one store grant one lock, and each knows it after the death of the other.
#[tokio::test]
async fn two_proxies_with_one_store_have_one_lock() {
    let (nginx, etcd) = (Nginx::start().await, Etcd::start().await);
    let store = format!("kind = \"etcd\"\nendpoints = [{:?}]\ntimeout = \"10s\"", etcd.endpoint());
    let configuration = configuration(nginx.addr(), &store, "");
    let [mut one, two] = [Proxy::start(&configuration).await, Proxy::start(&configuration).await];
    let [ann, bob] = [Workspace::new(one.addr(), STATE, "").await, Workspace::new(two.addr(), STATE, "").await];
    ann.wants("ann's");
    bob.wants("bob's");
    let first = ann.hold_at_question().await;
    let before = holder(two.addr()).await;
    one.signal("KILL");
    let refused = bob.fails(&["apply", "-auto-approve"]).await;
    assert!(refused.contains(&before.0), "{refused}");
    one.restart().await;
    applied(first).await;
    bob.apply().await;
    assert_eq!(stored(nginx.addr()).await.0, "bob's");
}

/// Rule 4: a client that has lost its lock writes nothing.
#[tokio::test]
async fn force_unlock_takes_the_lock_from_its_holder() {
    let directory = directory();
    let (nginx, proxy) = start(&directory).await;
    let [ann, bob] = [Workspace::new(proxy.addr(), STATE, "").await, Workspace::new(proxy.addr(), STATE, "").await];
    ann.wants("ann's");
    bob.wants("bob's");
    let mut first = ann.hold_at_question().await;
    let (id, who) = holder(proxy.addr()).await;
    bob.succeeds(&["force-unlock", "-force", &id]).await;
    proxy.logged(&["has ended the lock of another", &who]).await;
    bob.apply().await;
    first.answer("yes");
    let ran = first.ended().await;
    assert!(!ran.succeeded && ran.said.contains("HTTP error: 409"), "{}", ran.said);
    assert_eq!(stored(nginx.addr()).await.0, "bob's");
}

#[tokio::test]
async fn a_route_can_keep_a_lock_from_being_forced_and_demand_it() {
    let (nginx, directory) = (Nginx::start().await, directory());
    let lines = "lease = { client_break = false, required = true }";
    let proxy = Proxy::start(&configuration(nginx.addr(), &on_disk(&directory), lines)).await;
    let [ann, bob] = [Workspace::new(proxy.addr(), STATE, "").await, Workspace::new(proxy.addr(), STATE, "").await];
    ann.wants("ann's");
    let first = ann.hold_at_question().await;
    let (id, _) = holder(proxy.addr()).await;
    bob.fails(&["force-unlock", "-force", &id]).await;
    applied(first).await;
    bob.wants("bob's");
    let refused = bob.fails(&["apply", "-auto-approve", "-lock=false"]).await;
    assert!(refused.contains("HTTP error: 423"), "{refused}");
    assert_eq!(stored(nginx.addr()).await.0, "ann's");
}

/// The form of those servers that lock by POST and DELETE of a path of its own.
#[tokio::test]
async fn a_lock_can_have_a_path_of_its_own() {
    let (nginx, directory) = (Nginx::start().await, directory());
    let configuration = configuration(nginx.addr(), &on_disk(&directory), "lock_suffix = \"/lock\"");
    let proxy = Proxy::start(&configuration).await;
    let addr = proxy.addr();
    let url = format!("http://{addr}{STATE}");
    let lines = format!(
        "address = {url:?}\nlock_address = \"{url}/lock\"\nunlock_address = \"{url}/lock\"\nlock_method = \"POST\"\n\
         unlock_method = \"DELETE\"\nupdate_method = \"PUT\""
    );
    let ann = Workspace::with(&lines).await;
    ann.wants("ann's");
    let first = ann.hold_at_question().await;
    let (id, _) = holder(addr).await;
    let own_path = send(addr, "POST", &format!("{STATE}/lock"), &[], BOB).await;
    assert!(own_path.status == 423 && own_path.text().contains(&id), "{own_path:?}");
    applied(first).await;
    assert_eq!(stored(nginx.addr()).await.0, "ann's");
    assert_eq!(lock(addr, BOB).await.status, 200);
    let unlocked = send(addr, "DELETE", &format!("{STATE}/lock?ID=bob-1"), &[], "").await;
    assert_eq!((unlocked.status, lock(addr, r#"{"ID":"other"}"#).await.status), (200, 200));
    let lines = nginx.access_lines().await;
    assert!(lines.iter().all(|line| !line.contains("/lock ")), "{lines:?}");
}

/// A principal is bound to its lock, and the ID that all see is no proof.
#[tokio::test]
async fn locks_belong_to_the_users_that_terraform_authenticates_as() {
    let directory = directory();
    let backend = Backend::start().await;
    let proxy = Proxy::start(&configuration(backend.addr(), &on_disk(&directory), "")).await;
    let credentials = |name: &str| format!("username = {name:?}\npassword = \"secret\"");
    let ann = Workspace::new(proxy.addr(), STATE, &credentials("ann")).await;
    ann.wants("ann's");
    let first = ann.hold_at_question().await;
    let (id, _) = holder(proxy.addr()).await;
    let stolen = send(proxy.addr(), "POST", &format!("{STATE}?ID={id}"), &[], "stolen").await;
    assert_eq!((stolen.status, backend.content(STATE)), (423, None), "{stolen:?}");
    applied(first).await;
    let is_write = |request: &&crate::support::backend::Request| request.method == "PUT";
    let writes: Vec<_> = backend.requests().iter().filter(is_write).map(|write| write.target.clone()).collect();
    assert_eq!(writes, [STATE], "without the ID");
}
