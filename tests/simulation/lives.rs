//! The ends of processes, their successors, and reloads.

use std::{sync::Arc, time::Duration};

use ifmatch::config::Config;
use tokio::runtime::Handle;

use crate::{
    backend::Tags,
    process::{Keeping, Process},
    run::{FILE, Run},
    schedule::Event,
};

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It dies: nothing of it runs any more.
    Death,
    /// It stops in good order, and does not wait for its requests.
    Stop,
}

impl Run {
    /// Returns the ends of processes that can happen, busy or not, in a run about chains of them.
    pub fn restarts(&self) -> impl Iterator<Item = Event> + '_ {
        self.processes.iter().flat_map(|(process, _)| [Event::Kill(*process), Event::End(*process)])
    }

    /// Ends a process and starts another in its place, with the next of the configurations if there are several.
    pub fn end_process(&mut self, process: usize, ending: Ending) {
        let place = self.processes.iter().position(|(number, _)| *number == process).unwrap();
        let dead = {
            let mut inner = self.world.lock();
            inner.alive[process] = false;
            inner.ledger.has_died = true;
            inner.ledger.streams_break_off(process);
            inner.ledger.watches_break_off(process);
            let (dead, left) =
                std::mem::take(&mut inner.pending).into_iter().partition(|asked| asked.process == process);
            inner.pending = left;
            if self.setting.keeping == Keeping::Memory {
                inner.ledger.grants.clear();
                inner.ledger.waiting.clear();
                // The memory store has lost what it knew of repeating tags, so a tag from before may count again.
                if inner.backend.style.tags != Tags::Precise {
                    inner.ledger.forget_tags();
                }
            }
            let own = inner.ledger.requests.iter_mut().filter(|entry| entry.process == process);
            own.filter(|entry| entry.answered.is_none()).for_each(|entry| entry.is_given_up = true);
            let dead: Vec<_> = dead;
            dead
        };
        // A process that ends closes its connections. A lost host does not: its connections end with its marks.
        let is_lost = self.setting.keeping == Keeping::Shared;
        let closed_after = if is_lost { self.last_deadline() } else { Duration::ZERO };
        for asked in dead {
            self.abandon(asked, closed_after);
        }
        for (number, task) in self.tasks.iter().enumerate() {
            if self.world.lock().ledger.requests[number].process == process {
                task.abort();
            }
        }
        for (_, reload) in self.reloads.iter().filter(|(of, _)| *of == process) {
            reload.abort();
        }
        if ending == Ending::Stop {
            self.cellar.close();
        }
        let config = self.successor(place);
        let hold = config.store.start_grace.max(self.cellar.restart(&self.world, &config));
        let file = self.directory.as_ref().map(|directory| directory.path().join(FILE));
        self.processes[place] = Process::start(&self.world, &config, &self.cellar, hold, file.as_deref());
    }

    fn successor(&self, place: usize) -> Arc<Config> {
        let successors = &self.setting.successors;
        let started = self.world.lock().alive.len();
        match successors.get(started % successors.len().max(1)) {
            Some(config) => Arc::clone(config),
            None => Arc::clone(&self.processes[place].1.live.serving().config),
        }
    }

    /// Makes a process load the other configuration.
    pub fn reload(&mut self, place: usize) {
        self.reloads_left -= 1;
        let other_tags = self.setting.reload_changes_tags;
        {
            let ledger = &mut self.world.lock().ledger;
            ledger.turns.is_off = true;
            ledger.tags_are_others |= other_tags;
        }
        let (number, process) = self.processes[place].clone();
        let world = Arc::clone(&self.world);
        let reload = async move {
            let reloaded = process.reloader.reload(false).await;
            world.note(|| format!("process {number}: {reloaded:?}"));
            world.stir();
        };
        self.reloads.push((number, Handle::current().spawn(reload)));
    }

    /// Returns the places in which processes serve.
    pub fn places(&self) -> std::ops::Range<usize> {
        0..self.processes.len()
    }
}
