//! The users that may write to the file of the store: each of them can give leases to any client.
//!
//! Kubernetes gives the files of a volume to the pod's group (`fsGroup`) and lets that group write, at each start of a
//! pod. A refusal would take down a pod whose file no other user has touched.

use std::{
    fs::{File, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use rustix::process::{Gid, getegid, getgroups};

/// The mode bit that lets the members of the file's group write.
const WRITABLE_BY_GROUP: u32 = 0o020;

/// The mode bit that lets all users write.
const WRITABLE_BY_ALL: u32 = 0o002;

/// The users that may write to the file of a store, by its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    /// Only the owner writes.
    OwnerAlone,
    /// The owner writes, and so do members of a group that this process belongs to.
    OwnGroup,
    /// Others can write.
    Others,
}

/// Judges the mode of a file and its group, by the groups of this process.
fn writers(mode: u32, group: u32, own_groups: &[u32]) -> Writers {
    if mode & WRITABLE_BY_ALL != 0 {
        Writers::Others
    } else if mode & WRITABLE_BY_GROUP == 0 {
        Writers::OwnerAlone
    } else if own_groups.contains(&group) {
        Writers::OwnGroup
    } else {
        Writers::Others
    }
}

/// Makes sure that only its owner writes to an open file. If a group of this process can, the permission is removed.
/// Returns false if others can write.
///
/// # Errors
///
/// The operating system's, if it cannot tell the groups of this process, or the permission cannot be removed.
pub(super) fn keep_to_owner(file: &File, found: &Metadata) -> io::Result<bool> {
    let mode = found.mode() & 0o777;
    match writers(mode, found.gid(), &own_groups()?) {
        Writers::OwnerAlone => Ok(true),
        Writers::Others => Ok(false),
        Writers::OwnGroup => {
            file.set_permissions(Permissions::from_mode(mode & !WRITABLE_BY_GROUP))?;
            tracing::warn!(
                "the group {} could write to the file of the store (mode {mode:04o}): the permission is removed; in \
                 Kubernetes, fsGroupChangePolicy: OnRootMismatch keeps it removed",
                found.gid()
            );
            Ok(true)
        }
    }
}

fn own_groups() -> io::Result<Vec<u32>> {
    let supplementary = getgroups()?;
    Ok(supplementary.into_iter().chain([getegid()]).map(Gid::as_raw).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_this_process_alone_is_trusted_and_nobody_beyond_a_group() {
        let cases = [
            (0o600, 7, Writers::OwnerAlone),
            (0o644, 7, Writers::OwnerAlone),
            (0o640, 8, Writers::OwnerAlone),
            (0o660, 7, Writers::OwnGroup),
            (0o620, 9, Writers::OwnGroup),
            (0o660, 8, Writers::Others),
            (0o602, 7, Writers::Others),
            (0o666, 7, Writers::Others),
        ];
        for (mode, group, expected) in cases {
            assert_eq!(writers(mode, group, &[7, 9]), expected, "{mode:o} of group {group}");
        }
    }
}
