//! The etcd store on a real etcd.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use futures_util::future::join_all;
use ifmatch::{
    clock::BootClock,
    config::{self, StoreKind},
    core::records::record::{Record, Revision, Snapshot},
    store::{OpenError, Store, StoreError, Swapped, etcd::EtcdStore},
};

use crate::{
    contract::{Fixture, busy, idle, key, leased, put, read},
    engines::{self, cluster::EtcdCluster},
    failures::{OnEngine, TIMEOUT, settings_of},
    relay::Relay,
    wait::{until, within},
};

struct Etcd {
    engine: engines::Etcd,
    settings: config::StoreSettings,
    store: Arc<EtcdStore>,
}

impl Etcd {
    async fn connect(settings: &config::StoreSettings) -> Arc<EtcdStore> {
        let StoreKind::Etcd(etcd) = &settings.kind else { panic!("these are settings of etcd") };
        // On a busy machine it may be silent for longer than an operation may take.
        let reached = async {
            loop {
                match EtcdStore::connect(etcd, settings, Arc::new(BootClock)).await {
                    Err(OpenError::Silent) => {}
                    opened => return opened.expect("etcd can be opened"),
                }
            }
        };
        Arc::new(within("etcd to be reached", reached).await)
    }
}

impl Fixture for Etcd {
    async fn start(capacity: usize) -> Self {
        let engine = engines::Etcd::start().await;
        let etcd = config::Etcd {
            endpoints: vec![engine.endpoint()],
            prefix: "test/ifmatch".to_owned(),
            login: None,
            tls: None,
        };
        let settings = settings_of(StoreKind::Etcd(etcd), capacity);
        let store = Self::connect(&settings).await;
        Self { engine, settings, store }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<EtcdStore>::clone(&self.store)
    }

    async fn other(&self) -> Arc<dyn Store> {
        Self::connect(&self.settings).await
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn collect(&self) {
        self.store.collect(Duration::ZERO).await.expect("etcd can be asked");
    }
}

impl OnEngine for Etcd {
    fn addr(&self) -> SocketAddr {
        self.engine.addr()
    }

