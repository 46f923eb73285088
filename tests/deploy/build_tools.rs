//! The tools that a machine must have before cargo builds anything there.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

use super::{file, output};

/// An empty package with the settings of this one, on a machine of few programs beside cargo.
struct Machine {
    root: TempDir,
}

impl Machine {
    fn with(programs: &[&str]) -> Self {
        let machine = Self { root: tempfile::tempdir().expect("a directory") };
        for directory in [".cargo", "bin", "src", "target"] {
            fs::create_dir(machine.path().join(directory)).expect("a directory");
        }
        for path in [".cargo/config.toml", ".cargo/rustc"] {
            fs::copy(file(path), machine.path().join(path)).expect("a copy");
        }
        fs::write(machine.path().join("src/lib.rs"), "").expect("a file");
        fs::write(machine.path().join("Cargo.toml"), "package.name = \"empty\"\n[workspace]\n").expect("a file");
        for program in ["sh", "touch", "tr"] {
            let path = env::var_os("PATH").expect("a path");
            let mut places = env::split_paths(&path).map(|directory| directory.join(program));
            let own = places.find(|place| place.exists()).expect("every system has it");
            symlink(own, machine.path().join("bin").join(program)).expect("a link");
        }
        for program in programs {
            machine.install(program, "exit 0");
        }
        machine
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    fn install(&self, program: &str, script: &str) {
        let place = self.path().join("bin").join(program);
        fs::write(&place, format!("#!/bin/sh\n{script}\n")).expect("a file");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// Lets cargo build the package, or only describe it.
    fn run(&self, arguments: &[&str]) -> Output {
        let compiler = output(Command::new("rustc").args(["--print", "sysroot"]));
        Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(self.path())
            .env("RUSTC", Path::new(compiler.trim()).join("bin/rustc"))
            .env("PATH", self.path().join("bin"))
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("CC")
            .env_remove("CMAKE")
            .env_remove("PROTOC")
            .output()
            .expect("cargo runs")
    }

    /// The line that says what is missing, if cargo refuses to begin.
    fn missing(&self) -> Option<String> {
        let built = self.run(&["check", "--offline"]);
        let said = String::from_utf8(built.stderr).expect("UTF-8");
        let line = said.lines().find(|line| line.starts_with("missing: ")).map(str::to_owned);
        assert_eq!(line.is_none(), built.status.success(), "{said}");
        line
    }
}

/// Before it has built anything, cargo says in one line all that is to be installed. It goes on once that is there.
#[test]
fn cargo_says_at_once_what_a_machine_lacks() {
    let machine = Machine::with(&["cc"]);
    let packages = "On Debian, as root: apt-get install build-essential cmake protobuf-compiler libprotobuf-dev";
    assert_eq!(machine.missing(), Some(format!("missing: cmake protoc. {packages}")));
    machine.install("cmake", "exit 0");
    assert_eq!(machine.missing(), Some(format!("missing: protoc. {packages}")));
    // A formatter and an editor need nothing of it, and leave no answer that a later build takes for its own.
    let described = machine.run(&["metadata", "--offline", "--format-version", "1"]);
    assert!(described.status.success(), "{}", String::from_utf8_lossy(&described.stderr));
    assert_eq!(machine.missing(), Some(format!("missing: protoc. {packages}")));
    machine.install("protoc", "exit 0");
    assert_eq!(machine.missing(), None);
}

/// A protoc without the files that etcd's protocol imports would fail in the midst of the build.
#[test]
fn a_protoc_without_its_own_files_counts_as_missing() {
    let machine = Machine::with(&["cc", "cmake"]);
    machine.install("protoc", "case \"$*\" in *google/protobuf/descriptor.proto*) exit 1;; esac");
    let said = machine.missing().expect("a line");
    assert!(said.starts_with("missing: protoc. "), "{said}");
}
