//! Git LFS as people run it: clones of a bare repository, whose objects and locks lie behind a proxy.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// The repositories of a team: a bare one, and the clones of its members.
pub struct Team {
    directory: TempDir,
}

/// A clone of one member.
pub struct Clone {
    path: PathBuf,
}

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    pub succeeded: bool,
    pub said: String,
}

impl Team {
    /// Creates the bare repository.
    pub async fn new() -> Self {
        let team = Self { directory: tempfile::tempdir().expect("a directory") };
        let bare = team.bare();
        let made = git(team.directory.path(), &["init", "--bare", "--initial-branch=main", text(&bare)]).await;
        assert!(made.succeeded, "{}", made.said);
        team
    }

    /// Clones it for a member with these credentials, with its objects and locks at this address.
    pub async fn clone_of(&self, user: &str, addr: SocketAddr) -> Clone {
        let (bare, path) = (self.bare(), self.directory.path().join(user));
        let made = git(self.directory.path(), &["clone", text(&bare), text(&path)]).await;
        assert!(made.succeeded, "{}", made.said);
        let clone = Clone { path };
        let credentials = self.directory.path().join(format!("{user}.credentials"));
        fs::write(&credentials, format!("http://{user}:secret@{addr}\n")).expect("a file");
        let (url, helper) = (format!("http://{addr}/game"), format!("store --file={}", text(&credentials)));
        let verify = format!("lfs.{url}.locksverify");
        for (name, value) in [
            ("user.name", user),
            ("user.email", &format!("{user}@example.com")),
            ("credential.helper", &helper),
            ("lfs.url", &url),
            (&verify, "true"),
        ] {
            clone.succeeds(&["config", name, value]).await;
        }
        clone.succeeds(&["lfs", "install", "--local"]).await;
        clone
    }

    fn bare(&self) -> PathBuf {
        self.directory.path().join("game.git")
    }
}

impl Clone {
    /// Runs a command of Git to its end.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        git(&self.path, arguments).await
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

    /// Writes a file, and commits it.
    pub async fn commits(&self, file: &str, content: &str) {
        let path = self.path.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, content).expect("a file");
        self.succeeds(&["add", "."]).await;
        self.succeeds(&["commit", "-m", file]).await;
    }

    /// The content of a file.
    pub fn content(&self, file: &str) -> String {
        fs::read_to_string(self.path.join(file)).expect("the file")
    }
}

/// Runs Git without the settings of the user who runs the tests.
async fn git(directory: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments).stdin(Stdio::null());
    command.env("HOME", directory).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("LC_ALL", "C.UTF-8");
    let output = spawn_blocking(move || command.output().expect("git starts")).await.expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { succeeded: output.status.success(), said: text(&output.stdout) + &text(&output.stderr) }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
