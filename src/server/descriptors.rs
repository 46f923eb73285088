//! The plan of the process's file descriptors, made at its start.
//!
//! A request takes up to three: its connection, one to the upstream, and a spool file. So clients may have a third of
//! all descriptors. A reserve that clients never get is kept for stores, logs and the admin listener.

use std::{fs, os::fd::RawFd};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The descriptors that stores, logs, reloads and the admin listener need. The files of uploads in blocks need more.
const RESERVE: usize = 256;
/// One free descriptor in this many is reserved if few are free.
const RESERVE_PART: usize = 4;
/// The maximum number of descriptors that a request takes.
const A_REQUEST: usize = 3;

/// The division of the descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DescriptorPlan {
    /// The maximum number of client connections.
    pub(super) max_connections: usize,
    /// The first descriptor number that is not for clients.
    pub(super) first_reserved: RawFd,
}

/// Raises the limit of the process to its maximum, and divides it. Logs a warning if it is too low for this number of
/// connections and of uploads in blocks.
pub(super) fn plan(wanted_connections: usize, uploads: usize) -> DescriptorPlan {
    let reserve = RESERVE + uploads;
    let plan = share_out(raise_limit(), in_use(), reserve, wanted_connections);
    if plan.max_connections < wanted_connections {
        tracing::warn!(
            max_connections = plan.max_connections,
            "the limit of open files has room for fewer connections than server.max_connections, which is \
             {wanted_connections}: raise the limit (LimitNOFILE, ulimit -n) to {} or more",
            A_REQUEST * wanted_connections + in_use() + reserve,
        );
    }
    plan
}

fn share_out(limit: usize, in_use: usize, reserve: usize, wanted_connections: usize) -> DescriptorPlan {
    let free = limit.saturating_sub(in_use);
    let reserve = reserve.min(free / RESERVE_PART);
    let max_connections = wanted_connections.min((free - reserve) / A_REQUEST).max(1);
    DescriptorPlan { max_connections, first_reserved: RawFd::try_from(limit - reserve).unwrap_or(RawFd::MAX) }
}

/// Returns the number of descriptors that the process may have: the largest possible number if nothing limits them.
fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = if raised.is_ok() { maximum } else { current };
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(RawFd::MAX as usize)
}

/// Returns the number of descriptors in use, or 0 if the system does not report it.
fn in_use() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_a_third_of_what_there_is() {
        let plan = |limit, wanted| share_out(limit, 30, 512, wanted);
        assert_eq!(plan(1_048_576, 10_000), DescriptorPlan { max_connections: 10_000, first_reserved: 1_048_064 });
        assert_eq!(plan(4_096, 10_000), DescriptorPlan { max_connections: 1_184, first_reserved: 3_584 });
        assert_eq!(plan(96, 10_000), DescriptorPlan { max_connections: 16, first_reserved: 80 });
    }

    #[test]
    fn nothing_free_is_no_panic() {
        assert_eq!(share_out(20, 30, 512, 10_000), DescriptorPlan { max_connections: 1, first_reserved: 20 });
    }
}
