//! Responses to reads that this process remembers for local verdicts.
//!
//! The memory may be lost at any moment. A response in it counts only if the record shows that no write has begun or
//! ended since ([`Snapshot::touched`]).

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use moka::sync::Cache;

use super::digest_cache::{self, DigestCache};
use crate::core::{
    policy::GuardRules,
    records::record::{Revision, Snapshot, VariantName},
    tags::validators::Validators,
    time::StoreTime,
};

/// The approximate limit of all remembered responses, in bytes: enough for 100,000 responses of the usual size.
const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The age from which an equal response replaces a remembered one. To replace younger ones would cost an insertion
/// for each read.
const REFRESH_AFTER: Duration = Duration::from_secs(1);

/// The fields of a 200 that its 304 carries too (RFC 9110 section 15.4.5). Without some of them a browser hides the
/// answer from a page of another origin.
const NOT_MODIFIED_FIELDS: [HeaderName; 11] = [
    header::CACHE_CONTROL,
    header::CONTENT_LOCATION,
    header::DATE,
    header::ETAG,
    header::EXPIRES,
    header::VARY,
    header::VIA,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_EXPOSE_HEADERS,
    HeaderName::from_static("timing-allow-origin"),
];

/// One remembered response to GET or HEAD.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// The revision of the last event on the data path when the request was sent.
    pub(crate) touched: Revision,
    /// The request's values of the fields that the response's `Vary` names.
    pub(crate) selecting: Vec<(HeaderName, Vec<HeaderValue>)>,
    /// The validators of the response, as the client got them.
    pub(crate) validators: Validators,
    /// The fields of a 304 that confirms the response.
    pub(crate) fields: HeaderMap,
    /// The time until which the principal may know the response.
    pub(crate) until: StoreTime,
}

impl Remembered {
    /// True if the response is still current for a request with these fields.
    pub(crate) fn is_current(&self, snapshot: &Snapshot, request: &HeaderMap) -> bool {
        let is_selected = |(name, values): &(HeaderName, Vec<HeaderValue>)| request.get_all(name).iter().eq(values);
        snapshot.has_no_pending_writes()
            && self.touched == snapshot.touched()
            && snapshot.now < self.until
            && self.selecting.iter().all(is_selected)
    }

    /// True if it would gain nothing to remember a response with these validators anew, because this one is recent.
    pub(crate) fn is_as_good(&self, validators: &Validators, now: StoreTime, rules: &GuardRules) -> bool {
        self.validators == *validators && now.plus(rules.identity_ttl.saturating_sub(REFRESH_AFTER)) < self.until
    }

    fn weight(&self) -> u32 {
        let fields = self.fields.iter().map(|(name, value)| name.as_str().len() + value.len());
        let selecting = self.selecting.iter().flat_map(|(_, values)| values).map(HeaderValue::len);
        u32::try_from(fields.chain(selecting).sum::<usize>() + 300).unwrap_or(u32::MAX)
    }
}

/// The remembered responses, by the name of their variant before `Vary` counts.
pub(crate) struct Memory(DigestCache<VariantName, Arc<Remembered>>);

impl Memory {
    /// Starts without any responses.
    pub(crate) fn new() -> Self {
        let cache = Cache::builder().max_capacity(MEMORY_BYTES_MAX).weigher(|_, one: &Arc<Remembered>| one.weight());
        Self(digest_cache::build(cache))
    }

    /// The remembered response that is still current for a request.
    pub(crate) fn current(
        &self,
        name: VariantName,
        snapshot: &Snapshot,
        request: &HeaderMap,
    ) -> Option<Arc<Remembered>> {
        self.0.get(&name).filter(|remembered| remembered.is_current(snapshot, request))
    }

    /// Remembers a response.
    pub(crate) fn remember(&self, name: VariantName, response: Remembered) {
        self.0.insert(name, Arc::new(response));
    }
}

/// The fields of a response that its 304 carries too.
pub(crate) fn not_modified_fields(response: &HeaderMap) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for name in &NOT_MODIFIED_FIELDS {
        for value in response.get_all(name) {
            fields.append(name.clone(), value.clone());
        }
    }
    fields
}

/// The request's values of the fields that a response's `Vary` names; `None` for `*`.
pub(crate) fn selecting_fields(
    request: &HeaderMap,
    response: &HeaderMap,
) -> Option<Vec<(HeaderName, Vec<HeaderValue>)>> {
    let mut selecting = Vec::new();
    for line in response.get_all(header::VARY) {
        for member in line.as_bytes().split(|&octet| octet == b',').map(<[u8]>::trim_ascii) {
            if !member.is_empty() {
                let name = HeaderName::from_bytes(member).ok().filter(|name| name.as_str() != "*")?;
                let values = request.get_all(&name).iter().cloned().collect();
                selecting.push((name, values));
            }
        }
    }
    Some(selecting)
}

