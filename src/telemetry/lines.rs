//! The output of log lines to standard error.
//!
//! # Design
//!
//! *Why does a request not write its line itself?* That would be one system call a request, and a slow reader of
//! standard error would delay the requests themselves. Here a line is copied into a buffer, and a separate thread
//! writes many lines at once. The cost: lines wait for at most [`PATIENCE`], and those that wait are lost if the
//! process is killed outright. If standard error takes no more, lines are dropped and counted (`ifmatch.log.dropped`).
//!
//! *Why not `tracing-appender`?* It allocates each line, sends it through a channel and writes it alone. That is again
//! one system call a line, and it also wakes a thread.

use std::{
    io::{self, Write as _},
    mem::take,
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

/// How long a line of the access log may wait for others.
const PATIENCE: Duration = Duration::from_millis(20);
/// The number of waiting bytes from which on lines are written at once.
const ENOUGH_BYTES: usize = 64 * 1024;
/// The largest number of bytes that wait for a slow standard error; further lines are dropped.
const WAITING_MAX_BYTES: usize = 4 * 1024 * 1024;
/// How long the end of the process waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

static LINES: Lines = Lines { state: Mutex::new(LinesState::EMPTY), wake: Condvar::new(), written: Condvar::new() };

struct Lines {
    state: Mutex<LinesState>,
    /// Notified when there are lines to write.
    wake: Condvar,
    /// Notified when a batch of lines has been written.
    written: Condvar,
}

struct LinesState {
    waiting: Vec<u8>,
    /// True if the waiting lines should be written now.
    is_urgent: bool,
    /// True if lines are being written.
    is_writing: bool,
    /// True if the writing thread runs.
    has_thread: bool,
    dropped: u64,
}

impl LinesState {
    const EMPTY: Self =
        Self { waiting: Vec::new(), is_urgent: false, is_writing: false, has_thread: false, dropped: 0 };
}

/// How soon a line has to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Haste {
    /// At once.
    Urgent,
    /// Together with others.
    Patient,
}

/// Starts the writing thread. Before that, and if it cannot be started, the thread that makes a line writes it.
pub(super) fn start() {
    let mut state = LINES.state.lock();
    if state.has_thread {
        return;
    }
    state.has_thread = thread::Builder::new().name("ifmatch-log".to_owned()).spawn(|| LINES.write_for_ever()).is_ok();
    drop(state);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        flush();
        before(panic);
    }));
}

/// Accepts a line, including its line ending.
pub(super) fn push(line: &[u8], haste: Haste) {
    let mut state = LINES.state.lock();
    if !state.has_thread {
        drop(state);
        // There is no other place to report that the log cannot be written.
        let _ = io::stderr().lock().write_all(line);
        return;
    }
    if state.waiting.len() + line.len() > WAITING_MAX_BYTES {
        state.dropped += 1;
        return;
    }
    let was_empty = state.waiting.is_empty();
    state.waiting.extend_from_slice(line);
    let is_urgent = haste == Haste::Urgent || state.waiting.len() >= ENOUGH_BYTES;
    let wakes = was_empty || (is_urgent && !state.is_urgent);
    state.is_urgent |= is_urgent;
    drop(state);
    if wakes {
        LINES.wake.notify_one();
    }
}

/// Waits until all lines are written, for at most a second.
pub fn flush() {
    let mut state = LINES.state.lock();
    if !state.has_thread || thread::current().name() == Some("ifmatch-log") {
        return;
    }
    state.is_urgent = true;
    LINES.wake.notify_one();
    let is_busy = |state: &mut LinesState| !state.waiting.is_empty() || state.is_writing;
    LINES.written.wait_while_for(&mut state, is_busy, LAST_LINES);
}

/// Returns the number of dropped lines.
pub(super) fn dropped() -> u64 {
    LINES.state.lock().dropped
}

impl Lines {
    fn write_for_ever(&self) {
        let mut lines = Vec::new();
        loop {
            let mut state = self.state.lock();
            self.wake.wait_while(&mut state, |state| state.waiting.is_empty());
            self.wake.wait_while_for(&mut state, |state| !state.is_urgent, PATIENCE);
            std::mem::swap(&mut state.waiting, &mut lines);
            state.is_urgent = false;
            state.is_writing = true;
            drop(state);
            let _ = io::stderr().lock().write_all(&lines);
            lines.clear();
            // The memory that a burst took is released.
            lines.shrink_to(ENOUGH_BYTES * 2);
            self.state.lock().is_writing = false;
            self.written.notify_all();
        }
    }
}

/// A buffer for the lines of one record, which are pushed when it is dropped.
#[derive(Debug, Default)]
pub(super) struct LineBuffer(Vec<u8>);

impl io::Write for LineBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        push(&take(&mut self.0), Haste::Urgent);
        Ok(())
    }
}

impl Drop for LineBuffer {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            push(&take(&mut self.0), Haste::Urgent);
        }
    }
}
