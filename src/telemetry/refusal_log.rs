//! The last refusals of this process, for an operator who asks why a request was refused.
//!
//! # Design
//!
//! *What does it cost?* A request that is not refused does not come here. A refused one takes one lock for a push.
//!
//! *What is left out?* Queries, header fields and lease ids, as in the access log.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    ops::RangeInclusive,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use http::Method;
use parking_lot::Mutex;

use super::{metrics::requests::known_name, stream_info::RequestClient};
use crate::core::{
    cause::{Cause, RequestId},
    digits::hexadecimal_text,
    refusal::{Code, Refusal},
    resource::ResourceKey,
};

/// The number of refusals that are kept: some minutes of an incident.
const ENTRIES_MAX: usize = 1_000;
/// The bytes that they may take: 1 KiB each, which only long paths and keys exceed.
const BYTES_MAX: usize = 1024 * 1024;
/// The longest path and key that are kept whole, in bytes.
const TEXT_BYTES_MAX: usize = 1024;

static LOG: OnceLock<RefusalLog> = OnceLock::new();

/// Starts to keep refusals.
pub(super) fn start() {
    // A second call finds the log started.
    let _ = LOG.set(RefusalLog::new(ENTRIES_MAX, BYTES_MAX));
}

/// Returns the refusals of this process, if they are kept.
pub fn get() -> Option<&'static RefusalLog> {
    LOG.get()
}

/// A refused request: what it asked for, and where it went.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRequest<'a> {
    /// The method as received; `None` if it could not be read.
    pub method: Option<&'a Method>,
    /// The path as received, without the query.
    pub path: &'a [u8],
    /// The name of the route, if the request took one.
    pub route: Option<&'a str>,
    /// The policy of that route.
    pub policy: Option<&'static str>,
    /// The key of the resource, on a guarded route.
    pub key: Option<&'a ResourceKey>,
    /// The id of the request's trace.
    pub trace_id: Option<[u8; 16]>,
    /// The client that sent the request.
    pub client: RequestClient,
}

/// A refusal that is kept.
#[derive(Clone, Debug)]
pub struct KeptRefusal {
    /// The id of the request.
    pub id: RequestId,
    /// The time of the refusal.
    pub at: SystemTime,
    /// The method of the request.
    pub method: Cow<'static, str>,
    /// The path of the request, without the query.
    pub path: Box<str>,
    /// The name of the route.
    pub route: Option<Box<str>>,
    /// The policy of the route.
    pub policy: Option<&'static str>,
    /// The key of the resource.
    pub key: Option<Arc<str>>,
    /// The id of the request's trace.
    trace_id: Option<[u8; 16]>,
    /// The client that sent the request.
    pub client: RequestClient,
    /// The code of the refusal.
    pub code: Code,
    /// The request to send instead.
    pub detail: Cow<'static, str>,
    /// The time after which a retry may succeed.
    pub retry_after: Option<Duration>,
    /// True if a write was in flight whose outcome cannot be known.
    pub in_doubt: bool,
    /// The reason and the facts behind it.
    pub cause: Box<Cause>,
}

impl KeptRefusal {
    /// Makes the entry of a refusal that answers the request with this id.
    pub fn new(id: RequestId, at: SystemTime, request: &RefusedRequest<'_>, refusal: Refusal) -> Self {
        let Refusal { code, detail, retry_after, in_doubt, cause, holder, .. } = refusal;
        let mut cause = cause.unwrap_or_default();
        // A refused lease operation names its holder apart from the cause.
        if let Some(lease) = &mut cause.lease {
            lease.holder = lease.holder.take().or(holder);
        }
        Self {
            id,
            at,
            method: request.method.map_or(Cow::Borrowed(""), method_name),
            path: limited(request.path),
            route: request.route.map(Into::into),
            policy: request.policy,
            key: request.key.map(limited_key),
            trace_id: request.trace_id,
            client: request.client,
            code,
            detail,
            retry_after,
            in_doubt,
            cause,
        }
    }

    /// Returns the id of the request's trace in hexadecimal.
    pub fn trace_id(&self) -> Option<String> {
        self.trace_id.map(|id| hexadecimal_text(&id))
    }

