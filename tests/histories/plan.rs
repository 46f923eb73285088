//! The plan of a run: a store, a configuration, and the amount of work.

use std::fmt::Write as _;

use tempfile::TempDir;

use super::{
    board::{Events, Manner},
    options::{Keeping, Options, Source},
    support::{
        engines::{Engine, Etcd, Redis, cluster::EtcdCluster, postgres::Postgres},
        random::Random,
    },
};

const CLIENTS: usize = 8;
/// The number of clients of generated configurations, in which resources are closed more often.
const MORE_CLIENTS: usize = 16;
const PROXIES: usize = 2;

/// The least number of client operations for each disturbance of a run: a run in which little happens shows little. The
/// runs in `docs/histories.md` had a hundred.
const OPERATIONS_OF_A_DISTURBANCE: usize = 20;

/// The settings of all guarded routes. Their limits are short, so that a mark of a dead proxy is over in seconds: its
/// deadline is 8.5 s away, which no stop comes near.
const UPSTREAM: &str = "connect_timeout = \"500ms\"\ntimeout = \"1s\"\nlate_write_window = \"3s\"";
const GUARDED: &str = "claim = { max_wait = \"150ms\" }\nprobe = { timeout = \"500ms\" }\nhash_wait = \"5s\"";

/// The writes that the backend applies late.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Their share of all writes.
    pub percent: usize,
    /// The time after their arrival, in milliseconds: the minimum, and the spread above it.
    pub after_ms: usize,
    pub spread_ms: usize,
}

/// The usual share of late writes.
pub const LATE_PERCENT: usize = 2;

/// That is after `timeout`, and well within `late_write_window`.
const LATE: Late = Late { percent: LATE_PERCENT, after_ms: 800, spread_ms: 1_500 };

/// The plan of a run.
pub struct Plan {
    pub name: String,
    pub engine: Option<Engine>,
    pub members: Option<EtcdCluster>,
    /// The file of a disk store.
    pub directory: Option<TempDir>,
    /// The configuration, in which `{backend}` stands for the backend.
    pub configuration: String,
    pub folders: Vec<&'static str>,
    pub options: Option<Options>,
    pub clients: usize,
    pub proxies: usize,
    pub places: usize,
    pub disturbances: usize,
    /// The number of operations that are answered before the end.
    pub operations: usize,
    /// The events that must have happened before the end.
    pub events: Events,
    /// True if the store knows the writes with keys after a restart.
    pub keeps_keys: bool,
    /// True if a stop in the end outlasts marks.
    pub outlasts: bool,
    /// True if documents are written with dates alone as conditions, and have no items.
    pub only_dates: bool,
    pub late: Late,
    pub random: Random,
}

impl Plan {
    /// Plans guarded and leased resources over a common engine, with disturbances.
    pub fn guarded(engine: Engine, disturbances: usize) -> Self {
        let (name, store) = (engine.name(), engine.store());
        Self { engine: Some(engine), ..Self::with_store(name, &store, disturbances) }
    }

    /// Like [`Plan::guarded`], but over an etcd of three members; the disturbances are elections.
    pub fn members(cluster: EtcdCluster, elections: usize) -> Self {
        let store = format!("kind = \"etcd\"\nendpoints = {:?}", cluster.endpoints());
        Self { members: Some(cluster), ..Self::with_store("etcd of three members", &store, elections) }
    }

