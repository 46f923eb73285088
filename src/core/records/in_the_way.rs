//! The obstacles to a write, as a record and the trees around its resource show them.

use super::{availability::Availability, record::Snapshot, trees::TreeInTheWay};

impl Snapshot {
    /// Returns the availability to a write of another resource that changes this one too. The state of this resource
    /// does not judge that write, so it runs beside unclaimed writes and others of its kind. A claimed write would
    /// replace the change unseen.
    pub fn availability_to_touch(&self) -> Availability {
        self.or_above(match (self.availability_by_own(), &self.record.claim, self.record.doubt) {
            (Availability::Busy { .. }, None, Some(doubt)) if self.now < doubt.until => {
                Availability::InDoubt { until: doubt.until }
            }
            (Availability::Busy { .. }, None, _) => Availability::Free,
            (Availability::Busy { .. }, Some(claim), _) => Availability::Busy { deadline: claim.deadline },
            (other, ..) => other,
        })
    }

    /// True if only the write of a tree around the resource keeps it busy.
    pub fn is_below_busy_tree(&self) -> bool {
        let is_busy = |above: TreeInTheWay| matches!(above.availability, Availability::Busy { .. });
        self.above.is_some_and(is_busy) && self.availability_by_own() == Availability::Free
    }

    /// Returns the availability to a write that tries to claim the resource.
    pub fn availability(&self) -> Availability {
        self.or_above(self.availability_by_own())
    }

    /// Returns the availability by the record of the resource (`by_own`). If that is free, the trees around it decide.
    fn or_above(&self, by_own: Availability) -> Availability {
        self.above.filter(|_| by_own == Availability::Free).map_or(by_own, |above| above.availability)
    }

    /// Returns the availability by the record of the resource alone.
    pub fn availability_by_own(&self) -> Availability {
        let marks = self.record.marks();
        match (marks.clone().map(|mark| mark.deadline).max(), self.record.doubt) {
            _ if marks.clone().any(|mark| mark.deadline <= self.now) => Availability::Orphaned,
            (Some(deadline), _) => Availability::Busy { deadline },
            (None, Some(doubt)) if self.now < doubt.until => Availability::InDoubt { until: doubt.until },
            (None, _) => Availability::Free,
        }
    }
}
