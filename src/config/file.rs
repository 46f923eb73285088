//! The file of a configuration, as it is read at the start and again later.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

use super::{
    Loaded, parse,
    problem::{Problem, Problems},
};

/// Reads and checks a file. The error holds every problem of the file.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    read_with(path, fs::read_to_string(path))
}

/// Reads and checks the file of a running process again. It must be a regular file: any other, such as a pipe, could
/// keep its reader waiting, and all later reloads with it.
pub fn load_again(path: &Path) -> Result<Loaded, Problems> {
    read_with(path, read_again(path))
}

fn read_again(path: &Path) -> io::Result<String> {
    let mut file = OpenOptions::new().read(true).custom_flags(no_wait()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file, which alone can be read again"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// The open flag that does not wait for the other end of a pipe.
fn no_wait() -> i32 {
    OFlags::NONBLOCK.bits().cast_signed()
}

fn read_with(path: &Path, read: io::Result<String>) -> Result<Loaded, Problems> {
    let name = path.display().to_string();
    let text = read.map_err(|error| {
        let problem = Problem::of_source(&name, format!("cannot be read: {error}"));
        let missing = error.kind() == io::ErrorKind::NotFound;
        if missing {
            problem.hint("name a file that exists; only `ifmatch run --upstream http://127.0.0.1:9000` needs none")
        } else {
            problem
        }
    })?;
    parse(&name, &text)
}
