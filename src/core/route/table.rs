//! The table of all routes, in the order in which they are tried.

use super::{
    super::target::NormalPath,
    host::{HostPattern, host_name},
    path::{PathPattern, Segment},
    relation::{host_order, path_order},
};

/// All routes of a configuration. The most specific one wins, in whatever order they were given.
#[derive(Clone, Debug)]
pub struct RouteTable {
    hosts: Vec<HostRoutes>,
}

/// The routes of one host pattern, the most specific path first.
#[derive(Clone, Debug)]
struct HostRoutes {
    host: HostPattern,
    routes: Vec<TableRoute>,
}

#[derive(Clone, Debug)]
struct TableRoute {
    path: PathPattern,
    index: usize,
}

/// The route of a request.
#[derive(Clone, Debug)]
pub struct RouteMatch<'a> {
    /// The index of the route in the patterns that the table was made from.
    pub index: usize,
    /// The captures of the route's pattern.
    pub captures: Captures<'a>,
}

/// The parts of a path that the captures of its route's pattern name, in normal form. They are cut out on demand.
#[derive(Clone, Copy, Debug)]
pub struct Captures<'a> {
    pattern: &'a PathPattern,
    path: &'a NormalPath,
}

impl RouteTable {
    /// The table of these patterns. Of two that match the same targets, an unspecified one wins.
    pub fn new(patterns: Vec<(HostPattern, PathPattern)>) -> Self {
        let mut hosts: Vec<HostRoutes> = Vec::new();
        for (index, (host, path)) in patterns.into_iter().enumerate() {
            let route = TableRoute { path, index };
            match hosts.iter_mut().find(|group| group.host == host) {
                Some(group) => group.routes.push(route),
                None => hosts.push(HostRoutes { host, routes: vec![route] }),
            }
        }
        hosts.sort_by(|a, b| host_order(&a.host, &b.host));
        for group in &mut hosts {
            group.routes.sort_by(|a, b| path_order(&a.path, &b.path));
        }
        Self { hosts }
    }

    /// The route of a request, by its host as received and its path in normal form.
    pub fn find<'a>(&'a self, host: &str, path: &'a NormalPath) -> Option<RouteMatch<'a>> {
        let route = self.first_match(host, path.as_str().as_bytes(), |_| true)?;
        Some(RouteMatch { index: route.index, captures: Captures { pattern: &route.path, path } })
    }

    /// The index of the route that a path takes as spelled: cut at each `/`, its literals compared octet by octet.
    ///
    /// Empty segments and dot segments count, but a `{name}` takes no empty one; one trailing slash does not count.
    /// If this and [`RouteTable::find`] name two different routes for a target, the target is ambiguous.
    pub fn find_raw(&self, host: &str, raw_path: &[u8]) -> Option<usize> {
        let spelled = match raw_path {
            [path @ .., b'/'] if !path.is_empty() => path,
            path => path,
        };
        self.first_match(host, spelled, |segment| !segment.is_empty()).map(|route| route.index)
    }

    fn first_match(&self, host: &str, path: &[u8], may_capture: impl Fn(&[u8]) -> bool) -> Option<&TableRoute> {
        let relative = path.strip_prefix(b"/")?;
        let name = host_name(host);
        let groups = self.hosts.iter().filter(|group| group.host.matches_name(name));
        groups.flat_map(|group| &group.routes).find(|route| matches_path(&route.path, relative, &may_capture))
    }
}

impl<'a> Captures<'a> {
    /// The text that this name stands for; for a `{*rest}` it may hold slashes or be empty.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(captured, _)| *captured == name).map(|(_, text)| text)
    }

    /// All names with their texts, in the order of the pattern.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        let mut rest = self.path.as_str().strip_prefix('/').unwrap_or_default();
        self.pattern.segments().iter().filter_map(move |segment| match segment {
            Segment::Rest(name) => Some((name.as_str(), rest)),
            Segment::Literal(_) | Segment::Capture(_) => {
                let (text, following) = rest.split_once('/').unwrap_or((rest, ""));
                rest = following;
                match segment {
                    Segment::Capture(name) => Some((name.as_str(), text)),
                    _ => None,
                }
            }
        })
    }
}

