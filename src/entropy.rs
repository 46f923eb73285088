//! Random numbers of the operating system, for what must not be guessed or repeated.

/// A random number.
///
/// # Errors
///
/// The operating system has none to give, which happens before its generator is seeded.
pub fn random_u64() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}
