//! The host of a route (RFC 9110 section 7.2).

use std::{fmt, net::Ipv6Addr};

use super::PatternProblem;

/// The hosts that a route matches. Names are in lower case, without a port or a trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// All hosts: `*`, or no `host` at all.
    Any,
    /// One host: `docs.example.com`.
    Exact(String),
    /// All hosts below a domain, at any depth, but not the domain itself: `*.example.com`, kept as `example.com`.
    Suffix(String),
}

impl HostPattern {
    /// The pattern that a configuration spells as `*`, `*.example.com` or `docs.example.com`, in any case.
    pub fn parse(spelled: &str) -> Result<Self, PatternProblem> {
        if spelled == "*" {
            return Ok(Self::Any);
        }
        let host = spelled.strip_suffix('.').unwrap_or(spelled).to_ascii_lowercase();
        let pattern = match host.strip_prefix("*.") {
            Some(domain) => Self::Suffix(domain.to_owned()),
            None => Self::Exact(host),
        };
        match &pattern {
            Self::Exact(name) | Self::Suffix(name) => check_host(name)?,
            Self::Any => {}
        }
        Ok(pattern)
    }

    /// True if the pattern matches a host as a request names it: perhaps with a port, in any case, perhaps with a
    /// trailing dot.
    pub fn matches(&self, host: &str) -> bool {
        self.matches_name(host_name(host))
    }

    /// Like [`HostPattern::matches`], but for a host that [`host_name`] has reduced to its name.
    pub(super) fn matches_name(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(host) => host.eq_ignore_ascii_case(name),
            Self::Suffix(domain) => match name.len().checked_sub(domain.len()).and_then(|at| name.split_at_checked(at))
            {
                Some((labels, tail)) => labels.len() > 1 && labels.ends_with('.') && domain.eq_ignore_ascii_case(tail),
                None => false,
            },
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("*"),
            Self::Exact(host) => formatter.write_str(host),
            Self::Suffix(domain) => write!(formatter, "*.{domain}"),
        }
    }
}

/// A host without its port and trailing dot, in its original case. An IPv6 address keeps its brackets.
pub(in crate::core) fn host_name(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|octet| octet.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// True if a request can name this host: a name or an address, perhaps with a port (RFC 9110 section 7.2), or nothing.
///
/// The check is stricter than the grammar. Some forms occur in no name in use: an encoding, an empty label, a port
/// above 65535. One backend ignores them and another does not, so the route taken may not be the one served.
pub fn is_host(named: &str) -> bool {
    let (name, port) = match named.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) if address.parse::<Ipv6Addr>().is_ok() => return true,
        Some((address, rest)) => match rest.strip_prefix(':') {
            Some(port) if address.parse::<Ipv6Addr>().is_ok() => return is_port(port),
            _ => return false,
        },
        None => {
            let (name, rest) = named.split_at(named.bytes().position(|octet| octet == b':').unwrap_or(named.len()));
            (name, rest.get(1..).unwrap_or_default())
        }
    };
    let is_label = |label: &[u8]| {
        !label.is_empty()
            && label.iter().all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'~'))
    };
    let relative = name.strip_suffix('.').unwrap_or(name);
    // Names are short: a search for one octet costs more than a look at each.
    is_port(port) && (named.is_empty() || relative.as_bytes().split(|octet| *octet == b'.').all(is_label))
}

/// True if a text can follow the colon: a number, or nothing (RFC 3986 section 3.2.3).
fn is_port(port: &str) -> bool {
    port.is_empty() || port.bytes().all(|octet| octet.is_ascii_digit()) && port.parse::<u16>().is_ok()
}

