//! An etcd of three members that loses one, its leader, and its majority.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{board::Board, support::engines::cluster::EtcdCluster};

/// The number of operations that prove that operations go on.
const ENOUGH: usize = 5;

/// How long an election and its consequences may take, on a busy machine.
const ELECTION_MAX: Duration = Duration::from_secs(60);

/// Freezes the leader, `elections` times. Then it freezes a follower, kills the leader beside it, and lets the follower
/// come back. Writes go on whenever there is a majority, and are refused while there is none.
pub async fn disturb(cluster: &EtcdCluster, board: &Board, elections: usize) {
    more(&board.done, "writes in the beginning").await;
    let mut leader = cluster.leader(0);
    for _ in 0..elections {
        cluster.signal(leader, "STOP");
        more(&board.done, "writes after a leader was frozen").await;
        let other = next(leader);
        cluster.signal(leader, "CONT");
        leader = cluster.leader(other);
        more(&board.done, "writes after it came back").await;
    }
    let follower = next(leader);
    cluster.signal(follower, "STOP");
    more(&board.done, "writes without one member").await;
    cluster.signal(leader, "KILL");
    more(&board.unavailable, "refusals without a majority").await;
    cluster.signal(follower, "CONT");
    more(&board.done, "writes with a majority again").await;
}

fn next(member: usize) -> usize {
    (member + 1) % 3
}

async fn more(counter: &AtomicUsize, what: &str) {
    let (enough, end) = (counter.load(Ordering::Relaxed) + ENOUGH, Instant::now() + ELECTION_MAX);
    while counter.load(Ordering::Relaxed) < enough {
        assert!(Instant::now() < end, "there are no {what}");
        sleep(Duration::from_millis(5)).await;
    }
}
