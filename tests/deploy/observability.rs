//! Alerts and dashboard: they ask for metrics that exist, fire when they should, and each alert is explained.

use std::{collections::BTreeSet, fs, process::Command};

use ifmatch::telemetry::metrics::definitions::{ALL, Kind};
use promql_parser::{
    parser::{AggregateExpr, Expr, LabelModifier, VectorSelector, parse},
    util::{ExprVisitor, walk_expr},
};
use serde_json::Value;

use super::{file, output, yaml};

/// Labels that Prometheus gives to everything that it scrapes.
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];

/// The name that Prometheus knows a metric of ours by, and what it does to names of attributes.
fn series(name: &str, unit: &str, kind: Kind) -> Vec<String> {
    let unit = match unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let base = format!("{}{unit}", name.replace('.', "_"));
    match kind {
        Kind::Counter => vec![format!("{base}_total")],
        Kind::Gauge => vec![base],
        Kind::Histogram => ["bucket", "sum", "count"].map(|part| format!("{base}_{part}")).to_vec(),
    }
}

/// The labels of a series, and whether there is such a series at all.
fn labels(name: &str) -> Option<BTreeSet<String>> {
    let known = ALL.iter().find(|metric| series(metric.name, metric.unit, metric.kind).iter().any(|of| of == name));
    let mut labels: BTreeSet<String> = OF_PROMETHEUS.map(str::to_owned).into();
    match known {
        Some(metric) => labels.extend(metric.attributes.iter().map(|attribute| attribute.replace('.', "_"))),
        None if name == "up" => {}
        None => return None,
    }
    if name.ends_with("_bucket") {
        labels.insert("le".to_owned());
    }
    Some(labels)
}

/// The names in a query: series with the labels that choose them, and the labels that group them.
#[derive(Default)]
struct Named {
    series: Vec<(String, Vec<String>)>,
    grouped: Vec<String>,
}

impl ExprVisitor for Named {
    type Error = String;

    fn pre_visit(&mut self, expr: &Expr) -> Result<bool, String> {
        match expr {
            Expr::VectorSelector(selector) => self.select(selector),
            Expr::MatrixSelector(matrix) => self.select(&matrix.vs),
            Expr::Aggregate(AggregateExpr { modifier: Some(LabelModifier::Include(labels)), .. }) => {
                self.grouped.extend(labels.labels.iter().cloned());
            }
            _ => {}
        }
        Ok(true)
    }
}

impl Named {
    fn select(&mut self, selector: &VectorSelector) {
        let name = selector.name.clone().expect("a series is named");
        self.series.push((name, selector.matchers.matchers.iter().map(|matcher| matcher.name.clone()).collect()));
    }
}

/// Fails if a query cannot be read, or asks for what no proxy tells.
fn asks_for_what_exists(query: &str) {
    let expr = parse(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let mut named = Named::default();
    walk_expr(&mut named, &expr).expect("the visitor never fails");
    assert!(!named.series.is_empty(), "{query}");
    for (name, chosen_by) in &named.series {
        let labels = labels(name).unwrap_or_else(|| panic!("no metric is called {name}: {query}"));
        for label in chosen_by.iter().chain(&named.grouped) {
            assert!(labels.contains(label), "{name} has no label {label}: {query}");
        }
    }
}

/// The rules of the alerts.
fn alerts() -> Vec<Value> {
    let alerts = yaml(&file("deploy/prometheus/alerts.yaml"));
    alerts["groups"][0]["rules"].as_array().expect("rules").clone()
}

#[test]
fn alerts_ask_for_metrics_that_exist() {
    let alerts = alerts();
    assert!(!alerts.is_empty());
    for alert in &alerts {
        asks_for_what_exists(alert["expr"].as_str().expect("a query"));
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let text = fs::read_to_string(file("deploy/grafana/ifmatch.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().expect("a query")).collect();
    assert!(!queries.is_empty());
    for query in queries {
        asks_for_what_exists(&query.replace("$__rate_interval", "5m").replace("$__range", "1h"));
    }
}

/// Prometheus's own tool plays a story for each of them.
#[test]
fn alerts_fire_when_they_should() {
    let directory = tempfile::tempdir().expect("a directory");
    for path in ["deploy/prometheus/alerts.yaml", "tests/deploy/alerts.test.yaml"] {
        let path = file(path);
        fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("a copy");
    }
    output(Command::new("promtool").args(["test", "rules", "alerts.test.yaml"]).current_dir(directory.path()));
    let stories = fs::read_to_string(file("tests/deploy/alerts.test.yaml")).expect("the stories");
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("a name").to_owned();
        assert!(stories.contains(&format!("alertname: {name}\n")), "no story in which {name} fires");
    }
}

#[test]
fn each_alert_is_explained() {
    let operations = fs::read_to_string(file("docs/operations.md")).expect("the document");
    let explained: BTreeSet<&str> = operations.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alerts = alerts();
    let names = alerts.iter().map(|alert| alert["alert"].as_str().expect("a name")).collect();
    assert_eq!(explained, names);
    // The book names an anchor after its heading, in small letters.
    for (alert, name) in alerts.iter().zip(alerts.iter().map(|alert| alert["alert"].as_str().expect("a name"))) {
        let page = format!("{{{{ $externalLabels.ifmatch_book }}}}/operations.html#{}", name.to_lowercase());
        assert_eq!(alert["annotations"]["runbook_url"], page);
    }
}
