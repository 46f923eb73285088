//! References in responses that name resources by the upstream's names (RFC 9110 sections 10.2.2 and 8.7, RFC 8288).

use http::{HeaderName, HeaderValue, header};
use pingora::http::{RequestHeader, ResponseHeader};

use crate::config::{HostHeader, Route};

/// Fields that hold a single reference.
const SINGLE: [HeaderName; 2] = [header::LOCATION, header::CONTENT_LOCATION];

/// Rewrites the references of `Location`, `Content-Location` and `Link` in a response so that they lead the client
/// back here. Needed if the route renames resources ([`Route::renames_resources`]).
pub fn rewrite_references(response: &mut ResponseHeader, route: &Route, client: &RequestHeader) -> pingora::Result<()> {
    let host = client.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    for name in &SINGLE {
        let value = response.headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(changed) = value.and_then(|reference| reference_to_client(reference, route, host)) {
            response.insert_header(name.clone(), changed)?;
        }
    }
    let links = response.headers.get_all(header::LINK).iter().cloned().collect::<Vec<_>>();
    if links.is_empty() {
        return Ok(());
    }
    response.remove_header(&header::LINK);
    for line in links {
        let changed =
            line.to_str().ok().map(|line| links_to_client(line, |each| reference_to_client(each, route, host)));
        let changed = changed.and_then(|changed| HeaderValue::from_str(&changed).ok());
        response.append_header(header::LINK, changed.unwrap_or(line))?;
    }
    Ok(())
}

/// Returns the reference that the client is to follow, or `None` if it stays unchanged.
pub fn reference_to_client(reference: &str, route: &Route, host: &str) -> Option<String> {
    let upstream = &route.upstream;
    let is_own = |authority: &str| match &upstream.host_header {
        HostHeader::Preserve => false,
        HostHeader::Upstream => upstream.servers.iter().any(|server| is_same(server, authority)),
        HostHeader::Named(name) => is_same(name, authority),
    };
    route.mapping.reference_to_client(reference, host, is_own)
}

/// True if two authorities are the same, with or without their default ports.
fn is_same(one: &str, other: &str) -> bool {
    let bare = |authority: &str| authority.strip_suffix(":80").or(authority.strip_suffix(":443")).map(str::to_owned);
    one.eq_ignore_ascii_case(other)
        || bare(one).unwrap_or(one.to_owned()).eq_ignore_ascii_case(&bare(other).unwrap_or(other.to_owned()))
}

/// Rewrites the references in the value of `Link`: the text between `<` and `>`, outside quoted parameters.
fn links_to_client(line: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let (mut changed, mut rest, mut is_quoted) = (String::with_capacity(line.len()), line, false);
    while let Some(at) = rest.find(['<', '"', '\\']) {
        let (before, from) = rest.split_at(at);
        changed.push_str(before);
        let mut after = from.chars();
        match after.next() {
            Some('<') if !is_quoted => {
                let Some((reference, behind)) = after.as_str().split_once('>') else {
                    changed.push_str(from);
                    return changed;
                };
                changed.push('<');
                changed.push_str(change(reference).as_deref().unwrap_or(reference));
                changed.push('>');
                rest = behind;
                continue;
            }
            // In a quoted pair, the second character stands for itself.
            Some('\\') if is_quoted => {
                changed.push('\\');
                changed.extend(after.next());
            }
            Some(other) => {
                is_quoted ^= other == '"';
                changed.push(other);
            }
            None => {}
        }
        rest = after.as_str();
    }
    changed + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8288 section 3.
    #[test]
    fn each_link_is_changed_and_its_parameters_are_not() {
        let line = r#"</v1/a?b=1,2>; rel="next"; title="a <b> \"c\" </v1>", <x>; rel=prev, </v1/b>;rel=last"#;
        let changed = links_to_client(line, |each| each.strip_prefix("/v1").map(|rest| format!("/api{rest}")));
        let expected = r#"</api/a?b=1,2>; rel="next"; title="a <b> \"c\" </v1>", <x>; rel=prev, </api/b>;rel=last"#;
        assert_eq!(changed, expected);
    }

    #[test]
    fn what_is_no_link_stays() {
        for line in ["<", "</v1/a", "\"<", "a\\"] {
            assert_eq!(links_to_client(line, |_| Some("x".to_owned())), line);
        }
    }
}
