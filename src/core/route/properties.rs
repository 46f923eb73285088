//! Routes against brute force over a small universe: paths of up to four segments out of four words, and five hosts.
//! No pattern has more than three fixed segments or names the fourth word, so the universe tells all patterns apart.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    super::target::{NormalPath, PathParameters, normalize},
    *,
};

const HOSTS: [&str; 5] = ["x.y.test", "z.y.test", "y.test", "test", "other"];

fn paths() -> Vec<NormalPath> {
    let mut spelled = vec![String::new()];
    let mut longest = spelled.clone();
    for _ in 0..4 {
        longest = longest.iter().flat_map(|path| ["a", "b", "c", "d"].map(|word| format!("{path}/{word}"))).collect();
        spelled.extend_from_slice(&longest);
    }
    let normal = |path: &String| normalize(format!("{path}/").as_bytes(), PathParameters::Refuse).unwrap();
    spelled.iter().map(normal).collect()
}

fn route() -> impl Strategy<Value = (HostPattern, PathPattern)> {
    let host = select(vec!["*", "*.test", "*.y.test", "x.y.test", "y.test", "other"]);
    let segments = vec(select(vec!["a", "b", "c", "{}", "{}"]), 0..=3);
    (host, segments, any::<bool>()).prop_map(|(host, mut segments, open)| {
        segments.extend(open.then_some("{*}"));
        // Each capture needs a name of its own.
        let named = segments
            .iter()
            .enumerate()
            .map(|(index, segment)| format!("/{}", segment.replace('}', &format!("n{index}}}"))));
        let path = named.reduce(|path, segment| path + &segment).unwrap_or("/".to_owned());
        (HostPattern::parse(host).unwrap(), PathPattern::parse(&path).unwrap())
    })
}

/// The naive reading of a pattern as it is shown.
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

/// The relation of two sets, given as membership of each element in both.
fn relation_of_sets(members: impl Iterator<Item = (bool, bool)>) -> Relation {
    let members: Vec<_> = members.collect();
    let shared = members.contains(&(true, true));
    match (members.contains(&(true, false)), members.contains(&(false, true))) {
        _ if !shared => Relation::Disjoint,
        (false, false) => Relation::Same,
        (false, true) => Relation::Narrower,
        (true, false) => Relation::Wider,
        (true, true) => Relation::Crossing,
    }
}

fn relation_by_brute_force(a: &(HostPattern, PathPattern), b: &(HostPattern, PathPattern)) -> Relation {
    let hosts = relation_of_sets(HOSTS.iter().map(|host| (host_matches(&a.0, host), host_matches(&b.0, host))));
    let paths = relation_of_sets(paths().iter().map(|path| (path_matches(&a.1, path), path_matches(&b.1, path))));
    match (hosts, paths) {
        (_, Relation::Disjoint) => Relation::Disjoint,
        (Relation::Same, paths) => paths,
        (hosts, _) => hosts,
    }
}

proptest! {
    #[test]
    fn the_relation_of_two_routes_is_that_of_what_they_match(a in route(), b in route()) {
        prop_assert_eq!(relation((&a.0, &a.1), (&b.0, &b.1)), relation_by_brute_force(&a, &b), "{:?} {:?}", a, b);
    }

    #[test]
    fn the_route_found_matches_and_no_matching_route_is_narrower(
        routes in vec(route(), 0..8),
        host in select(&HOSTS[..]),
        path in select(paths()),
    ) {
        let found = RouteTable::new(routes.clone()).find(host, &path).map(|found| found.index);
        let matching = |route: &&(HostPattern, PathPattern)| host_matches(&route.0, host) && path_matches(&route.1, &path);
        match found.map(|index| &routes[index]) {
            None => prop_assert_eq!(routes.iter().find(matching), None),
            Some(found) => {
                prop_assert!(matching(&found), "{found:?}");
                let narrower = routes.iter().filter(matching)
                    .find(|other| relation((&other.0, &other.1), (&found.0, &found.1)) == Relation::Narrower);
                prop_assert_eq!(narrower, None, "{:?} was found", found);
            }
        }
    }

    /// A path that is spelled in normal form takes one route by either reading.
    #[test]
    fn both_readings_of_a_normal_path_take_one_route(routes in vec(route(), 0..8), path in select(paths())) {
        let table = RouteTable::new(routes);
        let found = table.find("x.y.test", &path).map(|found| found.index);
        prop_assert_eq!(table.find_raw("x.y.test", path.as_str().as_bytes()), found);
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
