//! Tests that `config/ifmatch.toml`, the users' reference, documents every key and its real default.

use std::collections::BTreeSet;

use super::{
    Loaded, keys, parse,
    schema::{REFERENCE, key_and_default},
    units,
};

/// Keys without a default. Some belong to store kinds that are not the default, others to lists that are empty by
/// default. The reference shows them as `# key = value`.
const WITHOUT_DEFAULT: [&str; 8] = [
    "routes.hash_wait",
    "routes.writes_to",
    "routes.members",
    "routes.probe_field_file",
    "server.control_socket",
    "store.path",
    "server.tls.certificates.cert",
    "server.tls.certificates.key",
];

/// The file with all defaults written out.
fn uncommented() -> String {
    let shows_default = |line: &str| matches!(key_and_default(line), Some((_, Some(_))));
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
    // The table of defaults takes the keys of routes.
    let of_defaults = |path: &String| path.starts_with("defaults.");
    let known = keys().into_iter().map(|key| key.path.replace(".NAME.", ".docs."));
    let expected: BTreeSet<String> = known.filter(|path| !of_defaults(path)).collect();
    for key in WITHOUT_DEFAULT {
        let name = key.rsplit('.').next().unwrap_or_default();
        assert!(REFERENCE.lines().any(|line| line.starts_with(&format!("# {name} = "))), "{key} is not shown");
    }
    let file = uncommented().parse::<toml::Table>().expect("the file is TOML");
    let mut shown = BTreeSet::new();
    written(&toml::Value::Table(file), "", &mut shown);
    // The name of an upstream is not a key.
    shown.remove("upstreams.docs");
    shown.extend(WITHOUT_DEFAULT.map(str::to_owned));
    assert_eq!(shown, expected);
}

/// The comment above one of the lines that show the key has `MIN to MAX`.
#[test]
fn names_the_range_of_every_number() {
    let ranges: Vec<_> = keys().into_iter().filter_map(|key| Some((key.path, key.bounds?))).collect();
    assert!(ranges.len() > 20, "{ranges:?}");
    for (path, (least, most)) in ranges {
        let lines: Vec<_> = path.split('.').flat_map(|name| [format!("#{name} = "), format!("# {name} = ")]).collect();
        let is_shown = |part: &&str| lines.iter().any(|line| part.contains(line));
        let mut comments = REFERENCE.split("\n\n").filter(is_shown).map(|part| part.replace("\n# ", " "));
        let has_range = |comment: String| {
            let words = comment.split_whitespace().map(|word| word.trim_matches(['"', ',', '.', ';', ':']));
            let words: Vec<_> = words.map(number).collect();
            words.windows(3).any(|window| window == [number(&least), "to".to_owned(), number(&most)])
        };
        assert!(comments.any(has_range), "{path}: {least} to {most}");
    }
}

/// A duration or a size in one unit; any other text as it is.
fn number(text: &str) -> String {
    match (units::duration(text), units::size(text)) {
        (Some(duration), _) => format!("{}ms", duration.as_millis()),
        (None, Some(bytes)) => format!("{bytes}B"),
        (None, None) => text.to_owned(),
    }
}

fn written(value: &toml::Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                found.insert(format!("{prefix}{key}"));
                written(value, &format!("{prefix}{key}."), found);
            }
        }
        toml::Value::Array(list) => list.iter().for_each(|element| written(element, prefix, found)),
        _ => {}
    }
}
