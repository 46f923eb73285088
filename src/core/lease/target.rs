//! The name of the target that a lease was acquired by, and that a deletion removes.

use crate::core::{
    http::request_target::{KeptInNames, normalize, split_query},
    tags::parts_hash::half,
};

/// The first half of the hash of a target whose path is in normal form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetName(pub [u8; 16]);

impl TargetName {
    /// Returns the name of a target as an upstream gets it: path and query. Two spellings of one path are one target,
    /// but another query is another target. If the upstream ignores letter case, so does the path.
    pub fn of(target: &[u8], ignore_case: bool) -> Self {
        let (path, query) = split_query(target);
        let normal = normalize(path, KeptInNames::ALL);
        let normal = normal.map(|normal| if ignore_case { normal.folded() } else { normal });
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
        let name = TargetName::of(b"/drawings/7", false);
        for same in ["/drawings/7/", "/drawings/%37", "/drawings//7"] {
            assert_eq!(TargetName::of(same.as_bytes(), false), name, "{same}");
        }
        for other in ["/drawings/7/sheets", "/drawings", "/drawings/7?sheet=1", "/drawings/7?", "/drawings/77"] {
            assert_ne!(TargetName::of(other.as_bytes(), false), name, "{other}");
        }
        assert_ne!(TargetName::of(b"/drawings/7?sheet=1", false), TargetName::of(b"/drawings/7?sheet=2", false));
        assert_ne!(TargetName::of(b"/Drawings/7", false), name);
        assert_eq!(TargetName::of(b"/Drawings/7", true), TargetName::of(b"/drawings/7", true));
    }
}
