//! The fields that a page of another origin may read and send if the upstream admits it (CORS, in the Fetch standard).
//!
//! A browser hides every response field that `Access-Control-Expose-Headers` does not name, and sends no request
//! field that the answer to its preflight does not allow. The upstream does not name the proxy's fields, so the proxy
//! adds them to the upstream's list. The upstream alone decides which origins it admits.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::core::lease::field_names::{
    DELETE_PENDING, FENCING_TOKEN, LEASE_ACCESS, LEASE_BREAK_PERIOD, LEASE_DURATION, LEASE_EXPIRES, LEASE_HOLDER,
    LEASE_ID, LEASE_MODE, LEASE_SHARE, LEASE_STATE, LEASE_TIME, PROPOSED_LEASE_ID,
};

/// Response fields of the proxy that a page must be able to read.
const EXPOSED: [&str; 4] = ["ETag", "Retry-After", "Proxy-Status", "Idempotent-Replayed"];
/// Like [`EXPOSED`], but only on routes with leases.
const EXPOSED_OF_LEASES: [&str; 9] = [
    "Content-Location",
    LEASE_ID.title,
    LEASE_DURATION.title,
    LEASE_EXPIRES.title,
    LEASE_TIME.title,
    LEASE_STATE.title,
    LEASE_HOLDER.title,
    FENCING_TOKEN.title,
    "Preference-Applied",
];
/// Request fields of the proxy that a page must be able to send.
const ALLOWED: [&str; 7] =
    ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Prefer", "Idempotency-Key"];
/// Like [`ALLOWED`], but only on routes with leases.
const ALLOWED_OF_LEASES: [&str; 9] = [
    LEASE_ID.title,
    PROPOSED_LEASE_ID.title,
    DELETE_PENDING.title,
    LEASE_DURATION.title,
    LEASE_MODE.title,
    LEASE_ACCESS.title,
    LEASE_SHARE.title,
    LEASE_HOLDER.title,
    LEASE_BREAK_PERIOD.title,
];
/// The methods of lease operations.
const METHODS_OF_LEASES: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// The fields by which an upstream admits an origin, in any response.
const GRANT: [HeaderName; 2] = [header::ACCESS_CONTROL_ALLOW_ORIGIN, header::ACCESS_CONTROL_ALLOW_CREDENTIALS];

/// True if a request with method OPTIONS is a preflight.
pub fn is_preflight(request: &HeaderMap) -> bool {
    request.contains_key(header::ORIGIN) && request.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// True if a response admits the origin of its request.
pub fn is_granted(response: &HeaderMap) -> bool {
    response.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN)
}

/// Returns the value of `Access-Control-Expose-Headers` with the proxy's response fields added, if it changes.
pub fn exposed(response: &HeaderMap, with_leases: bool) -> Option<HeaderValue> {
    merged(response, &header::ACCESS_CONTROL_EXPOSE_HEADERS, names(&EXPOSED, &EXPOSED_OF_LEASES, with_leases))
}

/// Returns the value of `Access-Control-Allow-Headers` with the proxy's request fields added, for the answer to a
/// preflight, if it changes.
pub fn allowed(response: &HeaderMap, with_leases: bool) -> Option<HeaderValue> {
    merged(response, &header::ACCESS_CONTROL_ALLOW_HEADERS, names(&ALLOWED, &ALLOWED_OF_LEASES, with_leases))
}

/// Like [`allowed`], but for `Access-Control-Allow-Methods` and the methods of lease operations.
pub fn allowed_for_leases(response: &HeaderMap) -> Option<HeaderValue> {
    merged(response, &header::ACCESS_CONTROL_ALLOW_METHODS, METHODS_OF_LEASES.into_iter())
}

/// Returns `Access-Control-Request-Headers` without the proxy's request fields, since an upstream that does not know
/// them refuses them. Returns `None` if no field is left.
pub fn asked_of_upstream(preflight: &HeaderMap) -> Option<HeaderValue> {
    let ours = |name: &&str| {
        let mut known = ALLOWED.iter().chain(&ALLOWED_OF_LEASES);
        known.any(|known| known.eq_ignore_ascii_case(name))
    };
    let left = members(preflight, &header::ACCESS_CONTROL_REQUEST_HEADERS).filter(|name| !ours(name));
    let left = left.collect::<Vec<_>>().join(",");
    HeaderValue::from_str(&left).ok().filter(|_| !left.is_empty())
}

/// Returns the fields of a response that admit its origin to the proxy's own answers too. Empty if the response does
/// not admit it.
pub fn grant(response: &HeaderMap) -> HeaderMap {
    let mut grant = HeaderMap::new();
    for name in GRANT.iter().filter(|_| is_granted(response)) {
        if let Some(value) = response.get(name) {
            grant.insert(name.clone(), value.clone());
        }
    }
    grant
}

