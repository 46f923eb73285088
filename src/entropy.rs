//! Random numbers of the operating system, for what must not be guessed or repeated.

/// A random number.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_u64() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}

/// A random number that nobody else will ever draw.
///
/// # Errors
///
/// The operating system has none to give.
pub fn random_u128() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}
