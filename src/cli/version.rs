//! The answer to `ifmatch --version`.

use crate::store::SHARED_KINDS;

/// Returns the version, the commit that the program was built from, and the stores in this build.
pub(super) fn long(commit: Option<&str>) -> String {
    let stores = [&["memory", "disk"], SHARED_KINDS].concat().join(", ");
    format!("{}\ncommit: {}\nstores: {stores}", env!("CARGO_PKG_VERSION"), commit.unwrap_or("unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_outside_of_the_repository_knows_no_commit() {
        assert!(long(None).contains("\ncommit: unknown\n"), "{}", long(None));
        assert!(long(Some("1f2e3d4-dirty")).contains("\ncommit: 1f2e3d4-dirty\n"));
    }
}
