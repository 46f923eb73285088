//! The fields that answers get, and those that stand for others.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{
    BLOB_PREFIX, CLIENT_REQUEST_ID, DEFAULT_VERSION, LEASE_DURATION, LEASE_STATE, LEASE_STATUS, REQUEST_ID, VERSION,
    refusals::bad_field,
};
use crate::core::{
    lease::{LeaseDuration, LeaseState},
    records::record::Snapshot,
    refusal::Refusal,
};

/// The maximum length of a request id that a client chooses.
const CLIENT_REQUEST_ID_MAX_BYTES: usize = 1024;

/// Returns the fields of every answer: the version of the interface, the id of the request, and the id that the client
/// chose.
pub fn common_fields(request: &HeaderMap, id: Option<String>) -> Vec<(HeaderName, HeaderValue)> {
    let version = request.get(VERSION).cloned().unwrap_or(DEFAULT_VERSION);
    let mut fields = vec![(VERSION, version)];
    // The text of an id is always a valid value.
    fields.extend(id.and_then(|id| HeaderValue::try_from(id).ok()).map(|id| (REQUEST_ID, id)));
    let echoed = request.get(CLIENT_REQUEST_ID).filter(|id| id.len() <= CLIENT_REQUEST_ID_MAX_BYTES);
    fields.extend(echoed.map(|id| (CLIENT_REQUEST_ID, id.clone())));
    fields
}

/// Returns the fields that show the lease to a reader. They never contain the id.
pub fn lease_fields(snapshot: &Snapshot) -> Vec<(HeaderName, HeaderValue)> {
    let state = snapshot.lease_state();
    let status = if state.is_held() { "locked" } else { "unlocked" };
    let mut fields =
        vec![(LEASE_STATE, HeaderValue::from_static(state.word())), (LEASE_STATUS, HeaderValue::from_static(status))];
    let duration = snapshot.lease().filter(|_| state == LeaseState::Leased).map(|lease| lease.duration);
    fields.extend(duration.map(|duration| {
        let word = if duration == LeaseDuration::Infinite { "infinite" } else { "fixed" };
        (LEASE_DURATION, HeaderValue::from_static(word))
    }));
    fields
}

/// Returns the value of a field that may occur at most once.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (_, Some(_)) => Err(bad_field(name.as_str(), "one value")),
        (value, None) => Ok(value),
    }
}

/// Returns the HTTP field that a blob property stands for.
pub(super) fn standing_for(name: &HeaderName) -> Option<HeaderName> {
    match name.as_str().strip_prefix(BLOB_PREFIX)? {
        "content-type" => Some(header::CONTENT_TYPE),
        "content-encoding" => Some(header::CONTENT_ENCODING),
        "content-language" => Some(header::CONTENT_LANGUAGE),
        "content-disposition" => Some(header::CONTENT_DISPOSITION),
        "cache-control" => Some(header::CACHE_CONTROL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lease::{
        Action,
        testing::{Resource, acquire, fixed, id},
    };

    fn told(request: &[(HeaderName, &str)]) -> Vec<(String, String)> {
        let request = request.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        texts(&common_fields(&request, Some("a1".to_owned())))
    }

    fn texts(fields: &[(HeaderName, HeaderValue)]) -> Vec<(String, String)> {
        fields.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn an_answer_repeats_what_the_client_says_of_itself() {
        let own = pair("x-ms-request-id", "a1");
        assert_eq!(told(&[]), [pair("x-ms-version", "2021-12-02"), own.clone()]);
        let request = [(VERSION, "2024-11-04"), (CLIENT_REQUEST_ID, "mine")];
        let expected = [pair("x-ms-version", "2024-11-04"), own.clone(), pair("x-ms-client-request-id", "mine")];
        assert_eq!(told(&request), expected);
        let long = "a".repeat(CLIENT_REQUEST_ID_MAX_BYTES + 1);
        assert_eq!(told(&[(CLIENT_REQUEST_ID, &long)]), [pair("x-ms-version", "2021-12-02"), own]);
    }

    #[test]
    fn a_read_tells_the_state_of_the_lease_and_its_kind_while_it_is_held() {
        let mut resource = Resource::new();
        let seen = |resource: &Resource| {
            texts(&lease_fields(&resource.snapshot)).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(seen(&resource), ["available", "unlocked"]);
        resource.must(acquire(Some(id(1)), fixed(60)));
        assert_eq!(seen(&resource), ["leased", "locked", "fixed"]);
        resource.must(acquire(Some(id(1)), LeaseDuration::Infinite));
        assert_eq!(seen(&resource), ["leased", "locked", "infinite"]);
        resource.must(acquire(Some(id(1)), fixed(60)));
        resource.must(Action::Break { period: None });
        assert_eq!(seen(&resource), ["breaking", "locked"]);
        resource.pass_seconds(60);
        assert_eq!(seen(&resource), ["broken", "unlocked"]);
        resource.must(acquire(Some(id(1)), fixed(60)));
        resource.pass_seconds(60);
        assert_eq!(seen(&resource), ["expired", "unlocked"]);
    }
}
