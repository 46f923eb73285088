//! Random numbers from the operating system, for values that must not be guessed or repeated.

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

/// Returns the number of an answer. A number that can be guessed does no harm there, so zero stands for one that cannot be
/// drawn.
pub fn number_of_answer() -> [u8; 16] {
    random_bytes().unwrap_or_default()
}

/// Returns a random number.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_u64() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}
