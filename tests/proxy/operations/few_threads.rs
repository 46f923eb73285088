//! A system that starts no more threads for a moment: a limit of the user, or of the container (`pids.max`).

use std::process::Command;

use rustix::process::geteuid;

use crate::support::{
    backend::Backend,
    proxy::Proxy,
    raw::{get, put},
    wait::until,
};

/// A user of no other process, because the limit counts all threads of a user.
const USER: &str = "--reuid=54321";

/// A body that goes to a file.
const SPOOLED_BYTES: usize = 200_000;

/// Starts a proxy that gets no thread from its first answer on. The system limits all users
/// but root, so a root gives the proxy another user.
async fn start_without_more_threads(configuration: &str) -> Proxy {
    let user: &[&str] = if geteuid().is_root() { &["setpriv", USER, "--clear-groups"] } else { &[] };
    // The files of the test belong to root.
    let rights = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"];
    let rights = rights.iter().filter(|_| !user.is_empty());
    let wrapper = user.iter().chain(rights).map(ToString::to_string).collect::<Vec<_>>();
    let proxy = Proxy::start_under(configuration, &[], &wrapper).await;
    get(proxy.addr(), "/other").await.refused(502, "upstream-failed");
    let number = format!("--pid={}", proxy.id());
    // Only the same user may change the limit of a process.
    let command = [user, &["prlimit", &number, "--nproc=1:1"]].concat();
    let limited = Command::new(command[0]).args(&command[1..]).status().expect("the program starts");
    assert!(limited.success(), "{command:?}: {limited}");
    proxy
}

/// The file of a proxy with one route to a server that it knows by name, beside another upstream.
fn file(backend: &Backend, require: &str) -> String {
    let setup = Proxy::to(backend.addr()).server("max_body_memory = \"64KiB\"\nwatch = true");
    let file = setup.upstream("late_write_window = \"1h\"").route(&format!("require = \"{require}\"")).configuration();
    let named = file.replace(&backend.addr().to_string(), &format!("localhost:{}", backend.addr().port()));
    let other = "[upstreams.other]\nservers = [\"127.0.0.1:9\"]\n[[routes]]\nname = \"other\"\npath = \"/other\"\n\
                 upstream = \"other\"\npolicy = \"last-writer-wins\"\n";
    format!("{named}\n{other}")
}

#[tokio::test]
async fn a_body_is_spooled_if_no_thread_can_be_started() {
    let backend = Backend::start().await;
    let proxy = start_without_more_threads(&file(&backend, "never")).await;
    assert_eq!(put(proxy.addr(), "/doc", &[], "x".repeat(SPOOLED_BYTES)).await.status, 201);
    assert_eq!(backend.content("/doc").expect("it was stored").len(), SPOOLED_BYTES);
}

/// Rule 3: a write of which nothing was sent is in no doubt, and a doubt would hold the next one up for an hour.
#[tokio::test]
async fn a_write_to_a_server_by_name_is_in_no_doubt_if_no_thread_can_be_started() {
    let backend = Backend::start().await;
    let proxy = start_without_more_threads(&file(&backend, "never")).await;
    assert_eq!(put(proxy.addr(), "/doc", &[], "one").await.status, 201);
    assert_eq!(put(proxy.addr(), "/doc", &[], "two").await.status, 204);
}

#[tokio::test]
async fn a_watched_file_is_loaded_if_no_thread_can_be_started() {
    let backend = Backend::start().await;
    let proxy = start_without_more_threads(&file(&backend, "always")).await;
    proxy.rewrite(&file(&backend, "never"));
    until("the reload", || proxy.log().contains("reloaded: routes changed: all")).await;
    assert_eq!(put(proxy.addr(), "/doc", &[], "one").await.status, 201);
}
