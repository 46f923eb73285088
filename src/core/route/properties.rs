//! Routes against brute force over a small universe: paths of up to three segments out of three words, and five hosts.
//! No pattern has more than two fixed segments or names the third word, so the universe tells all patterns apart.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    super::http::request_target::{KeptInNames, NormalPath, normalize},
    *,
};

const HOSTS: [&str; 5] = ["x.y.test", "z.y.test", "y.test", "test", "other"];
const HOST_PATTERNS: [&str; 6] = ["*", "*.test", "*.y.test", "x.y.test", "y.test", "other"];

type GeneratedRoute = (HostPattern, PathPattern);

/// All sequences of up to this many of the words, each word after a slash.
fn sequences(words: &[&str], longest: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for place in 0..longest {
        let append = |path: &String| {
            words
                .iter()
                .map(|word| format!("{path}/{word}").replace("{}", &format!("{{n{place}}}")))
                .collect::<Vec<_>>()
        };
        last = last.iter().flat_map(append).collect();
        all.extend_from_slice(&last);
    }
    all
}

fn paths() -> Vec<NormalPath> {
    let normal = |path: &String| normalize(format!("{path}/").as_bytes(), KeptInNames::NOTHING).unwrap();
    sequences(&["a", "b", "c"], 3).iter().map(normal).collect()
}

fn path_patterns() -> Vec<PathPattern> {
    let fixed = sequences(&["a", "b", "{}"], 2);
    let open = fixed.iter().map(|path| format!("{path}/{{*rest}}"));
    let closed = fixed.iter().map(|path| if path.is_empty() { "/".to_owned() } else { path.clone() });
    closed.chain(open).map(|path| PathPattern::parse(&path).unwrap()).collect()
}

fn routes() -> Vec<GeneratedRoute> {
    let hosts = HOST_PATTERNS.iter().map(|host| HostPattern::parse(host).unwrap());
    hosts.flat_map(|host| path_patterns().into_iter().map(move |path| (host.clone(), path))).collect()
}

/// The naive reading of a pattern as displayed.
fn path_matches(pattern: &PathPattern, path: &NormalPath) -> bool {
    let shown = pattern.to_string();
    let wanted: Vec<_> = shown.split('/').filter(|part| !part.is_empty()).collect();
    let given: Vec<_> = path.segments().collect();
    let open = wanted.last().is_some_and(|part| part.starts_with("{*"));
    let fixed = wanted.len() - usize::from(open);
    (if open { given.len() >= fixed } else { given.len() == fixed })
        && wanted.iter().zip(&given).all(|(part, text)| part.starts_with('{') || part == text)
}

fn host_matches(pattern: &HostPattern, host: &str) -> bool {
    match pattern.to_string().strip_prefix('*') {
        Some(tail) => host.ends_with(tail),
        None => pattern.to_string() == host,
    }
}

/// The relation of two sets, given as the membership of each element of the universe.
pub(super) fn relation_of_sets(a: &[bool], b: &[bool]) -> Relation {
    let is_there = |members| a.iter().zip(b).any(|(a, b)| (*a, *b) == members);
    match (is_there((true, false)), is_there((false, true))) {
        _ if !is_there((true, true)) => Relation::Disjoint,
        (false, false) => Relation::Same,
        (false, true) => Relation::Narrower,
        (true, false) => Relation::Wider,
        (true, true) => Relation::Crossing,
    }
}

#[test]
fn the_relation_of_two_routes_is_that_of_what_they_match() {
    let paths = paths();
    let sets: Vec<(GeneratedRoute, Vec<bool>, Vec<bool>)> = routes()
        .into_iter()
        .map(|route| {
            let hosts = HOSTS.iter().map(|host| host_matches(&route.0, host)).collect();
            let matched = paths.iter().map(|path| path_matches(&route.1, path)).collect();
            (route, hosts, matched)
        })
        .collect();
    for (a, a_hosts, a_paths) in &sets {
        for (b, b_hosts, b_paths) in &sets {
            let expected = match (relation_of_sets(a_hosts, b_hosts), relation_of_sets(a_paths, b_paths)) {
                (_, Relation::Disjoint) => Relation::Disjoint,
                (Relation::Same, paths) => paths,
                (hosts, _) => hosts,
            };
            assert_eq!(relation((&a.0, &a.1), (&b.0, &b.1)), expected, "{} {} and {} {}", a.0, a.1, b.0, b.1);
        }
    }
}

