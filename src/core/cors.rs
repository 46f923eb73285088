//! What a page of another origin may see and send, where the upstream lets it in (CORS, in the Fetch standard).
//!
//! A browser hides every response field that `Access-Control-Expose-Headers` does not name, and sends no request field
//! that the answer to its preflight does not allow. The upstream cannot name ours, so they are added to what it says;
//! which origins are let in stays its own decision.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Response fields that a page needs to take part.
const EXPOSED: [&str; 4] = ["ETag", "Retry-After", "Proxy-Status", "Idempotent-Replayed"];
/// The same where there are leases.
const EXPOSED_OF_LEASES: [&str; 5] =
    ["Lease-Id", "Lease-Duration", "Lease-Time", "Fencing-Token", "Preference-Applied"];
/// Request fields that a page needs to take part.
const ALLOWED: [&str; 7] =
    ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Prefer", "Idempotency-Key"];
/// The same where there are leases.
const ALLOWED_OF_LEASES: [&str; 5] =
    ["Lease-Id", "Proposed-Lease-Id", "Lease-Duration", "Lease-Holder", "Lease-Break-Period"];
/// The methods of operations on leases.
const METHODS_OF_LEASES: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// The fields by which an upstream lets an origin in, for any response to it.
const GRANT: [HeaderName; 2] = [header::ACCESS_CONTROL_ALLOW_ORIGIN, header::ACCESS_CONTROL_ALLOW_CREDENTIALS];

/// Whether a request with method OPTIONS asks what another one may be.
pub fn is_preflight(request: &HeaderMap) -> bool {
    request.contains_key(header::ORIGIN) && request.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether a response lets the origin in that asked.
pub fn is_granted(response: &HeaderMap) -> bool {
    response.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN)
}

/// What is to be said of our response fields: the new value of `Access-Control-Expose-Headers`, if it changes.
pub fn exposed(response: &HeaderMap, with_leases: bool) -> Option<HeaderValue> {
    merged(response, &header::ACCESS_CONTROL_EXPOSE_HEADERS, names(&EXPOSED, &EXPOSED_OF_LEASES, with_leases))
}

/// What is to be said of our request fields in the answer to a preflight: the new value of
/// `Access-Control-Allow-Headers`, if it changes.
pub fn allowed(response: &HeaderMap, with_leases: bool) -> Option<HeaderValue> {
    merged(response, &header::ACCESS_CONTROL_ALLOW_HEADERS, names(&ALLOWED, &ALLOWED_OF_LEASES, with_leases))
}

/// The same for the methods of operations on leases, and `Access-Control-Allow-Methods`.
pub fn allowed_for_leases(response: &HeaderMap) -> Option<HeaderValue> {
    merged(response, &header::ACCESS_CONTROL_ALLOW_METHODS, METHODS_OF_LEASES.into_iter())
}

/// `Access-Control-Request-Headers` without our request fields, which upstreams refuse that do not know them. `None`
/// where nothing is left.
pub fn asked_of_upstream(preflight: &HeaderMap) -> Option<HeaderValue> {
    let ours = |name: &&str| {
        let mut known = ALLOWED.iter().chain(&ALLOWED_OF_LEASES);
        known.any(|known| known.eq_ignore_ascii_case(name))
    };
    let left = members(preflight, &header::ACCESS_CONTROL_REQUEST_HEADERS).filter(|name| !ours(name));
    let left = left.collect::<Vec<_>>().join(",");
    HeaderValue::from_str(&left).ok().filter(|_| !left.is_empty())
}

/// What a response tells of its origin that holds for our own answers to it too; empty where it is not let in.
pub fn grant(response: &HeaderMap) -> HeaderMap {
    let mut grant = HeaderMap::new();
    for name in GRANT.iter().filter(|_| is_granted(response)) {
        if let Some(value) = response.get(name) {
            grant.insert(name.clone(), value.clone());
        }
    }
    grant
}

/// The fields of an answer of our own to an origin that the upstream has let in so.
pub fn own_answer(grant: &HeaderMap, with_leases: bool) -> HeaderMap {
    let mut fields = grant.clone();
    if let Some(exposed) = exposed(&fields, with_leases) {
        fields.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    if fields.get(header::ACCESS_CONTROL_ALLOW_ORIGIN).is_some_and(|origin| origin != "*") {
        // Another origin is answered something else.
        fields.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    fields
}

fn names(always: &'static [&str], of_leases: &'static [&str], with_leases: bool) -> impl Iterator<Item = &'static str> {
    always.iter().chain(of_leases.iter().filter(move |_| with_leases)).copied()
}

/// A list field with those of `ours` that are missing in it; `None` where none is, or a wildcard names them all.
fn merged(response: &HeaderMap, field: &HeaderName, ours: impl Iterator<Item = &'static str>) -> Option<HeaderValue> {
    let mut list: Vec<&str> = members(response, field).collect();
    // For a request with credentials `*` is the name of a field.
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
    use crate::core::fields::of;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(field).collect()
    }

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

    /// Fetch, section 3.3.4: for a request with credentials `*` is no wildcard.
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
        assert!(!to_all.contains_key("vary"), "everybody gets the same");
        assert!(grant(&fields(&[("access-control-allow-credentials", "true")])).is_empty());
    }
}
