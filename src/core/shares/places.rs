//! The right to take one of the places of a server.
//!
//! # Design
//!
//! *Who holds a place for how long?* A client may send the body of an unguarded request at a byte a minute. It may also
//! read a response at that rate, if the response does not fit into memory. It then holds the place for as long as it
//! likes.
//!
//! *Why is a share no fixed number?* A single client may be a gateway that brings all requests, and many clients may
//! each be one browser. So a client may hold as many places as it leaves free: the first gets half, of two each a third,
//! and there are places left for the next one until there are hundreds of them.
//!
//! *Why are places kept for guarded requests?* They exclude others while they wait, and most of them give their places
//! back soon: their bodies have arrived before.

/// The places of a server at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceCounts {
    /// The number of places.
    pub max: usize,
    /// The number of those that are taken.
    pub in_use: usize,
    /// The number of those that only guarded requests get.
    pub kept: usize,
}

/// The kind of request that wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceFor {
    /// A guarded request.
    Guarded {
        /// The places of its client. 0 if the client cannot be distinguished from others.
        own: usize,
    },
    /// Another request.
    Unguarded {
        /// The places of its client. 0 if the client cannot be distinguished from others.
        own: usize,
    },
}

impl PlaceCounts {
    /// Returns how many of this number of places are kept for guarded requests, if there are any: an eighth. A single
    /// place is for all.
    pub const fn kept_of(max: usize) -> usize {
        if max == 1 { 0 } else { max.div_ceil(8) }
    }

    /// True if a place may be taken.
    pub fn admit(self, wanted: PlaceFor) -> bool {
        let free = self.max.saturating_sub(self.in_use);
        let (free, own) = match wanted {
            PlaceFor::Guarded { own } => (free, own),
            PlaceFor::Unguarded { own } => (free.saturating_sub(self.kept), own),
        };
        free > 0 && own <= free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places of each of these clients, if they take turns and all places that they get.
    fn greedy(max: usize, kept: usize, clients: &[fn(usize) -> PlaceFor]) -> Vec<usize> {
        let mut held = vec![0; clients.len()];
        loop {
            let before: usize = held.iter().sum();
            for (client, wanted) in clients.iter().enumerate() {
                let places = PlaceCounts { max, in_use: held.iter().sum(), kept };
                if places.admit(wanted(held[client])) {
                    held[client] += 1;
                }
            }
            if held.iter().sum::<usize>() == before {
                return held;
            }
        }
    }

    const GUARDED: fn(usize) -> PlaceFor = |own| PlaceFor::Guarded { own };
    const UNGUARDED: fn(usize) -> PlaceFor = |own| PlaceFor::Unguarded { own };

    #[test]
    fn greedy_clients_leave_places_to_each_other_and_to_guarded_requests() {
        for max in 1..=200 {
            for kept in [0, PlaceCounts::kept_of(max)] {
                for clients in 1..=5 {
                    let held = greedy(max, kept, &vec![UNGUARDED; clients]);
                    let in_use = held.iter().sum();
                    let places = PlaceCounts { max, in_use, kept };
                    let context = format!("{places:?} {held:?}");
                    assert!(in_use + kept <= max, "{context}");
                    assert_eq!(places.admit(GUARDED(0)), in_use < max, "{context}");
                    if max - kept > 2 * clients {
                        assert!(places.admit(UNGUARDED(0)), "the next client: {context}");
                        assert!(held.iter().all(|held| held * (clients + 1) + clients >= max - kept), "{context}");
                    }
                }
            }
        }
    }

    /// Two clients that take all they can get, with any requests, leave places to a third one of either kind.
    #[test]
    fn greedy_clients_with_guarded_requests_leave_places_to_all_others() {
        for max in 16..=200 {
            let kept = PlaceCounts::kept_of(max);
            for clients in [&[GUARDED][..], &[GUARDED, UNGUARDED], &[GUARDED, GUARDED]] {
                let held = greedy(max, kept, clients);
                let places = PlaceCounts { max, in_use: held.iter().sum(), kept };
                let context = format!("{places:?} {held:?}");
                assert!(places.admit(GUARDED(0)) && places.admit(UNGUARDED(0)), "{context}");
                assert!(held.iter().all(|held| 2 * held <= max + 2), "{context}");
            }
        }
    }

    #[test]
    fn a_lone_client_gets_at_least_half() {
        for (max, wanted) in (1..=200).flat_map(|max| [(max, GUARDED), (max, UNGUARDED)]) {
            assert!(greedy(max, 0, &[wanted])[0] >= max.div_ceil(2), "{max}");
        }
        let lone = |max| greedy(max, 0, &[GUARDED]);
        assert_eq!((lone(1), lone(2), lone(1024)), (vec![1], vec![2], vec![513]));
    }

    #[test]
    fn an_eighth_is_kept_and_a_single_place_is_for_all() {
        assert_eq!([1, 2, 8, 9, 1024].map(PlaceCounts::kept_of), [0, 1, 1, 2, 128]);
        let full = PlaceCounts { max: 8, in_use: 7, kept: 1 };
        assert!(full.admit(GUARDED(1)) && !full.admit(GUARDED(2)) && !full.admit(UNGUARDED(0)));
    }
}
