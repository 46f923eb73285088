//! The order in which an upstream's servers are tried. Pure, except for the counter of turns.
//!
//! # Design
//!
//! *Why pingora's ring and not its load balancer?* The ring (`pingora-ketama`) is consistent hashing itself. The load
//! balancer around it identifies servers by the addresses of their last look-up, leaves out unix sockets, and judges
//! health in its own way. Here a server is the name that its author wrote, and the proxy looks it up when it connects.
//! A server that refused a connection goes to the end of the line on both paths of a request.
//!
//! *How does a name get onto a ring of addresses?* By an address made from the hash of the name: the ring only hashes
//! addresses once more.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::atomic::{AtomicUsize, Ordering},
};

use pingora_ketama::{Bucket, Continuum};

/// The servers of an upstream, each by its index in the configuration.
pub(super) struct Order {
    ring: Continuum,
    on_ring: HashMap<SocketAddr, usize>,
    /// The cycle of turns. Each server appears as often as its weight requires, spread as evenly as possible.
    turns: Vec<usize>,
    next: AtomicUsize,
    count: usize,
}

impl Order {
    /// Makes the order of these servers. One without a weight has the weight 1.
    pub(super) fn of(names: &[String], weights: &[u32]) -> Self {
        let weighted = || names.iter().zip(weights.iter().copied().chain(std::iter::repeat(1)));
        let buckets = weighted().map(|(name, weight)| Bucket::new(place(name), weight.max(1))).collect::<Vec<_>>();
        Self {
            ring: Continuum::new(&buckets),
            on_ring: names.iter().enumerate().map(|(index, name)| (place(name), index)).collect(),
            turns: turns(&weighted().map(|(_, weight)| weight.max(1)).collect::<Vec<_>>()),
            next: AtomicUsize::new(0),
            count: names.len(),
        }
    }

    /// Returns all servers, beginning with the one whose turn it is.
    pub(super) fn by_turn(&self) -> Vec<usize> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let from = turn.checked_rem(self.turns.len()).unwrap_or(0);
        self.each_once(self.turns.iter().cycle().skip(from).take(self.turns.len()).copied())
    }

    /// Returns all servers, beginning with the one that these bytes hash to. If that server is gone, only its keys
    /// move, spread over the others.
    pub(super) fn by_hash(&self, what: &[u8]) -> Vec<usize> {
        if self.count == 1 {
            return vec![0];
        }
        self.each_once(self.ring.node_iter(what).filter_map(|address| self.on_ring.get(address).copied()))
    }

    fn each_once(&self, servers: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.count);
        for server in servers {
            if !order.contains(&server) {
                order.push(server);
            }
            if order.len() == self.count {
                break;
            }
        }
        order
    }
}

/// Returns the address that stands for a name on the ring.
fn place(name: &str) -> SocketAddr {
    let hash = u128::from_le_bytes(*blake3::hash(name.as_bytes()).as_bytes().first_chunk().unwrap_or(&[0; 16]));
    SocketAddr::new(IpAddr::V6(Ipv6Addr::from_bits(hash)), 0)
}

/// Makes the smooth weighted round robin of nginx: `a a b a c a a` rather than `a a a a a b c`.
fn turns(weights: &[u32]) -> Vec<usize> {
    let total: i64 = weights.iter().copied().map(i64::from).sum();
    let mut standing = vec![0_i64; weights.len()];
    let mut turns = Vec::new();
    for _ in 0..total {
        for (each, weight) in standing.iter_mut().zip(weights) {
            *each += i64::from(*weight);
        }
        let best = standing.iter().enumerate().max_by_key(|(index, each)| (**each, std::cmp::Reverse(*index)));
        let Some(best) = best.map(|(index, _)| index) else { break };
        if let Some(each) = standing.get_mut(best) {
            *each -= total;
        }
        turns.push(best);
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|index| format!("server-{index}:80")).collect()
    }

    fn firsts(order: &Order, requests: usize) -> Vec<usize> {
        (0..requests).map(|_| order.by_turn()[0]).collect()
    }

    #[test]
    fn each_server_takes_its_turn() {
        assert_eq!(firsts(&Order::of(&names(3), &[]), 6), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn turns_are_as_many_as_weights_say_and_spread_out() {
        assert_eq!(firsts(&Order::of(&names(3), &[5, 1, 1]), 7), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn all_servers_are_in_each_order_once() {
        let order = Order::of(&names(3), &[2, 1, 1]);
        for mut found in [order.by_turn(), order.by_hash(b"docs:/a"), order.by_hash(b"docs:/b")] {
            found.sort_unstable();
            assert_eq!(found, [0, 1, 2]);
        }
    }

    #[test]
    fn what_hashed_to_a_lost_server_is_all_that_moves() {
        let (all, fewer) = (Order::of(&names(4), &[]), Order::of(&names(3), &[]));
        for number in 0..1000 {
            let key = format!("docs:/documents/{number}");
            let before = all.by_hash(key.as_bytes());
            let after = fewer.by_hash(key.as_bytes())[0];
            let expected = before.iter().copied().find(|server| *server != 3).unwrap();
            assert_eq!(after, expected, "{key}");
        }
    }

    #[test]
    fn hashes_are_spread_by_weight() {
        let order = Order::of(&names(3), &[1, 1, 2]);
        let mut counts = [0; 3];
        for number in 0..4000 {
            counts[order.by_hash(format!("docs:/{number}").as_bytes())[0]] += 1;
        }
        assert!((700..=1300).contains(&counts[0]) && (700..=1300).contains(&counts[1]), "{counts:?}");
        assert!((1600..=2400).contains(&counts[2]), "{counts:?}");
    }

    /// Two proxies in front of the same servers agree, no matter in which order they list them.
    #[test]
    fn a_hash_goes_by_names_and_not_by_places() {
        let (there, here) = (names(3), names(3).into_iter().rev().collect::<Vec<_>>());
        let (order, reversed) = (Order::of(&there, &[]), Order::of(&here, &[]));
        for number in 0..100 {
            let key = format!("docs:/{number}");
            assert_eq!(there[order.by_hash(key.as_bytes())[0]], here[reversed.by_hash(key.as_bytes())[0]]);
        }
    }
}
