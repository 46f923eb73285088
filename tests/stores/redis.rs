//! The Redis store on a real Redis.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use ifmatch::{
    config::{self, StoreKind},
    core::records::record::Snapshot,
    store::{Store, StoreError, redis::RedisStore},
};

use crate::{
    contract::{Fixture, idle, key, leased, put},
    engines,
    failures::{OnEngine, settings_of},
    ports,
    relay::Relay,
    wait::within,
};

struct Redis {
    engine: engines::Redis,
    settings: config::StoreSettings,
    store: Arc<RedisStore>,
}

impl Redis {
    async fn connect(settings: &config::StoreSettings) -> Arc<RedisStore> {
        let StoreKind::Redis(redis) = &settings.kind else { panic!("these are settings of Redis") };
        Arc::new(RedisStore::connect(redis, settings).await.expect("Redis can be reached"))
    }
}

impl Fixture for Redis {
    async fn start(capacity: usize) -> Self {
        let engine = engines::Redis::start().await;
        let redis = config::Redis { url: engine.url(), prefix: "test".to_owned(), login: None, tls: None };
        let settings = settings_of(StoreKind::Redis(redis), capacity);
        let store = Self::connect(&settings).await;
        Self { engine, settings, store }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<RedisStore>::clone(&self.store)
    }

    async fn other(&self) -> Arc<dyn Store> {
        Self::connect(&self.settings).await
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn collect(&self) {
        self.store.collect(Duration::ZERO).await.expect("Redis can be asked");
    }
}

impl OnEngine for Redis {
    fn addr(&self) -> SocketAddr {
        self.engine.addr()
    }

    async fn store_at(&self, addr: SocketAddr) -> Arc<dyn Store> {
        let StoreKind::Redis(redis) = &self.settings.kind else { panic!("these are settings of Redis") };
        let redis = config::Redis { url: format!("redis://{addr}"), ..redis.clone() };
        Self::connect(&config::StoreSettings { kind: StoreKind::Redis(redis), ..self.settings.clone() }).await
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

crate::contract!(Redis);
crate::failures!(Redis);

/// A record is one key, and its value is its revision and JSON; moments are those of the server's clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_cli_shows_what_is_kept() {
    let fixture = Redis::start(10).await;
    let now = fixture.store.now().await.unwrap();
    put(&*fixture.store, "docs:/a?b", leased(now, Duration::from_secs(60))).await;
    let shown = fixture.engine.cli(&["GET", "{test}:record:docs:/a?b"]);
    let (revision, shown) = shown.split_once(' ').expect("a revision and JSON");
    let shown: serde_json::Value = serde_json::from_str(shown).expect("JSON");
    assert_eq!((revision, &shown["fence"]), ("1", &serde_json::Value::Null));
    assert_eq!(shown["leases"][0]["term"]["held_until_ms"].as_u64(), Some(now.milliseconds() + 60_000));
}

/// A user with `nopass` logs in without a password, and is not the default user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_may_have_no_password() {
    let fixture = Redis::start(10).await;
    fixture.engine.cli(&["ACL", "SETUSER", "app", "on", "nopass", "allkeys", "allchannels", "allcommands"]);
    fixture.engine.cli(&["ACL", "SETUSER", "default", "-@all"]);
    let StoreKind::Redis(redis) = &fixture.settings.kind else { panic!("these are settings of Redis") };
    let login = Some(config::Login { user: "app".to_owned(), password_file: None });
    let named = config::Redis { login, ..redis.clone() };
    let store = RedisStore::connect(&named, &fixture.settings).await.expect("the user may log in");
    put(&store, "a", idle()).await;
}

/// Idle records that were written lately are kept, and forgotten only when room is needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_young_stays() {
    let fixture = Redis::start(10).await;
    put(&*fixture.store, "a", idle()).await;
    assert_eq!(fixture.store.collect(Duration::from_secs(60)).await, Ok(0));
    assert_eq!(fixture.store.read(&key("a")).await.unwrap().revision.0, 1);
    assert_eq!(fixture.store.collect(Duration::ZERO).await, Ok(1));
}

/// Before a change that a client waits for.
const PAUSE: Duration = Duration::from_millis(100);

