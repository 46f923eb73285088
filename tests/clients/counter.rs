//! Read, change, write, and again: the changes that all programs have made at the same time are there, once.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    program::{LANGUAGES, Program},
    relay::{Fate, Relay},
    support::{nginx::Nginx, proxy::Proxy, raw::get},
};

/// How many of each program run at the same time.
const INSTANCES: usize = 2;
/// How often each of them adds to the counter.
const TIMES: usize = 2;

/// The fates of the first writes of each language on their way to the proxy.
const BEFORE: [Fate; 5] =
    [Fate::IsNotAnswered, Fate::IsSentAway, Fate::IsNotAnswered, Fate::IsLost, Fate::IsNotAnswered];
/// The fates of the first writes on their way from the proxy to the backend.
const BEHIND: [Fate; 4] = [Fate::Arrives, Fate::IsNotAnswered, Fate::IsSentAway, Fate::IsLost];

/// RFC 9110 section 13.1.1: the use of If-Match against lost updates; section 9.2.2: what was sent and not answered is not
/// just sent again. Some writes are lost on the way to the proxy or to the backend, and some answers on the way back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_is_made_once_whatever_is_lost_on_the_way() {
    let program = Program::of_document("counter", &LANGUAGES);
    let nginx = Nginx::start().await;
    let fates =
        [Fate::Arrives, Fate::IsNotAnswered, Fate::IsSentAway, Fate::Arrives, Fate::IsLost, Fate::IsNotAnswered];
    let behind = Relay::to(nginx.addr(), &fates).await;
    let proxy =
        Proxy::to(behind.addr()).upstream("late_write_window = \"100ms\"").route("hash_wait = \"10s\"").start().await;
    let (mut relays, mut running) = (Vec::new(), Vec::new());
    for language in LANGUAGES {
        let before = Relay::to(proxy.addr(), &BEFORE).await;
        let url = format!("http://{}/counters/visitors", before.addr());
        relays.push(before);
        for instance in 0..INSTANCES {
            let log = format!("{language}-{instance}");
            running.push((language, program.start(language, &log, &[&url, &TIMES.to_string()])));
        }
    }
    for (language, child) in &mut running {
        let status = child.exit_status().await;
        assert!(status.success(), "{language}: {status}\n{}", child.log());
    }
    let counter: Value = serde_json::from_slice(&get(proxy.addr(), "/counters/visitors").await.body).expect("JSON");
    assert_eq!(counter["count"], running.len() * TIMES, "{counter}");
    let changes = counter["changes"].as_array().expect("a list").iter().map(Value::to_string);
    assert_eq!(changes.collect::<BTreeSet<_>>().len(), running.len() * TIMES, "{counter}");
    for relay in relays.iter().chain([&behind]) {
        assert_eq!(relay.left(), [], "these fates were met by nobody");
    }
    let refused = proxy.log().lines().filter(|line| line.contains("precondition-failed")).count();
    assert_ne!(refused, 0, "nobody was in anybody's way");
}
