//! The moves of a client that reads and writes: what the guard does for it, in the same order.

use ifmatch::core::{
    records::{
        record::{Availability, Mark, Snapshot},
        steps::{Outcome, Settlement},
    },
    verdict::Verdict,
};

use super::{
    client::{Role, Step, Write},
    route::{Content, Given, judge_by_lease, judge_by_memory, judge_by_probe, known},
    rules::{Mode, Rules},
    shell,
    store::{EXCHANGE, LATE_WRITE_WINDOW, MARK, Seen},
    world::{Moves, Who, World},
};

/// Adds all moves of a client in a read or a write.
pub fn moves(moves: &mut Moves<'_>, index: usize) {
    let (world, rules, who) = (moves.from, moves.rules, Who::Client(index));
    match world.clients[index].step.clone() {
        Step::Begins if world.clients[index].role == Role::Holder => {
            moves.add(who, "reads under its lease", |next| next.be_given(index, &world.store.read(), world.content));
        }
        Step::Begins => {
            let content = (!rules.version_goes_first).then_some(world.content);
            moves.step(index, "reads the record", Step::Reads(world.store.see(), content));
        }
        Step::Reads(seen, earlier) => {
            let snapshot = if rules.version_goes_first { seen.snapshot() } else { world.store.read() };
            let content = earlier.unwrap_or(world.content);
            moves.add(who, "reads the content", |next| next.be_given(index, &snapshot, content));
        }
        Step::Asks => ask(moves, index),
        Step::Probes(seen, leaves_lease) => {
            let presented = world.clients[index].presented(index);
            match judge_by_probe(world.mode, &seen.snapshot(), world.content, presented) {
                Verdict::Pass => moves.step(index, "passes by what the upstream says", Step::Marks(seen, leaves_lease)),
                _ => moves.step(index, "is refused by what the upstream says", Step::Done),
            }
        }
        Step::Marks(..) => {
            moves.add(who, "marks the resource", |next| next.mark(index, rules));
            moves.add_fault(who, "marks the resource, which the store does not confirm, and is told 503", |next| {
                next.mark(index, rules);
                next.clients[index].step = Step::Done;
            });
        }
        Step::Sends => send(moves, index),
        Step::IsSent { .. } => exchange(moves, index),
        Step::IsApplied => {
            moves.step(index, "learns nothing of the new state", Step::Settles(Outcome::Applied, None));
            let learned = Step::Settles(Outcome::Applied, Some(world.content));
            moves.step(index, "reads the new state", learned);
        }
        Step::Settles(outcome, learned) => {
            moves.step(index, "reads the record to settle", Step::Swaps(outcome, learned, world.store.see()));
        }
        Step::Swaps(outcome, learned, seen) => {
            moves.add(who, "settles", |next| next.settle(index, outcome, learned, &seen, rules));
            // A proxy that fails to settle tries once more, to make a doubt of the mark.
            let doubt = if outcome == Outcome::Doubt { Step::Done } else { Step::Settles(Outcome::Doubt, None) };
            moves.add_fault(who, "cannot reach the store to settle", |next| next.clients[index].step = doubt.clone());
            moves.add_fault(who, "settles, which the store does not confirm", |next| {
                next.settle(index, outcome, learned, &seen, rules);
                next.clients[index].step = doubt.clone();
            });
        }
        Step::Wants(_) | Step::Operates(..) | Step::Done | Step::Dead => {}
    }
}

/// Begins a write when its turn has come; adds nothing while other writes are in its way.
fn ask(moves: &mut Moves<'_>, index: usize) {
    let (world, rules, who) = (moves.from, moves.rules, Who::Client(index));
    let (client, snapshot) = (&world.clients[index], world.store.read());
    let is_claimed = client.role != Role::Poster;
    match snapshot.availability() {
        Availability::Orphaned => {
            moves.add(who, "makes a doubt of what a dead owner has left", |next| next.take_over(rules));
            return;
        }
        Availability::InDoubt { .. } if is_claimed => {
            return moves.step(index, "is told 409, because a write is in doubt", Step::Done);
        }
        Availability::Busy { .. } if is_claimed => return,
        _ => {}
    }
    let presented = client.presented(index);
    let Ok(standing) = judge_by_lease(&snapshot, world.has_leases, presented) else {
        return moves.step(index, "is refused by the lease", Step::Done);
    };
    let leaves_lease = standing.leaves_lease();
    let seen = world.store.see();
    if !is_claimed {
        return moves.step(index, "may write", Step::Marks(seen, leaves_lease));
    }
    let recalled = world.recalled(client.proxy, &snapshot, rules);
    match judge_by_memory(world.mode, &snapshot, recalled, presented) {
        Verdict::Pass => moves.step(index, "passes by what is remembered", Step::Marks(seen, leaves_lease)),
        Verdict::Refused(_) => moves.step(index, "is refused by what is remembered", Step::Done),
        Verdict::Missing | Verdict::AskUpstream => {
            moves.step(index, "is to be judged by a probe", Step::Probes(seen, leaves_lease));
        }
    }
}

