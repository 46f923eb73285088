//! The notes that the parts of the proxy make on a request, for its log line, its metrics and its trace.
//!
//! # Design
//!
//! *Why are the notes kept beside the task, and not passed on?* A probe in the guard, an exchange below it and the
//! settlement after it all make notes, and have nothing else in common. All are polled inside the task of the request,
//! so they find its stream info there. If nothing is observed there is no stream info, and a note costs only the look for it.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::traces::Trace;
use crate::core::{address::Address, cause::Untagged, resource::ResourceKey};

/// The value for "no duration was noted".
const NOTHING: u64 = u64::MAX;

tokio::task_local! {
    static STREAM_INFO: Arc<StreamInfo>;
}

/// The notes of one request.
#[derive(Debug)]
pub struct StreamInfo {
    pub(super) trace: Trace,
    /// The time at which the head of the request had been read.
    pub(super) started: Instant,
    claim_wait_nanoseconds: AtomicU64,
    upstream_nanoseconds: AtomicU64,
    server: Mutex<Option<Address>>,
    untagged: OnceLock<Untagged>,
    resource: OnceLock<ResourceKey>,
}

impl StreamInfo {
    pub(super) fn new(trace: Trace) -> Self {
        Self {
            trace,
            started: Instant::now(),
            claim_wait_nanoseconds: AtomicU64::new(NOTHING),
            upstream_nanoseconds: AtomicU64::new(NOTHING),
            server: Mutex::default(),
            untagged: OnceLock::new(),
            resource: OnceLock::new(),
        }
    }

    /// Notes how long the request waited for other writes.
    pub fn waited_for_claim(&self, wait: Duration) {
        add(&self.claim_wait_nanoseconds, wait);
    }

    /// Notes how long a server took to begin its answer.
    pub fn exchanged(&self, server: Option<Address>, took: Duration) {
        add(&self.upstream_nanoseconds, took);
        if server.is_some() {
            *self.server.lock() = server;
        }
    }

    /// Notes why the answer has no tag.
    pub fn got_no_tag(&self, why: Untagged) {
        // A request has one answer.
        let _ = self.untagged.set(why);
    }

    /// Returns why the answer has no tag, if it lacks one.
    pub fn untagged(&self) -> Option<Untagged> {
        self.untagged.get().copied()
    }

    /// Returns the resource that the body of the request names, if it names one.
    pub fn resource(&self) -> Option<&ResourceKey> {
        self.resource.get()
    }

    /// Returns the id of the trace in hexadecimal, if there is one.
    pub fn trace_id(&self) -> Option<String> {
        self.trace.id_text()
    }

    /// Returns how long the request waited for other writes, if it had to look for them.
    pub fn claim_wait(&self) -> Option<Duration> {
        read(&self.claim_wait_nanoseconds)
    }

    /// Returns how long servers took to answer, probes included; `None` if no server was contacted.
    pub fn upstream_time(&self) -> Option<Duration> {
        read(&self.upstream_nanoseconds)
    }

    /// Returns the last server that answered.
    pub fn server(&self) -> Option<Address> {
        self.server.lock().clone()
    }
}

/// Adds to a total. Only the request's own task writes, so the total cannot change between the read and the write.
fn add(total: &AtomicU64, more: Duration) {
    let so_far = read(total).unwrap_or_default();
    let nanoseconds = u64::try_from((so_far + more).as_nanos()).unwrap_or(NOTHING - 1);
    total.store(nanoseconds, Ordering::Relaxed);
}

fn read(total: &AtomicU64) -> Option<Duration> {
    let nanoseconds = total.load(Ordering::Relaxed);
    (nanoseconds != NOTHING).then(|| Duration::from_nanos(nanoseconds))
}

/// Runs `work` on behalf of the request with this stream info.
pub async fn along<T>(info: Option<&Arc<StreamInfo>>, work: impl Future<Output = T>) -> T {
    match info {
        Some(info) => STREAM_INFO.scope(Arc::clone(info), work).await,
        None => work.await,
    }
}

/// Notes the resource that the body of a request names.
pub fn acts_on(key: &ResourceKey) {
    if let Some(info) = current() {
        // A request acts on one resource.
        let _ = info.resource.set(key.clone());
    }
}

/// Waits for other writes, on behalf of a request that takes a claim or reads a settled state.
pub async fn waiting<T>(wait: impl Future<Output = T>) -> T {
    let Some(info) = current() else { return wait.await };
    let started = Instant::now();
    let waited = wait.await;
    info.waited_for_claim(started.elapsed());
    waited
}

/// Returns the stream info of the request on whose behalf the caller runs.
pub fn current() -> Option<Arc<StreamInfo>> {
    STREAM_INFO.try_with(Arc::clone).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn notes_reach_the_trail_of_the_task_they_were_made_in() {
        let info = Arc::new(StreamInfo::new(Trace::none()));
        assert_eq!((info.claim_wait(), info.upstream_time()), (None, None));
        along(Some(&info), async {
            let noted = current().expect("there is a info");
            noted.waited_for_claim(Duration::ZERO);
            noted.exchanged(None, Duration::from_millis(2));
            noted.exchanged(None, Duration::from_millis(3));
        })
        .await;
        assert_eq!(info.claim_wait(), Some(Duration::ZERO));
        assert_eq!(info.upstream_time(), Some(Duration::from_millis(5)));
        assert!(current().is_none());
    }
}
