//! The check whether a register with compare-and-set could have a history (Wing and Gong's search).
//!
//! A history is linearizable if its operations can be put in an order in which each has the effect of its answer. An
//! operation that was answered before another began must come before it. The search goes forward over such orders, and
//! remembers which sets of operations it has seen end in which state. Operations without an answer may stand anywhere
//! after their beginning, or nowhere.
//!
//! A write may replace a POST that runs beside it: the write was judged before that, and is applied after it. So a POST
//! lies on the state below it, and a write that overlaps all POSTs since its base still finds that base. A write of an
//! item claims its document too, and nothing may replace it unseen.

use std::{collections::HashSet, time::Instant};

use super::history::{Base, Kind, Operation, State, Step};

/// The operations that have been put in order, and the state of the register after them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Point {
    done: Vec<bool>,
    state: State,
    /// The changes beside others since `state`, by the index of each operation; the last one is the current state.
    beside: Vec<usize>,
}

/// True if there is a valid order, starting from a resource that is not there.
pub fn is_linearizable(operations: &[Operation]) -> bool {
    // A read without an answer proves nothing.
    let tells = |operation: &&Operation| operation.answered.is_some() || matches!(operation.step, Step::Write { .. });
    let mut operations: Vec<Operation> = operations.iter().filter(tells).copied().collect();
    operations.sort_by_key(|operation| operation.invoked);
    let first = Point { done: vec![false; operations.len()], state: None, beside: Vec::new() };
    let mut seen = HashSet::from([first.clone()]);
    let mut pending = vec![first];
    while let Some(point) = pending.pop() {
        let left = || operations.iter().enumerate().filter(|(index, _)| !point.done[*index]);
        let Some(end) = left().filter_map(|(_, operation)| operation.answered).min() else { return true };
        for (index, _) in left().take_while(|(_, operation)| operation.invoked <= end) {
            let Some(mut next) = after(&point, &operations, index) else { continue };
            next.done[index] = true;
            if seen.insert(next.clone()) {
                pending.push(next);
            }
        }
    }
    false
}

/// Returns the register after an operation, if the operation can come next.
fn after(point: &Point, operations: &[Operation], index: usize) -> Option<Point> {
    let value_of = |index: &usize| match operations[*index].step {
        Step::Write { value, kind, .. } => kind.leaves(value),
        Step::Read(_) | Step::Differs(_) => unreachable!("it changes nothing"),
    };
    let state = point.beside.last().map_or(point.state, value_of);
    match operations[index].step {
        Step::Read(found) => (found == state).then(|| point.clone()),
        Step::Differs(expected) => (expected != state).then(|| point.clone()),
        Step::Write { kind, .. } if kind.is_beside() => {
            let mut next = point.clone();
            next.beside.push(index);
            // A change beside others needs a document.
            state.is_some().then_some(next)
        }
        Step::Write { base, value, kind } => {
            let overlaps = |other: &&usize| {
                let other = &operations[**other];
                let is_unclaimed = matches!(other.step, Step::Write { kind, .. } if kind.is_unclaimed());
                is_unclaimed && other.answered.is_none_or(|answered| answered >= operations[index].invoked)
            };
            let hidden = point.beside.iter().rev().take_while(overlaps).count();
            let mut beneath = point.beside[point.beside.len() - hidden..].iter().map(value_of).collect::<Vec<_>>();
            let below = point.beside[..point.beside.len() - hidden].last().map_or(point.state, value_of);
            beneath.push(below);
            let passes = match base {
                Base::Any => true,
                Base::Is(base) => beneath.contains(&base),
            };
            let done = point.done.clone();
            passes.then(|| Point { done, state: kind.leaves(value), beside: Vec::new() })
        }
    }
}

