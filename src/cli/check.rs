//! `ifmatch check`: all problems of a configuration, or a table of its routes.

use std::{path::Path, process::ExitCode};

use super::{complain, print, report};
use crate::config::{self, Route, Word};

const HEADINGS: [&str; 8] = ["NAME", "HOST", "PATH", "POLICY", "ETAG", "WRITERS", "REQUIRE", "UPSTREAM"];

pub(super) fn execute(file: &Path) -> ExitCode {
    let loaded = match config::load(file) {
        Ok(loaded) => loaded,
        Err(problems) => return report(&problems),
    };
    for warning in &loaded.warnings {
        complain(format_args!("warning: {warning}\n"));
    }
    let rows = loaded.config.routes.iter().map(|route| row(route)).collect::<Vec<_>>();
    for line in table(&HEADINGS.map(str::to_owned), &rows) {
        print(line);
    }
    ExitCode::SUCCESS
}

fn row(route: &Route) -> [String; 8] {
    let of_guard =
        |word: fn(&crate::core::policy::Guard) -> &'static str| route.guard.as_ref().map_or("-", word).to_owned();
    [
        route.name.clone(),
        route.host.to_string(),
        route.path.to_string(),
        route.policy.word().to_owned(),
        of_guard(|guard| guard.etag.word()),
        of_guard(|guard| guard.writers.word()),
        of_guard(|guard| if guard.observe { "observed" } else { guard.require.word() }),
        format!("{} ({})", route.upstream.name, route.upstream.servers.join(", ")),
    ]
}

/// Lines whose columns are as wide as their widest cell.
fn table<const N: usize>(headings: &[String; N], rows: &[[String; N]]) -> Vec<String> {
    let all = || std::iter::once(headings).chain(rows);
    let width = |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths = (0..N).map(|column| width(column).unwrap_or(0)).collect::<Vec<_>>();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all().map(line).collect()
}
