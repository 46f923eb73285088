//! Access control: the checks before any answer.
//!
//! # Design
//!
//! *What can a page in a browser on the same machine do?* It can send requests to any address. Under its own name, if
//! that name is made to resolve to this listener (DNS rebinding): therefore the listener refuses unknown names. Across
//! origins: therefore every unsafe method needs a field that a page of another origin cannot send without a preflight
//! request, and the listener never grants one. `Origin`, which browsers add themselves, must name this very listener.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
    header::{self, AsHeaderName},
    uri::Authority,
};

use super::{answer::AdminProblem, token::Token};
use crate::config::Listen;

/// The field of every request that changes something; its value has no meaning.
pub const ADMIN_FIELD: HeaderName = HeaderName::from_static("ifmatch-admin");

/// The field in which browsers classify the page that sent a request (Fetch Metadata).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The paths that probes request, beside `OPTIONS /`, the default of `option httpchk`. Probes have no token and call the
/// listener what they like: some send no Host, others the address of a machine. A client that does not use its name
/// learns only yes or no.
const HEALTH: [&str; 4] = ["/livez", "/readyz", "/readyz/reads", "/readyz/writes"];

/// The page, and the beginning of the paths of its parts. They need no token either: the page holds no data until it gets
/// one.
const PAGE: &str = "/";
const PAGE_PARTS: &str = "/console/";

/// The rules by which requests are let in.
pub(super) struct Access {
    names: Vec<String>,
    /// True if the listener accepts connections on every address of the machine.
    any_address: bool,
    token: Option<Token>,
}

impl Access {
    /// Builds the rules of a listener.
    pub(super) fn new(listen: &Listen, hosts: &[String], token: Option<Token>) -> Self {
        let mut names = vec!["localhost".to_owned()];
        names.extend_from_slice(hosts);
        let mut any_address = false;
        if let Listen::Tcp(address) = listen {
            let host = address.parse::<Authority>().map(|authority| authority.host().to_owned()).unwrap_or_default();
            any_address = address_of(&host).is_some_and(|address| address.is_unspecified());
            names.push(host);
        }
        Self { names, any_address, token }
    }

    /// Lets a request in, or returns the reason for refusing it.
    pub(super) fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), AdminProblem> {
        let is_default_check = method == Method::OPTIONS && uri.path() == PAGE;
        if is_default_check || method.is_safe() && HEALTH.contains(&uri.path()) {
            return Ok(());
        }
        let host = host(uri, headers).filter(|host| self.is_known(host.host()));
        let Some(host) = host else {
            return Err(AdminProblem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "unknown-host",
                "the admin listener is not known by this name: use localhost or its address, or add the name to \
                 admin.hosts",
            ));
        };
        let is_page = uri.path() == PAGE || uri.path().starts_with(PAGE_PARTS);
        if self.token.as_ref().is_some_and(|token| !is_page && !token.is_in(headers)) {
            let problem = AdminProblem::new(
                StatusCode::UNAUTHORIZED,
                "token-required",
                "send the token of the admin listener as Authorization: Bearer",
            );
            return Err(problem.with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        if method.is_safe() { Ok(()) } else { is_own(&host, headers) }
    }

    /// True if a request calls the listener by one of its names.
    pub(super) fn is_known_as(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        host(uri, headers).is_some_and(|host| self.is_known(host.host()))
    }

    fn is_known(&self, host: &str) -> bool {
        let address = address_of(host);
        address.is_some_and(|address| address.is_loopback() || self.any_address)
            || self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Checks that a request which changes something comes from a tool, or from the listener's own page.
fn is_own(host: &Authority, headers: &HeaderMap) -> Result<(), AdminProblem> {
    let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes);
    let own = ["http", "https"].map(|scheme| format!("{scheme}://{host}"));
    let is_of_own_page = origin.is_none_or(|origin| own.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(origin)));
    let is_of_own_site = headers.get(SITE).is_none_or(|site| site == "same-origin" || site == "none");
    if !is_of_own_page || !is_of_own_site {
        return Err(AdminProblem::new(
            StatusCode::FORBIDDEN,
            "other-origin",
            "a page of another origin may change nothing",
        ));
    }
    if !headers.contains_key(ADMIN_FIELD) {
        let detail = "add the header field Ifmatch-Admin: 1, which pages of other origins cannot send";
        return Err(AdminProblem::new(StatusCode::FORBIDDEN, "admin-field-missing", detail));
    }
    Ok(())
}

