//! The moves of a lease holder: each lease operation is one read, step and swap.

use ifmatch::core::{
    lease::{Acquire, Action, Command, Denied, Done, LeaseMode, TargetName},
    records::record::Availability,
};

use super::{
    client::{Operation, Role, Step},
    route::{LEASE, lease_id},
    rules::Rules,
    shell,
    store::Seen,
    world::{Moves, Who, World},
};

/// Adds all moves of a client with its lease.
pub fn moves(moves: &mut Moves<'_>, index: usize) {
    let (world, rules, who) = (moves.from, moves.rules, Who::Client(index));
    let client = &world.clients[index];
    match client.step.clone() {
        Step::Asks if client.role == Role::Holder && client.may_renew => {
            moves.add(who, "wants to renew its lease", |next| {
                next.clients[index].may_renew = false;
                next.clients[index].step = Step::Wants(Operation::Renew);
            });
        }
        Step::Wants(operation) => match shell::step(&world.store.read(), command(operation, index), rules) {
            Ok(_) => moves.step(index, "may do its lease operation", Step::Operates(operation, world.store.see())),
            Err(Denied::Busy(Availability::Orphaned)) => {
                moves.add(who, "makes a doubt of what a dead owner has left", |next| next.take_over(rules));
            }
            Err(Denied::Busy(Availability::InDoubt { .. })) => {
                moves.step(index, "is told 409, because a write is in doubt", Step::Done);
            }
            Err(Denied::Busy(_)) => {}
            Err(_) => moves.step(index, "is denied its lease operation", Step::Done),
        },
        Step::Operates(operation, seen) => {
            let what = match operation {
                Operation::Acquire => "acquires the lease",
                Operation::Renew => "renews its lease",
                Operation::Release => "releases its lease",
            };
            moves.add(who, what, |next| next.operate(index, operation, &seen, rules));
            moves.add_fault(
                who,
                "does its lease operation, which the store does not confirm, and repeats it",
                |next| {
                    next.operate(index, operation, &seen, rules);
                    next.clients[index].step = Step::Wants(operation);
                },
            );
        }
        _ => {}
    }
}

fn command(operation: Operation, index: usize) -> Command {
    let id = lease_id(index);
    let action = match operation {
        Operation::Acquire => {
            let mode = LeaseMode::Exclusive;
            Action::Acquire(Acquire { proposed: Some(id), fresh: id, mode, duration: LEASE, holder: None, note: None })
        }
        Operation::Renew => Action::Renew { id },
        Operation::Release => Action::Release { id },
    };
    Command { action, principal: None, target: TargetName::default() }
}

impl World {
    /// Swaps the lease in; if the record has changed, the operation begins again.
    fn operate(&mut self, index: usize, operation: Operation, seen: &Seen, rules: &Rules) {
        let (record, done) =
            shell::step(&seen.snapshot(), command(operation, index), rules).expect("it was possible before");
        let expected = if rules.verdict_is_bound { seen.revision } else { self.store.revision() };
        let is_done = self.store.swap(expected, record).is_some();
        let client = &mut self.clients[index];
        client.step = match done {
            _ if !is_done => Step::Wants(operation),
            Done::Acquired { .. } if client.given.is_none() => Step::Begins,
            Done::Acquired { .. } | Done::Renewed { .. } => Step::Asks,
            _ => Step::Done,
        };
        match done {
            _ if !is_done => {}
            Done::Acquired { is_new, .. } => self.note_grant(index, is_new),
            Done::Renewed { .. } => self.note_grant(index, false),
            _ => {}
        }
    }
}
