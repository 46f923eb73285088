//! The results for the mutants, as a table.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use super::list::Mutant;

/// The largest number of test names in one row.
const TESTS_MAX: usize = 2;

/// One mutant and its verdict.
pub struct Row {
    pub mutant: Mutant,
    pub verdict: Verdict,
}

/// The verdict of the judges.
pub enum Verdict {
    Found {
        judge: String,
        tests: Vec<String>,
    },
    /// Tests have failed, but pass when they run alone.
    Luck {
        judge: String,
        tests: Vec<String>,
    },
    /// A judge did not end in time, and no test reported what is wrong.
    Hangs {
        judge: String,
    },
    Survives,
}

impl Row {
    /// True if the mutant survives without a reason, or has a reason that is false.
    pub fn is_wrong(&self) -> bool {
        self.survives() != self.mutant.survives.is_some()
    }

    fn survives(&self) -> bool {
        matches!(self.verdict, Verdict::Survives | Verdict::Luck { .. })
    }

    /// Returns the mutant's line in the table.
    pub fn line(&self) -> String {
        let Mutant { name, rule, .. } = &self.mutant;
        let (by, tests) = match &self.verdict {
            Verdict::Found { judge, tests } => (judge.as_str(), shown(tests)),
            Verdict::Luck { judge, tests } => (judge.as_str(), format!("by luck: {}", shown(tests))),
            Verdict::Hangs { judge } => (judge.as_str(), "hangs".to_owned()),
            Verdict::Survives => ("", self.mutant.survives.clone().unwrap_or_else(|| "**survives**".to_owned())),
        };
        format!("| {name} | {rule} | {by} | {tests} |")
    }
}

fn shown(tests: &[String]) -> String {
    if tests.is_empty() {
        return "(all end)".to_owned();
    }
    let mut shown = tests.iter().take(TESTS_MAX).cloned().collect::<Vec<_>>().join(", ");
    if tests.len() > TESTS_MAX {
        write!(shown, ", and {} more", tests.len() - TESTS_MAX).expect("a String takes all");
    }
    shown
}

/// Writes the table, and prints the totals.
pub fn write(root: &Path, rows: &[Row]) {
    let mut table = String::from("| mutant | rule | found by | test |\n|---|---|---|---|\n");
    for row in rows {
        writeln!(table, "{}", row.line()).expect("a String takes all");
    }
    let path = root.join("target/mutants/table.md");
    fs::write(&path, table).expect("the table");
    let mut counts = BTreeMap::<&str, usize>::new();
    for row in rows {
        let target = match &row.verdict {
            Verdict::Found { judge, .. } => judge.split(' ').next().unwrap_or_default(),
            Verdict::Luck { .. } => "luck",
            Verdict::Hangs { .. } => "the time limit",
            Verdict::Survives => "nobody",
        };
        *counts.entry(target).or_default() += 1;
    }
    println!("{} mutants; found by: {counts:?}; {}", rows.len(), path.display());
    for row in rows.iter().filter(|row| row.survives()) {
        println!("{} survives (rule {}): {}", row.mutant.name, row.mutant.rule, row.mutant.says);
    }
}
