//! A run of `ifmatch doctor`, and the table that it prints.

use std::process::Command;

/// The checks of a resource with a tag, in the order of the table.
const READS: [&str; 15] = [
    "way",
    "tag",
    "stability",
    "HEAD",
    "If-Match",
    "If-Match list",
    "If-None-Match",
    "If-Range",
    "gzip",
    "br",
    "letter case",
    "format",
    "collections",
    "cache",
    "Last-Modified",
];
/// The checks that `--write` adds.
const WRITES: [&str; 6] =
    ["wrong tag", "no condition", "right tag", "tag in the answer", "read after write", "two writes"];

/// The result of a run.
pub struct Diagnosis {
    pub code: Option<i32>,
    /// Check and result of each row, with the whole row.
    rows: Vec<(String, String)>,
    pub text: String,
}

impl Diagnosis {
    /// Runs `ifmatch doctor` with these arguments.
    pub async fn of(arguments: &[&str]) -> Self {
        Self::within(arguments, &[]).await
    }

    /// The same with these variables in the environment.
    pub async fn within(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
        command.arg("doctor").args(arguments).envs(variables.iter().copied()).env_remove("RUST_LOG");
        let output = tokio::task::spawn_blocking(move || command.output().expect("the program starts"));
        let output = output.await.expect("it ends");
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text")).concat();
        let table = text.lines().skip_while(|line| !line.starts_with("CHECK  ")).skip(1);
        let row = |line: &str| {
            let mut cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned);
            (cells.next().expect("a check"), cells.next().expect("a result"))
        };
        Self { code: output.status.code(), rows: table.take_while(|line| !line.is_empty()).map(row).collect(), text }
    }

    /// Asserts that all checks of reads were made, and that all are ok but these.
    #[track_caller]
    pub fn reads(&self, but: &[(&str, &str)]) {
        self.checked(&READS, but);
    }

    /// Asserts that all checks of reads and writes were made, and that all are ok but these.
    #[track_caller]
    pub fn reads_and_writes(&self, but: &[(&str, &str)]) {
        self.checked(&[&READS[..], &WRITES[..]].concat(), but);
    }

    /// Asserts that these checks were made, that all are ok but some, and that the exit code says so.
    #[track_caller]
    pub fn checked(&self, checks: &[&str], but: &[(&str, &str)]) {
        let result = |check: &&str| but.iter().find(|(other, _)| other == check).map_or("ok", |(_, result)| result);
        let expected = checks.iter().map(|check| (*check, result(check))).collect::<Vec<_>>();
        let found = self.rows.iter().map(|(check, result)| (check.as_str(), result.as_str())).collect::<Vec<_>>();
        assert_eq!(found, expected, "{}", self.text);
        let is_ill = but.iter().any(|(_, result)| *result == "problem");
        assert_eq!(self.code, Some(i32::from(is_ill)), "{}", self.text);
    }

    /// Asserts that a problem of reads is the only one, that these checks were made beside it, and that it hides all others.
    #[track_caller]
    pub fn hides_all_but(&self, problem: &str, made: &[&str], of_writes: &[(&str, &str)]) {
        let hidden = READS.into_iter().filter(|check| *check != problem && !made.contains(check));
        let but: Vec<_> = hidden
            .map(|check| (check, "not decided"))
            .chain([(problem, "problem")])
            .chain(of_writes.iter().copied())
            .collect();
        let writes = of_writes.iter().map(|(check, _)| *check);
        self.checked(&READS.into_iter().chain(writes).collect::<Vec<_>>(), &but);
    }

    /// Asserts that a check has a remedy with these words.
    #[track_caller]
    pub fn mends(&self, result: &str, check: &str, words: &str) {
        let heading = format!("{result}: {check}");
        let remedy = self.text.lines().skip_while(|line| *line != heading).nth(1);
        assert!(remedy.is_some_and(|line| line.contains(words)), "{check} is mended by {words}:\n{}", self.text);
    }
}

/// All checks but some.
pub fn without(missing: &[&str], writes: bool) -> Vec<&'static str> {
    let all = READS.into_iter().chain(WRITES.into_iter().filter(|_| writes));
    all.filter(|check| !missing.contains(check)).collect()
}