fn check_found(
    routes: &[GeneratedRoute],
    table: &RouteTable,
    host: &str,
    path: &NormalPath,
) -> Result<(), TestCaseError> {
    let found = table.find(host, path).map(|found| found.index);
    let matching: Vec<_> =
        routes.iter().filter(|route| host_matches(&route.0, host) && path_matches(&route.1, path)).collect();
    match found.map(|index| &routes[index]) {
        None => prop_assert_eq!(matching.first(), None),
        Some(found) => {
            prop_assert!(matching.contains(&found), "{found:?} does not match");
            let is_narrower =
                |other: &&&GeneratedRoute| relation((&other.0, &other.1), (&found.0, &found.1)) == Relation::Narrower;
            prop_assert_eq!(matching.iter().find(is_narrower), None, "{:?} was found", found);
        }
    }
    // A path that is spelled in normal form takes the same route in either reading.
    prop_assert_eq!(table.find_raw(host, path.as_str().as_bytes()), found);
    Ok(())
}

proptest! {
    #[test]
    fn the_route_found_matches_and_no_matching_route_is_narrower(routes in vec(select(routes()), 0..12)) {
        let table = RouteTable::new(routes.clone());
        for path in paths() {
            for host in HOSTS {
                check_found(&routes, &table, host, &path)?;
            }
        }
    }
}

/// The checks of a configuration compare a route with these routes alone.
#[test]
fn the_routes_that_overlap_are_those_that_are_not_disjoint() {
    let routes = routes();
    let table = RouteTable::new(routes.clone());
    for (host, path) in &routes {
        let related =
            |(_, other): &(usize, &GeneratedRoute)| relation((host, path), (&other.0, &other.1)) != Relation::Disjoint;
        let expected: Vec<usize> = routes.iter().enumerate().filter(related).map(|(index, _)| index).collect();
        assert_eq!(table.overlapping(host, path), expected, "{host} {path}");
    }
}

#[test]
fn routes_that_cross_are_told_from_those_that_nest() {
    let route = |host: &str, path: &str| (HostPattern::parse(host).unwrap(), PathPattern::parse(path).unwrap());
    let cases = [
        (("*", "/{a}/x"), ("*", "/y/{b}"), Relation::Crossing),
        (("*", "/a/{*rest}"), ("*", "/{x}/b"), Relation::Crossing),
        (("*", "/{a}/x"), ("docs.test", "/y/{b}"), Relation::Wider),
        (("*", "/documents/{id}"), ("*", "/documents/{name}"), Relation::Same),
        (("*", "/documents/%69d"), ("*", "/documents/{id}"), Relation::Narrower),
        (("*", "/documents/{id}"), ("*", "/documents/{*rest}"), Relation::Narrower),
        (("*", "/documents"), ("*", "/documents/{*rest}"), Relation::Narrower),
        (("*", "/{*rest}"), ("*", "/"), Relation::Wider),
        (("*", "/documents"), ("*", "/documents/{id}"), Relation::Disjoint),
        (("*.test", "/a"), ("test", "/a"), Relation::Disjoint),
        (("a.test", "/a"), ("*.test", "/a"), Relation::Narrower),
        (("a.test", "/a"), ("*.test", "/b"), Relation::Disjoint),
        (("*.test", "/{*rest}"), ("*.a.test", "/b"), Relation::Wider),
    ];
    for (a, b, expected) in cases {
        let (a, b) = (route(a.0, a.1), route(b.0, b.1));
        assert_eq!(relation((&a.0, &a.1), (&b.0, &b.1)), expected, "{a:?} {b:?}");
    }
}
