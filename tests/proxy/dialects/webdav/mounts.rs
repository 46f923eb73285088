//! Programs that show a `WebDAV` server as a part of the file system, each against another client of the same file.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
};

use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::{Share, lock, token, unlock};
use crate::support::{
    raw::{get, put},
    wait::until,
};

/// A file system of davfs2 with the files of a server.
struct Davfs {
    directory: TempDir,
}

impl Davfs {
    /// `None` if this user may not mount.
    fn of(server: SocketAddr) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = directory.path().join("davfs2.conf");
        fs::write(&settings, "use_locks 1\ndelay_upload 0\nask_auth 0\n").expect("a file");
        fs::create_dir(directory.path().join("files")).expect("a directory");
        let mut command = Command::new("mount");
        command.args(["-t", "davfs", "-o", &format!("conf={}", settings.display()), &format!("http://{server}/")]);
        command.arg(directory.path().join("files")).stdin(Stdio::null());
        let output = command.output().expect("mount");
        if !output.status.success() {
            println!("nothing is mounted here, which takes root and FUSE: {}", String::from_utf8_lossy(&output.stderr));
        }
        output.status.success().then_some(Self { directory })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join("files").join(name)
    }
}

impl Drop for Davfs {
    fn drop(&mut self) {
        // Lazily: its process ends once nothing is open.
        let _ = Command::new("umount").args(["-l", "-i"]).arg(self.directory.path().join("files")).status();
    }
}

/// davfs2 locks a file that is opened for writing, and reports it to a program that cannot open the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn davfs2_locks_what_is_open() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a.txt", "one").await;
    let Some(mounted) = spawn_blocking(move || Davfs::of(addr)).await.expect("no panic") else { return };
    let path = mounted.file("a.txt");
    let opened = path.clone();
    let file = spawn_blocking(move || {
        let mut file = OpenOptions::new().write(true).truncate(true).open(opened)?;
        file.write_all(b"of davfs2").map(|()| file)
    });
    let file = file.await.expect("no panic").expect("it is free");
    assert_eq!(put(addr, "/a.txt", &[], "of another").await.status, 423);
    spawn_blocking(move || drop(file)).await.expect("no panic");
    until("davfs2 to upload", || share.content("/a.txt").as_deref() == Some("of davfs2")).await;
    let held = loop {
        // It unlocks the file after the upload.
        let locked = lock(addr, "/a.txt", "exclusive", &[]).await;
        if locked.status == 200 {
            break token(&locked);
        }
        assert_eq!(locked.status, 423, "{locked:?}");
    };
    let refused = spawn_blocking(move || OpenOptions::new().append(true).open(path).map(drop));
    assert!(refused.await.expect("no panic").is_err(), "another client has the file");
    assert_eq!(unlock(addr, "/a.txt", &held).await, 204);
    assert_eq!(share.content("/a.txt").as_deref(), Some("of davfs2"));
    spawn_blocking(move || drop(mounted)).await.expect("no panic");
}

/// Returns the output of gio while it replaces a file, perhaps only if the file still has this tag.
async fn save(server: SocketAddr, tag: Option<&str>, content: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("content"), content).expect("a file");
    let condition = tag.map(|tag| format!("--etag '{tag}' ")).unwrap_or_default();
    let script = format!(
        "gio mount dav://{server}/ </dev/null; gio save {condition}dav://{server}/a.txt <content && echo saved"
    );
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "sh", "-c", &script]).current_dir(directory.path());
    command.env("XDG_RUNTIME_DIR", directory.path()).env("GIO_USE_VOLUME_MONITOR", "unix").stdin(Stdio::null());
    let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("run `make setup-test`");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// gvfs, which the programs of GNOME use, takes no locks. It heeds those of others, and its own condition holds.
#[tokio::test]
async fn gvfs_is_told_of_a_lock_and_of_a_change() {
    let share = Share::start().await;
    let addr = share.addr();
    share.create("/a.txt", "one").await;
    let held = token(&lock(addr, "/a.txt", "exclusive", &[]).await);
    let said = save(addr, None, "of gvfs").await;
    assert!(said.contains("Locked") && !said.contains("saved"), "{said}");
    assert_eq!(share.content("/a.txt").as_deref(), Some("one"));
    assert_eq!(unlock(addr, "/a.txt", &held).await, 204);
    let tag = get(addr, "/a.txt").await.etag();
    let said = save(addr, Some(&tag), "of gvfs").await;
    assert!(said.contains("saved"), "{said}");
    assert_eq!(share.content("/a.txt").as_deref(), Some("of gvfs"));
    let said = save(addr, Some(&tag), "of gvfs, by an old tag").await;
    assert!(!said.contains("saved"), "{said}");
    assert_eq!(share.content("/a.txt").as_deref(), Some("of gvfs"));
}
