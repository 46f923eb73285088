//! `ifmatch openapi`: a configuration made of an OpenAPI document, and an overlay that shows the configuration to the
//! document's clients.

use std::{
    fmt::Display,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::{Args, Subcommand};

use super::{Exit, give_up, help, print, report};
use crate::{
    config::{self, Route},
    openapi::{ApiDocument, Paths, SIZE_MAX_BYTES, configuration, coverage, overlay},
};

/// The options of `ifmatch openapi`.
#[derive(Debug, Args)]
pub(super) struct OpenapiOptions {
    #[command(subcommand)]
    action: OpenapiCommand,
}

#[derive(Debug, Subcommand)]
enum OpenapiCommand {
    /// Print a configuration for the server of a document, with the reason for each choice.
    #[command(after_help = help::OPENAPI_INIT)]
    Init {
        /// The OpenAPI document, version 3.0 or 3.1, in JSON or YAML.
        spec: PathBuf,
    },
    /// Print an OpenAPI Overlay that adds tags, preconditions, refusals and leases to a document.
    #[command(after_help = help::OPENAPI_OVERLAY)]
    Overlay {
        /// The configuration.
        file: PathBuf,
        /// The OpenAPI document.
        spec: PathBuf,
    },
}

pub(super) fn execute(options: &OpenapiOptions) -> ExitCode {
    match &options.action {
        OpenapiCommand::Init { spec } => show(spec, |paths| Ok(configuration(paths))),
        OpenapiCommand::Overlay { file, spec } => show(spec, |paths| {
            let loaded = config::load(file).map_err(|problems| report(&problems))?;
            Ok(overlay(paths, &loaded.config.routes))
        }),
    }
}

/// Prints the text that is made of the paths of a document.
fn show(spec: &Path, make: impl FnOnce(&Paths<'_>) -> Result<String, ExitCode>) -> ExitCode {
    let text = read(spec).and_then(|document| {
        let paths = Paths::of(&document).map_err(invalid)?;
        make(&paths)
    });
    match text {
        Ok(text) => {
            print(text.trim_end());
            ExitCode::SUCCESS
        }
        Err(code) => code,
    }
}

/// Returns a line for each operation of a document that no route guards, after one with their number.
pub(super) fn unguarded(spec: &Path, routes: &[Arc<Route>]) -> Result<Vec<String>, ExitCode> {
    let document = read(spec)?;
    let coverage = coverage(&Paths::of(&document).map_err(invalid)?, routes);
    let (writes, open) = (coverage.writes, coverage.uncovered.len());
    let number =
        format!("{}: {} of {writes} operations that change something are guarded", spec.display(), writes - open);
    let lines = coverage.uncovered.into_iter().map(|one| format!("{} is not guarded: {}", one.operation, one.reason));
    Ok([number].into_iter().chain(lines).collect())
}

fn read(spec: &Path) -> Result<ApiDocument, ExitCode> {
    let name = spec.display().to_string();
    let text = read_text(spec).map_err(|error| invalid(format_args!("{name}: cannot be read: {error}")))?;
    ApiDocument::parse(&name, &text).map_err(invalid)
}

/// Reads a file up to the limit. The file may be a pipe, whose size is unknown.
fn read_text(spec: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(spec)?.take(SIZE_MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SIZE_MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {} MiB", SIZE_MAX_BYTES / 1024 / 1024)));
    }
    Ok(text)
}

fn invalid(problem: impl Display) -> ExitCode {
    give_up(problem, Exit::Configuration)
}
