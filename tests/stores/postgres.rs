//! The PostgreSQL store on a real PostgreSQL.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use ifmatch::{
    config::{self, StoreKind},
    store::{OpenError, Store, postgres::PostgresStore},
};

use crate::{
    contract::{Fixture, busy, idle, key, leased, put},
    engines::postgres::{self, Standby, USER},
    failures::{OnEngine, TIMEOUT, settings_of},
    wait::within,
};

struct Postgres {
    engine: postgres::Postgres,
    store: Arc<PostgresStore>,
    settings: config::StoreSettings,
}

/// The settings of a store at this address.
pub fn settings(addr: SocketAddr) -> config::Postgres {
    config::Postgres {
        url: format!("postgres://{addr}/{USER}"),
        hosts: vec![(addr.ip().to_string(), addr.port())],
        database: USER.to_owned(),
        is_secure: false,
        schema: "test".to_owned(),
        login: None,
        tls: None,
    }
}

async fn connect(addr: SocketAddr, settings: &config::StoreSettings) -> Result<Arc<PostgresStore>, OpenError> {
    Ok(Arc::new(PostgresStore::connect(&self::settings(addr), settings).await?))
}

impl Fixture for Postgres {
    async fn start(capacity: usize) -> Self {
        let engine = postgres::Postgres::start().await;
        let settings = settings_of(StoreKind::Postgres(settings(engine.addr())), capacity);
        let store = connect(engine.addr(), &settings).await.expect("PostgreSQL can be reached");
        Self { engine, store, settings }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<PostgresStore>::clone(&self.store)
    }

    async fn other(&self) -> Arc<dyn Store> {
        connect(self.engine.addr(), &self.settings).await.expect("PostgreSQL can be reached")
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn collect(&self) {
        self.store.collect(Duration::ZERO).await.expect("PostgreSQL can be asked");
    }
}

impl OnEngine for Postgres {
    fn addr(&self) -> SocketAddr {
        self.engine.addr()
    }

    async fn store_at(&self, addr: SocketAddr) -> Arc<dyn Store> {
        connect(addr, &self.settings).await.expect("PostgreSQL can be reached")
    }

    fn signal(&self, name: &str) {
        self.engine.signal(name);
    }

    async fn restart(&mut self) {
        self.engine.restart().await;
    }

    async fn restart_empty(&mut self) {
        self.engine.lose_everything().await;
    }

    async fn back_up(&mut self) {
        self.engine.back_up().await;
    }

    async fn restore(&mut self) {
        self.engine.restore().await;
    }
}

crate::contract!(Postgres);
crate::failures!(Postgres);

/// The kernel takes no idle time of less than a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_of_less_than_a_second_is_one() {
    let fixture = Postgres::start(10).await;
    let short = config::StoreSettings { timeout: Duration::from_millis(900), ..fixture.settings.clone() };
    let store = connect(fixture.engine.addr(), &short).await.expect("PostgreSQL can be reached");
    put(&*store, "a", idle()).await;
}

/// The server may know its user by something else than a password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_may_have_no_password() {
    let fixture = Postgres::start(10).await;
    let login = Some(config::Login { user: USER.to_owned(), password_file: None });
    let named = config::Postgres { login, ..settings(fixture.engine.addr()) };
    let store = PostgresStore::connect(&named, &fixture.settings).await.expect("it trusts its clients");
    put(&store, "a", idle()).await;
}

/// A record is one row, whose moments are those of the server's clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_shows_what_is_kept() {
    let fixture = Postgres::start(10).await;
    let now = fixture.store.now().await.unwrap();
    put(&*fixture.store, "docs:/a?b", leased(now, Duration::from_secs(60))).await;
    let shown = fixture.engine.sql("SELECT revision, record FROM test.records WHERE key = 'docs:/a?b'");
    let (revision, shown) = shown.split_once('|').expect("a revision and JSON");
    let shown: serde_json::Value = serde_json::from_str(shown).expect("JSON");
    assert_eq!((revision, &shown["fence"]), ("1", &serde_json::Value::Null));
    assert_eq!(shown["leases"][0]["term"]["held_until_ms"].as_u64(), Some(now.milliseconds() + 60_000));
}

/// Idle records that were written lately are kept, and forgotten only if room is needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn young_records_stay() {
    let fixture = Postgres::start(10).await;
    put(&*fixture.store, "a", idle()).await;
    assert_eq!(fixture.store.collect(Duration::from_secs(60)).await, Ok(0));
    assert_eq!(fixture.store.read(&key("a")).await.unwrap().revision.0, 1);
    assert_eq!(fixture.store.collect(Duration::ZERO).await, Ok(1));
}

/// A key is longer than an index of PostgreSQL takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_any_length_is_kept() {
    let fixture = Postgres::start(10).await;
    let name = format!("docs:/{}", "long/".repeat(4_000));
    let kept = put(&*fixture.store, &name, idle()).await;
    assert_eq!(fixture.store.read(&key(&name)).await.unwrap().revision, kept.revision);
    let scanned = fixture.store.scan(None, 10).await.unwrap();
    assert_eq!(scanned.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), [name]);
}

