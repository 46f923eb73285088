//! The programs of the documents as commands.

use std::{
    fs,
    os::unix::{fs::symlink, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::{
    document::block,
    support::{child::Child, clients},
};

/// The languages in which each program is written, by the extensions of their files; the slowest at last.
pub const LANGUAGES: [&str; 5] = ["go", "rs", "mjs", "py", "sh"];

/// One program in all languages, taken out of its document and built where it has to be.
pub struct Program {
    name: &'static str,
    directory: TempDir,
}

impl Program {
    /// In these languages, of which cargo builds that of Rust.
    pub fn of_document(name: &'static str, languages: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for language in languages.iter().filter(|language| **language != "rs") {
            let file = format!("{name}.{language}");
            fs::write(directory.path().join(&file), block(&file)).expect("a file");
        }
        if languages.contains(&"go") {
            build_go(name, directory.path());
        }
        let modules = directory.path().join("node_modules");
        fs::create_dir(&modules).expect("a directory");
        symlink(clients::typescript_package(), modules.join("ifmatch")).expect("a link");
        Self { name, directory }
    }

    /// Starts it with these arguments. It leads a process group of its own, see [`signal_group`].
    pub fn start(&self, language: &str, log: &str, arguments: &[&str]) -> Child {
        let file = self.directory.path().join(format!("{}.{language}", self.name));
        let mut command = match language {
            "sh" => with_file("bash", &file),
            "py" => {
                let mut python = clients::python_with_package();
                python.args(["-u".as_ref(), file.as_os_str()]);
                python
            }
            "mjs" => with_file("node", &file),
            "rs" => Command::new(built_by_cargo(self.name)),
            "go" => Command::new(file.with_extension("")),
            _ => panic!("nobody knows how to run {language}"),
        };
        command.args(arguments).process_group(0);
        Child::spawn(&format!("{}.{language}", self.name), &mut command, self.directory.path().join(log))
    }
}

/// Signals a program and all that it has started, as a machine that stands still stops them all.
pub fn signal_group(child: &Child, signal: Signal) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("the number of a process");
    kill_process_group(group, signal).expect("it is still there");
}

fn with_file(program: &str, file: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(file);
    command
}

/// Returns the program that cargo has built from `examples/NAME.rs`. `cargo test` builds examples, `cargo test --test
/// clients` does not.
fn built_by_cargo(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_ifmatch")).with_file_name("examples").join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
    let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let is_current = written(&program) >= written(&source);
    assert!(is_current, "{} is missing or older than its source: run `cargo build --examples`", program.display());
    program
}

/// With the standard library alone, so there is nothing to download.
fn build_go(name: &str, directory: &Path) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    let file = format!("{name}.go");
    let mut go = Command::new("go");
    go.args(["build", "-o", name, &file]).current_dir(directory);
    go.env("GO111MODULE", "off").env("GOFLAGS", "").env("GOCACHE", &cache).env("GOPATH", cache.join("path"));
    succeeds(&mut go);
    let mut format = Command::new("gofmt");
    format.args(["-d", &file]).current_dir(directory);
    assert_eq!(succeeds(&mut format), "", "{file} has another format");
}

/// Returns its output.
fn succeeds(command: &mut Command) -> String {
    let name = command.get_program().to_owned();
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}: run `make setup-test`", name.display()));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