    fn bytes(&self) -> usize {
        let Cause { sent_tag, current_tag, lease, last_change, .. } = &*self.cause;
        let optional = [&self.route, sent_tag, current_tag];
        let of_cause = [
            lease.as_ref().and_then(|lease| lease.holder.as_deref()),
            last_change.as_ref().and_then(|change| change.trace_id.as_deref()),
        ];
        let texts = optional.into_iter().filter_map(Option::as_deref).chain(of_cause.into_iter().flatten());
        let texts = texts.chain([&*self.method, &*self.path, &*self.detail]).chain(self.key.as_deref());
        size_of::<Self>() + size_of::<Cause>() + texts.map(str::len).sum::<usize>()
    }
}

/// Returns the name of a method. That of a usual one takes no memory.
fn method_name(method: &Method) -> Cow<'static, str> {
    match known_name(method) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(limited(method.as_str().as_bytes()).into()),
    }
}

/// Returns the text of a key cut to its limit. Most keys are shorter, and share their text.
fn limited_key(key: &ResourceKey) -> Arc<str> {
    if key.as_str().len() <= TEXT_BYTES_MAX { key.shared_text() } else { limited(key.as_str().as_bytes()).into() }
}

/// Returns a text cut to its limit. All but visible ASCII is escaped, so a key stays as it is.
fn limited(text: &[u8]) -> Box<str> {
    let text = text.get(..TEXT_BYTES_MAX).unwrap_or(text);
    // Most texts have nothing to escape, and are copied whole.
    let are_visible = text.iter().fold(true, |all, octet| all & octet.is_ascii_graphic());
    if let (true, Ok(text)) = (are_visible, str::from_utf8(text)) {
        return text.into();
    }
    let mut limited = String::with_capacity(text.len());
    for &octet in text {
        if octet.is_ascii_graphic() {
            limited.push(char::from(octet));
        } else {
            limited.extend(octet.escape_ascii().map(char::from));
        }
    }
    limited.into()
}

/// The refusals of one route with one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalGroup {
    /// The code.
    pub code: Code,
    /// The name of the route, if the requests took one.
    pub route: Option<Box<str>>,
    /// The number of refusals that are kept.
    pub count: usize,
    /// The time of the latest one.
    pub last: SystemTime,
}

/// The last refusals, within limits.
#[derive(Debug)]
pub struct RefusalLog {
    entries_max: usize,
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The oldest first.
    refusals: VecDeque<KeptRefusal>,
    bytes: usize,
}

