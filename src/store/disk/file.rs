//! The file of a log: how it is created, locked, opened and put in the place of another.
//!
//! Lease ids are secrets: it is made as a temporary file is, which only its owner can read.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock},
    io::Errno,
};
use tempfile::NamedTempFile;

use super::{
    frame::Numbers,
    log::{self, Log, Medium, REGION_BYTES},
};
use crate::{
    clock::boot,
    core::{
        bare_tags::BareTags,
        record::{Record, Revision, Stamp},
        resource::ResourceKey,
        time::StoreTime,
    },
    entropy::random_u64,
    store::{Incarnation, Left, encoding},
};

/// The bits of a mode by which others than its owner may write in a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why a file is of no use as a store. Nothing was changed in it.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// It cannot be created, or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// Others than its owner could write in it, or put another one in its place.
    #[error("{path} {what}: whoever can write there can give leases to anybody; {remedy}")]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Another process has it.
    #[error("{0} is in use: one process keeps its leases in one file")]
    InUse(PathBuf),
    /// It is damaged, or no store.
    #[error("{path} cannot be read as a store of ifmatch ({what}); bring a copy back, or begin anew with another path")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// There are no random numbers for a new one.
    #[error("no random numbers: {0}")]
    NoRandomNumbers(#[from] getrandom::Error),
}

/// What a file held when it was opened.
pub(super) struct Contents {
    pub(super) incarnation: Incarnation,
    /// No greater revision was given by whoever had the file before.
    pub(super) reserved: Revision,
    /// How its last user left it.
    pub(super) left: Left,
    pub(super) records: Vec<(ResourceKey, Record)>,
}

/// A file with its lock, which lasts as long as it is open.
struct LogFile {
    path: PathBuf,
    file: File,
    /// Whether its name would survive a loss of power.
    is_named: bool,
}

/// Opens the store in a file, which is created where there is none, and reads it: moments are counted from `now`.
pub(super) fn open(path: &Path, now: StoreTime) -> Result<(Log, Contents), DiskError> {
    let at = |source| DiskError::Io { path: path.to_owned(), source };
    if let Err(error) = path.symlink_metadata() {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(at(error));
        }
        create(path, random_u64()?).map_err(at)?;
    }
    let mut file = OpenOptions::new().read(true).write(true).custom_flags(no_follow()).open(path).map_err(|error| {
        let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        if is_link { not_safe(path, "is a symbolic link", "name the file itself") } else { at(error) }
    })?;
    let mode = file.metadata().map_err(at)?.mode() & 0o777;
    if mode & WRITABLE_BY_OTHERS != 0 {
        let what = format!("can be written by others than its owner (mode {mode:04o})");
        return Err(not_safe(path, what, "look whether somebody did, then take that right away (chmod 600)"));
    }
    lock(&file).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => DiskError::InUse(path.to_owned()),
        _ => at(error),
    })?;
    // Whoever had it may have put another one in its place just before its end.
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

/// The flag with which a link is not opened.
fn no_follow() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

/// The log that these bytes of a medium are, and what it says, read under this start of the machine. The error says what
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
        // The file says nothing of the tags that were given out before.
        let record = Record { version: Stamp::Itself, touched: Stamp::Itself, bare_tags: BareTags::None, ..record };
        Ok((ResourceKey::from_text(key), record))
    };
    let contents = Contents {
        incarnation: Incarnation(found.incarnation),
        reserved: Revision(found.numbers.reserved),
        left: match found.numbers {
            Numbers { in_use: false, .. } => Left::InOrder,
            Numbers { boot: last, .. } if Some(last) == boot => Left::ByDeath,
            Numbers { .. } => Left::ByPowerLoss,
        },
        records: found.leases.iter().map(record).collect::<Result<_, String>>()?,
    };
    Ok((Log::new(medium, &found, boot.unwrap_or_default()), contents))
}

/// Makes a new store without a name, and names it when it is whole: a crash meanwhile leaves no half of it.
fn create(path: &Path, incarnation: u64) -> io::Result<()> {
    let (beginning, length) = log::new(incarnation, REGION_BYTES)?;
    match write_unnamed(path, &beginning, length)?.persist_noclobber(path) {
        Err(taken) if taken.error.kind() != io::ErrorKind::AlreadyExists => return Err(taken.error),
        // Another process was faster: then this one finds its file in use.
        _ => {}
    }
    sync_name(path)
}

/// A file without a name yet, in the same directory.
fn write_unnamed(path: &Path, beginning: &[u8], length: u64) -> io::Result<NamedTempFile> {
    let mut unnamed = NamedTempFile::new_in(directory(path))?;
    // A disk without room for all of it is found out before a byte is written: this may be tried each second.
    // Some file systems cannot say; then the writing does.
    if fallocate(&unnamed, FallocateFlags::empty(), 0, length) == Err(Errno::NOSPC) {
        return Err(Errno::NOSPC.into());
    }
    unnamed.write_all(beginning)?;
    // Zeros that are written: a hole would have to be filled in when the log comes to it, and each sync would wait.
    io::copy(&mut io::repeat(0).take(length.saturating_sub(beginning.len() as u64)), unnamed.as_file_mut())?;
    unnamed.as_file().sync_all()?;
    Ok(unnamed)
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The name itself must survive a loss of power.
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
