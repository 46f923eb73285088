//! Worker processes that share work items by leases, and the check of what they wrote.

use std::{collections::HashSet, fs, path::Path, process::Command};

use super::{
    backend::{Backend, Request},
    child::Child,
};

/// The lock service of `config/worker-locks.toml` in front of this backend, with shorter leases, and with these lines in
/// its store and its upstream.
pub fn locks(backend: &Backend, store: &str, upstream: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/worker-locks.toml"));
    let text = text.expect("the file").replace("listen = [\"127.0.0.1:8080\"]", "{listen}");
    let servers = "servers = [\"127.0.0.1:9000\"]";
    assert!(text.contains(servers) && text.contains("min = \"5s\""), "the file is as it was");
    let text = text.replace(servers, &format!("servers = [\"{}\"]\n{upstream}", backend.addr()));
    text.replace("min = \"5s\"", "min = \"1s\"") + "\n[store]\n" + store
}

/// Starts a worker on these items.
pub fn start_worker(directory: &Path, proxies: &str, name: &str, options: &[&str], items: &[String]) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/worker.py");
    let mut command = Command::new("python3");
    command.arg(script).args([proxies, name]).args(options).args(items);
    Child::spawn(name, &mut command, directory.join(name))
}

pub fn fence(write: &Request) -> u64 {
    write.header("fencing-token").expect("each write carries a fence").parse().expect("a number")
}

/// The hold of a lease under which a write was sent: the name of the worker, and the number of its leases.
pub fn tenure(write: &Request) -> String {
    let text = String::from_utf8(write.body.clone()).expect("text");
    text.split(" by ").nth(1).expect("an author").to_owned()
}

/// True if a write is that of this worker.
pub fn is_by(write: &Request, worker: &str) -> bool {
    tenure(write).split('/').next() == Some(worker)
}

/// Each item is written under one lease after another: once another lease has written, the earlier ones do no more.
/// Each lease has a fence of its own, and the fences of later ones are greater if `fences_rise`.
#[track_caller]
pub fn assert_exclusion(writes: &[Request], fences_rise: bool) {
    let mut seen = HashSet::new();
    let mut last: Option<(String, u64)> = None;
    for write in writes {
        let now = (tenure(write), fence(write));
        match &last {
            Some(last) if last.0 == now.0 => assert_eq!(last.1, now.1, "{} has two fences", now.0),
            _ => {
                assert!(seen.insert(now.0.clone()), "{} wrote {} after another lease did", now.0, write.target);
                let greatest = last.as_ref().map_or(0, |last| last.1);
                assert!(!fences_rise || greatest < now.1, "{now:?} follows the fence {greatest} on {}", write.target);
            }
        }
        last = Some(now);
    }
}
