//! What tells that files were changed, without reading them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The state of some files. Two that are equal mean that nothing was written in between; a link is what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp(Vec<Option<FileState>>);

/// A file: which one it is, when it was written, and how long it is.
type FileState = (u64, u64, i64, i64, u64);

impl FileStamp {
    pub(super) fn of<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Self {
        Self(files.map(|file| state(file)).collect())
    }
}

fn state(path: &Path) -> Option<FileState> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}
