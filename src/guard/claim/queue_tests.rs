//! Tests of the order of a line, and of members that leave it.

use std::time::Duration;

use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::core::http::client_address::ClientAddress;

fn key() -> ResourceKey {
    ResourceKey::from_text("a")
}

const NOBODY: LineClient = LineClient { address: ClientAddress::Local, principal: [0; 16] };
const CLAIM: (Member, LineClient) = (Member::Claim, NOBODY);
const PASSING: (Member, LineClient) = (Member::Passing, NOBODY);

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

async fn claim(queues: &Arc<Queues>) -> Turn {
    queues.turn(&key(), CLAIM, 10, soon()).await.ok().unwrap()
}

async fn pass(queues: &Arc<Queues>) -> Turn {
    queues.turn(&key(), PASSING, 10, soon()).await.ok().unwrap()
}

/// Starts a member that stands in the line when this function returns, unless its turn has come already.
async fn begin(queues: &Arc<Queues>, member: Member) -> JoinHandle<Turn> {
    let queues = queues.clone();
    let waiter = tokio::spawn(async move { queues.turn(&key(), (member, NOBODY), 10, soon()).await.ok().unwrap() });
    yield_now().await;
    waiter
}

/// Lets all other tasks run as far as they can.
async fn settle_down() {
    for _ in 0..10 {
        yield_now().await;
    }
}

/// Rule 16: claims and unclaimed writes go strictly by order of arrival.
#[tokio::test]
async fn turns_come_in_the_order_of_arrival() {
    use Member::{Claim, Passing};
    let queues = Arc::new(Queues::new(10));
    let first = claim(&queues).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for (number, member) in [Claim, Passing, Passing, Claim, Claim, Passing].into_iter().enumerate() {
        let (queues, order) = (queues.clone(), order.clone());
        waiting.push(tokio::spawn(async move {
            let turn = queues.turn(&key(), (member, NOBODY), 10, soon()).await.ok().unwrap();
            order.lock().push(number);
            drop(turn);
        }));
        yield_now().await;
    }
    drop(first);
    for waiter in waiting {
        waiter.await.unwrap();
    }
    assert_eq!(*order.lock(), [0, 1, 2, 3, 4, 5]);
    assert!(queues.lines(&key()).is_empty(), "an empty line is gone");
}

#[tokio::test]
async fn what_passes_runs_beside_a_claim_that_has_stepped_aside() {
    let queues = Arc::new(Queues::new(10));
    let mut in_flight = claim(&queues).await;
    in_flight.step_aside();
    assert!(!pass(&queues).await.came_after_others);
    assert!(!queues.has_line(&key()), "a member that has stepped aside no longer stands in the line");
}

/// A claim that waits for the one in flight keeps later members behind it.
#[tokio::test]
async fn no_request_gets_past_a_claim_that_waits() {
    let queues = Arc::new(Queues::new(10));
    let mut in_flight = claim(&queues).await;
    in_flight.step_aside();
    let next = begin(&queues, Member::Claim).await;
    let later = begin(&queues, Member::Passing).await;
    settle_down().await;
    assert!(!next.is_finished() && !later.is_finished());
    drop(in_flight);
    let mut next = next.await.unwrap();
    settle_down().await;
    assert!(next.came_after_others && !later.is_finished(), "it stands in front until its mark is there");
    next.step_aside();
    assert!(later.await.unwrap().came_after_others);
}

/// The state of a resource does not judge writes that touch it, so one that waits elsewhere keeps no other one back.
#[tokio::test]
async fn touches_stand_in_front_together_and_in_order_with_all_others() {
    let queues = Arc::new(Queues::new(10));
    let touch = async || queues.turn(&key(), (Member::Touch, NOBODY), 10, soon()).await.ok().unwrap();
    let (first, second) = (touch().await, touch().await);
    assert!(!first.came_after_others && !second.came_after_others);
    assert!(queues.turn_at_once(&key(), 10).is_none(), "nobody else stands beside them");
    let claim = begin(&queues, Member::Claim).await;
    let third = begin(&queues, Member::Touch).await;
    drop(first);
    settle_down().await;
    assert!(!claim.is_finished() && !third.is_finished());
    drop(second);
    let claim = claim.await.unwrap();
    settle_down().await;
    assert!(!third.is_finished(), "it came after the claim");
    drop(claim);
    assert!(third.await.unwrap().came_after_others);
}

#[tokio::test]
async fn a_full_line_takes_nobody_of_that_kind() {
    let queues = Arc::new(Queues::new(10));
    let mut turn = queues.turn(&key(), CLAIM, 0, soon()).await.ok().unwrap();
    assert_eq!(queues.turn(&key(), CLAIM, 0, soon()).await.err(), Some(NoTurn::LineFull));
    turn.step_aside();
    assert_eq!(queues.turn(&key(), CLAIM, 0, soon()).await.err(), Some(NoTurn::LineFull), "it is in flight");
    let _passing = queues.turn(&key(), PASSING, 0, soon()).await.ok().unwrap();
    assert_eq!(queues.turn(&key(), PASSING, 0, soon()).await.err(), Some(NoTurn::LineFull));
}

#[tokio::test]
async fn all_lines_together_are_bounded() {
    let queues = Arc::new(Queues::new(0));
    let _turn = claim(&queues).await;
    assert_eq!(queues.turn(&key(), CLAIM, 10, soon()).await.err(), Some(NoTurn::AllFull));
    let other = ResourceKey::from_text("b");
    assert!(queues.turn(&other, CLAIM, 10, soon()).await.is_ok(), "a member that need not wait");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_and_leaves_the_line() {
    let queues = Arc::new(Queues::new(10));
    let first = queues.turn(&key(), CLAIM, 1, soon()).await.ok().unwrap();
    assert_eq!(queues.turn(&key(), CLAIM, 1, soon()).await.err(), Some(NoTurn::TimedOut));
    drop(first);
    assert!(queues.turn(&key(), CLAIM, 0, soon()).await.is_ok());
}

/// Only those that wait now count in the total of all lines.
#[tokio::test(start_paused = true)]
async fn a_member_that_gave_up_makes_room_for_another() {
    let queues = Arc::new(Queues::new(1));
    let _first = claim(&queues).await;
    for _ in 0..2 {
        assert_eq!(queues.turn(&key(), CLAIM, 10, soon()).await.err(), Some(NoTurn::TimedOut));
    }
}

/// A member that gives up leaves the others in their places. The line goes with the last member.
#[tokio::test(start_paused = true)]
async fn a_line_stays_while_anybody_is_in_it() {
    let queues = Arc::new(Queues::new(10));
    for steps_aside in [false, true] {
        let mut first = claim(&queues).await;
        if steps_aside {
            first.step_aside();
        }
        let soon_over = Instant::now() + Duration::from_secs(1);
        assert_eq!(queues.turn(&key(), CLAIM, 10, soon_over).await.err(), Some(NoTurn::TimedOut));
        let waiting = begin(&queues, Member::Claim).await;
        settle_down().await;
        assert!(!waiting.is_finished(), "the claim of the first one is in flight");
        drop(first);
        drop(waiting.await.unwrap());
        assert!(queues.lines(&key()).is_empty());
    }
}
