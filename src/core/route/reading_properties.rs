//! Ends of segments and letter case against brute force: paths of up to two segments out of a few words, and patterns in
//! one letter case beside patterns in all of them.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    super::http::request_target::{KeptInNames, NormalPath, normalize},
    properties::relation_of_sets,
    *,
};

/// The words of paths. Each end of a pattern is that of several words, and no pattern has `b`.
const WORDS: [&str; 13] = ["a", "A", "b", "1", "a.j", "A.j", "a.J", "b.J", "1.j", "1.J", "1.x.j", "1.X.J", ".j"];
/// The words of patterns.
const PARTS: [&str; 8] = ["a", "A", "1", "1.j", "{}", "{}.j", "{}.J", "{}.x.j"];

fn paths() -> Vec<NormalPath> {
    let one = WORDS.map(|word| format!("/{word}"));
    let two = one.iter().flat_map(|first| one.iter().map(move |second| format!("{first}{second}")));
    let all = std::iter::once("/".to_owned()).chain(one.iter().cloned()).chain(two);
    all.map(|path| normalize(path.as_bytes(), KeptInNames::NOTHING).expect("a path")).collect()
}

fn patterns() -> Vec<PathPattern> {
    let part = |part: &str, name: &str| part.replace("{}", &format!("{{{name}}}"));
    let one = PARTS.map(|text| format!("/{}", part(text, "n")));
    let two = one.iter().flat_map(|first| PARTS.map(|second| format!("{first}/{}", part(second, "m"))));
    let closed: Vec<String> = one.iter().cloned().chain(two).collect();
    let open = one.iter().map(|path| format!("{path}/{{*rest}}"));
    let all: Vec<String> = closed.iter().cloned().chain(open).chain(["/".to_owned(), "/{*rest}".to_owned()]).collect();
    let parsed = all.iter().map(|path| PathPattern::parse(path).expect("a pattern"));
    parsed.flat_map(|pattern| [pattern.ignoring_case(), pattern]).collect()
}

/// The naive reading of a pattern as displayed.
fn matches(pattern: &PathPattern, path: &NormalPath) -> bool {
    let fold = |text: &str| if pattern.ignores_case() { text.to_ascii_lowercase() } else { text.to_owned() };
    let (shown, path) = (fold(&pattern.to_string()), fold(path.as_str()));
    let wanted: Vec<&str> = shown.split('/').filter(|part| !part.is_empty()).collect();
    let given: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is_open = wanted.last().is_some_and(|part| part.starts_with("{*"));
    let fixed = wanted.len() - usize::from(is_open);
    let takes = |part: &str, text: &str| match part.split_once('}') {
        Some((_, end)) => text.len() > end.len() && text.ends_with(end),
        None => part == text,
    };
    (if is_open { given.len() >= fixed } else { given.len() == fixed })
        && wanted.iter().take(fixed).zip(&given).all(|(part, text)| takes(part, text))
}

fn relate(a: &PathPattern, b: &PathPattern) -> Relation {
    relation((&HostPattern::Any, a), (&HostPattern::Any, b))
}

/// Rule 18: conflicts between routes are found for any ends of their segments, with letter case or without.
#[test]
fn the_relation_of_two_patterns_is_that_of_what_they_match() {
    let (paths, patterns) = (paths(), patterns());
    let sets: Vec<Vec<bool>> =
        patterns.iter().map(|pattern| paths.iter().map(|path| matches(pattern, path)).collect()).collect();
    let table = RouteTable::new(patterns.iter().map(|pattern| (HostPattern::Any, pattern.clone())).collect());
    for (a, a_paths) in patterns.iter().zip(&sets) {
        let mut overlapping = Vec::new();
        for (index, (b, b_paths)) in patterns.iter().zip(&sets).enumerate() {
            let expected = relation_of_sets(a_paths, b_paths);
            let shown = |pattern: &PathPattern| format!("{pattern} (in any case: {})", pattern.ignores_case());
            assert_eq!(relate(a, b), expected, "{} and {}", shown(a), shown(b));
            overlapping.extend((expected != Relation::Disjoint).then_some(index));
        }
        assert_eq!(table.overlapping(&HostPattern::Any, a), overlapping, "{a}");
    }
}

proptest! {
    /// Rule 18: the route of a path matches it, and no matching route is narrower.
    #[test]
    fn the_route_found_matches_and_no_matching_route_is_narrower(drawn in vec(select(patterns()), 0..8)) {
        // A configuration has no two routes of which neither is the more specific.
        let mut patterns: Vec<PathPattern> = Vec::new();
        for pattern in drawn {
            let is_apart = |other: &PathPattern| {
                !matches!(relate(&pattern, other), Relation::Same | Relation::Crossing)
            };
            if patterns.iter().all(is_apart) {
                patterns.push(pattern);
            }
        }
        let table = RouteTable::new(patterns.iter().map(|pattern| (HostPattern::Any, pattern.clone())).collect());
        for path in paths() {
            let found = table.find("h", &path).map(|found| found.index);
            let matching: Vec<&PathPattern> = patterns.iter().filter(|pattern| matches(pattern, &path)).collect();
            match found.map(|index| &patterns[index]) {
                None => prop_assert_eq!(matching.first(), None),
                Some(found) => {
                    prop_assert!(matching.contains(&found), "{} is not matched by {}", path.as_str(), found);
                    let narrower = matching.iter().find(|other| relate(other, found) == Relation::Narrower);
                    prop_assert_eq!(narrower, None, "{} was found for {}", found, path.as_str());
                }
            }
            // A path that is spelled in normal form takes the same route in either reading.
            prop_assert_eq!(table.find_raw("h", path.as_str().as_bytes()), found);
        }
    }
}
