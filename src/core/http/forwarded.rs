//! The request fields that tell the upstream who the client is (Forwarded of RFC 7239, and the older X-Forwarded
//! fields).
//!
//! A client's claims about itself prove nothing. So the proxy writes these fields anew, unless the request came from a
//! trusted proxy. In that case it appends to them, and keeps their scheme and host.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::fields::is_of_client;

/// The addresses that a request came through, the client's first.
pub const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The scheme by which the client came.
pub const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// The host that the client named.
pub const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// The port that the client named.
pub const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");

/// The selection of fields that the upstream gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardedFields {
    /// X-Forwarded-For and the other X-Forwarded fields.
    pub x_forwarded: bool,
    /// The standard field Forwarded.
    pub standard: bool,
}

/// The connection that a request came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address of the peer; `None` for a Unix socket.
    pub address: Option<IpAddr>,
    /// True if the peer is a trusted proxy.
    pub is_trusted: bool,
    /// True if the connection is secured by TLS.
    pub is_secure: bool,
}

/// Returns the fields that tell who a client is ([`is_of_client`]), as the upstream gets them. The caller removes all
/// others of them from the request.
pub fn told(headers: &HeaderMap, peer: Peer, wanted: ForwardedFields) -> HeaderMap {
    let mut told = HeaderMap::new();
    if peer.is_trusted {
        for (name, value) in headers.iter().filter(|(name, _)| is_of_client(name)) {
            told.append(name.clone(), value.clone());
        }
    }
    let scheme = if peer.is_secure { "https" } else { "http" };
    let host = headers.get(header::HOST).cloned();
    if wanted.x_forwarded {
        if let Some(address) = peer.address {
            extend(&mut told, &FOR, &address.to_canonical().to_string());
        }
        // Part of a trusted proxy's view and part of this one would together name a place that does not exist.
        let is_told = told.contains_key(&PROTO) || told.contains_key(&HOST);
        if let (Some(host), false) = (&host, is_told) {
            let port = port(host).unwrap_or(if peer.is_secure { 443 } else { 80 });
            told.entry(PORT).or_insert_with(|| port.into());
        }
        told.entry(PROTO).or_insert(HeaderValue::from_static(scheme));
        if let Some(host) = host.clone() {
            told.entry(HOST).or_insert(host);
        }
    }
    if wanted.standard {
        extend(&mut told, &header::FORWARDED, &element(peer.address, host.as_ref(), scheme));
    }
    told
}

/// Returns the client behind trusted proxies: the last address in X-Forwarded-For that is not one of theirs.
pub fn client(headers: &HeaderMap, peer: IpAddr, is_trusted: impl Fn(IpAddr) -> bool) -> IpAddr {
    if !is_trusted(peer) {
        return peer;
    }
    let lines = headers.get_all(FOR).iter().filter_map(|line| line.to_str().ok());
    let addresses = lines.flat_map(|line| line.split(',')).map(|each| address(each.trim())).collect::<Vec<_>>();
    let mut last = peer;
    for each in addresses.into_iter().rev() {
        let Some(each) = each else { break };
        last = each;
        if !is_trusted(each) {
            break;
        }
    }
    last
}

/// Reads an address as proxies write it, perhaps with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let parsed = bare.parse::<IpAddr>().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|with| with.ip()));
    parsed.map(|address| address.to_canonical())
}

/// Appends a value to a list field.
fn extend(told: &mut HeaderMap, name: &HeaderName, value: &str) {
    let lines = told.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
    let list = [lines.as_slice(), &[value.as_bytes()]].concat().join(&b", "[..]);
    // A list of field values and addresses is always a valid field value.
    if let Ok(list) = HeaderValue::from_bytes(&list) {
        told.insert(name.clone(), list);
    }
}

/// Returns the element of Forwarded for one hop (RFC 7239 section 4).
fn element(address: Option<IpAddr>, host: Option<&HeaderValue>, scheme: &str) -> String {
    let node = match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => address.to_string(),
        // The colons and brackets are allowed only in a quoted string (section 6).
        Some(IpAddr::V6(address)) => format!("\"[{address}]\""),
        None => "unknown".to_owned(),
    };
    let host = host.and_then(|host| host.to_str().ok()).map(|host| format!(";host={}", quoted(host)));
    format!("for={node}{};proto={scheme}", host.unwrap_or_default())
}

