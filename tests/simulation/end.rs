//! The end of a run: it must leave nothing behind that should not be there.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::advance;

use crate::{
    client::Told,
    judge::field,
    next_member::COLLECTION,
    operation::{Manner, Operation},
    process,
    run::{Run, Step},
    schedule::Event,
    transfers::destination_of,
    trees::is_root,
};

/// The number of attempts to write before a late write comes. Each attempt waits at most as long as a write does.
const OVERTAKES_MAX: usize = 3;

impl Run {
    /// Checks that no lease without an owner is left at the end, and that no client is locked out.
    pub async fn finish(&mut self) {
        self.faults.left = 0;
        self.clock_catches_up().await;
        self.check_watches().await;
        (0..self.clients.len()).for_each(|client| self.hang_up(client));
        self.settle_all().await;
        if self.drain_queue().await {
            return;
        }
        if !self.world.lock().late.is_empty() {
            self.overtake().await;
        }
        for _ in 0..20 {
            self.settle_all().await;
            advance(Duration::from_secs(1)).await;
        }
        self.check_leases();
        self.check_streams();
        self.world.lock().stray.clear();
        // A write would take dead marks over.
        let has_dead_marks = self.has_dead_marks();
        if has_dead_marks {
            self.drain().await;
        }
        for target in self.targets() {
            self.compare_copies(&target).await;
            self.compare_records(&target).await;
            self.audit(&target).await;
        }
        if !has_dead_marks {
            self.drain().await;
        }
    }

    pub async fn settle_all(&mut self) {
        self.settle().await;
        while !self.world.lock().pending.is_empty() {
            self.usual().await;
            self.settle().await;
        }
    }

    fn targets(&self) -> BTreeSet<String> {
        let steps = self.setting.steps.iter().flatten();
        let named = |step: &Step| {
            [Some(&*step.target), step.operation.transfers().then(|| destination_of(&step.target))]
                .map(|target| target.map(str::to_owned))
        };
        let targets = steps.flat_map(named).flatten();
        targets.filter(|target| !target.contains("/parts/") && !is_root(target) && target != COLLECTION).collect()
    }

    /// Writes while an abandoned write may still be applied. Either the new write waits for it or is refused, or the
    /// late one undoes the new write.
    async fn overtake(&mut self) {
        let client = self.clients.len() - 1;
        for target in self.targets() {
            let step = |operation| Step { operation, target: target.clone(), manner: Manner::default() };
            for _ in 0..OVERTAKES_MAX {
                let Some(read) = self.alone(client, step(Operation::Read)).await else { break };
                let write = if read.status == 404 { Operation::Create } else { Operation::Put };
                let told = self.alone(client, step(write)).await;
                if told.is_some_and(|told| told.status < 300) || self.world.lock().late.is_empty() {
                    break;
                }
            }
        }
        while self.is_any_late() && self.world.lock().ledger.broken.is_none() {
            self.happen(Event::Apply(0)).await;
            self.settle_all().await;
        }
    }

    fn is_any_late(&self) -> bool {
        self.sweep();
        !self.world.lock().late.is_empty()
    }

    /// Checks that no lease is in force whose id no client has.
    fn check_leases(&self) {
        let records = self.cellar.records();
        for (key, snapshot) in records {
            let Some(lease) = snapshot.lease().filter(|_| snapshot.lease_state().is_held()) else { continue };
            let id = lease.id.reveal();
            let inner = self.world.lock();
            let told = inner.ledger.grants.iter().any(|grant| grant.ids.contains(&id));
            let asked = inner.ledger.requests.iter().filter(|entry| {
                let proposed = ["lease-id", "proposed-lease-id"]
                    .iter()
                    .any(|name| field(&entry.request, name) == Some(id.clone()));
                proposed && entry.operation.is_of_lease() && entry.operation != Operation::Renew
            });
            // A refused client holds nothing. After a 503 the outcome is unknown, and a client that chose its id then
            // has the lease.
            let may_have = asked
                .clone()
                .any(|entry| entry.answered.as_ref().is_none_or(|(_, told)| told.status < 300 || told.status == 503));
            let died = inner.alive.iter().any(|alive| !alive);
            drop(inner);
            if !told && !may_have && !died {
                self.breaks(format!("a lease of {key:?} is in force, and no client has its id"));
            }
        }
    }

    /// Lets each client ask whether its copy is current. A record that labels a state with the tag of another one says so.
    async fn compare_copies(&mut self, target: &str) {
        let manner = Manner { is_conditional: true, ..Manner::default() };
        for client in 0..self.clients.len() {
            let step = Step { operation: Operation::Read, target: target.to_owned(), manner };
            self.alone(client, step).await;
        }
    }

    /// Checks that a client which reads a resource now can write it.
    async fn audit(&mut self, target: &str) {
        let client = self.clients.len() - 1;
        let step = |operation| Step { operation, target: target.to_owned(), manner: Manner::default() };
        let mut last = Told::default();
        for _ in 0..6 {
            let Some(read) = self.alone(client, step(Operation::Read)).await else { break };
            let write = if read.status == 404 { Operation::Create } else { Operation::Put };
            let Some(told) = self.alone(client, step(write)).await else { break };
            let is_held = self.cellar.records().iter().any(|(_, snapshot)| snapshot.lease_state().is_held());
            // A DELETE that is due waits on while the records that it claims find no room beside the pinned one.
            let may_be_pending = is_held || self.setting.remembers.room.bytes < process::ALL.room.bytes;
            let is_of_lease = |code: &str| code.starts_with("lease-") || may_be_pending && code == "delete-pending";
            // A client to which nothing was shown gets the backend's own answer in place of the lease's.
            let is_hidden = is_held && told.status == 404 && told.code.is_none();
            let is_leased = is_hidden || told.code.is_some_and(|code| is_of_lease(code) || code == "store-full");
            let reads_leased = read.code.is_some_and(is_of_lease);
            if told.status < 300 || is_leased || reads_leased || self.world.lock().ledger.broken.is_some() {
                return;
            }
            if self.world.lock().backend.style.has_servers_apart && told.status == 404 {
                // The upstream has the server without resources.
                return;
            }
            last = told;
            advance(Duration::from_secs(60)).await;
        }
        self.breaks(format!("no client can write {target} any more: {last:?}"));
    }
}