    async fn store_at(&self, addr: SocketAddr) -> Arc<dyn Store> {
        let StoreKind::Etcd(etcd) = &self.settings.kind else { panic!("these are settings of etcd") };
        let etcd = config::Etcd { endpoints: vec![format!("http://{addr}")], ..etcd.clone() };
        Self::connect(&config::StoreSettings { kind: StoreKind::Etcd(etcd), ..self.settings.clone() }).await
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

crate::contract!(Etcd);
crate::failures!(Etcd);

/// A user without a password is known by a certificate, without a log-in, which this etcd would refuse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_may_have_no_password() {
    let fixture = Etcd::start(10).await;
    let StoreKind::Etcd(etcd) = &fixture.settings.kind else { panic!("these are settings of etcd") };
    let login = Some(config::Login { user: "app".to_owned(), password_file: None });
    let kind = StoreKind::Etcd(config::Etcd { login, ..etcd.clone() });
    let store = Etcd::connect(&config::StoreSettings { kind, ..fixture.settings.clone() }).await;
    put(&*store, "a", idle()).await;
}

/// A record is one key, and its value is JSON; what names the record's own revision is `null`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcdctl_shows_what_is_kept() {
    let fixture = Etcd::start(10).await;
    let now = fixture.store.now().await.unwrap();
    put(&*fixture.store, "docs:/a?b", leased(now, Duration::from_secs(60))).await;
    let shown = fixture.engine.ctl(&["get", "--print-value-only", "test/ifmatch/record/docs:/a?b"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((&shown["version"], &shown["fence"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let left = shown["leases"][0]["term"]["held_until_ms"].as_u64().expect("a number");
    assert!((50_000..=60_000).contains(&left), "{left} from the moment of the writing");
}

/// The first process to see a record late ends it late, and no swap of another record brings that forward.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_late_counts_from_when_he_came() {
    let fixture = Etcd::start(10).await;
    let now = fixture.store.now().await.unwrap();
    put(&*fixture.store, "a", leased(now, Duration::from_millis(600))).await;
    fixture.pass(Duration::from_millis(400)).await;
    let late = fixture.other().await;
    assert!(late.read(&key("a")).await.unwrap().lease_state().is_held());
    fixture.pass(Duration::from_millis(400)).await;
    assert!(!fixture.store.read(&key("a")).await.unwrap().lease_state().is_held(), "it is over where it was granted");
    assert!(late.read(&key("a")).await.unwrap().lease_state().is_held(), "no earlier than it can know");
    fixture.pass(Duration::from_millis(300)).await;
    assert!(!late.read(&key("a")).await.unwrap().lease_state().is_held(), "and no later");
}

/// Idle records that were written lately are kept, and forgotten only when room is needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_young_stays() {
    let fixture = Etcd::start(10).await;
    put(&*fixture.store, "a", idle()).await;
    assert_eq!(fixture.store.collect(Duration::from_secs(60)).await, Ok(0));
    assert_eq!(fixture.store.collect(Duration::ZERO).await, Ok(1));
}

/// More than one of them in a transaction: they have fewer revisions than records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swaps_that_travel_together_succeed_and_fail_each_by_itself() {
    const RECORDS: usize = 60;
    let fixture = Etcd::start(1_000).await;
    let store = fixture.store();
    let keys: Vec<_> = (0..RECORDS).map(|number| key(&format!("{number}"))).collect();
    let made = join_all(keys.iter().map(|key| store.swap(key, Revision::default(), idle()))).await;
    let made: Vec<_> = made.into_iter().map(|swapped| done(swapped).revision).collect();
    let revisions: BTreeSet<_> = made.iter().collect();
    assert!(revisions.len() < RECORDS, "none went with another");
    // Every third one expects what was there before, and every one is tried twice at once.
    let expected = |number: usize| if number.is_multiple_of(3) { Revision::default() } else { made[number] };
    let swaps = (0..2 * RECORDS).map(|number| number % RECORDS);
    let swapped = join_all(swaps.map(|number| store.swap(&keys[number], expected(number), idle()))).await;
    for number in 0..RECORDS {
        let current = store.read(&keys[number]).await.unwrap().revision;
        let outcomes = [&swapped[number], &swapped[number + RECORDS]];
        let wins = outcomes.iter().filter(|swapped| matches!(swapped, Ok(Swapped::Done(_)))).count();
        assert_eq!(wins, usize::from(!number.is_multiple_of(3)), "{number}");
        for swapped in outcomes {
            let Ok(Swapped::Done(told) | Swapped::Conflict(told)) = swapped else { panic!("{swapped:?}") };
            assert_eq!(told.revision, current, "{number}: each is told what there is");
        }
    }
}

/// The first attempt at all of them is carried out, and its answer is lost. Before the second comes, others have
/// changed one of the records. All records are found to be idle, and the last one is claimed before its turn to be
/// forgotten comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_has_changed_since_it_was_found_is_not_forgotten() {
    const RECORDS: usize = 300;
    let fixture = Etcd::start(1_000).await;
    let store = &*fixture.store;
    let keys: Vec<_> = (0..RECORDS).map(|number| key(&format!("{number:03}"))).collect();
    for swapped in join_all(keys.iter().map(|key| store.swap(key, Revision::default(), idle()))).await {
        done(swapped);
    }
    let claimed = Record { claim: busy(store.now().await.unwrap()).claim, ..idle() };
    let (forgotten, ()) = tokio::join!(store.collect(Duration::ZERO), async {
        // They are forgotten in the order of their keys, with a pause after each.
        let first_is_gone = async { while store.scan(None, 1).await.unwrap()[0].0 == keys[0] {} };
        within("the first record to be forgotten", first_is_gone).await;
        put(store, "299", claimed).await;
    });
    assert_eq!(forgotten, Ok(RECORDS - 1));
    assert!(read(store, "299").await.record.claim.is_some());
}

// One thread: no sender runs before all swaps wait for one, so that they go together.
#[tokio::test]
async fn swaps_whose_common_answer_is_late_are_done_once_each() {
    const RECORDS: usize = 20;
    let mut fixture = Etcd::start(1_000).await;
    let relay = Relay::to(fixture.addr()).await;
    // The others must be done within the first of three attempts, even on a slow machine.
    fixture.settings.timeout = 4 * TIMEOUT;
    let others = fixture.other().await;
    let store = fixture.store_at(relay.addr()).await;
    let keys: Vec<_> = (0..RECORDS).map(|number| key(&format!("{number}"))).collect();
    let stale = put(&*store, "0", idle()).await;
    let current = put(&*store, "0", idle()).await;
    relay.let_answers_through(false);
    let before = relay.asked_bytes();
    let expected = |number: usize| if number == 0 { stale.revision } else { Revision::default() };
    let swaps = (0..RECORDS).map(|number| store.swap(&keys[number], expected(number), idle()));
    let (swapped, applied) = tokio::join!(join_all(swaps), async {
        let all = async { while others.scan(None, RECORDS).await.unwrap().len() < RECORDS {} };
        within("the first attempt to be carried out", all).await;
        let first = relay.asked_bytes() - before;
        put(&*others, "1", idle()).await;
        // The second asks the same once more; what else a connection carries is far less than half of that.
        until("the second attempt to come", || relay.asked_bytes() - before > first + first / 2).await;
        let applied = others.scan(None, RECORDS).await.unwrap();
        relay.let_answers_through(true);
        applied
    });
    for (number, swapped) in swapped.into_iter().enumerate() {
        let (_, applied) = applied.iter().find(|(resource, _)| *resource == keys[number]).expect("it is there");
        match number {
            0 => assert_eq!((swapped, applied.revision), (Err(StoreError::Unavailable), current.revision)),
            1 => assert_eq!(swapped, Err(StoreError::Unavailable), "nobody can say whether it was done before"),
            _ => assert_eq!(done(swapped).revision, applied.revision, "{number}"),
        }
    }
}

fn done(swapped: Result<Swapped, StoreError>) -> Snapshot {
    match swapped {
        Ok(Swapped::Done(done)) => done,
        other => panic!("{other:?}"),
    }
}

/// Each write is carried out once, no matter which member is frozen or dead; without most of them nothing is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minority_of_members_is_not_needed() {
    let cluster = EtcdCluster::start().await;
    let etcd = config::Etcd { endpoints: cluster.endpoints(), prefix: "test".to_owned(), login: None, tls: None };
    let settings = settings_of(StoreKind::Etcd(etcd), 10);
    let store = Etcd::connect(&settings).await;
    let mut last = put(&*store, "a", idle()).await;
    let leader = cluster.leader(0);
    let follower = (leader + 1) % 3;
    for (member, signal) in
        [(follower, "STOP"), (follower, "CONT"), (leader, "STOP"), (leader, "CONT"), (leader, "KILL")]
    {
        cluster.signal(member, signal);
        // An election takes a second or two: what is refused meanwhile is tried again.
        let written = within("a write to be carried out", async {
            loop {
                let Ok(current) = store.read(&key("a")).await else { continue };
                assert!(current.revision >= last.revision, "{signal} of {member}: nothing goes back");
                if let Ok(Swapped::Done(done)) = store.swap(&key("a"), current.revision, idle()).await {
                    return done;
                }
            }
        });
        last = written.await;
    }
    cluster.signal(follower, "STOP");
    let refused = store.swap(&key("a"), last.revision, idle()).await;
    assert_eq!(refused, Err(StoreError::Unavailable), "one of three is no majority");
}
