//! The judges that find mutants: all or some tests of one target.

use std::{
    env, fs,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    copy,
    program::{self, Programs},
};

/// The judges of every mutant, the fastest first. The last two are the tests of what the program does for its users
/// when requests meet.
const GENERAL: [&str; 4] = [
    "lib",
    "simulation",
    "proxy admin_leases:: azure_leases:: doubts:: lease_uses:: leases::native:: local_verdicts:: outcomes:: overlaps:: \
     related:: unclaimed_writes::",
    "proxy early_verdicts:: forwarded_conditions:: idempotency:: lease_waiting:: preconditions:: refused_untouched:: \
     reload:: store_outage:: tags_after_writes::",
];

/// The variable that names the targets that may judge.
const ALLOWED: &str = "MUTANTS_JUDGES";

/// The settings of the simulation, which make its verdict on a mutant repeatable: the first seed and the number of
/// runs.
const SIMULATION: [(&str, &str); 2] = [("IFMATCH_SEED", "1"), ("SIMULATE_RUNS", "2000")];

/// The pause between two checks whether a judge has ended.
const INTERVAL: Duration = Duration::from_millis(20);

/// All or some tests of one target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Judge {
    pub target: String,
    /// The names of its tests, or parts of them; empty for all tests.
    filters: Vec<String>,
    is_exact: bool,
}

/// The verdict of a judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// All tests pass.
    Passes,
    /// These tests fail; the list is empty if the whole program ended.
    Fails(Vec<String>),
    /// The tests have not ended in time.
    Hangs,
}

impl Judge {
    /// Parses a target with filters after it.
    pub fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace().map(str::to_owned);
        let target = words.next().expect("a judge has a target");
        Self { target, filters: words.collect(), is_exact: false }
    }

    /// Returns a judge with only these tests, if there are any names.
    pub fn only(&self, tests: &[String]) -> Self {
        if tests.is_empty() {
            return self.clone();
        }
        Self { target: self.target.clone(), filters: tests.to_vec(), is_exact: true }
    }

    /// Returns the judge's name in the table.
    pub fn name(&self) -> String {
        let mut words = vec![self.target.as_str()];
        words.extend(self.filters.iter().map(String::as_str));
        words.join(" ")
    }

    /// Runs the tests with a mutant, or with none, within the limit; their output goes into the file.
    pub fn ask(&self, programs: &Programs, mutant: Option<&str>, limit: Duration, log: &Path) -> Word {
        fs::create_dir_all(log.parent().expect("a file has a directory")).expect("the directory of the logs");
        let file = fs::File::create(log).expect("a log");
        let mut command = Command::new(&programs[&self.target]);
        command.args(&self.filters).args(self.is_exact.then_some("--exact"));
        command.current_dir(copy::directory(super::root())).process_group(0);
        command.env_remove(copy::SWITCH).env_remove("MUTANTS").envs(mutant.map(|name| (copy::SWITCH, name)));
        command.envs(SIMULATION);
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("a handle")).stderr(file);
        let status = wait(command.spawn().expect("the tests start"), limit);
        let printed = String::from_utf8_lossy(&fs::read(log).expect("a log")).into_owned();
        assert!(!printed.contains("running 0 tests"), "{} has no tests", self.name());
        match status {
            None => Word::Hangs,
            Some(status) if status.success() => Word::Passes,
            Some(_) => Word::Fails(failed(&printed)),
        }
    }
}

/// Returns all general judges whose target has tests.
pub fn general() -> Vec<Judge> {
    GENERAL
        .iter()
        .map(|text| Judge::parse(text))
        .filter(|judge| program::exists(super::root(), &judge.target))
        .collect()
}

/// Returns the targets that may judge; `None` for all.
pub fn allowed() -> Option<Vec<String>> {
    env::var(ALLOWED).ok().map(|targets| targets.split(',').map(str::to_owned).collect())
}

/// Waits for the tests to end. After the limit it kills them with all processes that they have started.
fn wait(mut child: Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    let group = Pid::from_child(&child);
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break Some(status);
        }
        if Instant::now() >= end {
            break None;
        }
        sleep(INTERVAL);
    };
    // This also kills what failed tests have left behind.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    status
}

/// Returns the names of the failed tests, as the harness prints them.
fn failed(printed: &str) -> Vec<String> {
    let name = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    printed.lines().filter_map(name).collect()
}
