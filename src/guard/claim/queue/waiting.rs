//! The members of a line that wait, and the place of one that a newcomer gets in a full line.

use tokio::sync::oneshot;

use super::{LineMoment, Member};
use crate::core::shares::line_share::{LineClient, gives_way};

/// The members that wait, in order of arrival.
#[derive(Default)]
pub(super) struct WaitingMembers(Vec<WaitingMember>);

struct WaitingMember {
    number: u64,
    member: Member,
    client: LineClient,
    /// Tells the member by its end that another one has the place.
    _place: oneshot::Sender<()>,
}

impl WaitingMembers {
    /// Adds a member with its number in the order of arrival. The receiver ends when the member has lost its place.
    pub(super) fn add(&mut self, number: u64, member: Member, client: LineClient) -> oneshot::Receiver<()> {
        let (place, loses) = oneshot::channel();
        let at = self.0.partition_point(|other| other.number < number);
        self.0.insert(at, WaitingMember { number, member, client, _place: place });
        loses
    }

    /// Removes a member. Returns false if it has lost its place.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let found = self.0.binary_search_by_key(&number, |other| other.number);
        found.map(|at| self.0.remove(at)).is_ok()
    }

    /// The number of members that have come since this moment.
    pub(super) fn since(&self, arrival: LineMoment) -> usize {
        self.0.len() - self.0.partition_point(|other| other.number < arrival.0)
    }

    /// Takes the place of a member of the same kind, if the client of that member has more than its share. Returns
    /// whether there is a place now.
    pub(super) fn displace(&mut self, member: Member, client: LineClient) -> bool {
        let is_alike = |other: &WaitingMember| (other.member == Member::Claim) == (member == Member::Claim);
        let (places, clients): (Vec<_>, Vec<_>) = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, other)| is_alike(other))
            .map(|(at, other)| (at, other.client))
            .unzip();
        let place = gives_way(&clients, client).and_then(|place| places.get(place));
        place.map(|at| self.0.remove(*at)).is_some()
    }
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
