//! The door against generated spellings: what a backend takes for one resource has one route and one key, or is refused.

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderMap, Method, Version};
use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    door::{Door, Head, decide},
    table::RoutingTable,
};
use crate::{
    config::{Route, Upstream},
    core::{
        http::{
            client_address::ClientAddress,
            request_target::{EncodedSlash, KeptInNames, decode_slashes, normalize},
        },
        refusal::Code,
        resource::KeyTemplate,
    },
    testing::{config, guard, route},
};

/// Paths of routes, and whether they are guarded.
const PATTERNS: [(&str, bool); 8] = [
    ("/{*rest}", false),
    ("/api/{*rest}", true),
    ("/api/open/{*rest}", false),
    ("/api/{id}", true),
    ("/api/{id}.json", true),
    ("/{kind}", false),
    ("/%C3%84/{id}", true),
    ("/api", true),
];

/// A table of these routes, all to one upstream.
fn table(patterns: &[(&str, bool)], ignore_case: bool) -> RoutingTable {
    let server: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let made = |(path, is_guarded): &(&str, bool)| {
        let mut route = route(path, is_guarded.then(guard), &[server]);
        let names = route.path.names().collect::<Vec<_>>();
        // The two names of a resource have one key.
        let template = if path.contains("{id}") { path.trim_end_matches(".json") } else { "{path}" };
        route.key = KeyTemplate::parse(template, &names).expect("a key");
        if ignore_case {
            route.upstream = Arc::new(Upstream { ignore_case, ..Upstream::clone(&route.upstream) });
            (route.path, route.key) = (route.path.ignoring_case(), route.key.ignoring_case());
        }
        Route { beside_guarded: patterns.iter().any(|(_, is_guarded)| *is_guarded), ..route }
    };
    RoutingTable::new(&config(patterns.iter().map(made).collect()).routes)
}

/// The decision of the door about a path.
#[derive(Debug, PartialEq)]
enum Meant {
    Refused(Code),
    Passed(usize),
    Guarded(String),
}

fn outcome(table: &RoutingTable, path: &str) -> Meant {
    let headers = HeaderMap::new();
    let head = Head {
        method: &Method::PUT,
        version: Version::HTTP_11,
        host: "h",
        target: path.as_bytes(),
        headers: &headers,
        client: ClientAddress::Local,
    };
    match decide(table, &head) {
        Door::Refuse { refusal, .. } => Meant::Refused(refusal.code),
        Door::Pass { route_index, .. } => Meant::Passed(route_index),
        Door::Guarded(request) => Meant::Guarded(request.key.to_string()),
        other => panic!("{path}: {other:?}"),
    }
}

fn patterns() -> impl Strategy<Value = Vec<(&'static str, bool)>> {
    vec(any::<bool>(), PATTERNS.len()).prop_map(|chosen| {
        let chosen = PATTERNS.into_iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen);
        chosen.map(|(pattern, _)| pattern).collect()
    })
}

/// A path of a few names, as a client of such a backend writes it.
fn path() -> impl Strategy<Value = String> {
    let names = vec(select(vec!["api", "open", "note", "1", "a.b", "\u{e4}", "\u{3c3}k"]), 1..4);
    names.prop_map(|names| format!("/{}", names.join("/")))
}

/// A spelling of a character that a backend without regard to case takes for it.
fn respell(character: char, choice: u8) -> String {
    let other = match choice % 4 {
        0 => character.to_string(),
        1 => character.to_uppercase().to_string(),
        2 => match character {
            'k' => "\u{212a}".to_owned(),
            '\u{3c3}' => "\u{3c2}".to_owned(),
            other => other.to_uppercase().to_string(),
        },
        _ => character.to_lowercase().to_string(),
    };
    let encode = |text: String| text.bytes().fold(String::new(), |text, octet| text + &format!("%{octet:02X}"));
    if character != '/' && choice >= 128 && !character.is_ascii() { encode(other) } else { other }
}

