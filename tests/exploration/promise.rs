//! What must hold in every state of the world, and which states are the same.

use std::collections::BTreeSet;

use ifmatch::core::record::Revision;

use super::{
    client::Client,
    rules::{Mode, Rules},
    store::known,
    world::World,
};

impl World {
    /// Forgets what nothing depends on, so that states are equal that have the same future: only the order of revisions
    /// counts, and a client that is over has its tag alone.
    pub fn renumber(&mut self) {
        let is_late = |index: &usize| self.late.iter().any(|(late, _)| late == index);
        let over: Vec<usize> = (0..self.clients.len()).filter(|index| !is_late(index)).collect();
        for index in over {
            let client = &mut self.clients[index];
            if !client.is_over() {
                continue;
            }
            client.mark = None;
            client.beside = 0;
            client.given = client.given.filter(|given| given.version > self.outdated);
        }
        self.is_slow &= self.clients.iter().any(|client| !client.is_over());
        let mut all = self.store.revisions();
        all.extend([&mut self.newest, &mut self.outdated]);
        all.extend(self.clients.iter_mut().flat_map(Client::revisions));
        let order: BTreeSet<Revision> = all.iter().map(|revision| **revision).collect();
        for revision in all {
            *revision = Revision(order.range(..*revision).count() as u64);
        }
    }

    /// What holds in every state.
    pub fn check(&mut self) -> Result<(), String> {
        let snapshot = self.store.read();
        let version = snapshot.version();
        self.newest = self.newest.max(version);
        if !snapshot.is_quiet() {
            return Ok(());
        }
        if version <= self.outdated {
            return Err(format!("{version:?} names two states"));
        }
        let rules = Rules::default();
        if let (Some(remembered), true) = (self.store.recalled(&snapshot, &rules), self.mode != Mode::ContentShared)
            && remembered != self.content
        {
            return Err(format!("{remembered} is remembered as current, and {} is there", self.content));
        }
        if snapshot.known().is_some_and(|known_of| *known_of != known(self.content)) {
            return Err(format!("the record knows {:?}, and {} is there", snapshot.known(), self.content));
        }
        let given = self.clients.iter().filter_map(|client| client.given);
        for given in given.filter(|given| given.version == version) {
            if given.content != self.content {
                return Err(format!("{given:?} has the current version, and {} is there", self.content));
            }
        }
        Ok(())
    }

    /// What holds when nothing can happen any more.
    pub fn check_end(&self) -> Result<(), String> {
        match self.clients.iter().position(|client| !client.is_over()) {
            Some(index) => Err(format!("{index} never gets an answer: {:?}", self.clients[index].step)),
            None => Ok(()),
        }
    }
}
