//! Tests of full lines, in which members give way to those of clients with fewer places.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::{JoinHandle, yield_now},
    time::Instant,
};

use crate::{
    core::{http::client_address::ClientAddress, resource::ResourceKey, shares::line_share::LineClient},
    guard::claim::queue::{Member, NoTurn, Queues, Turn},
};

/// The number of members that wait in a full line.
const LINE_MAX: usize = 3;

fn key() -> ResourceKey {
    ResourceKey::from_text("a")
}

fn client(number: u8) -> LineClient {
    LineClient { address: ClientAddress::V4([number; 4]), principal: [0; 16] }
}

fn lines() -> Arc<Queues> {
    Arc::new(Queues::new(100))
}

type Standing = JoinHandle<Result<Turn, NoTurn>>;

/// Lets a member of this client stand in line, as far as it comes.
async fn stand(queues: &Arc<Queues>, member: Member, number: u8) -> Standing {
    let queues = Arc::clone(queues);
    let end = Instant::now() + Duration::from_secs(600);
    let standing = tokio::spawn(async move { queues.turn(&key(), (member, client(number)), LINE_MAX, end).await });
    settle_down().await;
    standing
}

/// Lets all other tasks run as far as they can.
async fn settle_down() {
    for _ in 0..10 {
        yield_now().await;
    }
}

async fn refused(standing: Standing) -> Option<NoTurn> {
    standing.await.unwrap().err()
}

/// Rule 16: a client cannot keep others out by filling the line, and only the member that gives way loses its turn.
#[tokio::test]
async fn in_a_full_line_the_greatest_share_gives_way() {
    let queues = lines();
    let in_flight = stand(&queues, Member::Claim, 1).await.await.unwrap().ok();
    let mut waiting = Vec::new();
    for _ in 0..LINE_MAX {
        waiting.push(stand(&queues, Member::Claim, 1).await);
    }
    assert_eq!(refused(stand(&queues, Member::Claim, 1).await).await, Some(NoTurn::LineFull), "it has its share");
    let other = stand(&queues, Member::Claim, 2).await;
    assert_eq!(refused(waiting.pop().unwrap()).await, Some(NoTurn::LineFull), "it came last");
    assert_eq!(refused(stand(&queues, Member::Claim, 2).await).await, Some(NoTurn::LineFull), "two of three");
    drop(in_flight);
    for next in waiting.into_iter().chain([other]) {
        assert!(next.await.unwrap().ok().unwrap().came_after_others);
    }
    assert!(!queues.is_used(&key()), "an empty line is gone");
}

/// The member that has waited longest is the one in front, which waits for the end of the claim in flight.
#[tokio::test]
async fn the_member_in_front_is_not_the_first_to_give_way() {
    let queues = lines();
    let mut in_flight = stand(&queues, Member::Claim, 1).await.await.unwrap().ok().unwrap();
    let front = stand(&queues, Member::Claim, 1).await;
    let later = [stand(&queues, Member::Claim, 1).await, stand(&queues, Member::Claim, 1).await];
    in_flight.step_aside();
    settle_down().await;
    let other = stand(&queues, Member::Claim, 2).await;
    let [second, last] = later;
    assert_eq!(refused(last).await, Some(NoTurn::LineFull));
    drop(in_flight);
    for next in [front, second, other] {
        assert!(next.await.unwrap().is_ok());
    }
}

/// Claims have places of their own: unclaimed writes and grants never take them.
#[tokio::test]
async fn only_members_of_the_same_kind_give_way() {
    let queues = lines();
    let in_flight = stand(&queues, Member::Claim, 1).await.await.unwrap().ok();
    let claims = [stand(&queues, Member::Claim, 1).await, stand(&queues, Member::Claim, 1).await];
    let mut passing = Vec::new();
    for member in [Member::Passing, Member::Touch, Member::Passing, Member::Passing] {
        passing.push(stand(&queues, member, 3).await);
    }
    let other = stand(&queues, Member::Touch, 2).await;
    assert_eq!(refused(passing.pop().unwrap()).await, Some(NoTurn::LineFull));
    drop(in_flight);
    for next in claims.into_iter().chain(passing).chain([other]) {
        assert!(next.await.unwrap().is_ok());
    }
}

/// Whose turn comes at the moment at which it loses its place has lost it: another one was let in.
#[tokio::test]
async fn a_turn_that_comes_too_late_is_passed_on() {
    let queues = lines();
    let in_flight = stand(&queues, Member::Claim, 9).await.await.unwrap().ok();
    let mut waiting = Vec::new();
    for _ in 0..=LINE_MAX {
        waiting.push(stand(&queues, Member::Touch, 1).await);
    }
    drop(in_flight);
    // All of them have their turn now, and have not noticed it yet.
    let other = queues.turn(&key(), (Member::Touch, client(2)), LINE_MAX, Instant::now()).await;
    assert!(other.is_ok());
    assert_eq!(refused(waiting.pop().unwrap()).await, Some(NoTurn::LineFull));
    for next in waiting {
        assert!(next.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_turn_at_once_takes_nobodys_place() {
    let queues = lines();
    let in_flight = stand(&queues, Member::Passing, 9).await.await.unwrap().ok();
    let waiting = [stand(&queues, Member::Passing, 1).await, stand(&queues, Member::Passing, 1).await];
    assert!(queues.turn_at_once(&key(), 0).is_none());
    drop(in_flight);
    for next in waiting {
        assert!(next.await.unwrap().is_ok());
    }
}

/// Reads that wait for the end of a write have no turn, and share the places in the same way.
#[tokio::test]
async fn reads_that_wait_share_their_places() {
    let queues = Arc::new(Queues::for_reads(100));
    let wait = |number| queues.waiter(&key(), client(number), 2);
    let (mut first, mut second) = (wait(1).ok().unwrap(), wait(1).ok().unwrap());
    assert_eq!(wait(1).err(), Some(NoTurn::LineFull));
    let mut other = wait(2).ok().unwrap();
    second.loses_place().await;
    for stays in [first.loses_place(), other.loses_place()] {
        assert!(futures_util::FutureExt::now_or_never(stays).is_none());
    }
    drop((first, second, other));
    assert!(!queues.is_used(&key()));
}

/// Members come, have their turn, lose it and give up in any order: no place is lost, and none is counted twice.
#[tokio::test]
async fn every_place_is_given_back() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let queues = lines();
        let (mut standing, mut turns) = (Vec::<Standing>::new(), Vec::<Turn>::new());
        for _ in 0..60 {
            match random.u8(..8) {
                0 if !turns.is_empty() => drop(turns.swap_remove(random.usize(..turns.len()))),
                1 if !turns.is_empty() => {
                    let turn = random.usize(..turns.len());
                    turns[turn].step_aside();
                }
                2 if !standing.is_empty() => standing.swap_remove(random.usize(..standing.len())).abort(),
                _ => {
                    let member = [Member::Claim, Member::Passing, Member::Touch][random.usize(..3)];
                    standing.push(stand(&queues, member, random.u8(..3)).await);
                }
            }
            settle_down().await;
            for ended in standing.extract_if(.., |one| one.is_finished()).collect::<Vec<_>>() {
                turns.extend(ended.await.unwrap());
            }
            assert!(standing.len() <= 2 * LINE_MAX + 2, "seed {seed}: {} members wait", standing.len());
        }
        drop(turns);
        for one in &standing {
            one.abort();
        }
        for one in standing {
            let _ = one.await;
        }
        assert!(!queues.is_used(&key()), "seed {seed}");
    }
}