/// Checks that a lower-case name can be a host, without wildcard and port.
fn check_host(name: &str) -> Result<(), PatternProblem> {
    let address = name.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    if address.is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()) {
        return Ok(());
    }
    if name.contains('*') {
        return Err(PatternProblem::new("the wildcard of a host stands for whole labels at its beginning")
            .hint("write \"*.example.com\", or the whole host"));
    }
    if host_name(name) != name {
        return Err(
            PatternProblem::new("a host is matched without its port").hint(format!("write {:?}", host_name(name)))
        );
    }
    if !name.is_ascii() {
        return Err(PatternProblem::new("a host is ASCII").hint("write the \"xn--\" form that clients send"));
    }
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_'))
    };
    if !name.split('.').all(is_label) {
        return Err(PatternProblem::new("this is not the name of a host").hint("write it as \"docs.example.com\""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(spelled: &str) -> HostPattern {
        HostPattern::parse(spelled).unwrap()
    }

    /// RFC 9110 section 4.2.3: case and port do not make another host.
    #[test]
    fn a_host_matches_in_any_case_with_and_without_port_and_trailing_dot() {
        for host in [
            "docs.example.com",
            "DOCS.example.com",
            "docs.example.com:8080",
            "docs.example.com.",
            "docs.example.com.:80",
        ] {
            assert!(pattern("Docs.Example.com.").matches(host), "{host}");
        }
        for host in
            ["", "example.com", "xdocs.example.com", "docs.example.com.org", "docs.example.com:x", "docs.example.com.."]
        {
            assert!(!pattern("docs.example.com").matches(host), "{host}");
        }
    }

    #[test]
    fn a_wildcard_matches_below_a_domain_but_not_the_domain() {
        for host in ["a.example.com", "a.b.EXAMPLE.com:443", "a.example.com."] {
            assert!(pattern("*.example.com").matches(host), "{host}");
        }
        for host in ["example.com", ".example.com", "aaexample.com", "com", "", "a.example.com.org", "éxample.com"] {
            assert!(!pattern("*.example.com").matches(host), "{host}");
        }
        assert!(HostPattern::Any.matches(""));
    }

    /// RFC 9110 section 7.2. A backend that cuts off what it cannot read serves another host than the one that was
    /// routed.
    #[test]
    fn a_host_of_a_request_has_one_reading() {
        for host in [
            "",
            "a",
            "docs.example.com",
            "DOCS.example.com.:80",
            "a:",
            "a:065",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:8080",
            "a_b-c",
        ] {
            assert!(is_host(host), "{host}");
        }
        for host in [
            "docs.example.com:x",
            "docs.example.com:80:80",
            "docs.example.com:80.",
            "docs.example.com:80 ",
            "docs.example.com:+80",
            "docs.example.com:-1",
            "docs.example.com:65536",
            "docs.example.com..",
            ".docs.example.com",
            "docs..com",
            ".",
            ":80",
            "docs.example.com,a",
            "docs%2eexample.com",
            "a b",
            "a/b",
            "u@a",
            "[::1",
            "[::1]80",
            "[::1]:x",
            "[::1]]",
            "[a]",
            "[]",
            "::1",
            "b\u{fc}cher",
        ] {
            assert!(!is_host(host), "{host}");
        }
    }

    #[test]
    fn an_address_keeps_its_brackets() {
        assert!(pattern("[::1]").matches("[::1]:8080"));
        assert!(pattern("127.0.0.1").matches("127.0.0.1:80"));
        assert!(!pattern("[::1]").matches("[::2]"));
    }

    #[test]
    fn patterns_are_shown_as_they_are_spelled() {
        for spelled in ["*", "*.example.com", "docs.example.com", "[::1]"] {
            assert_eq!(pattern(spelled).to_string(), spelled);
        }
    }

    #[test]
    fn what_is_no_host_is_a_problem() {
        let cases = [
            ("docs.example.com:80", "a host is matched without its port"),
            ("docs.*.com", "the wildcard of a host stands for whole labels at its beginning"),
            ("*docs.example.com", "the wildcard of a host stands for whole labels at its beginning"),
            ("bücher.example", "a host is ASCII"),
            ("", "this is not the name of a host"),
            ("*.", "the wildcard of a host stands for whole labels at its beginning"),
            ("*..", "this is not the name of a host"),
            ("http://docs", "this is not the name of a host"),
            ("docs/a", "this is not the name of a host"),
            ("[docs]", "this is not the name of a host"),
        ];
        for (spelled, message) in cases {
            assert_eq!(HostPattern::parse(spelled).unwrap_err().message, message, "{spelled:?}");
        }
    }
}
