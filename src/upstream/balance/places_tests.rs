use std::{net::IpAddr, time::Duration};

use futures_util::FutureExt as _;

use super::*;

fn queue(max_waiters: usize) -> Queue {
    Queue { max_wait: Duration::from_millis(20), max_waiters }
}

/// A guarded request of a client that is not known.
const GUARDED: Occupant = Occupant::Guarded(None);

/// An unguarded request of the client with this last number.
fn of(client: u8) -> Occupant {
    Occupant::Unguarded(Some(ClientAddress::from(Some(IpAddr::from([192, 0, 2, client])))))
}

/// A place, if there is one at once.
fn take(places: &Arc<PlacesAtServer>, occupant: Occupant) -> Option<Slot> {
    places.slot(occupant, &queue(0)).now_or_never().expect("nobody may wait").ok()
}

/// All places that this client gets.
fn take_all(places: &Arc<PlacesAtServer>, occupant: Occupant) -> Vec<Slot> {
    std::iter::from_fn(|| take(places, occupant)).collect()
}

#[test]
fn a_slot_is_free_again_when_its_exchange_is_over() {
    let places = PlacesAtServer::new(1);
    for occupant in [GUARDED, of(1), Occupant::Unguarded(None)] {
        let slot = take(&places, occupant);
        assert!(slot.is_some() && !places.has_place(GUARDED));
        assert_eq!((places.in_use(), take(&places, GUARDED).is_some()), (1, false));
        drop(slot);
        assert_eq!(places.in_use(), 0);
    }
    assert!(places.taken.lock().by_client.is_empty(), "clients without places are forgotten");
}

#[test]
fn clients_with_all_that_they_get_leave_places_to_the_next() {
    let places = PlacesAtServer::new(100);
    let (one, two) = (take_all(&places, of(1)), take_all(&places, of(2)));
    assert_eq!((one.len(), two.len()), (51, 25));
    assert!(take(&places, of(3)).is_some());
    drop(one);
    assert_eq!(take_all(&places, of(1)).len(), 38, "of 74 that are free");
}

/// The places of a client's guarded requests count as all others do: their responses may take as long.
#[test]
fn guarded_requests_of_a_client_leave_places_to_others() {
    let places = PlacesAtServer::new(100);
    let guarded = |client| match of(client) {
        Occupant::Unguarded(client) | Occupant::Guarded(client) => Occupant::Guarded(client),
    };
    let one = take_all(&places, guarded(1));
    assert_eq!((one.len(), take_all(&places, of(1)).len()), (51, 0), "a client has one share");
    let two = take_all(&places, guarded(2));
    assert_eq!(two.len(), 25);
    assert!(take(&places, guarded(3)).is_some() && take(&places, of(3)).is_some());
    assert_eq!(take_all(&places, GUARDED).len(), 24, "those who bring many have no share");
    drop((one, two));
    assert!(places.taken.lock().by_client.is_empty(), "clients without places are forgotten");
}

#[test]
fn an_eighth_is_for_guarded_requests_where_there_are_such() {
    let places = PlacesAtServer::new(16);
    places.keep_for_guarded(true);
    let unguarded = take_all(&places, Occupant::Unguarded(None));
    assert_eq!((unguarded.len(), take_all(&places, GUARDED).len()), (14, 2));
    places.keep_for_guarded(false);
    assert_eq!(take_all(&places, Occupant::Unguarded(None)).len(), 2);
}

#[tokio::test]
async fn a_wait_for_a_slot_is_bounded() {
    let places = PlacesAtServer::new(1);
    let _slot = take(&places, GUARDED).expect("the server is idle");
    assert_eq!(places.slot(GUARDED, &queue(1)).await.err(), Some(Full));
    assert_eq!(places.waiting(), 0);
}

#[tokio::test]
async fn no_request_waits_beyond_the_limit() {
    let places = PlacesAtServer::new(1);
    let _slot = take(&places, GUARDED).expect("the server is idle");
    let long = Queue { max_wait: Duration::from_secs(600), ..queue(1) };
    let mut first = Box::pin(places.slot(GUARDED, &long));
    assert!(first.as_mut().now_or_never().is_none());
    assert_eq!(places.slot(GUARDED, &long).await.err(), Some(Full));
    drop(first);
    assert!(places.slot(GUARDED, &long).now_or_never().is_none(), "who has gone leaves the line");
}

/// A client that may not have the free place keeps no other client from it.
#[tokio::test]
async fn those_who_wait_are_served_in_order_of_arrival_but_for_those_who_have_their_share() {
    let places = PlacesAtServer::new(4);
    let long = Queue { max_wait: Duration::from_secs(600), ..queue(10) };
    let (mut full, guarded) = (take_all(&places, of(1)), take_all(&places, GUARDED));
    assert_eq!((full.len(), guarded.len()), (3, 1));
    let mut waiting = [of(1), of(2), GUARDED].map(|occupant| Box::pin(places.slot(occupant, &long)));
    assert!(waiting.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
    assert_eq!(places.waiting(), 3);
    drop(guarded);
    let [one, two, three] = &mut waiting;
    assert!(one.as_mut().now_or_never().is_none(), "it has three of four places");
    let second = two.as_mut().now_or_never().expect("a place").expect("a place");
    assert!(three.as_mut().now_or_never().is_none());
    full.pop();
    let _third = three.as_mut().now_or_never().expect("a place").expect("a place");
    drop((full, second));
    assert!(one.as_mut().now_or_never().is_some_and(|slot| slot.is_ok()));
    assert_eq!(places.waiting(), 0);
}

/// A place that was given to a client that has gone goes on to the next.
#[tokio::test]
async fn a_place_of_one_who_has_gone_is_given_to_the_next() {
    let places = PlacesAtServer::new(1);
    let slot = take(&places, GUARDED);
    let long = Queue { max_wait: Duration::from_secs(600), ..queue(10) };
    let mut waiting = [(); 2].map(|()| Box::pin(places.slot(GUARDED, &long)));
    assert!(waiting.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
    let [first, mut second] = waiting;
    drop(slot);
    drop(first);
    assert!(second.as_mut().now_or_never().is_some_and(|slot| slot.is_ok()));
}
