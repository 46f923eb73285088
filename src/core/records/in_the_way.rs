//! What is in the way of a write, as a record and the trees around its resource tell.

use super::{availability::Availability, record::Snapshot, trees::TreeInTheWay};

impl Snapshot {
    /// What a write of another resource finds that changes this one too. It is judged by nothing of this resource, so it
    /// runs beside unclaimed writes and others of its kind. A claimed write would replace the change unseen.
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

    /// True if the write of a tree around the resource is all that keeps it busy.
    pub fn is_below_busy_tree(&self) -> bool {
        let is_busy = |above: TreeInTheWay| matches!(above.availability, Availability::Busy { .. });
        self.above.is_some_and(is_busy) && self.availability_by_own() == Availability::Free
    }

    /// What a write finds when it tries to claim the resource.
    pub fn availability(&self) -> Availability {
        self.or_above(self.availability_by_own())
    }

    /// What a write finds here, if it would find this without the trees around the resource.
    fn or_above(&self, by_own: Availability) -> Availability {
        self.above.filter(|_| by_own == Availability::Free).map_or(by_own, |above| above.availability)
    }

    /// The same, as far as the record of the resource itself tells.
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
