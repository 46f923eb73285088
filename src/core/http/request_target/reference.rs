//! The target that a reference in a response names, if the origin of the request has it (RFC 3986 section 4.2, RFC 9111
//! section 4.4).

/// The target in origin-form that `Location` or `Content-Location` names by `reference`; `None` if it lies in another
/// origin. `host` is that of the request, perhaps with a port, and `target` its target in origin-form.
///
/// Behind a TLS terminator, a proxy cannot know which scheme the client used, so `http` and `https` count as one. Dot
/// segments stay; [`normalize`](super::normalize) resolves them.
pub fn same_origin_target(reference: &str, host: &str, target: &str) -> Option<String> {
    let reference = reference.split('#').next().unwrap_or_default();
    if let Some(rest) = hierarchy(reference)? {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end)?;
        let is_same = without_default_port(authority).eq_ignore_ascii_case(without_default_port(host));
        let slash = if rest.starts_with('/') { "" } else { "/" };
        return is_same.then(|| format!("{slash}{rest}"));
    }
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    Some(match reference.bytes().next() {
        None => target.to_owned(),
        Some(b'/') => reference.to_owned(),
        Some(b'?') => format!("{path}{reference}"),
        Some(_) => {
            let (folder, _) = path.rsplit_once('/')?;
            format!("{folder}/{reference}")
        }
    })
}

/// Splits a reference into its scheme and authority with their delimiters, the authority alone if there is one, and
/// the rest. `None` for schemes other than `http` and `https`.
pub fn split_authority(reference: &str) -> Option<(&str, Option<&str>, &str)> {
    let Some(rest) = hierarchy(reference)? else { return Some(("", None, reference)) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (beginning, rest_of_it) = reference.split_at_checked(reference.len() - rest.len() + end)?;
    Some((beginning, rest.get(..end), rest_of_it))
}

/// The text after `//` if a reference names an authority, `Some(None)` if it names none; `None` for other schemes.
#[expect(clippy::option_option, reason = "another scheme, and no authority, are two things")]
fn hierarchy(reference: &str) -> Option<Option<&str>> {
    if let Some(rest) = reference.strip_prefix("//") {
        return Some(Some(rest));
    }
    let end = reference.find([':', '/', '?']);
    match end.and_then(|end| reference.split_at_checked(end)) {
        Some((scheme, rest)) if rest.starts_with(':') => {
            let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
            rest.strip_prefix("://").filter(|_| is_http).map(Some)
        }
        _ => Some(None),
    }
}

/// Returns an authority without the port that `http` or `https` has by default.
pub fn without_default_port(authority: &str) -> &str {
    authority.strip_suffix(":80").or_else(|| authority.strip_suffix(":443")).unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_resolved_against_the_request() {
        let cases = [
            ("/items/1", "/items/1"),
            ("1", "/items/1"),
            ("../a?b#c", "/items/../a?b"),
            ("?page=2", "/items/new?page=2"),
            ("", "/items/new?x=1"),
            ("http://h.test:8080/items/1?v=2", "/items/1?v=2"),
            ("HTTPS://H.test:8080", "/"),
            ("//h.test:8080/items/1", "/items/1"),
        ];
        for (reference, expected) in cases {
            let found = same_origin_target(reference, "h.test:8080", "/items/new?x=1");
            assert_eq!(found.as_deref(), Some(expected), "{reference}");
        }
        assert_eq!(same_origin_target("https://h.test:443/a", "h.test", "/").as_deref(), Some("/a"));
    }

    /// RFC 9111 section 4.4: a response must not speak for other origins.
    #[test]
    fn a_reference_to_another_origin_names_nothing() {
        for reference in
            ["http://other.test/items/1", "//other.test/a", "http://h.test:81/a", "mailto:a@h.test", "urn:a/b"]
        {
            assert_eq!(same_origin_target(reference, "h.test", "/items/new"), None, "{reference}");
        }
    }
}
