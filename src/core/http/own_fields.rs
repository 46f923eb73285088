//! The fields of a response that only this proxy writes: those of leases, fences and repeated answers, and its own
//! members of `Proxy-Status`. An upstream of a guarded route may not write them, because a client that reads them
//! believes this proxy.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::core::{lease::field_names, records::idempotency::REPLAYED};

/// The field in which the proxies on the way report the fate of a response (RFC 9209).
pub const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The name of this proxy in that field.
const OWN_NAME: &[u8] = b"ifmatch";

/// The beginning of the names of all fields about leases.
const OF_LEASES: &str = "lease-";

/// True if only this proxy writes a field of a response.
pub fn is_own(name: &HeaderName) -> bool {
    let of_leases = [field_names::FENCING_TOKEN.lower, field_names::PROPOSED_LEASE_ID.lower];
    name.as_str().starts_with(OF_LEASES) || of_leases.contains(&name.as_str()) || *name == REPLAYED
}

/// Returns `Proxy-Status` without the members of this proxy; `None` if nothing remains.
pub fn statuses_of_others(headers: &HeaderMap) -> Option<Vec<HeaderValue>> {
    let lines = headers.get_all(PROXY_STATUS);
    if !lines.iter().flat_map(members).any(is_own_member) {
        return None;
    }
    let of_others = |line| {
        let left = members(line).filter(|member| !is_own_member(member)).collect::<Vec<_>>().join(&b", "[..]);
        HeaderValue::from_bytes(&left).ok().filter(|left| !left.is_empty())
    };
    Some(lines.iter().filter_map(of_others).collect())
}

/// True if a member of `Proxy-Status` has the name of this proxy, as a token or as a string.
fn is_own_member(member: &[u8]) -> bool {
    let name = member.split(|octet| *octet == b';').next().unwrap_or_default().trim_ascii();
    name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name).eq_ignore_ascii_case(OWN_NAME)
}

/// Returns the members of a list, whose strings may contain commas (RFC 9651 section 3.1).
fn members(line: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    let (mut is_text, mut is_escaped) = (false, false);
    let ends_member = move |octet: &u8| {
        match *octet {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            octet => return octet == b',' && !is_text,
        }
        false
    };
    line.as_bytes().split(ends_member).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_leases_fences_and_replays_are_the_proxys_own() {
        for (name, expected) in [
            ("lease-id", true),
            ("lease-duration", true),
            ("lease-time", true),
            ("proposed-lease-id", true),
            ("fencing-token", true),
            ("idempotent-replayed", true),
            ("x-lease-id", false),
            ("idempotency-key", false),
            ("etag", false),
            ("proxy-status", false),
        ] {
            assert_eq!(is_own(&HeaderName::from_static(name)), expected, "{name}");
        }
    }

    #[test]
    fn other_proxies_keep_their_members() {
        for (lines, left) in [
            (&["edge; error=dns_error"][..], None),
            (&["edge; details=\"a, ifmatch\""], None),
            (&["edge; next-hop=ifmatch"], None),
            (&[], None),
            (&["ifmatch; error=http_request_denied"], Some(vec![])),
            (&["ifmatch"], Some(vec![])),
            (&["\"ifmatch\";error=a"], Some(vec![])),
            (&["IFMATCH ; error=a"], Some(vec![])),
            (&["edge, ifmatch; details=\"a, b\\\", c\", cache; hit"], Some(vec!["edge, cache; hit"])),
            (&["edge", "ifmatch", "cache"], Some(vec!["edge", "cache"])),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(PROXY_STATUS, HeaderValue::from_static(line));
            }
            let left = left.map(|left| left.into_iter().map(HeaderValue::from_static).collect::<Vec<_>>());
            assert_eq!(statuses_of_others(&headers), left, "{lines:?}");
        }
    }
}
