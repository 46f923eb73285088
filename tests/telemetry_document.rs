//! docs/telemetry.md states of every metric what its definition says, and of no other.

use ifmatch::telemetry::metrics::definitions::{ALL, Kind, Metric};

const DOCUMENT: &str = include_str!("../docs/telemetry.md");

/// The row of a metric.
fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
        Kind::Gauge => "gauge",
    };
    let attributes: Vec<String> = metric.attributes.iter().map(|attribute| format!("`{attribute}`")).collect();
    format!("| `{}` | {kind} | {} | {} | {} |", metric.name, metric.unit, attributes.join(", "), metric.about)
}

#[test]
fn the_table_of_metrics_is_that_of_the_definitions() {
    let documented: Vec<&str> = DOCUMENT
        .lines()
        .skip_while(|line| !line.starts_with("| metric |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let defined: Vec<String> = ALL.iter().map(row).collect();
    assert_eq!(documented, defined);
}
