//! The lines of clients that want the next member of a collection, with the last page of its index.
//!
//! # Design
//!
//! *Who shares a line?* The clients with the same credentials: the backend has shown the index to each of them. An
//! index that it has shown to one principal is never shown to another.
//!
//! *When is an index read again?* When a client finds nothing in the last one, and else after [`INDEX_LASTS`]. One
//! client reads it for any number of others. While clients wait, it is read each [`INDEX_LASTS`], and soon after a
//! write or a lease operation of this process on a member.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;
use parking_lot::Mutex;
use tokio::{
    sync::{Mutex as Turn, Notify},
    time::{Instant, timeout_at},
};

use crate::{
    core::{
        members::{
            index_page::{IndexPage, PageStart},
            line::{Line, Need, Ticket},
        },
        records::record::Revision,
        resource::KeyDigest,
        route::MembersFolder,
    },
    guard::knowledge::principal::Principal,
};

/// How long a page of an index counts.
const INDEX_LASTS: Duration = Duration::from_secs(1);

/// The shortest time between two passes for clients that wait.
const PAUSE: Duration = Duration::from_millis(50);

/// The number of lines that are remembered. Each has at most one page of an index (256 KiB). A forgotten line costs its
/// clients their order and another look at the index, and no member goes to two of them.
const LINES_MAX: u64 = 256;

/// A line without clients is forgotten after this time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The lines of all collections.
pub(crate) struct MemberLines {
    lines: Cache<(KeyDigest, Principal, String), Arc<MemberLine>>,
    /// True if there has been any line yet.
    are_used: AtomicBool,
}

/// The line of one collection, for one principal.
pub(crate) struct MemberLine {
    folder: String,
    state: Mutex<LineState>,
    changed: Notify,
    /// The turn of the client that reads the index.
    reading: Turn<()>,
}

struct LineState {
    line: Line,
    /// When the last pass began.
    begun: Instant,
    /// When clients that wait look again.
    look_again: Instant,
    /// The newest revision that was seen before the last page was read.
    newest: Revision,
}

impl MemberLines {
    /// Starts without any lines.
    pub(crate) fn new() -> Self {
        let lines = Cache::builder().max_capacity(LINES_MAX).time_to_idle(FORGOTTEN_AFTER).build();
        Self { lines, are_used: AtomicBool::new(false) }
    }

    /// Returns the line of a principal before a collection with this key and these members.
    pub(crate) fn of(&self, key: KeyDigest, principal: Principal, folder: &MembersFolder) -> Arc<MemberLine> {
        self.are_used.store(true, Ordering::Relaxed);
        let name = (key, principal, folder.file_of(folder.path()));
        self.lines.get_with(name, || Arc::new(MemberLine::before(folder.path())))
    }

    /// Wakes the clients that wait for a member at such a target, which may be free by now.
    pub(crate) fn may_be_free(&self, target: &[u8]) {
        if !self.are_used.load(Ordering::Relaxed) {
            return;
        }
        for (_, line) in &self.lines {
            if memchr::memmem::find(target, line.folder.as_bytes()).is_some() {
                line.look_soon(Duration::ZERO);
            }
        }
    }
}

impl MemberLine {
    fn before(folder: &str) -> Self {
        let now = Instant::now();
        let state = LineState { line: Line::default(), begun: now, look_again: now, newest: Revision::default() };
        let (folder, changed, reading) = (folder.to_owned(), Notify::new(), Turn::new(()));
        Self { folder, state: Mutex::new(state), changed, reading }
    }

    /// Puts a client at the end of the line.
    pub(crate) fn enter(self: Arc<Self>) -> PlaceInLine {
        let mut state = self.state.lock();
        if state.begun.elapsed() > INDEX_LASTS && state.line.may_begin_anew() {
            state.begin_pass();
        }
        let (ticket, count) = (state.line.enter(), state.line.len());
        drop(state);
        PlaceInLine { line: self, ticket, count }
    }

