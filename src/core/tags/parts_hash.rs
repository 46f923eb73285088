//! A hash over several parts.

/// Hashes parts of any length. Each part has its length before it, so different lists of parts never give the same input.
#[derive(Debug, Default)]
pub struct PartsHasher(blake3::Hasher);

impl PartsHasher {
    /// Adds the next part.
    pub fn add(&mut self, part: &[u8]) -> &mut Self {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    /// The hash of the parts so far.
    pub fn hash(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }

    /// The first half of that hash, enough for a name that no attacker can find a second input for.
    pub fn half(&self) -> [u8; 16] {
        half(&self.0.finalize())
    }
}

/// The first half of a hash.
pub fn half(hash: &blake3::Hash) -> [u8; 16] {
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_parts_have_one_hash_only_if_they_are_the_same() {
        let of = |parts: &[&str]| {
            let mut hasher = PartsHasher::default();
            for part in parts {
                hasher.add(part.as_bytes());
            }
            hasher.hash()
        };
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        let lists: [&[&str]; 5] = [&["ab", "c"], &["a", "bc"], &["abc"], &["ab", "c", ""], &["", "ab", "c"]];
        for (place, one) in lists.iter().enumerate() {
            assert!(lists[place + 1..].iter().all(|other| of(one) != of(other)), "{one:?}");
        }
    }
}
