//! The file: its format, how it is created, opened and read.
//!
//! Lease ids are secrets: it is made as a temporary file is, which only its owner can read.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
    backends::{FileBackend, InMemoryBackend},
};

use tempfile::NamedTempFile;

use crate::{
    core::{
        record::{Record, Revision, Stamp},
        resource::ResourceKey,
        time::StoreTime,
    },
    entropy::random_u64,
    store::{Incarnation, encoding},
};

/// What [`Contents`] are written in.
const FORMAT: u64 = 1;

/// How many revisions are reserved at once: at a million writes a second, two commits a second are spent on it.
pub(super) const RESERVED_AT_ONCE: u64 = 1 << 20;

/// The resource's key, and the record with its lease as JSON.
pub(super) const LEASES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("leases");
/// Single numbers by their names.
pub(super) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const FORMAT_NUMBER: &str = "format";
const INCARNATION: &str = "incarnation";
/// No greater revision was ever given.
pub(super) const RESERVED: &str = "reserved";
/// 1 while a process uses the file.
pub(super) const IN_USE: &str = "in_use";

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
    /// Whether its last user gave it back in good order.
    pub(super) was_closed: bool,
    pub(super) records: Vec<(ResourceKey, Record)>,
}

/// Opens the store in a file, which is created where there is none, and reads it: moments are counted from `now`.
pub(super) fn open(path: &Path, now: StoreTime) -> Result<(Database, Contents), DiskError> {
    let at = |source| DiskError::Io { path: path.to_owned(), source };
    if !path.try_exists().map_err(at)? {
        create(path)?;
    }
    rehearse(path, now)?;
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(at)?;
    let database = database(FileBackend::new(file).map_err(|error| of_database(path, error))?)
        .map_err(|error| of_database(path, error))?;
    let contents = read(&database, now).map_err(|what| DiskError::Damaged { path: path.to_owned(), what })?;
    Ok((database, contents))
}

/// Opens and reads a copy in memory. The engine repairs what a crash has left; what it cannot read it must not touch.
fn rehearse(path: &Path, now: StoreTime) -> Result<(), DiskError> {
    let damaged = |what: String| DiskError::Damaged { path: path.to_owned(), what };
    if let Err(DatabaseError::DatabaseAlreadyOpen) = Builder::new().open_read_only(path) {
        return Err(DiskError::InUse(path.to_owned()));
    }
    let bytes = std::fs::read(path).map_err(|source| DiskError::Io { path: path.to_owned(), source })?;
    if bytes.is_empty() {
        // An engine takes an empty file for a new one; this one has lost what it held.
        return Err(damaged("it is empty".to_owned()));
    }
    let copy = InMemoryBackend::new();
    let copied = copy.set_len(bytes.len() as u64).and_then(|()| copy.write(0, &bytes));
    copied.map_err(|error| damaged(error.to_string()))?;
    let database = database(copy).map_err(|error| damaged(error.to_string()))?;
    read(&database, now).map(drop).map_err(damaged)
}

/// Makes a new store without a name, and names it when it is whole: a crash meanwhile leaves no half of it.
fn create(path: &Path) -> Result<(), DiskError> {
    let at = |source| DiskError::Io { path: path.to_owned(), source };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unnamed = NamedTempFile::new_in(directory).map_err(at)?;
    let backend = FileBackend::new(unnamed.reopen().map_err(at)?).map_err(|error| of_database(path, error))?;
    let database = database(backend).map_err(|error| of_database(path, error))?;
    begin(&database, random_u64()?).map_err(|error| at(io::Error::other(error)))?;
    drop(database);
    match unnamed.persist_noclobber(path) {
        Err(taken) if taken.error.kind() != io::ErrorKind::AlreadyExists => return Err(at(taken.error)),
        // Another process was faster: then this one finds its file in use.
        _ => {}
    }
    // The name itself must survive a loss of power.
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(at)
}

pub(super) fn database(backend: impl StorageBackend) -> Result<Database, DatabaseError> {
    Builder::new().set_check_integrity_on_open(true).create_with_backend(backend)
}

pub(super) fn begin(database: &Database, incarnation: u64) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(LEASES)?;
    let mut numbers = transaction.open_table(NUMBERS)?;
    numbers.insert(FORMAT_NUMBER, FORMAT)?;
    numbers.insert(INCARNATION, incarnation)?;
    numbers.insert(RESERVED, 0)?;
    numbers.insert(IN_USE, 0)?;
    drop(numbers);
    Ok(transaction.commit()?)
}

fn of_database(path: &Path, error: DatabaseError) -> DiskError {
    let path = path.to_owned();
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => DiskError::InUse(path),
        DatabaseError::Storage(redb::StorageError::Io(source)) => DiskError::Io { path, source },
        error => DiskError::Damaged { path, what: error.to_string() },
    }
}

/// Reads all of it. The error says what is wrong.
pub(super) fn read(database: &Database, now: StoreTime) -> Result<Contents, String> {
    let engine = |error: redb::Error| error.to_string();
    let transaction = database.begin_read().map_err(|error| engine(error.into()))?;
    let numbers = transaction.open_table(NUMBERS).map_err(|error| engine(error.into()))?;
    let number = |name: &str| {
        let number = numbers.get(name).map_err(|error| engine(error.into()))?;
        number.map(|number| number.value()).ok_or_else(|| format!("it does not tell its {name}"))
    };
    let format = number(FORMAT_NUMBER)?;
    if format != FORMAT {
        return Err(format!("its format is {format}, and this version knows {FORMAT}"));
    }
    let leases = transaction.open_table(LEASES).map_err(|error| engine(error.into()))?;
    let mut records = Vec::new();
    for row in leases.iter().map_err(|error| engine(error.into()))? {
        let (key, text) = row.map_err(|error| engine(error.into()))?;
        let record = encoding::decode(text.value(), now).map_err(|error| error.to_string())?;
        let record = Record { version: Stamp::Itself, touched: Stamp::Itself, ..record };
        records.push((ResourceKey::from_text(key.value()), record));
    }
    Ok(Contents {
        incarnation: Incarnation(number(INCARNATION)?),
        reserved: Revision(number(RESERVED)?),
        was_closed: number(IN_USE)? == 0,
        records,
    })
}
