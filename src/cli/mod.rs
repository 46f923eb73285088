//! The command line: the commands of `ifmatch`, and the meaning of its exit codes.

mod admin_client;
mod admin_listener;
mod check;
mod check_notes;
mod demo;
mod doctor;
mod doubts;
mod exchange;
mod explain;
mod health;
mod help;
mod leases;
mod manual;
mod openapi;
mod reload;
mod run;
mod version;
mod why;

use std::{
    ffi::OsString,
    fmt::Display,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::{
    doctor::DoctorOptions, doubts::DoubtsOptions, health::HealthOptions, leases::LeasesOptions,
    openapi::OpenapiOptions, why::WhyOptions,
};
use crate::{
    config::{self, GuardedBy, Loaded, Problems, Word},
    core::policy::Policy,
};

/// The default configuration of `ifmatch run`.
const DEFAULT_FILE: &str = "ifmatch.toml";

/// The reasons for failure, as exit codes of the process; 0 is success. Those above 1 come from `sysexits.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Something failed at run time.
    Runtime = 1,
    /// The command line cannot be understood.
    Usage = 64,
    /// An address to listen on cannot be bound.
    Unavailable = 69,
    /// The configuration has problems.
    Configuration = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A reverse proxy that stops lost updates.
#[derive(Debug, Parser)]
#[command(name = "ifmatch", version, about, arg_required_else_help = true, after_help = help::IFMATCH)]
struct CommandLine {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve with a configuration, or in front of one server without a configuration.
    #[command(after_help = help::RUN)]
    Run(RunOptions),
    /// Check a configuration: report all of its problems, or print its routes.
    #[command(after_help = help::CHECK)]
    Check {
        /// The configuration.
        file: PathBuf,
        /// An OpenAPI document, to list the operations that no route guards.
        #[arg(long, value_name = "SPEC")]
        openapi: Option<PathBuf>,
    },
    /// Print the JSON Schema of the configuration, by which editors complete and check it.
    #[command(after_help = help::SCHEMA)]
    Schema,
    /// Make a configuration of an OpenAPI document, or tell the document's clients of a configuration.
    #[command(after_help = help::OPENAPI)]
    Openapi(OpenapiOptions),
    /// Show what ifmatch does: a plain backend and the proxy in one process, and a walk through both.
    #[command(after_help = help::DEMO)]
    Demo(DemoOptions),
    /// Make a running process load its configuration again.
    #[command(after_help = help::RELOAD)]
    Reload(ReloadOptions),
    /// Show which route a request takes and why, what its resource key is, and what a write needs.
    #[command(after_help = help::EXPLAIN)]
    Explain(ExplainOptions),
    /// Try whether the tag of a resource survives the way to the client and back, and tell which key mends what does not.
    #[command(after_help = help::DOCTOR)]
    Doctor(DoctorOptions),
    /// See and break leases, and forget what is known of resources, through the admin listener of a running ifmatch.
    #[command(after_help = help::LEASES)]
    Leases(LeasesOptions),
    /// Tell why a request was refused, or list the last refusals, through the admin listener of a running ifmatch.
    #[command(after_help = help::WHY)]
    Why(WhyOptions),
    /// List the resources that a write in doubt holds, through the admin listener of a running ifmatch.
    #[command(after_help = help::DOUBTS)]
    Doubts(DoubtsOptions),
    /// Ask a running ifmatch whether it lives: exit code 0 if it does, else 1.
    #[command(after_help = help::HEALTH)]
    Health(HealthOptions),
    /// Write the manual pages and the completions of shells into a directory, for packages.
    #[command(hide = true)]
    Manual {
        /// The directory; it is made if it is missing.
        directory: PathBuf,
    },
}

/// The options of `ifmatch run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The configuration; ifmatch.toml if neither a file nor an upstream is given.
    #[arg(conflicts_with_all = ["upstream", "policy", "webdav", "listen", "admin"])]
    pub file: Option<PathBuf>,
    /// Run without a file, in front of the server at this URL.
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// The policy of all requests; optimistic by default.
    #[arg(long, requires = "upstream", value_parser = policy)]
    pub policy: Option<Policy>,
    /// Lock files for the clients of this server: those that LOCK what they edit.
    #[arg(long, requires = "upstream", conflicts_with = "policy")]
    pub webdav: bool,
    /// An address to listen on, 127.0.0.1:8080 by default; may be given several times.
    #[arg(long, requires = "upstream", value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// The address of an admin listener, such as 127.0.0.1:9901; without it, there is none.
    #[arg(long, requires = "upstream", value_name = "ADDRESS")]
    pub admin: Option<String>,
}

impl RunOptions {
    /// Returns the configuration file, or `None` if an upstream is given instead.
    pub fn path(&self) -> Option<&Path> {
        self.upstream.is_none().then(|| self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE)))
    }

    /// Loads the configuration that the options name.
    pub fn load(&self) -> Result<Loaded, Problems> {
        match &self.upstream {
            Some(url) => {
                let by_policy = GuardedBy::Policy(self.policy.unwrap_or(Policy::Optimistic));
                let guarded = if self.webdav { GuardedBy::Webdav } else { by_policy };
                config::from_upstream(url, guarded, &self.listen, self.admin.as_deref())
            }
            None => config::load(self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE))),
        }
    }
}