    /// Makes clients that wait look again after this time at the latest.
    fn look_soon(&self, after: Duration) {
        let mut state = self.state.lock();
        if state.line.is_empty() {
            return;
        }
        let soon = (Instant::now() + after).max(state.begun + PAUSE);
        if soon < state.look_again {
            state.look_again = soon;
            drop(state);
            self.changed.notify_waiters();
        }
    }
}

impl LineState {
    fn begin_pass(&mut self) {
        self.line.begin_pass();
        self.begun = Instant::now();
        self.look_again = self.begun + INDEX_LASTS;
    }

    /// Returns the next step that the line needs from a client, which may wait although no member is free.
    fn need(&self, ticket: Ticket, waits: bool) -> Need {
        match self.line.need(ticket) {
            Need::Nothing if waits && self.look_again <= Instant::now() => Need::Pass,
            need => need,
        }
    }
}

/// The place of a client in a line. It is given up when it is dropped.
pub(crate) struct PlaceInLine {
    line: Arc<MemberLine>,
    ticket: Ticket,
    /// The number of clients in the line when this one came, with itself.
    pub(crate) count: usize,
}

impl PlaceInLine {
    /// Returns the next step that the line needs from the client, which may wait although no member is free.
    pub(crate) fn need(&self, waits: bool) -> Need {
        self.line.state.lock().need(self.ticket, waits)
    }

    /// Waits until the line may need something else from the client.
    pub(crate) async fn change(&self) {
        let changed = self.line.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if self.need(true) != Need::Nothing {
            return;
        }
        let look_again = self.line.state.lock().look_again;
        let _ = timeout_at(look_again, changed).await;
    }

    /// Waits for the turn to read the index. Returns where the page begins that is needed; `None` if another client has
    /// done the work meanwhile.
    pub(crate) async fn turn_to_read(&self, waits: bool, newest: impl Fn() -> Revision) -> Option<ReadingTurn<'_>> {
        let guard = self.line.reading.lock().await;
        let mut state = self.line.state.lock();
        match state.need(self.ticket, waits) {
            Need::Pass => state.begin_pass(),
            Need::Page => {}
            Need::Look(_) | Need::Nothing => return None,
        }
        state.newest = newest();
        let start = state.line.page_start().cloned();
        Some(ReadingTurn { line: &self.line, start, _turn: guard })
    }

    /// The newest revision that was seen before the page was read that shows what the client looks at.
    pub(crate) fn newest(&self) -> Revision {
        self.line.state.lock().newest
    }

    /// Notes that the client could not get what it looks at, which may be free after this time.
    pub(crate) fn skip(&self, free_after: Option<Duration>) {
        self.changing(|state| state.line.skip(self.ticket));
        if let Some(after) = free_after {
            self.line.look_soon(after);
        }
    }

    /// Sets aside what the client looks at. `false` if there is no room for that.
    pub(crate) fn set_aside(&self) -> bool {
        self.changing(|state| state.line.set_aside(self.ticket))
    }

    /// Notes that the client has got what it looks at.
    pub(crate) fn serve(self) {
        self.changing(|state| state.line.serve(self.ticket));
    }

    fn changing<T>(&self, change: impl FnOnce(&mut LineState) -> T) -> T {
        let changed = change(&mut self.line.state.lock());
        self.line.changed.notify_waiters();
        changed
    }
}

impl Drop for PlaceInLine {
    fn drop(&mut self) {
        self.changing(|state| state.line.leave(self.ticket));
    }
}

/// The turn to read a page of the index.
pub(crate) struct ReadingTurn<'a> {
    line: &'a MemberLine,
    /// The place where the page begins.
    pub(crate) start: Option<PageStart>,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl ReadingTurn<'_> {
    /// Gives the page to all clients in the line.
    pub(crate) fn show(self, page: IndexPage) {
        self.line.state.lock().line.add_page(page);
        self.line.changed.notify_waiters();
    }
}
