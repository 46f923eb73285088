//! The page of all keys, with an anchor for each. It is made of the tables that declare the keys, and of the comments of
//! `config/ifmatch.toml`.

use std::fmt::Write as _;

use ifmatch::config::{Key, keys, schema};
use serde_json::Value;

use crate::pages::{read, root};

const PAGE: &str = "docs/configuration-keys.md";
/// The variable that makes the test write the page.
const WRITE: &str = "WRITE_KEYS";

const INTRODUCTION: &str = "# Configuration keys

All keys of the configuration, table by table. `NAME` stands for a name of your choice. [Configuration](configuration.md)
shows where to begin, and [`config/ifmatch.toml`](../config/ifmatch.toml) has the same keys as one file.
A duration is a text such as `\"30s\"`, and a size a text such as `\"64KiB\"`.
The table `[defaults]` takes the keys of `[[routes]]`, except `name`, `host`, `path`, `also_changes`, `writes_to` and
`members`.
";

/// The schema of a key, through references and lists.
fn property<'a>(schema: &'a Value, path: &str) -> &'a Value {
    let resolved = |mut value: &'a Value| {
        loop {
            value = match (value.get("$ref").and_then(Value::as_str), value.get("items")) {
                (Some(place), _) => schema.pointer(place.trim_start_matches('#')).expect("a definition"),
                (None, Some(items)) if items.get("$ref").is_some() => items,
                (None, _) => return value,
            };
        }
    };
    path.split('.').fold(schema, |within, step| {
        let within = resolved(within);
        let property = within.pointer(&format!("/properties/{step}"));
        property.or(within.get("additionalProperties")).unwrap_or_else(|| panic!("{path} is not in the schema"))
    })
}

/// The type of a value in the words of the page.
fn type_of(property: &Value) -> String {
    let name = property.get("$ref").and_then(Value::as_str).and_then(|place| place.rsplit('/').next());
    let words = property.pointer("/anyOf/0/enum").and_then(Value::as_array);
    match (name, property.get("type").and_then(Value::as_str), words) {
        (_, _, Some(words)) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("a word: {}", words.join(", "))
        }
        (Some(name @ ("duration" | "size")), ..) => format!("a {name}"),
        (_, Some("integer"), _) => "a whole number".to_owned(),
        (_, Some("number"), _) => "a number".to_owned(),
        (_, Some("boolean"), _) => "`true` or `false`".to_owned(),
        (_, Some("string"), _) => "a text".to_owned(),
        (_, Some("array"), _) => "a list".to_owned(),
        _ => "a table".to_owned(),
    }
}

/// A comment as Markdown: an indented line begins an item, and a deeper one continues it.
fn markdown(comment: &str) -> String {
    let mut text = String::new();
    for line in comment.lines() {
        let indent = line.len() - line.trim_start().len();
        let (name, rest) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
        let piece = match indent {
            2 if text.contains("\n- ") || text.is_empty() => format!("\n- `{name}`: {}", escaped(rest.trim())),
            2 => format!("\n\n- `{name}`: {}", escaped(rest.trim())),
            0 if text.lines().last().is_some_and(|last| last.starts_with(['-', ' '])) => {
                format!("\n\n{}", escaped(line))
            }
            0 => format!("\n{}", escaped(line)),
            _ => format!("\n  {}", escaped(line.trim())),
        };
        text.push_str(&piece);
    }
    text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A text with the signs that Markdown would read as its own escaped. Code between backticks stays as it is.
fn escaped(text: &str) -> String {
    let mut is_code = false;
    let mut escaped = String::new();
    for sign in text.chars() {
        is_code ^= sign == '`';
        let begins_word = !escaped.ends_with(char::is_alphanumeric);
        if !is_code && (['*', '<', '['].contains(&sign) || sign == '_' && begins_word) {
            escaped.push('\\');
        }
        escaped.push(sign);
    }
    escaped
}

/// The part of the page for one key.
fn entry(key: &Key, property: &Value) -> String {
    let is_table = type_of(property) == "a table" || !key.path.contains('.');
    let about = property.get("description").and_then(Value::as_str).unwrap_or(&key.sentence);
    let level = if key.path.contains('.') { "###" } else { "##" };
    let mut text = format!("{level} `{}`\n\n{}\n", key.path, markdown(about));
    if !is_table {
        let _ = write!(text, "\n- Type: {}", type_of(property));
        if let Some(default) = property.get("default") {
            let _ = write!(text, "\n- Default: `{}`", toml_of(default));
        }
        if let Some((least, most)) = &key.bounds {
            let _ = write!(text, "\n- Range: {least} to {most}");
        }
        text += if key.at_start { "\n- A change takes effect at the next start.\n" } else { "\n" };
    }
    text
}

/// A default as a file spells it. Texts, numbers and lists look the same in JSON.
fn toml_of(value: &Value) -> String {
    let elements = |list: &Vec<Value>| list.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
    value.as_array().map_or_else(|| value.to_string(), |list| format!("[{}]", elements(list)))
}

#[test]
fn the_page_of_keys_is_that_of_the_tables() {
    let schema = schema();
    let listed: Vec<Key> = keys().into_iter().filter(|key| !key.path.starts_with("defaults")).collect();
    let entries = listed.iter().map(|key| entry(key, property(&schema, &key.path)));
    let page = format!("{INTRODUCTION}\n{}", entries.collect::<Vec<_>>().join("\n"));
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(root().join(PAGE), &page).expect("the page is written");
    }
    let differing =
        page.lines().zip(read(PAGE).lines()).find(|(made, found)| made != found).map(|(made, _)| made.to_owned());
    assert!(page == read(PAGE), "set {WRITE}=1 to write the page; the first other line is {differing:?}");
    assert!(listed.len() > 140, "only {} keys", listed.len());
}