fn send(moves: &mut Moves<'_>, index: usize) {
    let (world, rules) = (moves.from, moves.rules);
    let is_in_time = world.clients[index].write.as_ref().is_some_and(|write| {
        let end = world.store.now.plus(EXCHANGE);
        end < write.mark.deadline || !rules.clock_is_read_again
    });
    let not_sent = Step::Settles(Outcome::NotApplied, None);
    moves.add_fault(Who::Client(index), "cannot reach the store directly before its first byte", |next| {
        next.clients[index].step = not_sent.clone();
    });
    if !is_in_time {
        return moves.step(index, "is too late to begin", not_sent);
    }
    moves.add(Who::Client(index), "sends its write", |next| {
        if !rules.claim_lasts_until_settled {
            let seen = next.store.see();
            next.settle(index, Outcome::NotApplied, None, &seen, rules);
        }
        next.clients[index].step = Step::IsSent { at: world.store.now };
    });
}

/// Adds what the upstream does with a write, and whether its answer comes. Nothing is visible between the two.
fn exchange(moves: &mut Moves<'_>, index: usize) {
    let (world, rules, who) = (moves.from, moves.rules, Who::Client(index));
    let may_learn = world.mode == Mode::ContentExclusive && world.clients[index].role != Role::Poster;
    moves.add(who, "has its write applied and is answered 200", |next| {
        next.apply(index);
        let settles = Step::Settles(Outcome::Applied, None);
        next.clients[index].step = if may_learn { Step::IsApplied } else { settles };
    });
    let timeout = if rules.timeout_is_a_doubt { Outcome::Doubt } else { Outcome::NotApplied };
    moves.add_fault(who, "gets no answer in time", |next| {
        next.give_up(index, rules);
        next.clients[index].step = Step::Settles(timeout, None);
    });
    let applied = [
        ("has its write applied and gets no answer in time", timeout),
        ("has its write applied and is answered 500", Outcome::Unclear),
    ];
    for (what, outcome) in applied {
        moves.add_fault(who, what, |next| {
            next.apply(index);
            next.clients[index].step = Step::Settles(outcome, None);
        });
    }
    let not_applied = [
        ("is answered 400", Outcome::NotApplied),
        ("is answered 409", Outcome::NotAppliedAsKnown),
        ("is answered 500", Outcome::Unclear),
    ];
    for (what, outcome) in not_applied {
        moves.add_fault(who, what, |next| next.clients[index].step = Step::Settles(outcome, None));
    }
}

impl World {
    fn be_given(&mut self, index: usize, snapshot: &Snapshot, content: Content) {
        let client = &mut self.clients[index];
        client.given = Some(Given { content, version: snapshot.version(), is_latest: content == self.content });
        client.step = Step::Asks;
        if snapshot.has_no_pending_writes() {
            self.remembered[client.proxy] = Some((snapshot.touched(), content));
        }
    }

    pub fn take_over(&mut self, rules: &Rules) {
        let snapshot = self.store.read();
        let next = shell::take_over(&snapshot, rules).expect("it is orphaned");
        self.store.swap(snapshot.revision, next);
    }

    /// Swaps the mark in; if the record has changed, the write is judged again.
    fn mark(&mut self, index: usize, rules: &Rules) {
        let Step::Marks(seen, leaves_lease) = self.clients[index].step.clone() else { return };
        let client = &self.clients[index];
        let deadline = seen.now.plus(MARK);
        let mark = Mark {
            owner: client.proxy as u64,
            nonce: index as u64,
            deadline,
            late_write_window: LATE_WRITE_WINDOW,
            leaves_lease,
        };
        let snapshot = if rules.verdict_is_bound { seen.snapshot() } else { self.store.read() };
        let next = shell::mark(&snapshot, mark, client.role != Role::Poster, rules);
        let marked_at = next.and_then(|next| self.store.swap(snapshot.revision, next));
        let client = &mut self.clients[index];
        client.write = marked_at.map(|marked_at| Write { mark, marked_at, is_overtaken: false, is_beside: false });
        client.step = if marked_at.is_some() { Step::Sends } else { Step::Asks };
    }

    fn settle(&mut self, index: usize, outcome: Outcome, learned: Option<Content>, seen: &Seen, rules: &Rules) {
        let Write { mark, marked_at, .. } = self.clients[index].write.clone().expect("it is marked");
        let learned_too = learned.map(known);
        let settlement =
            Settlement { mark, marked_at, outcome, removes: None, learned: learned_too, shown: None, end: None };
        let is_settled = match shell::settle(&seen.snapshot(), &settlement, rules) {
            Some(next) => self.store.swap(seen.revision, next).is_some(),
            // Another process has made a doubt of it.
            None => true,
        };
        self.clients[index].step = match self.clients[index].role {
            _ if !is_settled => Step::Settles(outcome, learned),
            Role::Holder if outcome == Outcome::Applied => Step::Wants(super::client::Operation::Release),
            _ => Step::Done,
        };
    }
}