impl RefusalLog {
    fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self { entries_max, bytes_max, kept: Mutex::default() }
    }

    /// Keeps a refusal. The oldest ones make room for it.
    pub fn keep(&self, refusal: KeptRefusal) {
        let mut kept = self.kept.lock();
        kept.bytes += refusal.bytes();
        kept.refusals.push_back(refusal);
        while kept.refusals.len() > self.entries_max || kept.bytes > self.bytes_max {
            let Some(oldest) = kept.refusals.pop_front() else { break };
            kept.bytes -= oldest.bytes();
        }
    }

    /// Returns the refusal of the request with this id.
    pub fn find(&self, id: RequestId) -> Option<KeptRefusal> {
        self.kept.lock().refusals.iter().rev().find(|refusal| refusal.id == id).cloned()
    }

    /// Returns at most `limit` of the last refusals, the latest first: those of the resource with this key, or all.
    pub fn last(&self, key: Option<&str>, limit: usize) -> Vec<KeptRefusal> {
        let kept = self.kept.lock();
        let key = key.map(|key| limited(key.as_bytes()));
        let is_wanted = |refusal: &&KeptRefusal| key.is_none() || refusal.key.as_deref() == key.as_deref();
        kept.refusals.iter().rev().filter(is_wanted).take(limit).cloned().collect()
    }

    /// Returns how often each route refused with each code, the most frequent first.
    pub fn groups(&self) -> Vec<RefusalGroup> {
        let mut groups = HashMap::<(Code, Option<Box<str>>), (usize, SystemTime)>::new();
        for refusal in &self.kept.lock().refusals {
            let group = groups.entry((refusal.code, refusal.route.clone())).or_insert((0, refusal.at));
            *group = (group.0 + 1, group.1.max(refusal.at));
        }
        let group = |((code, route), (count, last))| RefusalGroup { code, route, count, last };
        let mut groups: Vec<_> = groups.into_iter().map(group).collect();
        groups.sort_by(|one, other| (other.count, other.last, &one.route).cmp(&(one.count, one.last, &other.route)));
        groups
    }

    /// Returns the last write of the resource whose outcome was unknown when its client was answered, at one of these times.
    pub fn last_doubted(&self, key: &str, at: RangeInclusive<SystemTime>) -> Option<KeptRefusal> {
        let key = limited(key.as_bytes());
        // A retry that meets the doubt reports it too, but was not sent.
        let was_sent = |refusal: &KeptRefusal| matches!(refusal.code.status().as_u16(), 502 | 504);
        let kept = self.kept.lock();
        let mut recent = kept.refusals.iter().rev().filter(|refusal| at.contains(&refusal.at));
        recent.find(|refusal| refusal.in_doubt && was_sent(refusal) && refusal.key.as_deref() == Some(&*key)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(id: u64, path: &str) -> KeptRefusal {
        let (method, key) = (Method::PUT, ResourceKey::from_text(path));
        let request = RefusedRequest {
            method: Some(&method),
            path: path.as_bytes(),
            route: Some("docs"),
            policy: None,
            key: Some(&key),
            trace_id: None,
            client: RequestClient::default(),
        };
        KeptRefusal::new(RequestId(id), SystemTime::UNIX_EPOCH, &request, Refusal::new(Code::LeaseHeld, ""))
    }

    fn ids(refusals: &[KeptRefusal]) -> Vec<u64> {
        refusals.iter().map(|refusal| refusal.id.0).collect()
    }

    #[test]
    fn the_oldest_refusal_goes_when_there_are_too_many() {
        let log = RefusalLog::new(2, usize::MAX);
        for id in 1..=3 {
            log.keep(refused(id, "/a"));
        }
        assert_eq!(ids(&log.last(None, 10)), [3, 2]);
        assert!(log.find(RequestId(1)).is_none());
    }

    #[test]
    fn the_oldest_refusals_go_when_they_take_too_many_bytes() {
        let log = RefusalLog::new(usize::MAX, 2 * refused(0, "/a").bytes());
        log.keep(refused(1, "/a"));
        log.keep(refused(2, "/a"));
        assert_eq!(ids(&log.last(None, 10)), [2, 1]);
        log.keep(refused(3, "/b/"));
        assert_eq!(ids(&log.last(None, 10)), [3], "a longer one takes the room of both");
        assert_eq!(log.kept.lock().bytes, refused(3, "/b/").bytes());
    }

    #[test]
    fn a_refusal_is_found_by_its_id_and_by_its_resource() {
        let log = RefusalLog::new(10, usize::MAX);
        for (id, path) in [(1, "/a"), (2, "/b"), (3, "/a")] {
            log.keep(refused(id, path));
        }
        assert_eq!(log.find(RequestId(2)).map(|found| found.path), Some("/b".into()));
        assert_eq!(ids(&log.last(Some("/a"), 10)), [3, 1]);
        assert_eq!(ids(&log.last(Some("/a"), 1)), [3]);
        assert_eq!(ids(&log.last(Some("/none"), 10)), [0; 0]);
    }

    #[test]
    fn refusals_are_grouped_by_code_and_route() {
        let log = RefusalLog::new(10, usize::MAX);
        let later = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (seconds, code, route) in [
            (1, Code::LeaseHeld, Some("docs")),
            (2, Code::PreconditionFailed, Some("docs")),
            (3, Code::PreconditionFailed, Some("docs")),
            (4, Code::PreconditionFailed, None),
        ] {
            log.keep(KeptRefusal { at: later(seconds), code, route: route.map(Into::into), ..refused(seconds, "/a") });
        }
        let group = |code, route: Option<&str>, count, seconds| RefusalGroup {
            code,
            route: route.map(Into::into),
            count,
            last: later(seconds),
        };
        let expected = [
            group(Code::PreconditionFailed, Some("docs"), 2, 3),
            group(Code::PreconditionFailed, None, 1, 4),
            group(Code::LeaseHeld, Some("docs"), 1, 1),
        ];
        assert_eq!(log.groups(), expected);
    }

    #[test]
    fn long_and_strange_paths_are_cut_and_escaped() {
        assert_eq!(refused(1, &"x".repeat(5_000)).path.len(), TEXT_BYTES_MAX);
        assert_eq!(&*limited(b"/a\x1b\xff"), "/a\\x1b\\xff");
    }

    #[test]
    fn a_refusal_is_found_by_every_key() {
        let log = RefusalLog::new(10, usize::MAX);
        let keys = ["docs:/it's", "docs:/a\"b\\c", &"x".repeat(5_000)];
        for (id, key) in (1..).zip(keys) {
            log.keep(refused(id, key));
            assert_eq!(ids(&log.last(Some(key), 10)), [id], "{key}");
        }
    }
}
