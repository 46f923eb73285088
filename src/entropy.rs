//! Random numbers of the operating system, for what must not be guessed or repeated.

/// Bytes that nobody can guess.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_bytes() -> Result<[u8; 16], getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A random number.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_u64() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}