proptest! {
    /// Rule 18: all spellings in letter case of one path take one route and have one key.
    #[test]
    fn letter_cases_of_one_path_are_one_resource(
        patterns in patterns(),
        path in path(),
        choices in vec(any::<u8>(), 24),
    ) {
        let table = table(&patterns, true);
        let respelled: String = path.chars().zip(choices).map(|(character, choice)| respell(character, choice)).collect();
        prop_assert_eq!(outcome(&table, &respelled), outcome(&table, &path), "{} and {}", respelled, path);
    }

    /// Rule 18: an encoding of an ASCII letter in another case may be refused, but is no other resource.
    #[test]
    fn an_encoded_letter_in_another_case_is_no_other_resource(patterns in patterns(), path in path(), at in any::<prop::sample::Index>()) {
        let table = table(&patterns, true);
        let letters: Vec<usize> = path.char_indices().filter(|(_, one)| one.is_ascii_lowercase()).map(|(at, _)| at).collect();
        prop_assume!(!letters.is_empty());
        let at = letters[at.index(letters.len())];
        let encoded = format!("{}%{:02x}{}", &path[..at], path.as_bytes()[at].to_ascii_uppercase(), &path[at + 1..]);
        let found = outcome(&table, &encoded);
        if found != Meant::Refused(Code::AmbiguousTarget) {
            prop_assert_eq!(found, outcome(&table, &path), "{} and {}", encoded, path);
        }
    }

    /// Rule 18: if the configuration does not mention letter case, two cases of a name are two resources.
    #[test]
    fn without_the_key_letter_case_counts(path in path()) {
        let table = table(&[("/{*rest}", true)], false);
        let normal = |path: &str| normalize(path.as_bytes(), KeptInNames::NOTHING).expect("a path").as_str().to_owned();
        for spelled in [path.clone(), path.to_uppercase()] {
            prop_assert_eq!(outcome(&table, &spelled), Meant::Guarded(format!("backend:{}", normal(&spelled))));
        }
    }

    /// Rule 18: a name and the same name with a format have one key.
    #[test]
    fn a_name_and_its_format_are_one_resource(name in "[a-zA-Z0-9.~%-]{1,6}") {
        let table = table(&PATTERNS, false);
        let path = format!("/api/{name}");
        let key = outcome(&table, &path);
        prop_assume!(matches!(key, Meant::Guarded(_)) && name.strip_suffix(".json").is_none() && name != "open");
        let with_format = outcome(&table, &format!("{path}.json"));
        prop_assert_eq!(with_format, key);
    }

    /// Rule 10: what an open route beside a guarded one passes is guarded in no reading of its slashes.
    #[test]
    fn a_path_that_passes_is_guarded_in_no_reading_of_its_slashes(
        patterns in patterns(),
        pieces in vec(select(vec!["/", "/", "%2F", "%2f", "..", ".", "%2e%2e", "api", "open", "x", "%61pi", "%252F", ".json"]), 1..9),
    ) {
        let table = table(&patterns, false);
        let path = format!("/{}", pieces.concat());
        if let Meant::Passed(_) = outcome(&table, &path) {
            let decoded = decode_slashes(path.as_bytes());
            let readings = [
                normalize(&decoded, KeptInNames::NOTHING),
                normalize(path.as_bytes(), KeptInNames { encoded_slash: EncodedSlash::Keep, ..KeptInNames::NOTHING }),
            ];
            let is_protected = table.routes().iter().any(|route| route.guard.is_some());
            for normal in readings {
                let found = normal.as_ref().ok().and_then(|normal| table.find("h", normal)).map(|found| found.index);
                let is_guarded = found.and_then(|index| table.routes().get(index)).is_none_or(|route| route.guard.is_some());
                prop_assert!(!is_protected || !is_guarded, "{path} is guarded as {normal:?}");
            }
        }
    }
}
