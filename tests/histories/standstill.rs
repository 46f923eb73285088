//! Stops of a process while none of its threads computes.
//!
//! The owner of a mark looks at its clock and then writes the first byte, without a wait in between. A stop of any
//! length between these two is the one case that the promise leaves to backends that check `Fencing-Token` or
//! `If-Match` (docs/guarantees.md). No observer can tell it from a write that was let through by mistake. So a process
//! that must stand still for longer than its marks last is stopped while all of its threads wait in the kernel: before
//! the look, or after the last byte.

use std::{fs, time::Duration};

use tokio::time::{Instant, sleep};

use super::support::proxy::Proxy;

/// How long the search for a moment of rest may take.
const SEARCH_MAX: Duration = Duration::from_secs(30);

/// The numbers of the system calls in which a thread waits for an event: those of epoll, futex, sleeps and poll, and the
/// one by which a timed wait goes on after a stop.
#[cfg(target_arch = "x86_64")]
const WAITS: [&str; 9] = ["232", "281", "441", "202", "35", "230", "7", "271", "219"];
#[cfg(not(target_arch = "x86_64"))]
const WAITS: [&str; 7] = ["22", "441", "98", "101", "115", "73", "128"];

/// Stops a proxy at a moment of rest.
pub async fn stop_at_rest(proxy: &Proxy) {
    let end = Instant::now() + SEARCH_MAX;
    loop {
        proxy.signal("STOP");
        while !threads(proxy, "stat").iter().all(|stat| is_stopped(stat)) {
            sleep(Duration::from_millis(1)).await;
        }
        let calls = threads(proxy, "syscall");
        let waits = |call: &String| call.split(' ').next().is_some_and(|number| WAITS.contains(&number));
        if calls.iter().all(waits) {
            return;
        }
        proxy.signal("CONT");
        assert!(Instant::now() < end, "the proxy is never at rest: {calls:?}");
        sleep(Duration::from_millis(1)).await;
    }
}

/// Returns the kernel's report on each thread.
fn threads(proxy: &Proxy, what: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", proxy.id())).expect("a running process");
    let read = |task: fs::DirEntry| fs::read_to_string(task.path().join(what)).expect("a thread of a child");
    tasks.map(|task| read(task.expect("a thread")).trim().to_owned()).collect()
}

/// The state is the first word after the name in parentheses.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}
