//! Terraform as people run it, with its state behind a proxy. Its configurations have outputs alone, so that it needs no
//! network.

use std::{
    env,
    fs::{self, File},
    io::Write as _,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::{clients::python_file, wait::until_some};

/// A directory with a configuration, as a user has it.
pub struct Workspace {
    directory: TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    pub succeeded: bool,
    pub said: String,
}

/// A command that goes on; killed on drop.
pub struct Running {
    process: Child,
    directory: TempDir,
}

impl Workspace {
    /// Configures the `http` backend for the state at this URL, with further lines, and initialises it.
    pub async fn new(addr: SocketAddr, target: &str, lines: &str) -> Self {
        let url = format!("http://{addr}{target}");
        Self::with(&format!("address = {url:?}\nlock_address = {url:?}\nunlock_address = {url:?}\n{lines}")).await
    }

    /// The same with exactly these lines.
    pub async fn with(lines: &str) -> Self {
        let workspace = Self { directory: tempfile::tempdir().expect("a directory") };
        let backend = format!("terraform {{\n  backend \"http\" {{\n{lines}\n  }}\n}}\n");
        fs::write(workspace.directory.path().join("backend.tf"), backend).expect("a file");
        workspace.wants("nothing yet");
        workspace.succeeds(&["init", "-input=false"]).await;
        workspace
    }

    /// Changes the configuration, so that the next apply changes the state.
    pub fn wants(&self, value: &str) {
        let output = format!("output \"value\" {{\n  value = {value:?}\n}}\n");
        fs::write(self.directory.path().join("output.tf"), output).expect("a file");
    }

    /// Runs a command to its end.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        let output = spawn_blocking(move || command.stdin(Stdio::null()).output().expect("Terraform starts"));
        let output = output.await.expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { succeeded: output.status.success(), said: text(&output.stdout) + &text(&output.stderr) }
    }

    /// Runs a command that must succeed. Returns what it says.
    pub async fn succeeds(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments).await;
        assert!(ran.succeeded, "{arguments:?}: {}", ran.said);
        ran.said
    }

    /// Runs a command that must fail. Returns what it says.
    pub async fn fails(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments).await;
        assert!(!ran.succeeded, "{arguments:?}: {}", ran.said);
        ran.said
    }

    /// Applies the configuration.
    pub async fn apply(&self) -> String {
        self.succeeds(&["apply", "-auto-approve"]).await
    }

    /// Begins a command.
    pub fn begin(&self, arguments: &[&str]) -> Running {
        let directory = tempfile::tempdir().expect("a directory");
        let file = File::create(directory.path().join("said")).expect("a file");
        let copy = file.try_clone().expect("a second handle");
        let process = self.command(arguments).stdin(Stdio::piped()).stdout(file).stderr(copy).spawn();
        Running { process: process.expect("Terraform starts"), directory }
    }

    /// Begins to apply the configuration, until it asks whether it shall. It holds the lock meanwhile.
    pub async fn hold_at_question(&self) -> Running {
        let running = self.begin(&["apply"]);
        until_some("the question", || running.said().contains("Enter a value:").then_some(())).await;
        running
    }

    fn command(&self, arguments: &[&str]) -> Command {
        // Another version can be tried by the variable.
        let own = || python_file("cloudrail/terraform_0_15/terraform");
        let mut command = Command::new(env::var_os("IFMATCH_TERRAFORM").map_or_else(own, PathBuf::from));
        command.current_dir(self.directory.path()).arg(arguments[0]).arg("-no-color").args(&arguments[1..]);
        // It asks no server for news, and reads nothing of the user who runs the tests.
        command.env("CHECKPOINT_DISABLE", "1").env("TF_IN_AUTOMATION", "1").env("HOME", self.directory.path());
        command.env_remove("TF_CLI_CONFIG_FILE").env_remove("TF_LOG");
        command
    }
}

impl Running {
    /// Everything that it has said so far.
    pub fn said(&self) -> String {
        let said = fs::read(self.directory.path().join("said")).expect("the file");
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Answers its question.
    pub fn answer(&mut self, text: &str) {
        let input = self.process.stdin.as_mut().expect("it reads");
        writeln!(input, "{text}").expect("it reads");
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> Ran {
        let process = &mut self.process;
        let status =
            until_some("the end of Terraform", || process.try_wait().expect("a child can be waited for")).await;
        Ran { succeeded: status.success(), said: self.said() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it is over already.
        let _over = self.process.kill();
        let _over = self.process.wait();
    }
}
