//! The observations of an HTTP/2 connection. They end a connection whose client sends too much.
//!
//! # Design
//!
//! *Why are frames gathered?* h2 flushes after each body that is not very short. Each flush costs a call of the operating
//! system and a record of TLS, and answers that are ready together need only one. So flushes are put off until the
//! connection has nothing more to do, and then it is polled once more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::tapped::Tap;
use crate::{
    core::wire::http2_frames::{Excess, FrameBudget, FrameScan},
    downstream::unread::Unread,
};

/// The number of response bytes that may wait for a client that does not read.
const UNREAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The interval of the checks on a client that has more to read.
const UNREAD_LOOK: Duration = Duration::from_secs(5);
/// The number of bytes that such a client must read per interval. A slower line would take ten minutes for the waiting
/// bytes, and pings are smaller.
const UNREAD_PROGRESS_BYTES: u64 = 32 * 1024;

/// The reason why a connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The client sends too much of something that carries nothing.
    Excess(Excess),
    /// A list of fields did not end in time.
    SlowFields,
    /// Responses wait, and the client does not read them.
    Unread,
    /// Too many requests are malformed.
    Malformed,
}

impl ConnectionEnd {
    /// Returns the reason's name in the log and the metrics.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Excess(Excess::Resets) => "resets",
            Self::Excess(Excess::Control) => "frames",
            Self::SlowFields => "slow",
            Self::Unread => "unread",
            Self::Malformed => "malformed",
        }
    }
}

/// The observations of a connection.
#[derive(Debug)]
pub(super) struct FrameWatch {
    seen: Mutex<FrameCounts>,
    written_bytes: AtomicU64,
    gathers: AtomicBool,
    /// The number of bytes that were gathered, and wait for a flush.
    held_bytes: AtomicUsize,
    /// Signals an event that may be a reason to end.
    changed: Notify,
    /// The response bytes that the client has not read.
    pub(super) unread: Arc<Unread>,
}

#[derive(Debug)]
struct FrameCounts {
    scan: FrameScan,
    budget: FrameBudget,
    refilled: Instant,
    refilled_at_bytes: u64,
    /// The number of the unfinished list of fields, and when it began.
    within: Option<(u64, Instant)>,
    excess: Option<Excess>,
}

impl FrameWatch {
    pub(super) fn new() -> Self {
        let seen = FrameCounts {
            scan: FrameScan::default(),
            budget: FrameBudget::default(),
            refilled: Instant::now(),
            refilled_at_bytes: 0,
            within: None,
            excess: None,
        };
        Self {
            seen: Mutex::new(seen),
            written_bytes: AtomicU64::new(0),
            gathers: AtomicBool::new(false),
            held_bytes: AtomicUsize::new(0),
            changed: Notify::new(),
            unread: Arc::new(Unread::new(UNREAD_BYTES_MAX)),
        }
    }

    /// Polls the connection by this function, and sends all that it writes at once.
    pub(super) fn gathering<T>(&self, mut poll: impl FnMut() -> Poll<T>) -> Poll<T> {
        self.gathers.store(true, Ordering::Relaxed);
        let polled = poll();
        self.gathers.store(false, Ordering::Relaxed);
        // A connection that waits has flushed.
        if polled.is_pending() && self.held_bytes.load(Ordering::Relaxed) > 0 { poll() } else { polled }
    }

    /// Waits until there is a reason to end the connection.
    pub(super) async fn end(&self, fields_time_max: Duration) -> ConnectionEnd {
        let mut unread_since = None;
        loop {
            let changed = self.changed.notified();
            let now = Instant::now();
            let (excess, within) = {
                let seen = self.seen.lock();
                (seen.excess, seen.within)
            };
            if let Some(excess) = excess {
                return ConnectionEnd::Excess(excess);
            }
            let fields_end = within.map(|(_, since)| since + fields_time_max);
            if fields_end.is_some_and(|end| end <= now) {
                return ConnectionEnd::SlowFields;
            }
            let Ok(look) = self.look_at_unread(&mut unread_since, now) else { return ConnectionEnd::Unread };
            let wake = fields_end.into_iter().chain(look).min();
            tokio::select! {
                () = changed => {}
                () = self.unread.changed() => {}
                () = async { sleep_until(wake.unwrap_or(now)).await }, if wake.is_some() => {}
            }
        }
    }

    /// Returns when to check the unread bytes again, if there are many. Fails if the client reads too few of them.
    /// `since` holds the time of the next check and the number of bytes written before.
    fn look_at_unread(
        &self,
        since: &mut Option<(Instant, u64)>,
        now: Instant,
    ) -> Result<Option<Instant>, ConnectionEnd> {
        let written = self.written_bytes.load(Ordering::Relaxed);
        *since = match *since {
            _ if !self.unread.is_too_much() => None,
            Some((look, before)) if look <= now && written - before < UNREAD_PROGRESS_BYTES => {
                return Err(ConnectionEnd::Unread);
            }
            Some((look, before)) if look > now => Some((look, before)),
            _ => Some((now + UNREAD_LOOK, written)),
        };
        Ok(since.map(|(look, _)| look))
    }

    /// Counts received frames.
    fn receive(&self, mut bytes: &[u8]) {
        let mut seen = self.seen.lock();
        let seen = &mut *seen;
        let mut tells = false;
        while let Some(frame) = seen.scan.next(&mut bytes) {
            if seen.budget.count(frame).is_ok() {
                continue;
            }
            // The clock is read only if it may make a difference.
            let (now, written) = (Instant::now(), self.written_bytes.load(Ordering::Relaxed));
            seen.budget.refill(now - seen.refilled, written - seen.refilled_at_bytes);
            (seen.refilled, seen.refilled_at_bytes) = (now, written);
            if let Err(excess) = seen.budget.count(frame) {
                seen.excess = Some(excess);
                tells = true;
                break;
            }
        }
        let within = seen.scan.within();
        if within != seen.within.map(|(number, _)| number) {
            // A wait for the end of an earlier list sees the new list on its own.
            tells |= seen.within.is_none();
            seen.within = within.map(|number| (number, Instant::now()));
        }
        if tells {
            self.changed.notify_one();
        }
    }
}

impl Tap for Arc<FrameWatch> {
    fn may_read(&self) -> bool {
        // After an excess nothing more is read; the wait for the end of the connection has been signalled.
        self.seen.lock().excess.is_none()
    }

    fn received(&mut self, bytes: &[u8]) {
        self.receive(bytes);
    }

    fn gathers(&self) -> bool {
        self.gathers.load(Ordering::Relaxed)
    }

    fn holds(&mut self, bytes: usize) {
        self.held_bytes.store(bytes, Ordering::Relaxed);
    }

    fn wrote(&mut self, bytes: usize) {
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "watched_tests.rs"]
mod tests;
