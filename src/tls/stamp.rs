//! Detects changed files without reading them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The state of some files. If two stamps are equal, nothing was written in between. A link counts as its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp(Vec<Option<FileState>>);

/// The state of one file: its device and inode, its modification time, and its length.
type FileState = (u64, u64, i64, i64, u64);

impl FileStamp {
    pub(crate) fn of<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Self {
        Self(files.map(|file| state(file)).collect())
    }
}

fn state(path: &Path) -> Option<FileState> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}
