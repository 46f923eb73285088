//! The notes that the parts of the proxy make on a request, for its log line, its metrics and its trace.
//!
//! # Design
//!
//! *Why are the notes kept beside the task, and not passed on?* A probe in the guard, an exchange below it and the
//! settlement after it all make notes, and have nothing else in common. All are polled inside the task of the request,
//! so they find its stream info there. If nothing is observed there is no stream info, and a note costs only the look for it.

use std::{
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::HeaderValue;
use parking_lot::Mutex;

use super::traces::Trace;
use crate::core::{address::Address, cause::Untagged, lease::PrincipalName, resource::ResourceKey};

/// The value for "nothing was noted".
const NOTHING: u64 = u64::MAX;

tokio::task_local! {
    static STREAM_INFO: Arc<StreamInfo>;
}

/// A part of the time of a request. Parts overlap: a probe waits for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedPart {
    /// Waiting for other writes on the resource.
    Claim,
    /// Learning the current state from the upstream.
    Probe,
    /// Waiting for the store.
    Store,
    /// Waiting until servers began to answer, probes included.
    Upstream,
}

/// How long the parts of a request took; `None` for a part that it did not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// [`TimedPart::Claim`].
    pub claim: Option<Duration>,
    /// [`TimedPart::Probe`].
    pub probe: Option<Duration>,
    /// [`TimedPart::Store`].
    pub store: Option<Duration>,
    /// [`TimedPart::Upstream`].
    pub upstream: Option<Duration>,
}

impl Times {
    /// Returns the value of `Server-Timing`, which the tools of browsers show; `None` if there is nothing to tell.
    pub fn server_timing(&self) -> Option<HeaderValue> {
        let parts = [("claim", self.claim), ("probe", self.probe), ("store", self.store), ("upstream", self.upstream)];
        let metric = |(name, time): (&str, Option<Duration>)| {
            time.map(|time| format!("{name};dur={:.3}", time.as_secs_f64() * 1e3))
        };
        let metrics: Vec<_> = parts.into_iter().filter_map(metric).collect();
        HeaderValue::try_from(metrics.join(", ")).ok().filter(|value| !value.is_empty())
    }
}

/// The known facts about the client of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestClient {
    /// The address, behind trusted proxies.
    pub address: Option<IpAddr>,
    /// The name of the credentials, if the request has any.
    pub principal: Option<PrincipalName>,
}

/// The notes of one request.
#[derive(Debug)]
pub struct StreamInfo {
    pub(super) trace: Trace,
    /// The time at which the head of the request had been read.
    pub(super) started: Instant,
    /// The time of each [`TimedPart`], in nanoseconds.
    parts: [AtomicU64; 4],
    server: Mutex<Option<Address>>,
    untagged: OnceLock<Untagged>,
    resource: OnceLock<ResourceKey>,
    principal: OnceLock<PrincipalName>,
    /// The version that the write made; [`NOTHING`] if it made none.
    version: AtomicU64,
}

impl StreamInfo {
    pub(super) fn new(trace: Trace) -> Self {
        Self {
            trace,
            started: Instant::now(),
            parts: [const { AtomicU64::new(NOTHING) }; 4],
            server: Mutex::default(),
            untagged: OnceLock::new(),
            resource: OnceLock::new(),
            principal: OnceLock::new(),
            version: AtomicU64::new(NOTHING),
        }
    }

    /// Notes how long a part of the request took. A part may come several times.
    fn spent(&self, part: TimedPart, time: Duration) {
        add(self.part(part), time);
    }

    const fn part(&self, part: TimedPart) -> &AtomicU64 {
        let [claim, probe, store, upstream] = &self.parts;
        match part {
            TimedPart::Claim => claim,
            TimedPart::Probe => probe,
            TimedPart::Store => store,
            TimedPart::Upstream => upstream,
        }
    }

    /// Notes how long a server took to begin its answer.
    pub fn exchanged(&self, server: Option<Address>, took: Duration) {
        self.spent(TimedPart::Upstream, took);
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

    /// Returns the name of the client's credentials, if the request has any.
    pub fn principal(&self) -> Option<PrincipalName> {
        self.principal.get().copied()
    }

    /// Notes that a write was applied, and made this version of its resource.
    pub fn made_version(&self, version: u64) {
        self.version.store(version, Ordering::Relaxed);
    }

    /// Returns the version that the write made, if it was applied.
    pub fn version(&self) -> Option<u64> {
        Some(self.version.load(Ordering::Relaxed)).filter(|version| *version != NOTHING)
    }

    /// Returns the id of the trace in hexadecimal, if there is one.
    pub fn trace_id(&self) -> Option<String> {
        self.trace.id_text()
    }

    /// Returns how long the parts of the request took so far.
    pub fn times(&self) -> Times {
        let time = |part| read(self.part(part));
        Times {
            claim: time(TimedPart::Claim),
            probe: time(TimedPart::Probe),
            store: time(TimedPart::Store),
            upstream: time(TimedPart::Upstream),
        }
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

/// Notes the name of the credentials of the request on whose behalf the caller runs.
pub fn sent_by(principal: PrincipalName) {
    // A request has one sender. Without stream info, there is no reader of it.
    let _ = STREAM_INFO.try_with(|info| info.principal.set(principal));
}

/// Begins a part of the request on whose behalf the caller runs. It ends with the returned value. Without stream info,
/// no clock is read.
#[must_use]
pub fn timing(part: TimedPart) -> PartTimer {
    let is_noted = STREAM_INFO.try_with(|_info| ()).is_ok();
    PartTimer { part, started: is_noted.then(Instant::now) }
}

/// Like [`timing`], but the time is also known to the caller, with or without stream info.
#[must_use]
pub fn measuring(part: TimedPart) -> PartTimer {
    PartTimer { part, started: Some(Instant::now()) }
}

/// The time of a part of a request, which goes on until this value is dropped. It is dropped in the task of the request.
#[derive(Debug)]
pub struct PartTimer {
    part: TimedPart,
    started: Option<Instant>,
}

impl PartTimer {
    /// Ends the part, and returns how long it took, if that is known.
    pub fn end(mut self) -> Option<Duration> {
        self.note()
    }

    fn note(&mut self) -> Option<Duration> {
        let took = self.started.take()?.elapsed();
        // Without stream info, there is no reader of it.
        let _ = STREAM_INFO.try_with(|info| info.spent(self.part, took));
        Some(took)
    }
}

impl Drop for PartTimer {
    fn drop(&mut self) {
        self.note();
    }
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
        assert_eq!((info.times(), info.times().server_timing()), (Times::default(), None));
        along(Some(&info), async {
            let noted = current().expect("there is a info");
            noted.spent(TimedPart::Claim, Duration::ZERO);
            drop(timing(TimedPart::Store));
            noted.exchanged(None, Duration::from_millis(2));
            noted.exchanged(None, Duration::from_millis(3));
        })
        .await;
        let times = info.times();
        assert_eq!((times.claim, times.upstream), (Some(Duration::ZERO), Some(Duration::from_millis(5))));
        assert!(times.store.is_some() && times.probe.is_none());
        let told = Times { store: None, ..times }.server_timing();
        assert_eq!(told.unwrap(), "claim;dur=0.000, upstream;dur=5.000");
        assert!(current().is_none());
    }
}
