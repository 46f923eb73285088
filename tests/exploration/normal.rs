//! The equality of worlds: each is brought into a normal form, and two with the same normal form have the same future.

use ifmatch::core::{
    lease::{Lease, Term},
    records::record::Revision,
    time::StoreTime,
};

use super::{
    client::{Client, Step},
    rules::{Mode, Rules},
    store::Seen,
    world::World,
};

/// The present moment in every normal form: late enough for all remembered moments to lie before it.
const NOW: StoreTime = StoreTime::from_milliseconds(50);

impl World {
    /// Brings the world into its normal form.
    ///
    /// * A client that is over is forgotten, except for what it was given and for a write that may still be applied.
    /// * A swap that must fail has failed: revisions do not come back, so the change of the record decides its outcome.
    /// * What a proxy remembers but cannot trust any more is forgotten, for the same reason.
    /// * Only the order of revisions counts: the steps compare them, and take a new one from the store.
    /// * Only the distance of a moment from now counts; of a past moment, only that it is past.
    pub fn normalise(&mut self, rules: &Rules) {
        self.finish_clients();
        self.fail_swaps(rules);
        self.forget_moments();
        self.shift_time();
        self.renumber();
    }

    fn finish_clients(&mut self) {
        let (late, outdated) = (&self.late, self.outdated);
        for (index, client) in self.clients.iter_mut().enumerate() {
            if client.is_over() && late.iter().all(|(late, _)| *late != index) {
                client.write = None;
                client.may_renew = false;
                client.given = client.given.filter(|given| given.version > outdated);
            }
        }
    }

    fn fail_swaps(&mut self, rules: &Rules) {
        if !rules.verdict_is_bound {
            return;
        }
        let store = &self.store;
        let is_vain = |seen: &Seen| store.has_moved_on(seen, rules);
        for client in &mut self.clients {
            let before = match &client.step {
                Step::Probes(seen, _) | Step::Marks(seen, _) if is_vain(seen) => Step::Asks,
                Step::Operates(operation, seen) if is_vain(seen) => Step::Wants(*operation),
                Step::Swaps(outcome, learned, seen) if is_vain(seen) => Step::Settles(*outcome, *learned),
                _ => continue,
            };
            client.step = before;
        }
        if rules.floor_is_raised && rules.reads_are_bound {
            let touched = store.read().touched();
            for remembered in &mut self.remembered {
                *remembered = remembered.filter(|(before, _)| *before == touched && self.mode != Mode::ContentShared);
            }
        }
    }

    fn forget_moments(&mut self) {
        let now = self.store.now;
        let Some((_, record)) = &mut self.store.record else { return };
        for mark in record.claim.iter_mut().chain(&mut record.unclaimed) {
            mark.deadline = mark.deadline.max(now);
        }
        if let Some(doubt) = &mut record.doubt {
            doubt.until = doubt.until.max(now);
        }
        record.leases.retain(|lease| lease.is_remembered(now));
        // Without `lease.max_hold_time` it has no meaning.
        record.leases.iter_mut().for_each(|lease| lease.granted = StoreTime::default());
    }

    fn shift_time(&mut self) {
        let now = self.store.now;
        let shift = |moment: &mut StoreTime| {
            let later = moment.milliseconds() + NOW.milliseconds();
            *moment = StoreTime::from_milliseconds(later.saturating_sub(now.milliseconds()));
        };
        shift(&mut self.store.now);
        self.late.iter_mut().for_each(|(_, end)| shift(end));
        self.store.record.iter_mut().for_each(|(_, record)| shift_record(record, &shift));
        for client in &mut self.clients {
            if let Step::IsSent { at } = &mut client.step {
                shift(at);
            }
            if let Some(write) = &mut client.write {
                // Others see the deadline in the record; its owner, whether it has passed.
                write.mark.deadline = write.mark.deadline.max(now);
                shift(&mut write.mark.deadline);
            }
            if let Some(seen) = client.seen() {
                shift(&mut seen.now);
                shift_record(&mut seen.record, &shift);
            }
        }
    }

    fn renumber(&mut self) {
        let mut all = self.store.revisions();
        all.extend([&mut self.newest, &mut self.outdated, &mut self.fence]);
        all.extend(self.remembered.iter_mut().flatten().map(|(touched, _)| touched));
        all.extend(self.clients.iter_mut().flat_map(Client::revisions));
        let mut order: Vec<Revision> = all.iter().map(|revision| **revision).collect();
        order.sort_unstable();
        order.dedup();
        for revision in all {
            *revision = Revision(order.partition_point(|lesser| lesser < revision) as u64);
        }
    }
}

fn shift_record(record: &mut ifmatch::core::records::record::Record, shift: &impl Fn(&mut StoreTime)) {
    for mark in record.claim.iter_mut().chain(&mut record.unclaimed) {
        shift(&mut mark.deadline);
    }
    record.doubt.iter_mut().for_each(|doubt| shift(&mut doubt.until));
    for Lease { term, .. } in &mut record.leases {
        match term {
            Term::Held(end) => end.iter_mut().for_each(shift),
            Term::Breaking(end) | Term::Released(end) => shift(end),
        }
    }
}
