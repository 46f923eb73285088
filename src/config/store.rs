//! The `[store]` table.

use std::{path::PathBuf, time::Duration};

use super::{
    Tls,
    client_tls::TlsKeys,
    kinds::{Count, Size, Time},
    table::section,
    units::{MIB, TIB, ZERO, hours, ms, seconds},
    words::StoreWord,
    written::{Text, Texts, WrittenWord},
};

/// The memory that records may take by default, in bytes.
pub(super) const MAX_SIZE: u64 = 512 * MIB;

section! {
    /// The `[store]` table.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StoreSettings of StoreKeys given (kind: StoreKind) {
        by hand {
            /// The store that keeps the records.
            kind: Option<WrittenWord<StoreWord>>;
            /// The file of the disk store.
            path: Option<Text>;
            /// The URLs of the members of etcd.
            endpoints: Option<Texts>;
            /// The URL of Redis or PostgreSQL, without a password.
            url: Option<Text>;
            /// The prefix of all keys in etcd or Redis.
            prefix: Option<Text>;
            /// The schema of the tables in PostgreSQL.
            schema: Option<Text>;
            /// The user to log in as.
            user: Option<Text>;
            /// The file that holds the password.
            password_file: Option<Text>;
            /// The certificates of both sides, if connections use TLS.
            tls: TlsKeys;
        }
        /// The largest number of records.
        capacity: usize = Count(1_000_000) in 1..=1_000_000_000;
        /// The most memory that records may take in this process, in bytes.
        max_bytes["max_size"]: u64 = Size(MAX_SIZE) in MIB..=TIB;
        /// The time after which an idle record is forgotten.
        idle_ttl: Duration = Time(hours(24)) in seconds(1)..=hours(24 * 365);
        /// The time limit of one store operation.
        timeout: Duration = Time(seconds(2)) in ms(10)..=seconds(60);
        /// The time for which guarded writes are held back after a start.
        start_grace: Duration = Time(ZERO) in ZERO..=hours(1);
        besides {
            /// The store that keeps the records.
            kind: StoreKind = kind;
        }
    }
}

/// The store that keeps the records (`kind`, with the settings of that kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// The memory of this process; records end with it.
    Memory,
    /// The memory of this process, with the leases also in a file.
    Disk {
        /// The path of the file.
        path: PathBuf,
    },
    /// An etcd cluster.
    Etcd(Etcd),
    /// A PostgreSQL server, or several of which one takes writes.
    Postgres(Postgres),
    /// A Redis server.
    Redis(Redis),
}

impl StoreKind {
    /// Returns the word for this kind.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk { .. } => "disk",
            Self::Etcd(_) => "etcd",
            Self::Postgres(_) => "postgres",
            Self::Redis(_) => "redis",
        }
    }
}

/// The connection to etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// The URLs of the members; never empty.
    pub endpoints: Vec<String>,
    /// The prefix of all keys.
    pub prefix: String,
    /// The user to log in as.
    pub login: Option<Login>,
    /// The certificates of both sides, if the URLs are `https`.
    pub tls: Option<Tls>,
}

/// The user of PostgreSQL if the configuration names none.
pub const POSTGRES_USER: &str = "ifmatch";

/// The connection to PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Postgres {
    /// The URL, without a password.
    pub url: String,
    /// The hosts and ports in the URL; never empty.
    pub hosts: Vec<(String, u16)>,
    /// The name of the database.
    pub database: String,
    /// True if connections use TLS.
    pub is_secure: bool,
    /// The schema of the tables, a plain identifier.
    pub schema: String,
    /// The user to log in as; [`POSTGRES_USER`] without a password if there is none.
    pub login: Option<Login>,
    /// The certificates of both sides, if connections use TLS.
    pub tls: Option<Tls>,
}

/// The connection to Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    /// The URL, without a password.
    pub url: String,
    /// The hash tag in all keys.
    pub prefix: String,
    /// The user to log in as.
    pub login: Option<Login>,
    /// The certificates of both sides, if the URL is `rediss`.
    pub tls: Option<Tls>,
}

/// A user of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The name of the user.
    pub user: String,
    /// The file that holds the password; if `None`, the password comes from the environment.
    pub password_file: Option<PathBuf>,
}
