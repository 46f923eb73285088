//! The readers of `WebDAV` over generated input: that of the fuzz target, which needs another compiler.

use proptest::{collection::vec, prelude::*, sample::Index};

#[path = "../fuzz/readers/webdav.rs"]
mod webdav;

const SEEDS: [&[u8]; 4] = [
    include_bytes!("../fuzz/seeds/webdav/1"),
    include_bytes!("../fuzz/seeds/webdav/2"),
    include_bytes!("../fuzz/seeds/webdav/3"),
    include_bytes!("../fuzz/seeds/webdav/4"),
];

/// Octets that mean something to a reader, more often than others.
fn octet() -> impl Strategy<Value = u8> {
    prop_oneof![3 => prop::sample::select(b"<>()[]\"'/:;&!?-= D".to_vec()), 1 => any::<u8>()]
}

/// A change of an input at a place: of an octet, or of the rest from there on.
#[derive(Clone, Debug)]
enum Change {
    Replace(u8),
    Insert(u8),
    Remove,
    Cut,
    Repeat,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        octet().prop_map(Change::Replace),
        octet().prop_map(Change::Insert),
        Just(Change::Remove),
        Just(Change::Cut),
        Just(Change::Repeat),
    ]
}

fn changed(mut input: Vec<u8>, changes: Vec<(Index, Change)>) -> Vec<u8> {
    for (place, change) in changes {
        let place = place.index(input.len() + 1);
        match (change, input.get_mut(place)) {
            (Change::Insert(octet), _) => input.insert(place, octet),
            (Change::Replace(octet), Some(replaced)) => *replaced = octet,
            (Change::Remove, Some(_)) => drop(input.remove(place)),
            (Change::Cut, Some(_)) => input.truncate(place),
            (Change::Repeat, Some(_)) => input.extend_from_within(place..),
            (_, None) => {}
        }
    }
    input
}

#[test]
fn the_seeds_are_read() {
    SEEDS.into_iter().for_each(webdav::read);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_makes_a_reader_panic(
        seed in prop::sample::select(SEEDS.to_vec()),
        changes in vec((any::<Index>(), change()), 0..6),
    ) {
        webdav::read(&changed(seed.to_vec(), changes));
    }

    #[test]
    fn no_short_text_makes_a_reader_panic(input in vec(octet(), 0..40)) {
        (0..4).for_each(|reader| webdav::read(&[&[reader][..], &input].concat()));
    }
}
