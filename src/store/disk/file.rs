//! The file of a log: how it is created, locked, opened and replaced.
//!
//! Lease ids are secrets, so the file is created like a temporary file, which only its owner can read.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock},
    io::Errno,
};
use tempfile::NamedTempFile;

use super::{
    log::{self, Log, Medium, REGION_BYTES},
    permissions,
};
use crate::{
    clock::boot,
    core::{
        records::record::{Record, Revision, Stamp},
        resource::ResourceKey,
        tags::{bare_tags::BareTags, told_dates::FirstDate},
        time::StoreTime,
    },
    entropy::random_u64,
    store::{Incarnation, encoding},
};

/// The reason why a file cannot be used as a store. The file is left unchanged.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The file cannot be created, read or written.
    #[error("{path} must be readable and writable for the user that runs ifmatch")]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The directory of the file is missing.
    #[error("the directory {} does not exist: create it, owned by the user that runs ifmatch", .0.display())]
    NoDirectory(PathBuf),
    /// Others than its owner could write to the file or replace it.
    #[error("{path} {what}: anyone who can write there can give leases to anyone; {remedy}")]
    Unsafe {
        /// The path of the file.
        path: PathBuf,
        /// The fault of the file.
        what: String,
        /// The remedy for the user.
        remedy: &'static str,
    },
    /// Another process uses the file.
    #[error("{0} is in use: only one process can use it at a time")]
    InUse(PathBuf),
    /// The file is damaged, or is not a store.
    #[error("{path} cannot be read as a store of ifmatch ({what}); restore a copy, or start afresh with another path")]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The fault of the file.
        what: String,
    },
    /// The operating system has no random number for a new file.
    #[error("no random numbers: {0}")]
    NoRandomNumbers(#[from] getrandom::Error),
}

/// The contents of a file when it was opened.
pub(super) struct Contents {
    pub(super) incarnation: Incarnation,
    /// The greatest revision that any earlier user of the file may have given.
    pub(super) reserved: Revision,
    /// How long writes of earlier users may still be applied.
    pub(super) hold: Duration,
    pub(super) records: Vec<(ResourceKey, Record)>,
}

/// A file with its lock, which lasts as long as the file is open.
struct LogFile {
    path: PathBuf,
    file: File,
    /// True if the name of the file would survive a loss of power.
    is_named: bool,
}

/// Opens the store in a file, which is created if it does not exist, and reads it. Moments are counted from `now`.
pub(super) fn open(path: &Path, now: StoreTime) -> Result<(Log, Contents), DiskError> {
    let at = |source| DiskError::Io { path: path.to_owned(), source };
    if let Err(error) = path.symlink_metadata() {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(at(error));
        }
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
            return Err(DiskError::NoDirectory(directory.to_owned()));
        }
        create(path, random_u64()?).map_err(at)?;
    }
    let mut file = OpenOptions::new().read(true).write(true).custom_flags(no_follow()).open(path).map_err(|error| {
        let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        if is_link { not_safe(path, "is a symbolic link", "name the file itself") } else { at(error) }
    })?;
    let found = file.metadata().map_err(at)?;
    if !permissions::keep_to_owner(&file, &found).map_err(at)? {
        let what = format!("can be written by others than its owner (mode {:04o})", found.mode() & 0o777);
        return Err(not_safe(path, what, "check whether anyone has, then remove that permission (chmod 600)"));
    }
    lock(&file).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => DiskError::InUse(path.to_owned()),
        _ => at(error),
    })?;
    // The previous owner may have replaced the file just before it ended.
    if fs::metadata(path).map_err(at)?.ino() != file.metadata().map_err(at)?.ino() {
        return Err(DiskError::InUse(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(at)?;
    let read = read(Box::new(LogFile { path: path.to_owned(), file, is_named: true }), &bytes, now, boot());
    read.map_err(|what| DiskError::Damaged { path: path.to_owned(), what })
}

fn not_safe(path: &Path, what: impl Into<String>, remedy: &'static str) -> DiskError {
    DiskError::Unsafe { path: path.to_owned(), what: what.into(), remedy }
}

/// The open flag that refuses symbolic links.
fn no_follow() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

/// Reads the log in these bytes of a medium, and its contents, under this boot of the machine. The error describes what
/// is wrong.
pub(super) fn read(
    medium: Box<dyn Medium>,
    bytes: &[u8],
    now: StoreTime,
    boot: Option<u128>,
) -> Result<(Log, Contents), String> {
    let found = log::read(bytes)?;
    let record = |(key, text): (&&str, &&str)| {
        let record = encoding::decode(text.as_bytes(), now).map_err(|error| error.to_string())?;
        // The file holds nothing about the tags and dates that were given out before.
        let nothing = Record { bare_tags: BareTags::None, first_date: FirstDate::NONE, ..record };
        let record = Record { version: Stamp::Itself, touched: Stamp::Itself, ..nothing };
        Ok((ResourceKey::from_text(key), record))
    };
    let contents = Contents {
        incarnation: Incarnation(found.incarnation),
        reserved: Revision(found.numbers.reserved),
        hold: found.numbers.owed.hold(boot == Some(found.numbers.boot)),
        records: found.leases.iter().map(record).collect::<Result<_, String>>()?,
    };
    Ok((Log::new(medium, &found, boot.unwrap_or_default()), contents))
}

/// Creates a new store in a temporary file, and gives it its name once it is complete. A crash leaves no partial store.
fn create(path: &Path, incarnation: u64) -> io::Result<()> {
    let (beginning, length) = log::new(incarnation, REGION_BYTES)?;
    match write_unnamed(path, &beginning, length)?.persist_noclobber(path) {
        Err(taken) if taken.error.kind() != io::ErrorKind::AlreadyExists => return Err(taken.error),
        // Another process was faster: this one then finds the file in use.
        _ => {}
    }
    sync_name(path)
}

/// Writes a temporary file in the same directory, which gets its name later.
fn write_unnamed(path: &Path, beginning: &[u8], length: u64) -> io::Result<NamedTempFile> {
    let mut unnamed = NamedTempFile::new_in(directory(path))?;
    // A disk without enough room is detected before a byte is written, because this may be tried each second. Some file
    // systems cannot tell in advance: then the write fails.
    if fallocate(&unnamed, FallocateFlags::empty(), 0, length) == Err(Errno::NOSPC) {
        return Err(Errno::NOSPC.into());
    }
    unnamed.write_all(beginning)?;
    // Zeros are written, because a hole would have to be filled when the log reaches it, and each sync would wait.
    io::copy(&mut io::repeat(0).take(length.saturating_sub(beginning.len() as u64)), unnamed.as_file_mut())?;
    unnamed.as_file().sync_all()?;
    Ok(unnamed)
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the directory, because the name itself must survive a loss of power.
fn sync_name(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

impl Medium for LogFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        if !self.is_named {
            sync_name(&self.path)?;
            self.is_named = true;
        }
        self.file.sync_data()
    }

    fn replace(&mut self, beginning: &[u8], length: u64) -> io::Result<()> {
        let unnamed = write_unnamed(&self.path, beginning, length)?;
        lock(unnamed.as_file())?;
        self.file = unnamed.persist(&self.path)?;
        self.is_named = false;
        Ok(())
    }
}
