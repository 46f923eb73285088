//! Who may take one of the places of a server.
//!
//! # Design
//!
//! *Who holds a place for how long?* A guarded request holds it while the server works: its body has arrived before. Any
//! other request holds it for as long as its client likes, which may send a byte a minute.
//!
//! *Why is a share no fixed number?* A single client may be a gateway that brings all requests, and many clients may
//! each be one browser. So a client may hold as many places as it leaves free: the first gets half, of two each a third,
//! and there are places left for the next one until there are hundreds of them.
//!
//! *Why are places kept for guarded requests?* They exclude others while they wait, and they give their places back soon.

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

/// Who wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceFor {
    /// A guarded request.
    Guarded,
    /// Another request, of a client that holds so many places for other requests.
    Unguarded {
        /// The places of the client. 0 if the client cannot be told from others.
        own: usize,
    },
}

impl PlaceCounts {
    /// Returns how many of so many places are kept for guarded requests, where there are such: an eighth. A single place
    /// is for all.
    pub const fn kept_of(max: usize) -> usize {
        if max == 1 { 0 } else { max.div_ceil(8) }
    }

    /// Whether a place may be taken.
    pub fn admit(self, wanted: PlaceFor) -> bool {
        let free = self.max.saturating_sub(self.in_use);
        match wanted {
            PlaceFor::Guarded => free > 0,
            PlaceFor::Unguarded { own } => {
                let free = free.saturating_sub(self.kept);
                free > 0 && own <= free
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what each of so many clients holds that take turns and all that they get.
    fn greedy(max: usize, kept: usize, clients: usize) -> Vec<usize> {
        let mut held = vec![0; clients];
        loop {
            let before: usize = held.iter().sum();
            for client in 0..clients {
                let places = PlaceCounts { max, in_use: held.iter().sum(), kept };
                if places.admit(PlaceFor::Unguarded { own: held[client] }) {
                    held[client] += 1;
                }
            }
            if held.iter().sum::<usize>() == before {
                return held;
            }
        }
    }

    #[test]
    fn greedy_clients_leave_places_to_each_other_and_to_guarded_requests() {
        for max in 1..=200 {
            for kept in [0, PlaceCounts::kept_of(max)] {
                for clients in 1..=5 {
                    let held = greedy(max, kept, clients);
                    let in_use = held.iter().sum();
                    let places = PlaceCounts { max, in_use, kept };
                    let context = format!("{places:?} {held:?}");
                    assert!(in_use + kept <= max, "{context}");
                    assert_eq!(places.admit(PlaceFor::Guarded), in_use < max, "{context}");
                    if max - kept > 2 * clients {
                        assert!(places.admit(PlaceFor::Unguarded { own: 0 }), "the next client: {context}");
                        assert!(held.iter().all(|held| held * (clients + 1) + clients >= max - kept), "{context}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_lone_client_gets_at_least_half() {
        for max in 1..=200 {
            assert!(greedy(max, 0, 1)[0] >= max.div_ceil(2), "{max}");
        }
        assert_eq!((greedy(1, 0, 1), greedy(2, 0, 1), greedy(1024, 0, 1)), (vec![1], vec![2], vec![513]));
    }

    #[test]
    fn an_eighth_is_kept_and_a_single_place_is_for_all() {
        assert_eq!([1, 2, 8, 9, 1024].map(PlaceCounts::kept_of), [0, 1, 1, 2, 128]);
        let full = PlaceCounts { max: 8, in_use: 7, kept: 1 };
        assert!(full.admit(PlaceFor::Guarded) && !full.admit(PlaceFor::Unguarded { own: 0 }));
    }
}
