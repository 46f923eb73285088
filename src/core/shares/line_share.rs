//! The share of each client in a full line: who gives its place to a newcomer (DESIGN, section 3, rule 16).
//!
//! # Design
//!
//! *Why does a share count only in a full line?* Until the line is full, many places of one client keep no other out.
//! In a full line, a newcomer gets a place of the client that has the most. That client must have at least two more
//! than the newcomer. So the shares become more equal with each change, and two clients never displace each other in
//! turn.
//!
//! *Why do addresses count before principals?* A client can make up credentials, but hardly addresses. Principals
//! distinguish the clients behind one address.
//!
//! *Who loses a turn?* Only the member that gives way: the last one of its client, which has waited for the shortest
//! time. The newcomer goes to the end of the line, so all others keep their order.

use std::{collections::HashMap, hash::Hash};

use crate::core::{http::client_address::ClientAddress, lease::PrincipalName};

/// A client, as one of those in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineClient {
    /// Its address.
    pub address: ClientAddress,
    /// Its principal.
    pub principal: PrincipalName,
}

/// Returns the place of the member that gives way to a newcomer in a full line, if one does. `waiting` are the clients
/// of all members that wait, in order of arrival.
pub fn gives_way(waiting: &[LineClient], newcomer: LineClient) -> Option<usize> {
    let principals_at = |address| {
        let at_address = waiting.iter().filter(move |client| client.address == address);
        at_address.map(|client| client.principal)
    };
    let (address, principal) = match with_more(waiting.iter().map(|client| client.address), newcomer.address) {
        Some(address) => (address, most(principals_at(address))?.0),
        None => (newcomer.address, with_more(principals_at(newcomer.address), newcomer.principal)?),
    };
    waiting.iter().rposition(|client| *client == LineClient { address, principal })
}

/// Returns the one with the most places, if it has at least two more than `own`.
fn with_more<T: Copy + Eq + Hash>(places: impl Iterator<Item = T> + Clone, own: T) -> Option<T> {
    let own_places = places.clone().filter(|one| *one == own).count();
    most(places).filter(|(_, places)| *places >= own_places + 2).map(|(one, _)| one)
}

/// Returns the one with the most places, and their number. Of several, it is the first in line.
fn most<T: Copy + Eq + Hash>(places: impl Iterator<Item = T> + Clone) -> Option<(T, usize)> {
    let mut counts = HashMap::new();
    for one in places.clone() {
        *counts.entry(one).or_insert(0_usize) += 1;
    }
    let greatest = counts.values().copied().max()?;
    places.into_iter().find(|one| counts.get(one) == Some(&greatest)).map(|one| (one, greatest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: u8, principal: u8) -> LineClient {
        LineClient { address: ClientAddress::V4([address; 4]), principal: [principal; 16] }
    }

    #[test]
    fn the_greatest_share_gives_way_with_its_last_place() {
        let (a, b, c) = (client(1, 1), client(2, 1), client(3, 1));
        for (waiting, newcomer, expected) in [
            (&[][..], a, None),
            (&[a], b, None),
            (&[a, b], c, None),
            (&[a, a], b, Some(1)),
            (&[a, a, a, a], a, None),
            (&[a, a, a, b], b, Some(2)),
            (&[a, a, b, b], b, None),
            (&[a, a, b, b], c, Some(1)),
            (&[b, a, a, b, b], c, Some(4)),
        ] {
            assert_eq!(gives_way(waiting, newcomer), expected, "{waiting:?} {newcomer:?}");
        }
    }

    /// A client that makes up credentials has no greater share than its address.
    #[test]
    fn addresses_count_before_principals() {
        let made_up: Vec<_> = (10..20).map(|principal| client(1, principal)).collect();
        assert_eq!(gives_way(&made_up, client(2, 1)), Some(0), "each principal has one place");
        assert_eq!(gives_way(&made_up, client(1, 20)), None);
    }

    #[test]
    fn principals_tell_the_clients_of_one_address_apart() {
        let (a, b, elsewhere) = (client(1, 1), client(1, 2), client(2, 1));
        for (waiting, expected) in [
            (&[a, a, a, a][..], Some(3)),
            (&[a, a, b, a], Some(3)),
            (&[a, a, b, b], None),
            (&[a, a, elsewhere, elsewhere, elsewhere], Some(1)),
            (&[a, a, elsewhere, elsewhere, elsewhere, elsewhere], Some(5)),
        ] {
            assert_eq!(gives_way(waiting, b), expected, "{waiting:?}");
        }
    }

    /// How unequal the shares are: of addresses, and then of the clients at them.
    fn inequality(waiting: &[LineClient]) -> (usize, usize) {
        let squares = |counts: HashMap<_, usize>| counts.values().map(|count| count * count).sum();
        let (mut addresses, mut clients) = (HashMap::new(), HashMap::new());
        for client in waiting {
            *addresses.entry((client.address, None)).or_default() += 1;
            *clients.entry((client.address, Some(client.principal))).or_default() += 1;
        }
        (squares(addresses), squares(clients))
    }

    /// All lines of up to six members of two clients each at two addresses, and each newcomer.
    #[test]
    fn each_change_makes_shares_more_equal_and_none_is_left_out() {
        let clients = [client(1, 1), client(1, 2), client(2, 1), client(2, 2)];
        let mut lines = vec![Vec::new()];
        for _ in 0..6 {
            let longer = |line: &Vec<LineClient>| clients.map(|client| [line.clone(), vec![client]].concat());
            lines = lines.iter().flat_map(longer).collect();
            for (line, newcomer) in lines.iter().flat_map(|line| clients.map(|newcomer| (line, newcomer))) {
                let after = |place: usize| {
                    let mut after = line.clone();
                    after.remove(place);
                    after.push(newcomer);
                    inequality(&after)
                };
                let context = format!("{line:?} {newcomer:?}");
                let before = inequality(line);
                match gives_way(line, newcomer) {
                    Some(place) => {
                        assert!(after(place) < before, "{context}");
                        assert!(!line[place + 1..].contains(&line[place]), "the last one of its client: {context}");
                    }
                    None => assert!(
                        (0..line.len()).all(|place| if line[place].address == newcomer.address {
                            after(place).1 >= before.1
                        } else {
                            after(place).0 >= before.0
                        }),
                        "{context}"
                    ),
                }
            }
        }
    }
}
