//! Findings, and the text that reports them.

use std::fmt;

use crate::cli::check::table;

const HEADINGS: [&str; 3] = ["CHECK", "RESULT", "FOUND"];

/// The checks of each resource with a tag, in the order of the table.
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

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// As it must be.
    Ok,
    /// No update is lost or refused by it.
    Note,
    /// An update can be lost, or a client that is right is refused.
    Problem,
    /// Another problem hides it.
    Undecided,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
            Self::Undecided => "not decided",
        })
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) severity: Severity,
    pub(super) sentence: String,
    /// The change that is needed.
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, sentence: impl Into<String>) -> Self {
        Self { check, severity: Severity::Ok, sentence: sentence.into(), remedy: None }
    }

    pub(super) fn note(check: &'static str, sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, severity: Severity::Note, sentence: sentence.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn problem(check: &'static str, sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, severity: Severity::Problem, sentence: sentence.into(), remedy: Some(remedy.into()) }
    }
}

/// Puts findings in the order of the table. A check of reads that was not made is one that this problem hides.
pub(super) fn hidden_by(cause: &str, findings: Vec<Finding>) -> Vec<Finding> {
    let (mut of_reads, others): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| READS.contains(&finding.check));
    let mut take = |check| {
        let place = of_reads.iter().position(|finding| finding.check == check);
        place.map_or_else(|| undecided(check, cause), |place| of_reads.swap_remove(place))
    };
    READS.into_iter().map(&mut take).chain(others).collect()
}

fn undecided(check: &'static str, cause: &str) -> Finding {
    let sentence = format!("It shows once the problem of {cause:?} is mended.");
    Finding { check, severity: Severity::Undecided, sentence, remedy: None }
}

/// Returns a table of all findings, then the remedy of each that has one, problems first.
pub(super) fn report(findings: &[Finding]) -> Vec<String> {
    let row = |finding: &Finding| [finding.check.to_owned(), finding.severity.to_string(), finding.sentence.clone()];
    let mut lines = table(&HEADINGS.map(str::to_owned), &findings.iter().map(row).collect::<Vec<_>>());
    for severity in [Severity::Problem, Severity::Note] {
        for finding in findings.iter().filter(|finding| finding.severity == severity) {
            if let Some(remedy) = &finding.remedy {
                lines.extend([String::new(), format!("{severity}: {}", finding.check), format!("  {remedy}")]);
            }
        }
    }
    lines
}

/// True if one of the findings is a problem.
pub(super) fn has_problem(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Problem)
}

/// Returns check and severity of each finding.
#[cfg(test)]
pub(super) fn summary(findings: &[Finding]) -> Vec<(&'static str, Severity)> {
    findings.iter().map(|finding| (finding.check, finding.severity)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_follow_the_table_and_problems_come_first() {
        let findings = [
            Finding::ok("a", "Fine."),
            Finding::note("b", "So so.", "Look."),
            Finding::problem("long", "Bad.", "Mend."),
        ];
        let expected = [
            "CHECK  RESULT   FOUND",
            "a      ok       Fine.",
            "b      note     So so.",
            "long   problem  Bad.",
            "",
            "problem: long",
            "  Mend.",
            "",
            "note: b",
            "  Look.",
        ];
        assert_eq!(report(&findings), expected);
        assert!(has_problem(&findings));
        assert_eq!(
            summary(&hidden_by("cache", vec![Finding::ok("tag", ""), Finding::note("writes", "", "")]))[..3],
            [("way", Severity::Undecided), ("tag", Severity::Ok), ("stability", Severity::Undecided)]
        );
        assert!(!has_problem(&findings[..2]));
    }
}