/// Returns a readable line for each operation, in the order of their beginnings.
pub fn describe(operations: &[Operation], from: Instant) -> String {
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| operation.invoked);
    let line = |operation: &Operation| {
        let ms = |at: Instant| at.saturating_duration_since(from).as_micros();
        let end = operation.answered.map_or("never".to_owned(), |at| ms(at).to_string());
        format!("{:>10} .. {end:>10} us  client {}: {:?}\n", ms(operation.invoked), operation.client, operation.step)
    };
    operations.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Builds operations from the moments of their beginnings and ends; 0 stands for no answer.
    fn history(steps: &[(u64, u64, Step)]) -> Vec<Operation> {
        let begin = Instant::now();
        let at = |milliseconds: u64| begin + Duration::from_millis(milliseconds);
        let operation = |&(invoked, answered, step): &(u64, u64, Step)| Operation {
            client: 0,
            step,
            invoked: at(invoked),
            answered: (answered > 0).then(|| at(answered)),
        };
        steps.iter().map(operation).collect()
    }

    fn put(base: u32, value: u32) -> Step {
        Step::Write { base: Base::Is((base > 0).then_some(base)), value, kind: Kind::Replaces }
    }

    fn post(value: u32) -> Step {
        Step::Write { base: Base::Any, value, kind: Kind::Appends }
    }

    #[test]
    fn one_after_another_is_linearizable() {
        assert!(is_linearizable(&history(&[
            (1, 2, Step::Read(None)),
            (3, 4, put(0, 1)),
            (5, 6, put(1, 2)),
            (7, 8, Step::Differs(Some(1))),
            (9, 10, Step::Read(Some(2))),
        ])));
    }

    #[test]
    fn overlapping_operations_may_be_put_in_either_order() {
        assert!(is_linearizable(&history(&[(1, 9, put(0, 1)), (2, 3, Step::Read(Some(1))), (2, 4, put(1, 2))])));
        assert!(is_linearizable(&history(&[(1, 9, put(0, 1)), (2, 3, Step::Read(None)), (4, 8, Step::Read(Some(1)))])));
    }

    #[test]
    fn two_writes_on_one_version_are_found() {
        assert!(!is_linearizable(&history(&[(1, 2, put(0, 1)), (3, 9, put(1, 2)), (3, 9, put(1, 3))])));
    }

    #[test]
    fn a_lost_write_is_found() {
        assert!(!is_linearizable(&history(&[(1, 2, put(0, 1)), (3, 4, put(1, 2)), (5, 6, Step::Read(Some(1)))])));
    }

    #[test]
    fn a_read_of_what_was_overwritten_is_found() {
        let steps = [(1, 2, put(0, 1)), (3, 9, put(1, 2)), (4, 5, Step::Read(Some(2))), (6, 7, Step::Read(Some(1)))];
        assert!(!is_linearizable(&history(&steps)), "a later read sees less than an earlier one");
    }

    #[test]
    fn a_refusal_for_no_reason_is_found() {
        assert!(!is_linearizable(&history(&[(1, 2, put(0, 1)), (3, 4, Step::Differs(Some(1)))])));
    }

    #[test]
    fn an_unanswered_write_takes_effect_late_or_never() {
        let unanswered = (3, 0, put(1, 2));
        let before = (1, 2, put(0, 1));
        assert!(is_linearizable(&history(&[before, unanswered, (5, 6, Step::Read(Some(1)))])));
        assert!(is_linearizable(&history(&[before, unanswered, (5, 6, Step::Read(Some(2)))])));
        let late = [before, unanswered, (5, 6, Step::Read(Some(1))), (7, 8, Step::Read(Some(2)))];
        assert!(is_linearizable(&history(&late)));
        let taken_back = [before, unanswered, (5, 6, Step::Read(Some(2))), (7, 8, Step::Read(Some(1)))];
        assert!(!is_linearizable(&history(&taken_back)), "what was seen once stays");
        let early = [before, (7, 0, put(1, 2)), (5, 6, Step::Read(Some(2)))];
        assert!(!is_linearizable(&history(&early)), "nothing is seen before it is asked for");
    }

    #[test]
    fn a_write_without_a_base_replaces_whatever_is_there() {
        let any = |value| Step::Write { base: Base::Any, value, kind: Kind::Replaces };
        assert!(is_linearizable(&history(&[
            (1, 2, any(1)),
            (3, 9, any(2)),
            (3, 9, any(3)),
            (10, 11, Step::Read(Some(2)))
        ])));
        assert!(!is_linearizable(&history(&[(1, 2, any(1)), (3, 4, any(2)), (5, 6, Step::Read(Some(1)))])));
    }

    #[test]
    fn a_write_may_replace_what_runs_beside_it_and_nothing_else() {
        let beside = [(1, 2, put(0, 1)), (3, 9, put(1, 2)), (4, 5, post(7))];
        for last in [2, 7] {
            let read = (10, 11, Step::Read(Some(last)));
            assert!(is_linearizable(&history(&[&beside[..], &[read]].concat())), "{last} may be the last one");
        }
        let after_an_end = [(1, 2, put(0, 1)), (3, 4, post(7)), (5, 6, put(1, 2))];
        assert!(!is_linearizable(&history(&after_an_end)), "it was there before the write was asked for");
        let on_it = [(1, 2, put(0, 1)), (3, 4, post(7)), (5, 6, put(7, 2))];
        assert!(is_linearizable(&history(&on_it)));
        assert!(!is_linearizable(&history(&[(1, 2, post(7))])), "there is nothing to append to");
    }

    #[test]
    fn a_write_must_not_replace_a_change_by_an_item_unseen() {
        let touch = Step::Write { base: Base::Any, value: 7, kind: Kind::Touches };
        let steps = [(1, 2, put(0, 1)), (3, 9, put(1, 2)), (4, 5, touch)];
        let with = |last| is_linearizable(&history(&[&steps[..], &[(10, 11, Step::Read(Some(last)))]].concat()));
        assert!(with(7), "it came after the write");
        assert!(!with(2), "the write would have been refused");
    }

    #[test]
    fn what_was_removed_is_gone() {
        let remove = |base: u32, value| Step::Write { base: Base::Is(Some(base)), value, kind: Kind::Removes };
        let steps = [(1, 2, put(0, 1)), (3, 4, remove(1, 2)), (5, 6, Step::Read(None)), (7, 8, put(0, 3))];
        assert!(is_linearizable(&history(&steps)));
        assert!(!is_linearizable(&history(&[(1, 2, put(0, 1)), (3, 4, remove(1, 2)), (5, 6, put(1, 3))])));
    }
}
