//! The places of one server, and the line of those who wait for one.

use std::{collections::VecDeque, sync::Arc};

use foldhash::HashMap;
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};

use crate::{
    config::Queue,
    core::{
        http::client_address::ClientAddress,
        shares::places::{PlaceCounts, PlaceFor},
    },
};

/// The kind of request that occupies a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// A guarded request, with its client if that is known.
    Guarded(Option<ClientAddress>),
    /// A request that is forwarded as it came, with its client if that is known.
    Unguarded(Option<ClientAddress>),
}

impl Occupant {
    const fn client(self) -> Option<ClientAddress> {
        match self {
            Self::Guarded(client) | Self::Unguarded(client) => client,
        }
    }
}

/// The places of one server.
#[derive(Debug)]
pub(super) struct PlacesAtServer {
    max: usize,
    taken: Mutex<TakenPlaces>,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    in_use: usize,
    kept: usize,
    by_client: HashMap<ClientAddress, usize>,
    line: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    occupant: Occupant,
    slot: oneshot::Sender<Slot>,
}

/// The right to have one exchange with a server. Dropping it ends the exchange's share.
#[derive(Debug)]
pub(crate) struct Slot {
    places: Arc<PlacesAtServer>,
    occupant: Occupant,
}

/// The error of a server that already has the maximum number of exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl TakenPlaces {
    fn has_place(&self, max: usize, occupant: Occupant) -> bool {
        let own = occupant.client().and_then(|client| self.by_client.get(&client).copied()).unwrap_or(0);
        let wanted = match occupant {
            Occupant::Guarded(_) => PlaceFor::Guarded { own },
            Occupant::Unguarded(_) => PlaceFor::Unguarded { own },
        };
        PlaceCounts { max, in_use: self.in_use, kept: self.kept }.admit(wanted)
    }

    fn enter(&mut self, occupant: Occupant) {
        self.in_use += 1;
        if let Some(client) = occupant.client() {
            *self.by_client.entry(client).or_default() += 1;
        }
    }

    fn leave(&mut self, occupant: Occupant) {
        self.in_use = self.in_use.saturating_sub(1);
        let Some(client) = occupant.client() else { return };
        if let Some(own) = self.by_client.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                self.by_client.remove(&client);
            }
        }
    }

    /// Forgets those who no longer wait.
    fn shorten_line(&mut self) {
        self.line.retain(|waiting| !waiting.slot.is_closed());
    }
}

impl PlacesAtServer {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::default() })
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Keeps places for guarded requests from now on, or for no requests.
    pub(super) fn keep_for_guarded(&self, are_kept: bool) {
        self.taken.lock().kept = if are_kept { PlaceCounts::kept_of(self.max) } else { 0 };
    }

    /// Returns the number of exchanges in flight.
    pub(super) fn in_use(&self) -> usize {
        self.taken.lock().in_use
    }

    /// Returns the number of requests that wait for a slot.
    pub(super) fn waiting(&self) -> usize {
        self.taken.lock().line.iter().filter(|waiting| !waiting.slot.is_closed()).count()
    }

    /// True if there is a place at this moment.
    pub(super) fn has_place(&self, occupant: Occupant) -> bool {
        self.taken.lock().has_place(self.max, occupant)
    }

    /// Waits for a free slot. Those who may have one get it in the order of arrival.
    pub(super) async fn slot(self: &Arc<Self>, occupant: Occupant, queue: &Queue) -> Result<Slot, Full> {
        let waits = {
            let mut taken = self.taken.lock();
            if taken.has_place(self.max, occupant) {
                taken.enter(occupant);
                return Ok(self.slot_of(occupant));
            }
            taken.shorten_line();
            if taken.line.len() >= queue.max_waiters {
                return Err(Full);
            }
            let (slot, waits) = oneshot::channel();
            taken.line.push_back(Waiting { occupant, slot });
            waits
        };
        match timeout(queue.max_wait, waits).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(Full),
        }
    }

    fn slot_of(self: &Arc<Self>, occupant: Occupant) -> Slot {
        Slot { places: Arc::clone(self), occupant }
    }

    /// Ends the share of an exchange, and gives free places to those who wait.
    fn release(self: &Arc<Self>, occupant: Occupant) {
        let mut unwanted = Vec::new();
        let mut taken = self.taken.lock();
        taken.leave(occupant);
        if taken.line.is_empty() {
            return;
        }
        taken.shorten_line();
        while let Some(next) = taken.line.iter().position(|waiting| taken.has_place(self.max, waiting.occupant)) {
            let Some(Waiting { occupant, slot }) = taken.line.remove(next) else { break };
            taken.enter(occupant);
            // A request that has just given up leaves the slot to be dropped, without the lock.
            unwanted.extend(slot.send(self.slot_of(occupant)).err());
        }
        drop(taken);
        drop(unwanted);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.places.release(self.occupant);
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