/// Returns a text as a token, or as a quoted string if it is no token (RFC 9110 section 5.6).
fn quoted(text: &str) -> String {
    let is_token = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet);
    if !text.is_empty() && text.bytes().all(is_token) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn port(host: &HeaderValue) -> Option<u16> {
    let (name, port) = host.to_str().ok()?.rsplit_once(':')?;
    // The last colon inside a bracketed address does not precede a port.
    if name.starts_with('[') && !name.ends_with(']') { None } else { port.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: ForwardedFields = ForwardedFields { x_forwarded: true, standard: true };

    fn headers(fields: &[(HeaderName, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn peer(address: &str, is_trusted: bool) -> Peer {
        Peer { address: address.parse().ok(), is_trusted, is_secure: false }
    }

    fn shown(told: &HeaderMap) -> Vec<(&str, &str)> {
        let mut shown: Vec<_> = told.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        shown.sort_unstable();
        shown
    }

    /// RFC 7239 section 8.1: the fields that a client sent cannot be trusted.
    #[test]
    fn what_a_client_says_of_itself_is_replaced() {
        let spoofed = headers(&[
            (header::HOST, "docs.test:8080"),
            (FOR, "10.0.0.1"),
            (PROTO, "https"),
            (HOST, "admin.test"),
            (PORT, "443"),
            (header::FORWARDED, "for=10.0.0.1;proto=https"),
            (HeaderName::from_static("x-real-ip"), "10.0.0.1"),
            (HeaderName::from_static("x-forwarded-prefix"), "/admin"),
        ]);
        assert_eq!(
            shown(&told(&spoofed, peer("192.0.2.7", false), BOTH)),
            [
                ("forwarded", "for=192.0.2.7;host=\"docs.test:8080\";proto=http"),
                ("x-forwarded-for", "192.0.2.7"),
                ("x-forwarded-host", "docs.test:8080"),
                ("x-forwarded-port", "8080"),
                ("x-forwarded-proto", "http"),
            ]
        );
    }

    #[test]
    fn a_field_that_is_not_wanted_is_not_left_to_the_client() {
        let spoofed = headers(&[(header::HOST, "h"), (FOR, "10.0.0.1"), (header::FORWARDED, "for=10.0.0.1")]);
        let standard = ForwardedFields { x_forwarded: false, standard: true };
        let told = told(&spoofed, peer("192.0.2.7", false), standard);
        assert_eq!(shown(&told), [("forwarded", "for=192.0.2.7;host=h;proto=http")]);
    }

    #[test]
    fn what_a_trusted_proxy_says_is_continued() {
        let mut sent = headers(&[(header::HOST, "inner"), (FOR, "192.0.2.7"), (PROTO, "https"), (HOST, "docs.test")]);
        sent.append(FOR, HeaderValue::from_static("10.0.0.2"));
        sent.insert(header::FORWARDED, HeaderValue::from_static("for=192.0.2.7;proto=https"));
        assert_eq!(
            shown(&told(&sent, peer("10.0.0.1", true), BOTH)),
            [
                ("forwarded", "for=192.0.2.7;proto=https, for=10.0.0.1;host=inner;proto=http"),
                ("x-forwarded-for", "192.0.2.7, 10.0.0.2, 10.0.0.1"),
                ("x-forwarded-host", "docs.test"),
                ("x-forwarded-proto", "https"),
            ]
        );
    }

    /// RFC 7239 section 6: an IPv6 address is in brackets, and therefore in quotes.
    #[test]
    fn addresses_are_written_as_each_field_has_them() {
        let host = headers(&[(header::HOST, "[::1]")]);
        let told_of = |address| told(&host, Peer { is_secure: true, ..peer(address, false) }, BOTH);
        let v6 = told_of("2001:db8::7");
        assert_eq!(v6[header::FORWARDED], "for=\"[2001:db8::7]\";host=\"[::1]\";proto=https");
        assert_eq!((&v6[FOR], &v6[PORT]), (&HeaderValue::from_static("2001:db8::7"), &HeaderValue::from_static("443")));
        assert_eq!(told_of("::ffff:192.0.2.7")[FOR], "192.0.2.7");
        let unix = told_of("a unix socket");
        assert_eq!(unix[header::FORWARDED], "for=unknown;host=\"[::1]\";proto=https");
        assert!(!unix.contains_key(FOR));
    }

    #[test]
    fn a_client_is_the_last_who_is_no_trusted_proxy() {
        let trusted = |address: IpAddr| address.to_string().starts_with("10.");
        let client_of = |fields: &'static str, peer: &str| {
            client(&headers(&[(FOR, fields)]), peer.parse().unwrap(), trusted).to_string()
        };
        assert_eq!(client_of("10.0.0.9", "192.0.2.7"), "192.0.2.7");
        assert_eq!(client_of("198.51.100.1, 192.0.2.7, 10.0.0.2", "10.0.0.1"), "192.0.2.7");
        assert_eq!(client_of("[2001:db8::7]:4711, 10.0.0.2", "10.0.0.1"), "2001:db8::7");
        assert_eq!(client_of("what, 10.0.0.2", "10.0.0.1"), "10.0.0.2");
    }
}
