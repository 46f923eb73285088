//! Threads for work that blocks, of which one is always there.
//!
//! # Design
//!
//! *Why does a thread stay?* A runtime starts a thread when it has work that blocks, and panics if it has none and the
//! system refuses one (`pids.max`, `ulimit -u`). That would end the request, or the task, that happened to have such
//! work. With a thread that stays, the work waits for it.
//!
//! *Why do all threads stay?* The runtime knows one time limit for all of its idle threads. An idle thread costs little,
//! and [`THREADS_MAX`] bounds their number.

use std::{io, time::Duration};

use tokio::runtime::{Builder, Handle, Runtime};

/// The most threads of one runtime for work that blocks. More would only wait for the same disks.
pub(crate) const THREADS_MAX: usize = 64;

/// How long an idle thread stays: without end.
pub(crate) const KEEP_ALIVE: Duration = Duration::MAX;

/// Builds a runtime, and starts its thread that stays.
pub(crate) fn build(builder: &mut Builder) -> io::Result<Runtime> {
    let runtime = builder.max_blocking_threads(THREADS_MAX).thread_keep_alive(KEEP_ALIVE).build()?;
    start_one(runtime.handle());
    Ok(runtime)
}

/// Starts a thread of a runtime whose threads stay.
pub(crate) fn start_one(runtime: &Handle) {
    drop(runtime.spawn_blocking(|| {}));
}
