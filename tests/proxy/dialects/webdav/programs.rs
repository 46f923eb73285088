//! Programs of `WebDAV` users, each against another client that writes the same file.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Share, lock, token, unlock};
use crate::support::{clients, raw::put};

/// Runs a program to its end, with this input.
async fn run(mut command: Command, input: &'static str) -> String {
    let running = tokio::task::spawn_blocking(move || {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a program is missing: run `make setup-test`");
        child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        [output.stdout, output.stderr].concat()
    });
    String::from_utf8_lossy(&running.await.expect("it ends")).into_owned()
}

/// A library for a language, as its script in `tests/webdav` uses it.
async fn passes(mut command: Command, name: &str, share: &Share) {
    command.arg(format!("http://{}/", share.addr()));
    let said = run(command, "").await;
    assert!(said.ends_with("finished\n"), "{name}: {said}\n{}", share.proxy.log());
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webdav").join(name)
}

/// It locks, and its users send the token themselves.
#[tokio::test]
async fn the_library_for_javascript_keeps_others_out_and_is_told() {
    let mut command = Command::new("node");
    command.arg(script("client.mjs")).arg(clients::node_package("webdav"));
    passes(command, "webdav of npm", &Share::start().await).await;
}

/// It locks, and sends the token with each request.
#[tokio::test]
async fn the_library_for_python_keeps_others_out_and_is_told() {
    let mut command = clients::python();
    command.arg("-B").arg(script("client.py"));
    passes(command, "webdavclient3", &Share::start().await).await;
}

/// cadaver locks a file, and unlocks it.
#[tokio::test]
async fn cadaver_is_told_of_a_lock_and_keeps_others_out() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a.txt", "one").await;
    let home = tempfile::tempdir().expect("a home");
    std::fs::write(home.path().join("a.txt"), "of cadaver").expect("a file");
    let cadaver = || {
        let mut command = Command::new("cadaver");
        command.arg(format!("http://{addr}/")).current_dir(home.path()).env("HOME", home.path());
        command
    };
    let other = token(&lock(addr, "/a.txt", "exclusive", &[]).await);
    let said = run(cadaver(), "lock a.txt\nput a.txt\nquit\n").await;
    assert!(said.matches("423").count() >= 2, "{said}");
    assert_eq!(share.content("/a.txt").as_deref(), Some("one"));
    assert_eq!(unlock(addr, "/a.txt", &other).await, 204);
    let said = run(cadaver(), "lock a.txt\nput a.txt\nquit\n").await;
    assert_eq!(share.content("/a.txt").as_deref(), Some("of cadaver"), "{said}");
    assert_eq!(put(addr, "/a.txt", &[("If", "(Not <DAV:no-lock>)")], "of another").await.status, 423, "{said}");
    let said = run(cadaver(), "discover a.txt\nquit\n").await;
    assert!(said.contains("opaquelocktoken:"), "the same client sees it: {said}");
}

/// rclone sends no conditions. After an upload that failed it deletes the file, so a lock must keep it from both.
#[tokio::test]
async fn rclone_is_told_that_a_file_is_locked() {
    let share = Share::start().await;
    let home = tempfile::tempdir().expect("a home");
    let rclone = || {
        let mut command = Command::new("rclone");
        command.args(["--config", "/dev/null", "--retries", "1", "--low-level-retries", "1", "copyto"]);
        command.arg(home.path().join("a.txt")).arg(":webdav:a.txt");
        command.args(["--webdav-url", &format!("http://{}/", share.addr()), "--webdav-vendor", "other"]);
        command
    };
    std::fs::write(home.path().join("a.txt"), "one").expect("a file");
    let said = run(rclone(), "").await;
    assert_eq!(share.content("/a.txt").as_deref(), Some("one"), "{said}");
    let held = token(&lock(share.addr(), "/a.txt", "exclusive", &[]).await);
    std::fs::write(home.path().join("a.txt"), "longer").expect("a file");
    let said = run(rclone(), "").await;
    assert!(said.contains("423"), "{said}");
    assert_eq!(share.content("/a.txt").as_deref(), Some("one"));
    assert_eq!(unlock(share.addr(), "/a.txt", &held).await, 204);
    let said = run(rclone(), "").await;
    assert_eq!(share.content("/a.txt").as_deref(), Some("longer"), "{said}");
}