    /// Plans documents and items by random options. If there are several proxies, the last disturbance is a stop that
    /// outlasts marks.
    pub async fn generated(keeping: Keeping, mut random: Random, disturbances: usize, operations: usize) -> Self {
        let options = Options::by_chance(&mut random);
        let (engine, directory, store) = match keeping {
            Keeping::Disk => {
                let directory = tempfile::tempdir().expect("a temporary directory");
                let store = format!("kind = \"disk\"\npath = \"{}\"", directory.path().join("leases").display());
                (None, Some(directory), store)
            }
            Keeping::Etcd => with_engine(Engine::Etcd(Etcd::start().await)),
            Keeping::Postgres => with_engine(Engine::Postgres(Postgres::start().await)),
            Keeping::Redis => with_engine(Engine::Redis(Redis::start().await)),
        };
        Self {
            engine,
            directory,
            options: Some(options),
            clients: MORE_CLIENTS,
            proxies: if keeping == Keeping::Disk { 1 } else { PROXIES },
            places: 4,
            disturbances,
            operations,
            events: Events::least(operations),
            keeps_keys: keeping != Keeping::Disk,
            outlasts: keeping != Keeping::Disk,
            late: Options::late(),
            ..Self::bare(format!("{keeping:?}, {options}"), options.text(&store), vec!["docs"], random)
        }
    }

    fn with_store(name: &str, store: &str, disturbances: usize) -> Self {
        let store = format!("{store}\ntimeout = \"1s\"\nidle_ttl = \"1s\"");
        let lease = "policy = \"pessimistic\"\netag = \"version\"\nother_writers = false\n[routes.lease]\n\
                     auth = \"none\"\nabsent = \"allow\"\nmin = \"1s\"\nrequired = true\nremember_time = \"1s\"\n\
                     max_per_principal = 1000";
        let routes = [
            ("content", "policy = \"optimistic\"\netag = \"content\"\nother_writers = true"),
            ("version", "policy = \"optimistic\"\netag = \"version\"\nother_writers = false"),
            ("lease", lease),
        ];
        let operations = disturbances * OPERATIONS_OF_A_DISTURBANCE;
        Self { places: 2, disturbances, operations, ..Self::with_routes(name, &store, &routes) }
    }

    /// Plans a run without a guard: conditions are passed on to a backend that ignores them.
    pub fn unguarded() -> Self {
        let routes = [("content", "policy = \"last-writer-wins\"")];
        Self::with_routes("last-writer-wins", "kind = \"memory\"", &routes)
    }

    /// Plans two proxies, each with its own store.
    pub fn apart() -> Self {
        let routes = [("content", "policy = \"optimistic\"\netag = \"content\"\nother_writers = true")];
        Self::with_routes("a memory of its own each", "kind = \"memory\"", &routes)
    }

    fn with_routes(name: &str, store: &str, routes: &[(&'static str, &str)]) -> Self {
        let mut file = format!(
            "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n[store]\n{store}\n[upstreams.backend]\n\
             servers = [\"{{backend}}\"]\n{UPSTREAM}\n"
        );
        for (folder, rules) in routes {
            let common = if rules.contains("last-writer-wins") { "" } else { GUARDED };
            let route = format!("name = \"{folder}\"\npath = \"/{folder}/{{id}}\"\nupstream = \"backend\"");
            write!(file, "[[routes]]\n{route}\n{common}\n{rules}\n").expect("a String takes all");
        }
        let folders = routes.iter().map(|(folder, _)| *folder).collect();
        Self::bare(name.to_owned(), file, folders, Random::new(name))
    }

    pub fn bare(name: String, configuration: String, folders: Vec<&'static str>, random: Random) -> Self {
        Self {
            name,
            engine: None,
            members: None,
            directory: None,
            configuration,
            folders,
            options: None,
            clients: CLIENTS,
            proxies: PROXIES,
            places: 1,
            disturbances: 0,
            operations: 400,
            events: Events::default(),
            keeps_keys: false,
            outlasts: false,
            only_dates: false,
            late: LATE,
            random,
        }
    }

    /// Returns the properties that the clients must know.
    pub fn manner(&self) -> Manner {
        self.options.map_or_else(Manner::default, |options| Manner {
            has_content_tags: options.source == Source::Content,
            guards_reads: options.guards_reads,
            needs_lease: options.required,
            has_dates: !options.creates_freely,
            only_dates: self.only_dates,
            retries: self.keeps_keys,
        })
    }
}

fn with_engine(engine: Engine) -> (Option<Engine>, Option<TempDir>, String) {
    let store = engine.store();
    (Some(engine), None, store)
}
