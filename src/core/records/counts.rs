//! The number of records and leases in a store.

use super::record::Record;
use crate::core::{
    lease::{Lease, LeaseState},
    time::StoreTime,
};

/// The number of records, and of the doubts and leases that are live in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of records.
    pub records: u64,
    /// The bytes of the process's memory that the records take, if the store keeps them there.
    pub bytes: Option<u64>,
    /// Records whose write is in doubt.
    pub doubts: u64,
    /// Leases that are held.
    pub leased: u64,
    /// Leases that are held until their break takes effect.
    pub breaking: u64,
    /// Leases that were broken and are remembered.
    pub broken: u64,
    /// Leases that ran out and are remembered.
    pub expired: u64,
}

impl Counts {
    /// Counts a record.
    pub fn add(&mut self, record: &Record, now: StoreTime) {
        self.records += 1;
        self.add_live(record, now);
    }

    /// Counts the doubt and the leases that are live in a record, but not the record itself. A doubt of a keyed write
    /// counts at its resource.
    pub fn add_live(&mut self, record: &Record, now: StoreTime) {
        let is_of_resource = record.attempt.is_none();
        self.doubts += u64::from(is_of_resource && record.doubt.is_some_and(|doubt| now < doubt.until));
        record.leases.iter().for_each(|lease| self.add_lease(lease, now));
    }

    fn add_lease(&mut self, lease: &Lease, now: StoreTime) {
        match lease.state(now) {
            LeaseState::Available => {}
            LeaseState::Leased => self.leased += 1,
            LeaseState::Breaking => self.breaking += 1,
            LeaseState::Broken => self.broken += 1,
            LeaseState::Expired => self.expired += 1,
        }
    }

    /// Returns the number of leases by the name of their state.
    pub const fn leases(&self) -> [(&'static str, u64); 4] {
        [("leased", self.leased), ("breaking", self.breaking), ("broken", self.broken), ("expired", self.expired)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::records::{
        first_attempt::{FirstAttempt, SentWrite},
        record::{Doubt, Revision, Stamp},
    };

    /// A keyed write in doubt has two records with a doubt: that of its resource and its own.
    #[test]
    fn a_write_in_doubt_counts_once() {
        let until = StoreTime::from_milliseconds(1);
        let doubt = Some(Doubt { until, version: Stamp::Itself });
        let of_resource = Record { doubt, ..Record::absent(Revision(0)) };
        let attempt = FirstAttempt { sent: SentWrite::default(), until, answer: None };
        let of_write = Record { attempt: Some(Box::new(attempt)), ..of_resource.clone() };
        let mut counts = Counts::default();
        counts.add(&of_resource, StoreTime::default());
        counts.add(&of_write, StoreTime::default());
        assert_eq!((counts.records, counts.doubts), (2, 1));
    }
}
