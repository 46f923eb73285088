//! The messages about wrong values: every key of `config/ifmatch.toml` with values of a wrong type, a wrong range and a
//! wrong word. `messages.txt` has the answers, so a review shows a change of any message.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

use std::fmt::Write as _;

use ifmatch::config;
use toml::{Table, Value};

const REFERENCE: &str = include_str!("../../config/ifmatch.toml");
const MESSAGES: &str = include_str!("messages.txt");
/// The variable that makes the test write the file.
const WRITE: &str = "WRITE_MESSAGES";

/// Values of which each is wrong for most keys, as TOML spells them.
const VALUES: [&str; 5] = ["-7", "true", "\"x\"", "\"99999d\"", "[\"x y\"]"];

/// The file with each default written.
fn reference() -> Table {
    REFERENCE.lines().map(written).collect::<Vec<_>>().join("\n").parse().expect("the reference is TOML")
}

/// A line that shows a default, as the line that writes it.
fn written(line: &str) -> &str {
    let entry = line.strip_prefix('#').filter(|entry| !entry.starts_with(' '));
    entry.filter(|entry| entry.parse::<Table>().is_ok_and(|table| !table.is_empty())).unwrap_or(line)
}

/// The paths of all keys; elements of lists of tables count from 0.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Table(table) => {
            for (name, value) in table {
                found.push(below(name));
                paths(value, &below(name), found);
            }
        }
        Value::Array(list) if list.iter().all(Value::is_table) => {
            for (index, value) in list.iter().enumerate() {
                paths(value, &below(&index.to_string()), found);
            }
        }
        _ => {}
    }
}

fn set(within: &mut Value, path: &str, value: Value) {
    let (step, rest) = path.split_once('.').map_or((path, None), |(step, rest)| (step, Some(rest)));
    let next = match within {
        Value::Array(list) => &mut list[step.parse::<usize>().expect("an index")],
        Value::Table(table) => table.entry(step).or_insert_with(|| Value::Table(Table::new())),
        other => panic!("{path} is within {other}"),
    };
    match rest {
        Some(rest) => set(next, rest, value),
        None => *next = value,
    }
}

fn value(text: &str) -> Value {
    format!("it = {text}").parse::<Table>().expect("a value").remove("it").expect("it")
}

/// The problems, or the warnings, without the positions and the excerpts.
fn said(text: &str) -> String {
    let all = match config::parse("f", text) {
        Ok(loaded) => loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Err(problems) => problems.to_string(),
    };
    let message = |line: &str| match line.splitn(4, ':').collect::<Vec<_>>()[..] {
        ["f", _, _, message] | ["f", message] => Some(format!("   {message}\n")),
        _ => line.contains(" hint: ").then(|| format!("   {line}\n")),
    };
    all.lines().filter_map(message).collect()
}

#[test]
fn wrong_values_of_every_key_are_told_as_before() {
    let base = Value::Table(reference());
    let (mut keys, mut told) = (Vec::new(), String::new());
    paths(&base, "", &mut keys);
    for key in keys {
        for text in VALUES {
            let mut changed = base.clone();
            set(&mut changed, &key, value(text));
            let _ = write!(told, "{key} = {text}\n{}", said(&toml::to_string(&changed).expect("TOML")));
        }
    }
    if std::env::var_os(WRITE).is_some() {
        std::fs::write("tests/configuration/messages.txt", &told).expect("the file is written");
    }
    let line = told.lines().zip(MESSAGES.lines()).position(|(now, before)| now != before).unwrap_or_default();
    let part = |text: &str| text.lines().skip(line.saturating_sub(3)).take(8).collect::<Vec<_>>().join("\n");
    let differing = format!("now:\n{}\nbefore:\n{}", part(&told), part(MESSAGES));
    assert!(told == MESSAGES, "set {WRITE}=1 to write what is meant; {differing}");
}
