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
        leases::{acquire, reaches},
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

/// Where nginx keeps it.
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
    let program = Program::of_document("lease");
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

/// Where nobody may stand in line, who asks is told when to come back.
#[tokio::test]
async fn who_is_told_to_come_back_does() {
    let program = Program::of_document("lease");
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
        let asked = requests(&proxy, "POST", &format!("/.leases/{language}"));
        assert!(asked > 2, "{language} has got it at once");
    }
}

/// A program that stands still for longer than its lease, as a machine in a snapshot does, wakes up without one.
#[tokio::test]
async fn a_holder_that_has_slept_through_the_end_of_its_lease_writes_no_more() {
    // A busy machine must not cost anybody a lease.
    const SECONDS: &str = "8";
    let program = Program::of_document("lease");
    let (nginx, proxy) = start(&LANGUAGES, "").await;
    let start = |language| {
        let url = format!("http://{}/{language}", proxy.addr());
        (language, program.start(language, language, &[&url, language, SECONDS, "1000"]))
    };
    let mut running = LANGUAGES.map(start);
    for (language, child) in &running {
        // One is made at its beginning.
        let renewals = || requests(&proxy, "PUT", &format!("/.leases/{language}"));
        until(&format!("the heartbeat of {language}"), || renewals() > 1).await;
        stop_while_it_works(child, &nginx, language).await;
    }
    for (language, child) in &mut running {
        reaches(proxy.addr(), &format!("/{language}"), "expired").await;
        let (written, attempts) = (read(&nginx, language), requests(&proxy, "PUT", &format!("/{language}")));
        signal_group(child, Signal::CONT);
        let status = child.exit_status().await;
        assert_eq!(status.code(), Some(1), "{language}: {}", child.log());
        assert!(child.log().contains("lost the lease: it has run out"), "{language}: {}", child.log());
        assert_eq!(read(&nginx, language), written);
        assert_eq!(requests(&proxy, "PUT", &format!("/{language}")), attempts, "{language} has tried to write");
    }
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