/// Returns the fields of the proxy's own answer to an origin that the upstream has admitted with `grant`.
pub fn own_answer(grant: &HeaderMap, with_leases: bool) -> HeaderMap {
    let mut fields = grant.clone();
    if let Some(exposed) = exposed(&fields, with_leases) {
        fields.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    if fields.get(header::ACCESS_CONTROL_ALLOW_ORIGIN).is_some_and(|origin| origin != "*") {
        // Another origin gets another answer.
        fields.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    fields
}

fn names(always: &'static [&str], of_leases: &'static [&str], with_leases: bool) -> impl Iterator<Item = &'static str> {
    always.iter().chain(of_leases.iter().filter(move |_| with_leases)).copied()
}

/// Returns a list field with the missing names of `ours` added. Returns `None` if none is missing or a wildcard names
/// them all.
fn merged(response: &HeaderMap, field: &HeaderName, ours: impl Iterator<Item = &'static str>) -> Option<HeaderValue> {
    let mut list: Vec<&str> = members(response, field).collect();
    // For a request with credentials, `*` is an ordinary field name.
    let with_credentials = response.get(header::ACCESS_CONTROL_ALLOW_CREDENTIALS).is_some_and(|value| value == "true");
    if list.contains(&"*") && !with_credentials {
        return None;
    }
    let before = list.len();
    for name in ours {
        if !list.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            list.push(name);
        }
    }
    (list.len() > before).then(|| HeaderValue::from_str(&list.join(", ")).ok())?
}

fn members<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = fields.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::http::fields::of, testing::fields};

    #[test]
    fn ours_are_added_to_what_the_upstream_names() {
        let response = fields(&[("access-control-expose-headers", "X-Total, etag")]);
        assert_eq!(exposed(&response, false).unwrap(), "X-Total, etag, Retry-After, Proxy-Status, Idempotent-Replayed");
        assert!(exposed(&response, true).unwrap().to_str().unwrap().ends_with("Fencing-Token, Preference-Applied"));
        let response = fields(&[("access-control-allow-headers", "content-type")]);
        let allowed = allowed(&response, false).unwrap();
        assert!(allowed.to_str().unwrap().starts_with("content-type, If-Match, If-None-Match, "));
        let all = fields(&[("access-control-expose-headers", "ETag,Retry-After , proxy-status,IDEMPOTENT-REPLAYED")]);
        assert_eq!(exposed(&all, false), None);
    }

    /// Fetch, section 3.3.4: for a request with credentials, `*` is no wildcard.
    #[test]
    fn a_wildcard_names_ours_too_but_not_with_credentials() {
        let response = fields(&[("access-control-expose-headers", "*")]);
        assert_eq!(exposed(&response, false), None);
        let lines = [("access-control-expose-headers", "*"), ("access-control-allow-credentials", "true")];
        assert_eq!(exposed(&fields(&lines), false).unwrap(), "*, ETag, Retry-After, Proxy-Status, Idempotent-Replayed");
    }

    #[test]
    fn what_a_page_may_send_is_judged() {
        for name in ALLOWED.iter().chain(&ALLOWED_OF_LEASES) {
            assert!(of(&name.to_ascii_lowercase()).is_some_and(|field| field.is_judged), "{name}");
        }
    }

    #[test]
    fn the_upstream_is_not_asked_about_our_fields() {
        let asked = |list| asked_of_upstream(&fields(&[("access-control-request-headers", list)]));
        assert_eq!(asked("content-type,if-match,x-a").unwrap(), "content-type,x-a");
        assert_eq!(asked("If-Match, lease-id"), None);
        assert_eq!(asked_of_upstream(&HeaderMap::new()), None);
    }

    #[test]
    fn our_own_answer_lets_in_whom_the_upstream_lets_in() {
        let response = fields(&[
            ("access-control-allow-origin", "https://a.test"),
            ("access-control-allow-credentials", "true"),
            ("access-control-max-age", "60"),
            ("vary", "Accept"),
        ]);
        let own = own_answer(&grant(&response), false);
        assert_eq!(own["access-control-allow-origin"], "https://a.test");
        assert_eq!(own["access-control-allow-credentials"], "true");
        assert_eq!(own["access-control-expose-headers"], "ETag, Retry-After, Proxy-Status, Idempotent-Replayed");
        assert_eq!(own["vary"], "Origin");
        assert_eq!(own.len(), 4);
        let to_all = own_answer(&grant(&fields(&[("access-control-allow-origin", "*")])), false);
        assert!(!to_all.contains_key("vary"), "every origin gets the same answer");
        assert!(grant(&fields(&[("access-control-allow-credentials", "true")])).is_empty());
    }
}
