//! The name of the target that a lease was acquired by, and that a deletion removes.

use crate::core::{
    parts_hash::half,
    target::{PathParameters, normalize, split_query},
};

/// The first half of the hash of a target whose path is in normal form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetName(pub [u8; 16]);

impl TargetName {
    /// Returns the name of a target as an upstream gets it: path and query. Two spellings of one path are one target,
    /// but another query is another target.
    pub fn of(target: &[u8]) -> Self {
        let (path, query) = split_query(target);
        let normal = normalize(path, PathParameters::Keep);
        let path = normal.as_ref().map_or(path, |normal| normal.as_str().as_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(path);
        if let Some(query) = query {
            // No path in normal form contains a question mark.
            hasher.update(b"?").update(query);
        }
        Self(half(&hasher.finalize()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_one_name_however_its_path_is_spelled() {
        let name = TargetName::of(b"/drawings/7");
        for same in ["/drawings/7/", "/drawings/%37", "/drawings//7"] {
            assert_eq!(TargetName::of(same.as_bytes()), name, "{same}");
        }
        for other in ["/drawings/7/sheets", "/drawings", "/drawings/7?sheet=1", "/drawings/7?", "/drawings/77"] {
            assert_ne!(TargetName::of(other.as_bytes()), name, "{other}");
        }
        assert_ne!(TargetName::of(b"/drawings/7?sheet=1"), TargetName::of(b"/drawings/7?sheet=2"));
    }
}