/// Whether a pattern matches a path that is given without its leading slash.
fn matches_path(pattern: &PathPattern, relative: &[u8], may_capture: impl Fn(&[u8]) -> bool) -> bool {
    // An empty relative path is the root, which has no segment, not one empty segment.
    let mut rest = if relative.is_empty() { None } else { Some(relative) };
    for segment in pattern.segments() {
        if matches!(segment, Segment::Rest(_)) {
            return true;
        }
        let Some(remaining) = rest else { return false };
        let mut parts = remaining.splitn(2, |&octet| octet == b'/');
        let text = parts.next().unwrap_or_default();
        rest = parts.next();
        match segment {
            Segment::Literal(literal) if literal.as_bytes() != text => return false,
            Segment::Capture(_) if !may_capture(text) => return false,
            _ => {}
        }
    }
    rest.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::target::{PathParameters, normalize};

    fn table(patterns: &[(&str, &str)]) -> RouteTable {
        let parse =
            |(host, path): &(&str, &str)| (HostPattern::parse(host).unwrap(), PathPattern::parse(path).unwrap());
        RouteTable::new(patterns.iter().map(parse).collect())
    }

    fn normal(path: &str) -> NormalPath {
        normalize(path.as_bytes(), PathParameters::Keep).unwrap()
    }

    const ROUTES: [(&str, &str); 9] = [
        ("*", "/{*rest}"),
        ("*", "/documents/{id}"),
        ("*", "/documents/new"),
        ("*", "/documents"),
        ("*", "/documents/{id}/{*rest}"),
        ("*.example.com", "/documents/{id}"),
        ("*.docs.example.com", "/{*rest}"),
        ("a.docs.example.com", "/documents/{id}"),
        ("*", "/"),
    ];

    const EXPECTED: [(&str, &str, usize); 13] = [
        ("localhost", "/", 8),
        ("localhost", "/x", 0),
        ("localhost", "/documents", 3),
        ("localhost", "/documents/", 3),
        ("localhost", "/documents/42", 1),
        ("localhost", "/documents/%6eew", 2),
        ("localhost", "/documents/42/", 1),
        ("localhost", "/documents/42/a/b", 4),
        ("x.example.com", "/documents/new", 5),
        ("x.example.com", "/documents", 3),
        ("x.docs.example.com", "/documents/new", 6),
        ("a.docs.example.com:8080", "/documents/new", 7),
        ("A.docs.example.com.", "/x", 6),
    ];

    #[test]
    fn the_most_specific_route_wins_whatever_their_order() {
        for shift in 0..ROUTES.len() {
            let mut routes = ROUTES;
            routes.rotate_left(shift);
            for routes in [routes, {
                routes.reverse();
                routes
            }] {
                let table = table(&routes);
                for (host, path, expected) in EXPECTED {
                    let path = normal(path);
                    let index = table.find(host, &path).unwrap().index;
                    assert_eq!(routes[index], ROUTES[expected], "{host} {}", path.as_str());
                }
            }
        }
    }

    #[test]
    fn a_request_that_no_pattern_matches_has_no_route() {
        let table = table(&[("docs.example.com", "/documents/{id}"), ("*", "/a/{b}/c")]);
        for (host, path) in [("other", "/documents/1"), ("docs.example.com", "/documents"), ("x", "/a/b"), ("x", "/")] {
            assert!(table.find(host, &normal(path)).is_none(), "{host} {path}");
        }
    }

    #[test]
    fn captures_are_cut_out_of_the_normal_form() {
        let table = table(&[("*", "/{tenant}/files/{*rest}"), ("*", "/documents/{id}")]);
        let cases: [(&str, &[(&str, &str)]); 4] = [
            ("/a%7e/files/b//%c3%a9/", &[("tenant", "a~"), ("rest", "b/%C3%A9")]),
            ("/a/files", &[("tenant", "a"), ("rest", "")]),
            ("/documents/a%20b/", &[("id", "a%20b")]),
            ("/documents/../documents/1", &[("id", "1")]),
        ];
        for (path, expected) in cases {
            let path = normal(path);
            let captures = table.find("h", &path).unwrap().captures;
            assert_eq!(captures.iter().collect::<Vec<_>>(), expected);
            assert_eq!(captures.get(expected[0].0), Some(expected[0].1));
            assert_eq!(captures.get("other"), None);
        }
    }

    #[test]
    fn a_path_as_spelled_takes_its_route_octet_by_octet() {
        let table = table(&[("*", "/{*rest}"), ("*", "/documents/{id}"), ("*", "/"), ("*", "/caf%C3%A9")]);
        let cases: [(&[u8], Option<usize>); 13] = [
            (b"/", Some(2)),
            (b"/documents/1", Some(1)),
            (b"/documents/1/", Some(1)),
            (b"/documents/..", Some(1)),
            (b"/documents/\xff", Some(1)),
            (b"/documents/", Some(0)),
            (b"/documents//", Some(0)),
            (b"/documents//1", Some(0)),
            (b"/%64ocuments/1", Some(0)),
            (b"/x/../documents/1", Some(0)),
            (b"/caf%C3%A9", Some(3)),
            (b"/caf%c3%a9", Some(0)),
            (b"documents/1", None),
        ];
        for (spelled, expected) in cases {
            assert_eq!(table.find_raw("h", spelled), expected, "{}", spelled.escape_ascii());
        }
    }
}