/// Returns the name by which a request calls the listener.
fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let field = only(headers, header::HOST)?.to_str().ok()?.parse::<Authority>().ok()?;
    let is_same = uri.authority().is_none_or(|authority| *authority == field);
    (is_same && !field.as_str().contains('@')).then_some(field)
}

fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(listen: &str) -> Access {
        Access::new(&Listen::Tcp(listen.to_owned()), &["admin.example".to_owned()], None)
    }

    fn judged(access: &Access, method: &Method, fields: &[(&str, &str)]) -> Result<(), u16> {
        let headers = fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        access.judge(method, &Uri::from_static("/leases"), &headers).map_err(|problem| problem.status().as_u16())
    }

    #[test]
    fn only_known_names_lead_here() {
        let access = access("192.0.2.7:9901");
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:9901", "127.8.8.8", "[::1]:9901", "192.0.2.7:9901"] {
            assert_eq!(judged(&access, &Method::GET, &[("host", host)]), Ok(()), "{host}");
        }
        assert_eq!(judged(&access, &Method::GET, &[("host", "Admin.example:443")]), Ok(()));
        for host in ["evil.example", "localhost.evil.example", "192.0.2.8", "a@localhost", "", "127.0.0.1.evil.example"]
        {
            assert_eq!(judged(&access, &Method::GET, &[("host", host)]), Err(421), "{host}");
        }
        assert_eq!(judged(&access, &Method::GET, &[]), Err(421));
        assert_eq!(judged(&access, &Method::GET, &[("host", "localhost"), ("host", "localhost")]), Err(421));
    }

    #[test]
    fn a_probe_may_call_it_what_it_likes() {
        let access = access("192.0.2.7:9901");
        let strange = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("evil.example"))]);
        for path in HEALTH {
            let uri = path.parse().unwrap();
            for (method, judged) in
                [(Method::GET, true), (Method::HEAD, true), (Method::OPTIONS, true), (Method::POST, false)]
            {
                assert_eq!(access.judge(&method, &uri, &HeaderMap::new()).is_ok(), judged, "{method} {path}");
                assert_eq!(access.judge(&method, &uri, &strange).is_ok(), judged, "{method} {path}");
            }
            assert!(!access.is_known_as(&uri, &strange) && !access.is_known_as(&uri, &HeaderMap::new()));
        }
    }

    /// `option httpchk` without a path.
    #[test]
    fn options_of_the_root_is_a_probe_and_no_other_method_there() {
        let (access, root) = (access("192.0.2.7:9901"), Uri::from_static("/"));
        assert!(access.judge(&Method::OPTIONS, &root, &HeaderMap::new()).is_ok());
        for method in [Method::GET, Method::HEAD, Method::POST] {
            assert!(access.judge(&method, &root, &HeaderMap::new()).is_err(), "{method}");
        }
    }

    /// A kubelet sends the address of the pod as Host; a page always has a name.
    #[test]
    fn where_all_addresses_are_listened_on_each_is_known() {
        assert_eq!(judged(&access("0.0.0.0:9901"), &Method::GET, &[("host", "198.51.100.4:9901")]), Ok(()));
        assert_eq!(judged(&access("[::]:9901"), &Method::GET, &[("host", "evil.example")]), Err(421));
    }

    #[test]
    fn what_changes_something_needs_the_field() {
        let access = access("127.0.0.1:9901");
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            assert_eq!(judged(&access, &method, &[("host", "localhost")]), Err(403));
            assert_eq!(judged(&access, &method, &[("host", "localhost"), ("ifmatch-admin", "1")]), Ok(()));
        }
    }

    #[test]
    fn a_page_of_another_origin_changes_nothing() {
        let access = access("127.0.0.1:9901");
        let post = |name, value| {
            judged(&access, &Method::POST, &[("host", "localhost:9901"), ("ifmatch-admin", "1"), (name, value)])
        };
        for origin in ["http://localhost:3000", "http://evil.example", "null", "", "http://localhost", "file://"] {
            assert_eq!(post("origin", origin), Err(403), "{origin}");
        }
        assert_eq!(post("origin", "http://localhost:9901"), Ok(()));
        assert_eq!(post("sec-fetch-site", "cross-site"), Err(403));
        assert_eq!(post("sec-fetch-site", "same-site"), Err(403));
        assert_eq!(post("sec-fetch-site", "same-origin"), Ok(()));
    }
}
