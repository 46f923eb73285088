//! A lease with a heartbeat: its holder is alone, and stops when it is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    program::{LANGUAGES, Program, signal_group},
    support::{
        child::Child,
        leases::{acquire, lease},
        nginx::Nginx,
        proxy::Proxy,
        wait::{DEADLINE, until},
    },
};

/// How long a program works for each line that it writes.
const WORK: Duration = Duration::from_millis(400);

/// A proxy with leases before an nginx that has an empty text at each of these paths.
async fn start(paths: &[&str], options: &str) -> (Nginx, Proxy) {
    let nginx = Nginx::start().await;
    for path in paths {
        fs::write(text(&nginx, path), "").expect("a file");
    }
    let route = "policy = \"pessimistic\"\nlease.min = \"1s\"\nlease.required = true";
    let proxy = Proxy::to(nginx.addr()).route(route).route(options).start().await;
    (nginx, proxy)
}

/// The place where nginx keeps it.
fn text(nginx: &Nginx, path: &str) -> PathBuf {
    nginx.root().join(path)
}

fn read(nginx: &Nginx, path: &str) -> String {
    fs::read_to_string(text(nginx, path)).expect("a text")
}

/// A text that one holder reads and writes line by line loses lines, or mixes them, where two of them are at it.
#[tokio::test]
async fn holders_are_one_after_the_other() {
    const LINES: usize = 2;
    let program = Program::of_document("lease", &LANGUAGES);
    let (nginx, proxy) = start(&["log"], "").await;
    let url = format!("http://{}/log", proxy.addr());
    // Two of each, so that each language has to wait for its turn.
    let names = LANGUAGES.map(|language| [(language, format!("{language}-0")), (language, format!("{language}-1"))]);
    let start = |(language, name): (&str, String)| {
        let child = program.start(language, &name, &[&url, &name, "10", &LINES.to_string()]);
        (name, child)
    };
    let mut running: BTreeMap<String, Child> = names.into_iter().flatten().map(start).collect();
    for (name, child) in &mut running {
        let status = child.exit_status().await;
        assert!(status.success(), "{name}: {status}\n{}", child.log());
    }
    let text = read(&nginx, "log");
    let holders: Vec<&str> = text.lines().step_by(LINES).map(|line| line.split_once(' ').expect("a line").0).collect();
    let in_turn = holders.iter().flat_map(|holder| (0..LINES).map(move |line| format!("{holder} {line}\n")));
    assert_eq!(text, in_turn.collect::<String>());
    assert_eq!(holders.iter().copied().collect::<BTreeSet<_>>(), running.keys().map(String::as_str).collect());
    // Their tokens grow from one holder to the next.
    let fence = |holder: &&str| {
        let log = running[*holder].log();
        log.trim().strip_prefix("fencing token ").expect("a token").parse::<u64>().expect("a number")
    };
    assert!(holders.iter().map(fence).is_sorted_by(|earlier, later| earlier < later), "{text}");
}

/// If no client may stand in line, the answer to a request has the time to come back.
#[tokio::test]
async fn a_client_comes_back_after_the_time_in_the_answer() {
    let program = Program::of_document("lease", &LANGUAGES);
    let (nginx, proxy) = start(&LANGUAGES, "lease.max_wait = \"0s\"").await;
    for language in LANGUAGES {
        acquire(proxy.addr(), &format!("/{language}"), "10").await;
    }
    let mut running = LANGUAGES.map(|language| {
        let url = format!("http://{}/{language}", proxy.addr());
        (language, program.start(language, language, &[&url, language, "10", "1"]))
    });
    for (language, child) in &mut running {
        let status = child.exit_status().await;
        assert!(status.success(), "{language}: {status}\n{}", child.log());
        assert_eq!(read(&nginx, language), format!("{language} 0\n"));
        // A stream is logged at its end, behind each refusal.
        let asked = || requests(&proxy, "POST", &format!("/.leases/{language}"));
        until(&format!("{language} to have asked again"), || asked() > 2).await;
    }
}

/// A program that stands still while its lease is broken, as a machine in a snapshot does, wakes up without one.
#[tokio::test]
async fn a_holder_that_has_slept_through_the_end_of_its_lease_writes_no_more() {
    let program = Program::of_document("lease", &LANGUAGES);
    let (nginx, proxy) = start(&LANGUAGES, "lease.client_break = true").await;
    let mut running = work_without_end(&program, &nginx, &proxy).await;
    for (language, child) in &mut running {
        stop_while_it_works(child, &nginx, language).await;
        break_lease(&proxy, language).await;
        let written = read(&nginx, language);
        signal_group(child, Signal::CONT);
        let status = child.exit_status().await;
        assert_eq!(status.code(), Some(1), "{language}: {}", child.log());
        assert!(child.log().contains("lost the lease: "), "{language}: {}", child.log());
        assert_eq!(read(&nginx, language), written, "{language}");
    }
}

/// The work gets a signal, and need not find out by its next write.
#[tokio::test]
async fn a_holder_learns_at_once_that_its_lease_is_broken() {
    let program = Program::of_document("lease", &LANGUAGES);
    let (nginx, proxy) = start(&LANGUAGES, "lease.client_break = true").await;
    let end = Instant::now() + DEADLINE;
    let mut waiting = BTreeSet::from(LANGUAGES);
    while !waiting.is_empty() {
        assert!(Instant::now() < end, "{waiting:?} learn of it by their writes");
        for (language, mut child) in work_without_end(&program, &nginx, &proxy).await {
            let before = read(&nginx, language);
            until("a line to be written", || read(&nginx, language) != before).await;
            break_lease(&proxy, language).await;
            let status = child.exit_status().await;
            assert_eq!(status.code(), Some(1), "{language}: {}", child.log());
            if child.log().contains("lost the lease: broken") {
                waiting.remove(language);
            }
        }
    }
}

/// A program in each language that writes its first lines.
async fn work_without_end(program: &Program, nginx: &Nginx, proxy: &Proxy) -> [(&'static str, Child); LANGUAGES.len()] {
    let running = LANGUAGES.map(|language| {
        let url = format!("http://{}/{language}", proxy.addr());
        (language, program.start(language, language, &[&url, language, "30", "1000"]))
    });
    for (language, _) in &running {
        let before = read(nginx, language);
        until(&format!("{language} to write"), || read(nginx, language) != before).await;
    }
    running
}

async fn break_lease(proxy: &Proxy, language: &str) {
    let target = format!("/{language}");
    assert_eq!(lease(proxy.addr(), "DELETE", &target, &[("Lease-Break-Period", "0")]).await.status, 202);
}

/// Stops a program between two writes, and not on the way from its look at the clock to the write.
async fn stop_while_it_works(child: &Child, nginx: &Nginx, path: &str) {
    let end = Instant::now() + DEADLINE;
    loop {
        let before = read(nginx, path);
        let mut unwritten = Instant::now();
        until("a line to be written", || {
            let looked = Instant::now();
            let is_written = read(nginx, path) != before;
            if !is_written {
                unwritten = looked;
            }
            is_written
        })
        .await;
        signal_group(child, Signal::STOP);
        // It has written since then, and works for longer than this before it writes again.
        if unwritten.elapsed() < WORK * 3 / 4 {
            return;
        }
        assert!(Instant::now() < end, "this machine is too busy to stop {path} in time");
        signal_group(child, Signal::CONT);
    }
}

/// How many requests with this method and target the proxy has answered.
fn requests(proxy: &Proxy, method: &str, target: &str) -> usize {
    let words = [format!("method=\"{method}\" "), format!("path={target} ")];
    proxy.log().lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
}
