//! `ifmatch check`: reports all problems of a configuration, or prints a table of its routes.

use std::{borrow::Cow, path::Path, process::ExitCode, time::Duration};

use super::{check_notes, complain, openapi, print, report};
use crate::{
    config::{self, Route, Upstream, Word, guard_words, show_duration},
    core::{
        http::request_target::EncodedSlash,
        policy::{GuardRules, LeaseRules},
        route::HostPattern,
    },
};

const HEADINGS: [&str; 9] =
    ["NAME", "HOST", "PATH", "POLICY", "ETAG", "OTHER WRITERS", "REQUIRE", "LEASES", "UPSTREAM"];

/// Checks a configuration, and if a document is given, which of its operations no route guards.
pub(super) fn execute(file: &Path, document: Option<&Path>) -> ExitCode {
    let loaded = match config::load(file) {
        Ok(loaded) => loaded,
        Err(problems) => return report(&problems),
    };
    let operations = match document.map(|document| openapi::unguarded(document, &loaded.config.routes)).transpose() {
        Ok(lines) => lines.unwrap_or_default(),
        Err(code) => return code,
    };
    for warning in &loaded.warnings {
        complain(format_args!("warning: {warning}\n"));
    }
    let rows = loaded.config.routes.iter().map(|route| row(route)).collect::<Vec<_>>();
    for line in table(&HEADINGS.map(str::to_owned), &rows) {
        print(line);
    }
    check_notes::demands(&loaded.config.routes).into_iter().for_each(print);
    check_notes::unguarded_below(&loaded.config.routes).into_iter().for_each(print);
    check_notes::unguarded_batches(&loaded.config.routes).into_iter().for_each(print);
    check_notes::remembered_lists(&loaded.config.routes).into_iter().for_each(print);
    if !loaded.config.routes.iter().any(|route| takes_all(route)) {
        print("Requests that no route matches get 404 no-route.");
    }
    operations.into_iter().for_each(print);
    ExitCode::SUCCESS
}

/// True if a route takes every request that more exact routes leave: `path = "/{*rest}"` for all hosts.
fn takes_all(route: &Route) -> bool {
    route.host == HostPattern::Any && route.path.is_open() && route.path.texts().next().is_none()
}

fn row(route: &Route) -> [String; 9] {
    let of_guard =
        |shown: fn(&GuardRules) -> Cow<'static, str>| route.guard.as_deref().map_or("-".into(), shown).into_owned();
    [
        route.name.clone(),
        route.host.to_string(),
        path(route),
        route.policy.word().to_owned(),
        of_guard(|guard| guard.etag.spelled()),
        of_guard(|guard| if guard.other_writers { "yes".into() } else { "no".into() }),
        of_guard(|guard| if guard.observe { "observed".into() } else { guard.require.spelled() }),
        of_guard(|guard| guard.lease.as_ref().map_or("-".into(), |rules| leases(guard, rules).into())),
        upstream(&route.upstream),
    ]
}

/// Returns the paths of a route, and whether it takes slashes in names.
fn path(route: &Route) -> String {
    let keeps = route.kept.encoded_slash == EncodedSlash::Keep;
    format!("{}{}", route.path, if keeps { " (keeps %2F)" } else { "" })
}

/// Returns the name of an upstream with its servers, and whether it ignores letter case.
fn upstream(upstream: &Upstream) -> String {
    let ignores_case = if upstream.ignore_case { ", ignore_case" } else { "" };
    format!("{} ({}{ignores_case})", upstream.name, servers(upstream))
}

/// Returns the servers of an upstream as the file lists them.
fn servers(upstream: &Upstream) -> String {
    let before = if upstream.tls.is_some() { "https://" } else { "" };
    upstream.servers.iter().map(|server| format!("{before}{server}")).collect::<Vec<_>>().join(", ")
}

/// Returns what a client must know to take a lease: where, what it guards, and how long it may last.
fn leases(guard: &GuardRules, rules: &LeaseRules) -> String {
    let place = if guard.quirks.leases_have_paths { rules.prefix.as_str() } else { guard.dialect.word() };
    let (guards, min, max) = (guard_words(rules.guards).join("+"), rules.min, rules.max);
    let required = if rules.required { " required" } else { "" };
    let shared = if rules.shared { " shared" } else { "" };
    let infinite = if rules.infinite { "|infinite" } else { "" };
    let durations = if guard.dialect.grammar().facts().demands.has_endless_locks {
        "infinite".to_owned()
    } else {
        format!("{}-{}{infinite}", shown(min), shown(max))
    };
    format!("{place} {guards} {durations}{shared}{required}")
}

/// Formats a duration as one word: `1m30s`.
fn shown(duration: Duration) -> String {
    show_duration(duration).replace(' ', "")
}

/// Returns lines whose columns are as wide as their widest cell.
pub(super) fn table<const N: usize>(headings: &[String; N], rows: &[[String; N]]) -> Vec<String> {
    let all = || std::iter::once(headings).chain(rows);
    let width = |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths = (0..N).map(|column| width(column).unwrap_or(0)).collect::<Vec<_>>();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all().map(line).collect()
}
