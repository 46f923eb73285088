//! The documents: their programs, and the targets of their links.

use std::{collections::BTreeSet, fs, path::Path};

use crate::support::clients::package;

/// The documents that have programs.
const DOCUMENTS: [&str; 3] = [
    include_str!("../../docs/clients.md"),
    include_str!("../../docs/own-client.md"),
    include_str!("../../docs/watch.md"),
];
const REFUSALS: &str = include_str!("../../docs/refusals.md");

/// The text of the fenced block of a file, whose first line names the language and the file.
pub fn block(file: &str) -> String {
    let is_begin =
        |line: &&str| line.strip_prefix("```").and_then(|info| info.split_once(' ')) == Some((kind(file), file));
    let mut lines = DOCUMENTS.iter().flat_map(|document| document.lines());
    assert!(lines.by_ref().any(|line| is_begin(&line)), "no document has a block of {file}");
    lines.take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect()
}

/// The language of a file, as blocks name it.
fn kind(file: &str) -> &'static str {
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("sh") => "bash",
        Some("py") => "python",
        Some("mjs") => "javascript",
        Some("rs") => "rust",
        Some("go") => "go",
        _ => panic!("nobody knows the language of {file}"),
    }
}

#[test]
fn rust_programs_are_those_that_cargo_builds() {
    for file in ["examples/counter.rs", "examples/lease.rs"] {
        let built = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect(file);
        assert_eq!(block(file), built, "{file} differs from its block");
    }
}

/// The tables name refusals that exist: `docs/refusals.md` lists all of them.
#[test]
fn codes_are_those_of_the_refusals() {
    let lines = DOCUMENTS.iter().flat_map(|document| document.lines());
    let rows = lines.filter(|line| line.starts_with('|'));
    let words = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let is_code =
        |word: &&str| word.contains('-') && word.chars().all(|letter| letter == '-' || letter.is_ascii_lowercase());
    let codes: BTreeSet<&str> = words.filter(is_code).collect();
    assert!(codes.contains("write-in-flight"), "{codes:?}");
    let unknown: Vec<_> = codes.iter().filter(|code| !REFUSALS.contains(&format!("`{code}`"))).collect();
    assert_eq!(unknown, [&""; 0]);
}

/// Each code of `docs/refusals.md` has a class in both packages.
#[test]
fn packages_know_the_codes_of_all_refusals() {
    let entries = REFUSALS.lines().filter_map(|line| line.strip_prefix("### `"));
    let codes: BTreeSet<&str> = entries.filter_map(|entry| entry.strip_suffix('`')).collect();
    assert!(codes.len() > 40, "{codes:?}");
    for (file, mark) in [("typescript/src/errors.ts", '\''), ("python/src/ifmatch/_errors.py", '"')] {
        let text = fs::read_to_string(package("").join(file)).unwrap();
        let quoted = text.split(mark).filter(|word| codes.contains(word)).collect::<BTreeSet<_>>();
        assert_eq!(quoted, codes, "{file}");
    }
}
