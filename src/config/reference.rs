//! `config/ifmatch.toml` tells users what every key is and its default; these tests hold it to that.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use super::{Loaded, parse, raw, read::field_names};

const REFERENCE: &str = include_str!("../../config/ifmatch.toml");

/// Whether a line shows a default: `#key = value`.
fn shows_default(line: &str) -> bool {
    line.strip_prefix('#')
        .and_then(|line| line.split_once(" = "))
        .is_some_and(|(key, _)| !key.is_empty() && key.chars().all(|each| each.is_ascii_lowercase() || each == '_'))
}

/// The file with all defaults written out.
fn uncommented() -> String {
    let lines = REFERENCE.lines();
    lines.map(|line| if shows_default(line) { &line[1..] } else { line }).collect::<Vec<_>>().join("\n")
}

fn loaded(text: &str) -> Loaded {
    parse("config/ifmatch.toml", text).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn loads_as_it_is_without_warnings() {
    assert_eq!(loaded(REFERENCE).warnings, []);
}

#[test]
fn shows_the_real_defaults() {
    assert_eq!(format!("{:#?}", loaded(&uncommented()).config), format!("{:#?}", loaded(REFERENCE).config));
}

#[test]
fn shows_every_key_and_no_other() {
    let expected = [
        known::<raw::File>(""),
        known::<raw::Server>("server."),
        known::<raw::Store>("store."),
        known::<raw::Upstream>("upstreams.docs."),
        known::<raw::Route>("routes."),
        known::<raw::Claim>("routes.claim."),
        known::<raw::Probe>("routes.probe."),
    ];
    let file = uncommented().parse::<toml::Table>().expect("the file is TOML");
    let mut shown = BTreeSet::new();
    keys(&toml::Value::Table(file), "", &mut shown);
    // The name of an upstream is no key.
    shown.remove("upstreams.docs");
    assert_eq!(shown, expected.into_iter().flatten().collect());
}

fn known<T: DeserializeOwned>(prefix: &str) -> BTreeSet<String> {
    field_names::<T>().iter().map(|name| format!("{prefix}{name}")).collect()
}

fn keys(value: &toml::Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                found.insert(format!("{prefix}{key}"));
                keys(value, &format!("{prefix}{key}."), found);
            }
        }
        toml::Value::Array(list) => list.iter().for_each(|element| keys(element, prefix, found)),
        _ => {}
    }
}
