//! Random numbers: from the operating system for values that must not be guessed, from the thread for mere names.

use std::cell::RefCell;

/// How many ids a thread draws at once. The operating system takes as long for all of them as for four drawn alone.
const DRAWN: usize = 16;

thread_local! {
    /// Bytes that were drawn and not given to anybody yet.
    static UNUSED: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) };
}

/// Returns unpredictable bytes. Nobody else gets the same ones.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_bytes() -> Result<[u8; 16], getrandom::Error> {
    UNUSED.with_borrow_mut(|unused| {
        if unused.is_empty() {
            let mut drawn = [[0; 16]; DRAWN];
            getrandom::fill(drawn.as_flattened_mut())?;
            unused.extend(drawn);
        }
        unused.pop().ok_or(getrandom::Error::UNEXPECTED)
    })
}

/// Returns the number of an answer. It tells answers apart and protects nothing, so it needs no call of the operating
/// system.
pub fn number_of_answer() -> [u8; 16] {
    fastrand::u128(..).to_be_bytes()
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
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bytes_are_given_twice_in_any_thread() {
        let draw =
            || std::thread::spawn(|| (0..3 * DRAWN).map(|_| random_bytes().expect("a system")).collect::<Vec<_>>());
        let drawn: Vec<_> = [draw(), draw()].into_iter().flat_map(|thread| thread.join().expect("it ends")).collect();
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 6 * DRAWN);
        assert!(drawn.iter().all(|bytes| *bytes != [0; 16]));
    }
}
