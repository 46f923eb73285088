//! Fields of requests that nobody on the way may take out (DESIGN, section 3, rule 14).
//!
//! What `Connection` names ends at this hop (RFC 9110 section 7.6.1). A field that a verdict was made by, or that the proxy
//! writes, must not end there: the upstream would apply what was never judged. A stale write whose `If-Match` the upstream
//! is to judge would go through as one without any.

use http::{HeaderMap, HeaderName, header};

/// The fields in which backends look for another method.
pub static METHOD_FIELDS: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
];

/// Fields that are judged, or that the proxy writes.
static KEPT: [HeaderName; 9] = [
    header::AUTHORIZATION,
    header::HOST,
    header::ORIGIN,
    header::RANGE,
    header::VIA,
    header::FORWARDED,
    HeaderName::from_static("fencing-token"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("proposed-lease-id"),
];

/// How the names of others begin: preconditions, leases, who the client is, and what Azure's clients say of all that.
const KEPT_BEGINNINGS: [&str; 4] = ["if-", "lease-", "x-forwarded-", "x-ms-"];

/// Whether `Connection` names a field that must reach the upstream as it was judged. `is_own` tells which others a route
/// judges by: who asks, and for what.
pub fn nominates_judged(headers: &HeaderMap, is_own: impl Fn(&HeaderName) -> bool) -> bool {
    let lines = headers.get_all(header::CONNECTION).iter();
    let options = lines.flat_map(|line| line.as_bytes().split(|octet| *octet == b','));
    let mut names = options.filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok());
    names.any(|name| is_kept(&name) || is_own(&name))
}

fn is_kept(name: &HeaderName) -> bool {
    KEPT.contains(name)
        || METHOD_FIELDS.contains(name)
        || KEPT_BEGINNINGS.iter().any(|beginning| name.as_str().starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn nominates(lines: &[&'static str]) -> bool {
        let lines = lines.iter().map(|line| (header::CONNECTION, HeaderValue::from_static(line)));
        nominates_judged(&lines.collect(), |name| name == "x-tenant")
    }

    #[test]
    fn connection_may_name_nothing_that_is_judged_or_written_here() {
        for name in [
            "If-Match",
            "if-none-match",
            "IF-MODIFIED-SINCE",
            "If-Range",
            "Lease-Id",
            "Lease-Duration",
            "Proposed-Lease-Id",
            "Idempotency-Key",
            "Fencing-Token",
            "Forwarded",
            "X-Forwarded-For",
            "X-Forwarded-Proto",
            "Via",
            "Host",
            "Authorization",
            "X-HTTP-Method-Override",
            "x-ms-lease-id",
            "X-Tenant",
        ] {
            assert!(nominates(&[name]), "{name}");
        }
        assert!(nominates(&["keep-alive,\tIf-Match , x"]) && nominates(&["close", "if-match"]));
    }

    #[test]
    fn connection_may_name_what_is_for_this_hop() {
        for line in
            ["", "close", "keep-alive", "Upgrade, HTTP2-Settings", "TE", "x-own, Keep-Alive", "if, \"if-match\""]
        {
            assert!(!nominates(&[line]), "{line}");
        }
        assert!(!nominates(&[]));
    }
}
