//! Any text in a configuration is read or reported, and nothing panics.

#![allow(clippy::indexing_slicing, reason = "a test may stop at the first surprise")]

use ifmatch::config;
use proptest::prelude::*;

const MISTAKES: &str = include_str!("configuration/mistakes.toml");
const LEASED: &str = include_str!("../config/worker-locks.toml");
const OPTIMISTIC: &str = include_str!("../config/optimistic.toml");
const QUICKSTART: &str = include_str!("../config/quickstart.toml");

/// Parses a text, which must not panic, and prints what is wrong with it, which must not either.
fn parse_and_print(text: &str) {
    match config::parse("any.toml", text) {
        Ok(loaded) => {
            assert!(!loaded.config.routes.is_empty(), "a configuration has routes");
            assert!(loaded.config.routes.iter().all(|route| !route.upstream.servers.is_empty()), "and servers");
        }
        Err(problems) => {
            let printed = problems.to_string();
            assert!(printed.starts_with("any.toml:"), "{printed}");
        }
    }
}

/// A change of a valid file.
#[derive(Clone, Debug)]
enum Change {
    Remove(usize, usize),
    Insert(usize, String),
    SwapLines(usize, usize),
    RepeatLine(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let snippet = prop_oneof![
        "\\PC{0,6}",
        prop::sample::select(vec![
            "\"",
            "\n",
            "[",
            "]",
            "[[routes]]\n",
            "{",
            "}",
            " = ",
            "#",
            "0",
            "-1",
            "true",
            "\u{0}",
            "ß",
            "{*x}"
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![
        (any::<usize>(), 1_usize..20).prop_map(|(at, length)| Change::Remove(at, length)),
        (any::<usize>(), snippet).prop_map(|(at, text)| Change::Insert(at, text)),
        (any::<usize>(), any::<usize>()).prop_map(|(one, other)| Change::SwapLines(one, other)),
        any::<usize>().prop_map(Change::RepeatLine),
    ]
}

fn changed(text: &str, change: &Change) -> String {
    let characters = text.chars().collect::<Vec<_>>();
    let mut lines = text.lines().collect::<Vec<_>>();
    let place = |at: usize| at % (characters.len() + 1);
    let line = |at: usize| at % text.lines().count().max(1);
    match change {
        _ if lines.is_empty() => String::new(),
        Change::Remove(at, length) => {
            let (start, end) = (place(*at), (place(*at) + length).min(characters.len()));
            characters[..start].iter().chain(&characters[end..]).collect()
        }
        Change::Insert(at, inserted) => {
            let (before, after) = characters.split_at(place(*at));
            before.iter().copied().chain(inserted.chars()).chain(after.iter().copied()).collect()
        }
        Change::SwapLines(one, other) => {
            lines.swap(line(*one), line(*other));
            lines.join("\n")
        }
        Change::RepeatLine(at) => {
            lines.insert(line(*at), lines[line(*at)]);
            lines.join("\n")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_reported(text in "(?s).{0,200}") {
        parse_and_print(&text);
    }

    #[test]
    fn any_change_of_a_valid_file_is_parsed_or_reported(
        file in prop::sample::select(vec![QUICKSTART, OPTIMISTIC, LEASED, MISTAKES]),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let text = changes.iter().fold(file.to_owned(), |text, change| changed(&text, change));
        parse_and_print(&text);
    }
}
