//! The file that a reload loads.

use std::{fs, process::Command};

use tokio::time::timeout;

use super::reload::{GUARDED, done, refused, start};
use crate::support::wait::DEADLINE;

/// A pipe has no end before a program writes to it. A reload that waited for one would keep all later ones waiting too.
#[tokio::test]
async fn a_pipe_in_the_place_of_the_file_is_refused_at_once() {
    let (_backend, proxy) = start(GUARDED).await;
    let (file, aside) = (proxy.file(), proxy.file().with_extension("aside"));
    fs::rename(&file, &aside).expect("the file");
    assert!(Command::new("mkfifo").arg(&file).status().expect("mkfifo runs").success());
    let reload = timeout(DEADLINE, proxy.reload(&[])).await.expect("an answer");
    refused(&reload, 78, "it is not a regular file, which alone can be read again");
    fs::rename(&aside, &file).expect("the file");
    done(&timeout(DEADLINE, proxy.reload(&[])).await.expect("an answer"), "no route has changed");
}
