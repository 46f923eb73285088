//! Random numbers: from the operating system for values that must not be guessed, from the thread for mere names.

use std::{cell::RefCell, mem::take};

/// The number of draws that one call of the operating system serves. A call for each would take as long as the step of
/// the lease that the bytes name. So few bytes come in one piece, without an interruption by a signal (getrandom(2)).
const DRAWS: usize = 16;

thread_local! {
    /// The bytes of later draws of this thread. They are as secret as the ids of the leases in the store.
    static LATER: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) };
}

/// Returns unpredictable bytes, which nothing else gets.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_bytes() -> Result<[u8; 16], getrandom::Error> {
    LATER.with_borrow_mut(|later| {
        if later.is_empty() {
            later.resize(DRAWS, [0; 16]);
            if let Err(error) = getrandom::fill(later.as_flattened_mut()) {
                later.clear();
                return Err(error);
            }
        }
        let bytes = later.last_mut().map(take).unwrap_or_default();
        later.pop();
        Ok(bytes)
    })
}

/// Returns the number of an answer. It tells answers apart and protects nothing, so it needs no call of the operating
/// system.
pub fn number_of_answer() -> [u8; 16] {
    fastrand::u128(..).to_be_bytes()
}

/// Returns a number below this one. It spreads what would come at once, and protects nothing.
pub fn number_below(bound: u64) -> u64 {
    fastrand::u64(..bound.max(1))
}

/// Returns the number of a refused request, drawn like that of an answer.
pub fn number_of_request() -> u64 {
    fastrand::u64(..)
}

/// Returns a random number.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_u64() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn no_two_draws_are_the_same() {
        let draws = || (0..DRAWS * 3).map(|_| random_bytes()).collect::<Result<Vec<_>, _>>();
        let all = [thread::spawn(draws), thread::spawn(draws)].map(|thread| thread.join().unwrap().unwrap()).concat();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), DRAWS * 6);
        assert!(!all.contains(&[0; 16]));
    }
}