/// The options of `ifmatch reload`.
#[derive(Debug, Args)]
struct ReloadOptions {
    /// The configuration that names the control socket; ifmatch.toml by default. The process loads the file that it was
    /// started with.
    file: Option<PathBuf>,
    /// The control socket, if it is not that of the configuration.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Insist on a change that takes leases from their holders, or that trusts what is remembered from before.
    #[arg(long)]
    force: bool,
}

/// The options of `ifmatch demo`.
#[derive(Debug, Args)]
struct DemoOptions {
    /// End after the walk; the exit code tells whether all steps ended as they must.
    #[arg(long)]
    once: bool,
}

/// The options of `ifmatch explain`.
#[derive(Debug, Args)]
struct ExplainOptions {
    /// The configuration.
    file: PathBuf,
    /// The method of the request.
    method: String,
    /// Its URL, or its target with the host given by -H.
    url: String,
    /// A header field of the request, 'Name: value'; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    headers: Vec<String>,
}

fn policy(word: &str) -> Result<Policy, String> {
    let words = Policy::WORDS.iter().map(|(word, _)| *word).collect::<Vec<_>>();
    Policy::of(word).ok_or_else(|| format!("it is one of {}", words.join(", ")))
}

/// Runs the command that the arguments name; the first argument is the name of the program. The commit is the one that
/// the program was built from, if the build knew it.
pub fn execute(arguments: impl IntoIterator<Item = OsString>, commit: Option<&str>) -> ExitCode {
    let command = CommandLine::command().long_version(version::long(commit));
    match command.try_get_matches_from(arguments).and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(CommandLine { command: CliCommand::Run(options) }) => run::execute(&options),
        Ok(CommandLine { command: CliCommand::Check { file, openapi } }) => check::execute(&file, openapi.as_deref()),
        Ok(CommandLine { command: CliCommand::Schema }) => {
            print(format_args!("{:#}", config::schema()));
            ExitCode::SUCCESS
        }
        Ok(CommandLine { command: CliCommand::Openapi(options) }) => openapi::execute(&options),
        Ok(CommandLine { command: CliCommand::Demo(options) }) => demo::execute(&options),
        Ok(CommandLine { command: CliCommand::Reload(options) }) => reload::execute(&options),
        Ok(CommandLine { command: CliCommand::Explain(options) }) => explain::execute(&options),
        Ok(CommandLine { command: CliCommand::Doctor(options) }) => doctor::execute(&options),
        Ok(CommandLine { command: CliCommand::Leases(options) }) => leases::execute(&options),
        Ok(CommandLine { command: CliCommand::Why(options) }) => why::execute(&options),
        Ok(CommandLine { command: CliCommand::Doubts(options) }) => doubts::execute(&options),
        Ok(CommandLine { command: CliCommand::Health(options) }) => health::execute(&options),
        Ok(CommandLine { command: CliCommand::Manual { directory } }) => {
            manual::execute(CommandLine::command(), &directory)
        }
        Err(answer) => {
            // Help and version are errors to clap, and a closed pipe is no failure.
            let _ = answer.print();
            if answer.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS }
        }
    }
}

/// Prints a line on standard output. A reader that closes the pipe early has read enough.
fn print(line: impl Display) {
    let _ = writeln!(stdout().lock(), "{line}");
}

/// Prints a line on standard error.
fn complain(line: impl Display) {
    let _ = writeln!(stderr().lock(), "{line}");
}

/// Reports all problems of a configuration.
pub fn report(problems: &Problems) -> ExitCode {
    give_up(problems, Exit::Configuration)
}

/// Complains, and returns the exit code.
fn give_up(line: impl Display, exit: Exit) -> ExitCode {
    complain(line);
    exit.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    struct Run {
        #[command(flatten)]
        options: RunOptions,
    }

    fn run(arguments: &[&str]) -> Result<RunOptions, clap::Error> {
        Run::try_parse_from([&["run"], arguments].concat()).map(|run| run.options)
    }

    #[test]
    fn the_definition_is_consistent() {
        CommandLine::command().debug_assert();
        Run::command().debug_assert();
    }

    #[test]
    fn run_without_a_file_loads_the_default_one_or_that_of_the_upstream() {
        let options = run(&["--upstream", "http://[::1]:1"]).expect("an upstream is enough");
        let config = options.load().expect("it is valid").config;
        assert_eq!(config.routes.first().map(|route| route.policy), Some(Policy::Optimistic));
        let problems = run(&[]).expect("nothing is enough").load().expect_err("there is no such file here");
        assert!(problems.to_string().starts_with("ifmatch.toml: cannot be read"), "{problems}");
    }

    #[test]
    fn run_takes_a_file_or_an_upstream() {
        assert_eq!(run(&["a.toml"]).expect("a file is enough").file, Some(PathBuf::from("a.toml")));
        let options = run(&["--upstream", "http://[::1]:1", "--policy", "optimistic", "--listen", "[::1]:0"]);
        assert_eq!(options.expect("these belong together").policy, Some(Policy::Optimistic));
        assert!(run(&["--upstream", "http://[::1]:1", "--webdav"]).expect("a kind of server").webdav);
        assert!(run(&["--upstream", "http://[::1]:1", "--webdav", "--policy", "optimistic"]).is_err());
        assert!(run(&["a.toml", "--webdav"]).is_err());
        assert!(run(&["a.toml", "--admin", "127.0.0.1:9901"]).is_err());
        assert!(run(&["a.toml", "--upstream", "http://[::1]:1"]).is_err());
        assert!(run(&["--policy", "optimistic"]).is_err());
        assert!(run(&["--upstream", "http://[::1]:1", "--policy", "pesimistic"]).is_err());
    }
}
