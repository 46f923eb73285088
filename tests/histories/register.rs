//! Whether a history is one that a register with compare-and-set could have (Wing and Gong's search).
//!
//! A history is linearizable if its operations can be put in an order in which each does what it was told, and none
//! that was answered before another began comes after it. The search goes forward over such orders, and remembers which
//! sets of operations it has seen end in which state. Operations without an answer may stand anywhere after their
//! beginning, or nowhere.

use std::{collections::HashSet, time::Instant};

use super::history::{Base, Operation, State, Step};

/// Which operations have been put in order, and what the register is then.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Point {
    done: Vec<bool>,
    state: State,
}

/// Whether there is such an order, from a resource that is not there.
pub fn is_linearizable(operations: &[Operation]) -> bool {
    // A read without an answer says nothing.
    let tells = |operation: &&Operation| operation.answered.is_some() || matches!(operation.step, Step::Write { .. });
    let mut operations: Vec<Operation> = operations.iter().filter(tells).copied().collect();
    operations.sort_by_key(|operation| operation.invoked);
    let first = Point { done: vec![false; operations.len()], state: None };
    let mut seen = HashSet::from([first.clone()]);
    let mut pending = vec![first];
    while let Some(point) = pending.pop() {
        let left = || operations.iter().enumerate().filter(|(index, _)| !point.done[*index]);
        let Some(end) = left().filter_map(|(_, operation)| operation.answered).min() else { return true };
        for (index, operation) in left().take_while(|(_, operation)| operation.invoked <= end) {
            let Some(state) = after(point.state, operation.step) else { continue };
            let mut next = Point { state, ..point.clone() };
            next.done[index] = true;
            if seen.insert(next.clone()) {
                pending.push(next);
            }
        }
    }
    false
}

/// The register after a step, if the step can be taken.
fn after(state: State, step: Step) -> Option<State> {
    match step {
        Step::Read(found) => (found == state).then_some(state),
        Step::Differs(expected) => (expected != state).then_some(state),
        Step::Write { base: Base::Is(base), .. } if base != state => None,
        Step::Write { value, .. } => Some(Some(value)),
    }
}

/// A readable line for each operation, in the order of their beginnings.
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

    /// Operations with the moments of their beginnings and ends; 0 for no answer.
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
        Step::Write { base: Base::Is((base > 0).then_some(base)), value }
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
        let any = |value| Step::Write { base: Base::Any, value };
        assert!(is_linearizable(&history(&[
            (1, 2, any(1)),
            (3, 9, any(2)),
            (3, 9, any(3)),
            (10, 11, Step::Read(Some(2)))
        ])));
        assert!(!is_linearizable(&history(&[(1, 2, any(1)), (3, 4, any(2)), (5, 6, Step::Read(Some(1)))])));
    }
}
