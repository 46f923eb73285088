//! The table of all routes: which one a request takes, and which ones share requests with another.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    super::http::request_target::{NormalPath, fold_spelled},
    host::{HostPattern, host_name},
    path::PathPattern,
    segment::Segment,
    tree::{PathTree, Relative},
};

/// All routes of a configuration. The most specific one wins, in any order of the configuration.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    paths: Vec<PathPattern>,
    exact: BTreeMap<String, PathTree>,
    /// The routes of all hosts below a domain.
    below: BTreeMap<String, PathTree>,
    any: PathTree,
    /// True if any pattern matches in any letter case.
    ignores_case: bool,
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
        let mut table = Self::default();
        for (index, (host, path)) in patterns.into_iter().enumerate() {
            let tree = match host {
                HostPattern::Exact(name) => table.exact.entry(name).or_default(),
                HostPattern::Suffix(domain) => table.below.entry(domain).or_default(),
                HostPattern::Any => &mut table.any,
            };
            tree.add(&path, index);
            table.ignores_case |= path.ignores_case();
            table.paths.push(path);
        }
        table
    }

    /// The route of a request, by its host as received and its path in normal form.
    pub fn find<'a>(&'a self, host: &str, path: &'a NormalPath) -> Option<RouteMatch<'a>> {
        let folded = self.ignores_case.then(|| path.folded());
        let folded = folded.as_ref().unwrap_or(path);
        let index = self.first_match(host, path.as_str().as_bytes(), folded.as_str().as_bytes(), &|_| true)?;
        Some(RouteMatch { index, captures: Captures { pattern: self.paths.get(index)?, path } })
    }

    /// The index of the route that a path takes as spelled: cut at each `/`, its literals compared octet by octet, or
    /// without regard to case if the route has none.
    ///
    /// Empty segments and dot segments count, but a `{name}` takes no empty one; one trailing slash does not count.
    /// If this and [`RouteTable::find`] name two different routes for a target, the target is ambiguous.
    pub fn find_raw(&self, host: &str, raw_path: &[u8]) -> Option<usize> {
        let spelled = match raw_path {
            [path @ .., b'/'] if !path.is_empty() => path,
            path => path,
        };
        let folded = self.ignores_case.then(|| fold_spelled(spelled));
        self.first_match(host, spelled, folded.as_deref().unwrap_or(spelled), &|segment| !segment.is_empty())
    }

    /// The indexes of the routes whose hosts and paths both have one in common with these, in ascending order.
    pub fn overlapping(&self, host: &HostPattern, path: &PathPattern) -> Vec<usize> {
        let mut found = Vec::new();
        let mut look = |tree: &PathTree| tree.overlapping(path, &mut found);
        match host {
            HostPattern::Exact(name) => self.of_host(name).for_each(&mut look),
            HostPattern::Suffix(domain) => {
                let is_wider = |other: &String| HostPattern::Suffix(other.clone()).matches_name(domain);
                let exact = self.exact.iter().filter(|(name, _)| host.matches_name(name));
                let below = self.below.iter();
                let below = below.filter(|(other, _)| *other == domain || host.matches_name(other) || is_wider(other));
                exact.chain(below).for_each(|(_, tree)| look(tree));
                look(&self.any);
            }
            HostPattern::Any => {
                self.exact.values().chain(self.below.values()).for_each(&mut look);
                look(&self.any);
            }
        }
        found.sort_unstable();
        found
    }

    fn first_match(
        &self,
        host: &str,
        path: &[u8],
        folded: &[u8],
        may_capture: &dyn Fn(&[u8]) -> bool,
    ) -> Option<usize> {
        let relative = Relative { spelled: path.strip_prefix(b"/")?, folded: folded.strip_prefix(b"/")? };
        self.of_host(host_name(host)).find_map(|tree| tree.find(relative, may_capture))
    }

    /// The routes of a host, those of the narrowest pattern first.
    fn of_host<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a PathTree> {
        // Most hosts are in lower case, as the patterns are.
        let is_lower = !name.bytes().any(|octet| octet.is_ascii_uppercase());
        let name = if is_lower { Cow::Borrowed(name) } else { Cow::Owned(name.to_ascii_lowercase()) };
        let exact = self.exact.get(&*name);
        // No domain is looked for where none is configured.
        let dots = if self.below.is_empty() { "" } else { &name };
        let domains = dots.match_indices('.').filter(|(at, _)| *at > 0).filter_map(|(at, _)| dots.get(at + 1..));
        let below: Vec<_> = domains.filter_map(|domain| self.below.get(domain)).collect();
        exact.into_iter().chain(below).chain([&self.any])
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
            Segment::Literal(_) | Segment::Capture { .. } => {
                let (text, following) = rest.split_once('/').unwrap_or((rest, ""));
                rest = following;
                match segment {
                    Segment::Capture { name, suffix } => Some((name.as_str(), suffix.cut_from(text))),
                    _ => None,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::http::request_target::{KeptInNames, normalize};

    fn table(patterns: &[(&str, &str)]) -> RouteTable {
        let parse =
            |(host, path): &(&str, &str)| (HostPattern::parse(host).unwrap(), PathPattern::parse(path).unwrap());
        RouteTable::new(patterns.iter().map(parse).collect())
    }

    fn normal(path: &str) -> NormalPath {
        normalize(path.as_bytes(), KeptInNames::ALL).unwrap()
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
        let table = table(&[
            ("*", "/{tenant}/files/{*rest}"),
            ("*", "/documents/{id}"),
            ("*", "/documents/{id}.json"),
            ("*", "/documents/{name}.min.json"),
        ]);
        let cases: [(&str, &[(&str, &str)]); 8] = [
            ("/a%7e/files/b//%c3%a9/", &[("tenant", "a~"), ("rest", "b/%C3%A9")]),
            ("/a/files", &[("tenant", "a"), ("rest", "")]),
            ("/documents/a%20b/", &[("id", "a%20b")]),
            ("/documents/../documents/1", &[("id", "1")]),
            ("/documents/1.json", &[("id", "1")]),
            ("/documents/a.b%2ejson", &[("id", "a.b")]),
            ("/documents/1.min.json", &[("name", "1")]),
            ("/documents/.json", &[("id", ".json")]),
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