/// True if a response may be remembered: it is neither private nor forbidden to store.
pub(crate) fn is_shareable(response: &HeaderMap) -> bool {
    let forbids = |directive: &[u8]| {
        let name = directive.split(|&octet| octet == b'=').next().unwrap_or_default().trim_ascii();
        name.eq_ignore_ascii_case(b"private") || name.eq_ignore_ascii_case(b"no-store")
    };
    let lines = response.get_all(header::CACHE_CONTROL).iter();
    let is_private = lines.flat_map(|line| line.as_bytes().split(|&octet| octet == b',')).any(forbids);
    !is_private && !response.contains_key(header::SET_COOKIE)
}

/// True if the client requests an answer from the upstream itself (RFC 9111 section 5.2.1.4).
pub(crate) fn wants_upstream(request: &HeaderMap) -> bool {
    let is_no_cache = |directive: &[u8]| directive.trim_ascii().eq_ignore_ascii_case(b"no-cache");
    let lines = request.get_all(header::CACHE_CONTROL).iter().chain(request.get_all(header::PRAGMA));
    lines.flat_map(|line| line.as_bytes().split(|&octet| octet == b',')).any(is_no_cache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    fn remembered(selecting: Vec<(HeaderName, Vec<HeaderValue>)>) -> Remembered {
        Remembered {
            touched: Revision(3),
            selecting,
            validators: Validators::default(),
            fields: HeaderMap::new(),
            until: StoreTime::from_milliseconds(10),
        }
    }

    fn snapshot(touched: u64, now: u64) -> Snapshot {
        let record = crate::core::records::record::Record::absent(Revision(touched));
        Snapshot::new(Revision(touched), record, StoreTime::from_milliseconds(now))
    }

    #[test]
    fn a_response_is_current_until_a_write_begins_or_its_time_is_over() {
        let one = remembered(Vec::new());
        let request = HeaderMap::new();
        assert!(one.is_current(&snapshot(3, 9), &request));
        assert!(!one.is_current(&snapshot(4, 9), &request), "a write began or ended");
        assert!(!one.is_current(&snapshot(3, 10), &request), "the principal may no longer know it");
    }

    #[test]
    fn a_response_is_current_for_the_fields_that_selected_it() {
        let request = fields(&[("accept", "text/plain"), ("accept-language", "de")]);
        let response = fields(&[("vary", "Accept, ,"), ("vary", "origin")]);
        let one = remembered(selecting_fields(&request, &response).unwrap());
        assert!(one.is_current(&snapshot(3, 9), &fields(&[("accept", "text/plain"), ("accept-language", "fr")])));
        assert!(!one.is_current(&snapshot(3, 9), &fields(&[("accept", "text/html")])));
        assert!(!one.is_current(&snapshot(3, 9), &HeaderMap::new()));
        let elsewhere = fields(&[("accept", "text/plain"), ("origin", "https://other.example")]);
        assert!(!one.is_current(&snapshot(3, 9), &elsewhere));
    }

    #[test]
    fn what_varies_with_everything_is_never_selected_again() {
        assert_eq!(selecting_fields(&HeaderMap::new(), &fields(&[("vary", "accept, *")])), None);
    }

    #[test]
    fn private_responses_teach_nothing() {
        assert!(is_shareable(&fields(&[("cache-control", "max-age=0, public")])));
        assert!(!is_shareable(&fields(&[("cache-control", "max-age=0, Private")])));
        assert!(!is_shareable(&fields(&[("cache-control", "private=\"x-user\"")])));
        assert!(!is_shareable(&fields(&[("cache-control", "no-store")])));
        assert!(!is_shareable(&fields(&[("set-cookie", "a=b")])));
    }

    #[test]
    fn a_client_can_ask_past_the_memory() {
        assert!(wants_upstream(&fields(&[("cache-control", "max-age=0, no-cache")])));
        assert!(wants_upstream(&fields(&[("pragma", "no-cache")])));
        assert!(!wants_upstream(&fields(&[("cache-control", "max-age=0")])));
    }

    /// RFC 9110 section 15.4.5.
    #[test]
    fn a_304_carries_the_fields_that_caches_and_browsers_need() {
        let response = fields(&[
            ("cache-control", "max-age=1"),
            ("content-type", "text/plain"),
            ("etag", "\"a\""),
            ("access-control-allow-origin", "*"),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ]);
        let names: Vec<String> = not_modified_fields(&response).keys().map(ToString::to_string).collect();
        assert_eq!(names, ["cache-control", "etag", "access-control-allow-origin"]);
    }
}
