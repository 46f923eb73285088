//! Lost updates against a history without bounds, and the cases that the documents name.

use http::HeaderMap;
use proptest::{collection::vec, prelude::*};

use super::*;

const ANN: SightedName = [1; 16];
const BOB: SightedName = [2; 16];

fn tag(opaque: &str) -> EntityTag {
    EntityTag::strong(opaque).expect("a tag")
}

/// A write from its beginning to its end, with nothing between.
fn write(seen: &mut Sightings, client: SightedName, basis: &WriteBasis) -> Option<LostUpdate> {
    let began = seen.begin_write();
    seen.applied(client, began, basis, None)
}

fn named(opaque: &str) -> WriteBasis {
    WriteBasis::Tags(vec![tag_name(&tag(opaque))])
}

#[test]
fn the_second_of_two_writers_who_have_read_one_version_loses_the_update_of_the_first() {
    let mut seen = Sightings::default();
    seen.shown(ANN, None);
    seen.shown(BOB, None);
    assert_eq!(write(&mut seen, ANN, &WriteBasis::Unnamed), None);
    assert_eq!(write(&mut seen, BOB, &WriteBasis::Unnamed), Some(LostUpdate::Unread));
    assert_eq!(write(&mut seen, BOB, &WriteBasis::Unnamed), None, "it is Bob's own");
    assert_eq!(write(&mut seen, ANN, &WriteBasis::Unnamed), Some(LostUpdate::Unread));
    seen.shown(BOB, None);
    assert_eq!(write(&mut seen, BOB, &WriteBasis::Unnamed), None, "Bob has read it");
}

#[test]
fn a_tag_counts_by_its_last_appearance_to_any_client() {
    let mut seen = Sightings::default();
    seen.shown(ANN, Some(&tag("1")));
    assert_eq!(write(&mut seen, ANN, &named("1")), None);
    assert_eq!(write(&mut seen, ANN, &named("1")), None, "the change since then is Ann's own");
    assert_eq!(write(&mut seen, BOB, &named("1")), Some(LostUpdate::StaleTag));
    assert_eq!(write(&mut seen, ANN, &named("9")), None, "where the tag comes from is not known");
    seen.shown(BOB, Some(&tag("1")));
    assert_eq!(write(&mut seen, BOB, &named("1")), None, "the backend shows it again");
    let began = seen.begin_write();
    seen.applied(ANN, began, &WriteBasis::Unnamed, Some(&tag("2")));
    assert_eq!(write(&mut seen, BOB, &named("2")), None, "the answer to a write shows a tag too");
    assert_eq!(write(&mut seen, ANN, &WriteBasis::Untold), None);
}

#[test]
fn one_of_two_writes_at_once_is_lost_and_a_read_beside_a_write_may_have_seen_it() {
    let mut seen = Sightings::default();
    let (of_ann, of_bob) = (seen.begin_write(), seen.begin_write());
    assert_eq!(seen.applied(BOB, of_bob, &WriteBasis::Unnamed, None), None);
    assert_eq!(seen.applied(ANN, of_ann, &WriteBasis::Unnamed, None), Some(LostUpdate::Unread));

    let mut seen = Sightings::default();
    let of_ann = seen.begin_write();
    seen.shown(BOB, None);
    seen.applied(ANN, of_ann, &WriteBasis::Unnamed, None);
    assert_eq!(write(&mut seen, BOB, &WriteBasis::Unnamed), None);
}

#[test]
fn a_forgotten_reader_has_read_as_late_as_any_of_them() {
    let mut seen = Sightings::default();
    write(&mut seen, ANN, &WriteBasis::Unnamed);
    (10..10 + u8::try_from(READERS_MAX).unwrap()).for_each(|reader| seen.shown([reader; 16], None));
    seen.shown(BOB, None);
    (30..30 + u8::try_from(READERS_MAX).unwrap()).for_each(|reader| seen.shown([reader; 16], None));
    assert_eq!(write(&mut seen, BOB, &WriteBasis::Unnamed), None, "Bob was forgotten, and has read Ann's version");
}

#[test]
fn conditions_name_versions_or_nothing_that_a_tag_tells() {
    let of = |fields: &[(&'static str, &str)]| {
        let headers: HeaderMap =
            fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        WriteBasis::of(&Preconditions::parse(&headers).unwrap())
    };
    assert_eq!(of(&[]), WriteBasis::Unnamed);
    assert_eq!(of(&[("if-match", "*")]), WriteBasis::Unnamed);
    assert_eq!(of(&[("if-match", "\"a\"")]), named("a"));
    assert_eq!(of(&[("if-match", "W/\"a\"")]), named("a"));
    assert_eq!(of(&[("if-none-match", "*")]), WriteBasis::Untold);
    assert_eq!(of(&[("if-unmodified-since", "Sat, 28 Nov 2026 15:00:00 GMT")]), WriteBasis::Untold);
    assert_eq!(of(&[("if-unmodified-since", "yesterday")]), WriteBasis::Untold);
}

/// An event of the random history, by one of some clients.
#[derive(Clone, Copy, Debug)]
enum Event {
    Read,
    Begin,
    End,
}

/// The history of one resource, without bounds.
#[derive(Default)]
struct History {
    reads: Vec<(u8, WriteMoment)>,
    applied: Vec<(u8, WriteMoment)>,
}

impl History {
    /// True if a write of another client that was applied began after all that the client has read.
    fn is_lost(&self, client: u8) -> bool {
        let read = self.reads.iter().filter(|(reader, _)| *reader == client).map(|(_, at)| *at).max().unwrap_or(0);
        self.applied.iter().any(|(writer, began)| *writer != client && *began > read)
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![Just(Event::Read), Just(Event::Begin), Just(Event::End)]
}

/// Runs the events of this number of clients, and returns for each write the count and the truth by the history.
fn run(events: &[(u8, Event)], clients: u8) -> Vec<(bool, bool)> {
    let (mut seen, mut history, mut compared) = (Sightings::default(), History::default(), Vec::new());
    let mut under_way: Vec<(u8, WriteMoment)> = Vec::new();
    for (client, event) in events.iter().map(|(client, event)| (client % clients, *event)) {
        match event {
            Event::Read => {
                seen.shown([client; 16], None);
                history.reads.push((client, seen.begun));
            }
            Event::Begin => under_way.push((client, seen.begin_write())),
            Event::End => {
                let Some(place) = under_way.iter().position(|(writer, _)| *writer == client) else { continue };
                let (_, began) = under_way.remove(place);
                let lost = seen.applied([client; 16], began, &WriteBasis::Unnamed, None);
                compared.push((lost.is_some(), history.is_lost(client)));
                history.applied.push((client, began));
                history.reads.push((client, seen.begun));
            }
        }
    }
    compared
}

proptest! {
    #[test]
    fn what_few_clients_lose_is_counted_exactly(events in vec((any::<u8>(), event()), 0..80)) {
        for (counted, lost) in run(&events, 4) {
            prop_assert_eq!(counted, lost);
        }
    }

    #[test]
    fn nothing_is_counted_that_was_not_lost(events in vec((any::<u8>(), event()), 0..300)) {
        for (counted, lost) in run(&events, 40) {
            prop_assert!(!counted || lost);
        }
    }
}
