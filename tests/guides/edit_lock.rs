//! docs/tutorial/edit-lock.md.

use std::{path::Path, process::Command};

use tokio::task::spawn_blocking;

use crate::{lesson::Lesson, support::clients};

#[tokio::test]
async fn the_tutorial_of_an_edit_lock_does_what_it_says() {
    let lesson = Lesson::of("docs/tutorial/edit-lock.md").await;
    let package = clients::node_package("playwright-core");
    let mut people = Command::new("node");
    people.env("NODE_PATH", package.parent().expect("packages lie in a directory"));
    people.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guides/editor.cjs"));
    people.arg(format!("http://{}", lesson.proxy())).arg(lesson.proxy_process().to_string());
    let output = spawn_blocking(move || people.output()).await.expect("no panic").expect("node starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "finished\n", "{complaint}");
}