/// The change arrives at once. Only if its notice is lost, the wait ends on its own, a second later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_told_to_those_who_wait() {
    let fixture = Redis::start(10).await;
    let (store, other) = (fixture.store(), fixture.other().await);
    let listeners = || fixture.engine.cli(&["PUBSUB", "NUMSUB", "{test}:changed"]).lines().nth(1).map(str::to_owned);
    let (resource, seen) = (key("a"), put(&*store, "a", idle()).await.revision);
    assert_eq!(listeners().as_deref(), Some("0"), "nobody waits");
    // It returns when the process has begun to listen, or after a second.
    let end = Instant::now() + Duration::from_secs(20);
    while listeners().as_deref() != Some("1") {
        assert!(Instant::now() < end, "nobody listens");
        store.changed(&resource, seen).await;
    }
    let mut waits = Vec::new();
    for _ in 0..10 {
        let seen = put(&*store, "a", idle()).await.revision;
        let (took, _) = tokio::join!(
            async {
                let began = Instant::now();
                // Word of the own change may come late, and end a wait early.
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

/// The address of the store leads to the new primary. Which of its writes a replica has is for Redis to say.
struct Failover {
    primary: Redis,
    replica: engines::Redis,
    relay: Relay,
    store: Arc<dyn Store>,
}

impl Failover {
    async fn start() -> Self {
        let primary = Redis::start(10).await;
        let replica = primary.engine.replica().await;
        let relay = Relay::to(primary.addr()).await;
        let store = primary.store_at(relay.addr()).await;
        Self { primary, replica, relay, store }
    }

    /// The store as a process has it that has seen nothing of the earlier primary.
    async fn fresh(&self) -> Arc<dyn Store> {
        self.primary.store_at(self.replica.addr()).await
    }

    /// Grants a lease, and lets the replica have it or not.
    async fn grant(&self, reaches_replica: bool) -> Snapshot {
        if !reaches_replica {
            self.replica.promote();
        }
        let granted = put(&*self.store, "a", leased(self.store.now().await.unwrap(), Duration::from_secs(60))).await;
        if reaches_replica {
            self.replica.catches_up(&self.primary.engine).await;
            self.replica.promote();
        }
        granted
    }

    fn fail_over(&self) {
        self.primary.engine.signal("KILL");
        self.relay.lead_to(self.replica.addr());
    }

    /// The answer of the store about a record, once it answers again.
    async fn answer(&self, name: &str) -> Result<Snapshot, StoreError> {
        let answered = async {
            loop {
                match self.store.read(&key(name)).await {
                    Err(StoreError::Unavailable) => {}
                    other => return other,
                }
            }
        };
        within("the store to answer again", answered).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_replica_with_all_writes_goes_on_with_leases_and_fences() {
    let failover = Failover::start().await;
    put(&*failover.store, "a", idle()).await;
    let granted = failover.grant(true).await;
    failover.fail_over();
    let kept = failover.answer("a").await.expect("nothing was lost");
    assert_eq!((kept.revision, kept.fence()), (granted.revision, granted.fence()));
    assert!(kept.lease_state().is_held(), "no other client gets the lease");
    assert!(put(&*failover.store, "b", idle()).await.revision > granted.revision, "fences grow");
}

/// The lease is free at the new primary. No process that has seen the grant gives it to another client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_replica_that_lost_a_grant_is_trusted_no_longer() {
    let failover = Failover::start().await;
    put(&*failover.store, "a", idle()).await;
    failover.grant(false).await;
    failover.fail_over();
    assert_eq!(failover.answer("a").await, Err(StoreError::LostWrites));
}

/// Another process that has not seen the grant writes before this one comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_grant_is_seen_though_others_have_gone_on() {
    let failover = Failover::start().await;
    put(&*failover.store, "a", idle()).await;
    let granted = failover.grant(false).await;
    let other = failover.fresh().await;
    while put(&*other, "b", idle()).await.revision <= granted.revision {}
    failover.fail_over();
    assert!(failover.answer("b").await.is_ok(), "the last revision is beyond the loss");
    assert_eq!(failover.answer("a").await, Err(StoreError::LostWrites));
}

/// Redis leaves the connections open. What the replica has may be old: an answer from it would be a state from before an
/// answered write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_becomes_a_replica_answers_no_longer() {
    let failover = Failover::start().await;
    let old = put(&*failover.store, "a", idle()).await.revision;
    failover.replica.catches_up(&failover.primary.engine).await;
    failover.replica.promote();
    let new = put(&*failover.fresh().await, "a", idle()).await.revision;
    assert_eq!(failover.store.read(&key("a")).await.unwrap().revision, old, "nobody has told the old primary yet");
    // It never reaches the new one.
    failover.primary.engine.follow(ports::free());
    assert_eq!(failover.store.read(&key("a")).await, Err(StoreError::Unavailable));
    assert_eq!(failover.store.scan(None, 10).await, Err(StoreError::Unavailable));
    failover.relay.lead_to(failover.replica.addr());
    assert_eq!(failover.answer("a").await.unwrap().revision, new);
}
