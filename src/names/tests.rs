use std::{
    net::{IpAddr, Ipv4Addr},
    sync::atomic::{AtomicUsize, Ordering},
};

use super::*;

const LONG: Duration = Duration::from_secs(20);

/// The number of look-ups of this name that have begun. They go on until a test opens their gate.
static HANGING: (AtomicUsize, Mutex<bool>, Condvar) = (AtomicUsize::new(0), Mutex::new(false), Condvar::new());

const ANSWER: [Address; 1] = [Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 80))];

fn at_once(server: &str) -> io::Result<Vec<SocketAddr>> {
    let (_, port) = server.rsplit_once(':').ok_or(io::ErrorKind::InvalidInput)?;
    let port = port.parse().map_err(io::Error::other)?;
    Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))])
}

fn hanging(server: &str) -> io::Result<Vec<SocketAddr>> {
    if server.starts_with("hangs") {
        HANGING.0.fetch_add(1, Ordering::SeqCst);
        let mut is_open = HANGING.1.lock();
        while !*is_open {
            HANGING.2.wait(&mut is_open);
        }
    }
    at_once(server)
}

/// All who ask for one name wait for one look-up, and who asks for another name waits for none of them.
#[tokio::test]
async fn a_name_that_hangs_has_one_look_up_and_stops_no_other() {
    let names = Names::found_by(hanging);
    for _ in 0..300 {
        let asked = names.addresses("hangs:80", Duration::from_millis(1)).await;
        assert_eq!(asked.expect_err("it hangs").kind(), io::ErrorKind::TimedOut);
    }
    assert_eq!(*names.addresses("works:80", LONG).await.expect("an answer"), ANSWER);
    assert_eq!(HANGING.0.load(Ordering::SeqCst), 1);
    let waiting = names.addresses("hangs:80", LONG);
    *HANGING.1.lock() = true;
    HANGING.2.notify_all();
    assert_eq!(*waiting.await.expect("the answer of the only one"), ANSWER);
    assert_eq!(HANGING.0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_thread_waits_for_the_same_look_up() {
    fn slow(server: &str) -> io::Result<Vec<SocketAddr>> {
        std::thread::sleep(Duration::from_millis(20));
        at_once(server)
    }
    let names = Names::found_by(slow);
    names.begin("slow:80");
    assert_eq!(*names.addresses_by("slow:80", Instant::now() + LONG).expect("an answer"), ANSWER);
    let late = names.addresses_by("later:80", Instant::now());
    assert_eq!(late.expect_err("no time is left").kind(), io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn the_name_that_was_not_used_for_the_longest_time_makes_room() {
    let names = Names::found_by(at_once);
    for number in 0..=NAMES_MAX {
        names.addresses(&format!("name-{number}:80"), LONG).await.expect("an answer");
    }
    let known = names.0.known.lock();
    assert_eq!(known.len(), NAMES_MAX);
    assert!(!known.contains_key("name-0:80") && known.contains_key("name-1:80"));
}
