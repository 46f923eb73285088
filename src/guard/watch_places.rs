//! The resources that clients watch at this moment, within the limits of the configuration (rule 13).

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    config::Server,
    core::{
        http::client_address::ClientAddress,
        refusal::{Code, Refusal},
    },
};

/// The watches of all clients. All generations of the configuration share them.
#[derive(Debug, Default)]
pub(super) struct WatchCounts(Mutex<ClientCounts>);

#[derive(Debug, Default)]
struct ClientCounts {
    all: usize,
    by_client: HashMap<ClientAddress, usize>,
}

/// The maximum numbers of watches.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchLimits {
    pub(super) all: usize,
    pub(super) client: usize,
}

impl WatchLimits {
    /// Returns the limits of a configuration.
    pub(super) const fn of(server: &Server) -> Self {
        Self { all: server.max_watches, client: server.max_watches_per_client }
    }
}

/// The places of the resources that one client watches by one request, held until it is dropped.
#[derive(Debug)]
pub(crate) struct WatchPlaces {
    counts: Arc<WatchCounts>,
    client: ClientAddress,
    resources: usize,
}

impl WatchCounts {
    /// Takes the places of this number of resources.
    pub(super) fn take(
        self: &Arc<Self>,
        client: ClientAddress,
        resources: usize,
        limits: WatchLimits,
    ) -> Result<WatchPlaces, Refusal> {
        let mut counts = self.0.lock();
        let own = counts.by_client.get(&client).copied().unwrap_or_default();
        if own + resources > limits.client {
            return Err(full("max_watches_per_client", "close a stream of yours, or watch less resources"));
        }
        if counts.all + resources > limits.all {
            return Err(full("max_watches", "try again later, and read the resource meanwhile"));
        }
        counts.all += resources;
        counts.by_client.insert(client, own + resources);
        drop(counts);
        Ok(WatchPlaces { counts: Arc::clone(self), client, resources })
    }
}

impl Drop for WatchPlaces {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        counts.all -= self.resources;
        let own = counts.by_client.get(&self.client).copied().unwrap_or_default();
        if own <= self.resources {
            counts.by_client.remove(&self.client);
        } else {
            counts.by_client.insert(self.client, own - self.resources);
        }
    }
}

fn full(key: &str, remedy: &str) -> Refusal {
    Refusal::new(Code::Overloaded, format!("clients watch as many resources as server.{key} allows: {remedy}"))
        .retry_after(std::time::Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WatchLimits = WatchLimits { all: 5, client: 3 };

    fn address(last: u8) -> ClientAddress {
        ClientAddress::V4([192, 0, 2, last])
    }

    #[test]
    fn neither_one_client_nor_all_together_watch_more_than_the_limits() {
        let counts = Arc::new(WatchCounts::default());
        let take = |client, resources| counts.take(address(client), resources, LIMITS);
        let first = take(1, 2).expect("room");
        let refused = take(1, 2).expect_err("the share of one client");
        assert!(refused.detail.contains("max_watches_per_client"), "{}", refused.detail);
        let second = take(1, 1).expect("room");
        assert!(take(1, 1).is_err());
        let other = take(2, 2).expect("room for another client");
        let refused = take(3, 1).expect_err("all places are taken");
        assert!(refused.detail.contains("server.max_watches allows"), "{}", refused.detail);
        drop(first);
        let third = take(3, 2).expect("places that were given back");
        drop((second, other, third));
        assert_eq!(counts.0.lock().all, 0);
        assert!(counts.0.lock().by_client.is_empty(), "no client is left behind");
    }
}