/// A server that may lose what it acknowledges is refused, at the start and at each connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_forget_is_refused() {
    let fixture = Postgres::start(10).await;
    put(&*fixture.store, "a", idle()).await;
    fixture.engine.sql(&format!("ALTER ROLE {USER} SET synchronous_commit = off"));
    let refused = connect(fixture.engine.addr(), &fixture.settings).await.err().expect("it is refused");
    let OpenError::Engine(why) = refused else { panic!("{refused:?}") };
    assert!(why.to_string().contains("synchronous_commit"), "{why}");
    fixture.engine.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ifmatch'");
    assert!(fixture.store.read(&key("a")).await.is_err());
    fixture.engine.sql(&format!("ALTER ROLE {USER} RESET synchronous_commit"));
    assert!(fixture.store.read(&key("a")).await.is_ok());
}

/// A process that starts meanwhile serves without the store, and asks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_read_only_for_now_is_asked_again() {
    let fixture = Postgres::start(10).await;
    fixture.engine.sql(&format!("ALTER ROLE {USER} SET default_transaction_read_only = on"));
    let away = connect(fixture.engine.addr(), &fixture.settings).await.err();
    assert!(matches!(away, Some(OpenError::Silent)), "{away:?}");
    fixture.engine.sql(&format!("BEGIN READ WRITE; ALTER ROLE {USER} RESET default_transaction_read_only; COMMIT"));
    assert!(connect(fixture.engine.addr(), &fixture.settings).await.is_ok());
}

/// The first process makes the tables while the others wait, which may take longer than any request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_waits_until_another_one_has_made_the_tables() {
    let fixture = Postgres::start(10).await;
    let (new, quick) = (
        config::Postgres { schema: "new".to_owned(), ..settings(fixture.engine.addr()) },
        config::StoreSettings { timeout: TIMEOUT / 3, ..fixture.settings.clone() },
    );
    let lock = "SELECT pg_advisory_xact_lock(29667492527104872)";
    let url = format!("postgres://{USER}@{}/{USER}", fixture.engine.addr());
    let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("it can be reached");
    tokio::spawn(connection);
    other.batch_execute(&format!("BEGIN; {lock}")).await.expect("it is free");
    let (store, ()) = tokio::join!(PostgresStore::connect(&new, &quick), async {
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        let count = async || other.query_one(waiting, &[]).await.expect("an answer").get::<_, i64>(0);
        within("the process to wait", async { while count().await == 0 {} }).await;
        tokio::time::sleep(quick.timeout * 2).await;
        other.batch_execute("COMMIT").await.expect("it is released");
    });
    assert!(store.expect("it waits").read(&key("a")).await.is_ok());
}

/// With a synchronous standby, the loss of the primary loses nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_standby_takes_over_with_every_change() {
    let fixture = Postgres::start(100).await;
    let standby = Standby::of(&fixture.engine).await;
    let hosts = [fixture.engine.addr(), standby.addr()].map(|addr| (addr.ip().to_string(), addr.port()));
    let both = config::Postgres { hosts: hosts.to_vec(), ..settings(fixture.engine.addr()) };
    let store = PostgresStore::connect(&both, &fixture.settings).await.expect("the primary can be reached");
    let mut kept = Vec::new();
    for number in 0..20 {
        let name = format!("docs:/{number}");
        kept.push((put(&store, &name, busy(store.now().await.unwrap())).await, name));
    }
    fixture.engine.signal("KILL");
    assert!(store.read(&key("docs:/0")).await.is_err(), "a standby takes no writes");
    let starting = PostgresStore::connect(&settings(standby.addr()), &fixture.settings).await.err();
    assert!(
        matches!(starting, Some(OpenError::Silent)),
        "a process that starts now waits for the standby: {starting:?}"
    );
    standby.promote();
    within("the store to answer again", async { while store.read(&key("docs:/0")).await.is_err() {} }).await;
    for (before, name) in &kept {
        let after = store.read(&key(name)).await.unwrap();
        assert_eq!((after.revision, after.record.claim.is_some()), (before.revision, true), "{name}");
    }
    let last = kept.last().map(|(snapshot, _)| snapshot.revision).unwrap();
    assert!(put(&store, "docs:/new", idle()).await.revision > last);
}

/// The pause before a change that another caller waits for.
const PAUSE: Duration = Duration::from_millis(100);

/// A change is announced at once. Without the announcement, the wait would end on its own a second later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_announced_to_waiting_callers() {
    let fixture = Postgres::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    let resource = key("a");
    put(&*store, "a", idle()).await;
    let mut waits = Vec::new();
    for _ in 0..10 {
        let seen = store.read(&resource).await.unwrap().revision;
        let (took, _) = tokio::join!(
            async {
                let began = Instant::now();
                while store.read(&resource).await.unwrap().revision == seen {
                    store.changed(&resource, seen).await;
                }
                began.elapsed()
            },
            async {
                // The wait has begun.
                tokio::time::sleep(PAUSE).await;
                put(&*other, "a", idle()).await
            }
        );
        waits.push(took);
    }
    assert!(waits.iter().any(|took| (PAUSE..Duration::from_millis(800)).contains(took)), "{waits:?}");
}
