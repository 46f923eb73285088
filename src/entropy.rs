//! Random numbers: from the operating system for values that must not be guessed, from the thread for mere names.

/// Returns unpredictable bytes.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_bytes() -> Result<[u8; 16], getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
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
