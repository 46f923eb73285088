//! Where the invariants do not hold today: `known.txt`. A line of it says what is broken, in which family, on which way, and
//! in how many exchanges. A line that is mended is deleted.

use std::collections::BTreeMap;

use crate::run::Findings;

const KNOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/forwarding/known.txt");

/// Fails if anything else is broken, or if anything of the list is not.
pub fn compare(findings: &Findings) {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (rule, name) in &findings.broken {
        let (case, way) = name.split_once(" | ").expect("a case and its way");
        let family = case.split('/').next().unwrap_or_default();
        found.entry(format!("{rule} | {family} | {way}")).or_default().push(name);
    }
    let text = std::fs::read_to_string(KNOWN).expect("a list");
    let row =
        |line: &'_ str| line.rsplit_once(" | ").map(|(row, count)| (row.to_owned(), count.parse().expect("a count")));
    let known: BTreeMap<String, usize> = text.lines().filter_map(row).collect();
    let mut wrong = Vec::new();
    for (row, names) in &found {
        let expected = known.get(row).copied().unwrap_or(0);
        if names.len() != expected {
            let texts: String = names.iter().map(|name| findings.texts[*name].as_str()).collect();
            wrong.push(format!("{row} | {}\nand not {expected}\n{texts}", names.len()));
        }
    }
    let mended = known.keys().filter(|row| !found.contains_key(*row));
    wrong.extend(mended.map(|row| format!("this holds now, and leaves the list: {row}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
