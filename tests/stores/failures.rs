//! The behaviour of a store whose engine fails in some way.
//!
//! [`failures`] makes a test of each for one kind of store.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use ifmatch::{
    config::{StoreKind, StoreSettings},
    core::records::record::Revision,
    store::{Store, StoreError, Swapped},
};

use crate::{
    contract::{Fixture, busy, idle, key, leased, put},
    relay::Relay,
    wait::within,
};

/// How long an operation of a store may take here: three attempts have a third of it each.
pub const TIMEOUT: Duration = Duration::from_secs(3);

/// The settings of a store of this kind.
pub fn settings_of(kind: StoreKind, capacity: usize) -> StoreSettings {
    let (max_bytes, idle_ttl) = (1 << 30, Duration::from_secs(3_600));
    StoreSettings { kind, capacity, max_bytes, idle_ttl, timeout: TIMEOUT, start_grace: Duration::ZERO }
}

/// A store whose engine can be got at.
pub trait OnEngine: Fixture {
    /// The address of the engine.
    fn addr(&self) -> SocketAddr;

    /// The same store as another process has it that reaches the engine at this address.
    async fn store_at(&self, addr: SocketAddr) -> Arc<dyn Store>;

    /// Sends the engine a signal by its name.
    fn signal(&self, name: &str);

    /// Starts it again after it was killed.
    async fn restart(&mut self);

    /// Starts it again after it was killed, without its data.
    async fn restart_empty(&mut self);

    /// Makes a copy of its data after it was killed.
    async fn back_up(&mut self);

    /// Starts it again after it was killed, with the copy.
    async fn restore(&mut self);
}

/// Makes the tests for one store.
#[macro_export]
macro_rules! failures {
    ($fixture:ty) => {
        $crate::failures!($fixture:
            a_swap_whose_answer_is_late_is_done_once
            a_swap_that_nobody_can_tell_of_is_neither_done_nor_a_conflict
            a_frozen_engine_is_unavailable_in_time_and_then_answers_again
            an_engine_that_was_killed_comes_back_with_what_it_had
            an_engine_that_lost_everything_is_trusted_no_longer
            a_loss_is_seen_though_others_have_written_since
            an_engine_that_was_restored_from_a_copy_is_trusted_no_longer
        );
    };
    ($fixture:ty: $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::failures::$name::<$fixture>().await;
            }
        )*
    };
}

/// The first attempt is carried out, and its answer is lost; the second finds that.
pub async fn a_swap_whose_answer_is_late_is_done_once<F: OnEngine>() {
    let fixture = F::start(10).await;
    let relay = Relay::to(fixture.addr()).await;
    let store = fixture.store_at(relay.addr()).await;
    // The engine knows by then how a swap goes.
    put(&*store, "first", idle()).await;
    for name in ["new", "old"] {
        let resource = key(name);
        let before = match name {
            "old" => put(&*store, name, idle()).await,
            _ => store.read(&resource).await.unwrap(),
        };
        relay.let_answers_through(false);
        let (swapped, applied) = tokio::join!(store.swap(&resource, before.revision, busy(before.now)), async {
            // The first attempt is over, and the second is not.
            tokio::time::sleep(TIMEOUT / 2).await;
            let applied = fixture.store().read(&resource).await.unwrap();
            relay.let_answers_through(true);
            applied
        });
        assert!(applied.revision > before.revision, "{name}: it has happened before its answer came");
        let Ok(Swapped::Done(done)) = swapped else { panic!("{name}: {swapped:?}") };
        let current = store.read(&resource).await.unwrap();
        assert_eq!((current.revision, done.revision), (applied.revision, applied.revision), "{name}");
    }
}

/// Others have changed the record since, so it is unknown whether the swap happened before.
pub async fn a_swap_that_nobody_can_tell_of_is_neither_done_nor_a_conflict<F: OnEngine>() {
    let fixture = F::start(10).await;
    let relay = Relay::to(fixture.addr()).await;
    let store = fixture.store_at(relay.addr()).await;
    let before = put(&*store, "a", idle()).await;
    relay.let_answers_through(false);
    let resource = key("a");
    let (swapped, ()) = tokio::join!(store.swap(&resource, before.revision, busy(before.now)), async {
        let applied = async { while fixture.store().read(&resource).await.unwrap().revision == before.revision {} };
        within("the first attempt to be carried out", applied).await;
        put(&*fixture.store(), "a", idle()).await;
        // The first attempt is over, and the second is not.
        tokio::time::sleep(TIMEOUT / 2).await;
        relay.let_answers_through(true);
    });
    assert_eq!(swapped, Err(StoreError::Unavailable));
}

pub async fn a_frozen_engine_is_unavailable_in_time_and_then_answers_again<F: OnEngine>() {
    let fixture = F::start(10).await;
    let store = fixture.store();
    put(&*store, "a", idle()).await;
    fixture.signal("STOP");
    let began = Instant::now();
    let (one, other) = (key("a"), key("b"));
    let (read, swapped) = tokio::join!(store.read(&one), store.swap(&other, Revision::default(), idle()));
    assert_eq!((read, swapped), (Err(StoreError::Unavailable), Err(StoreError::Unavailable)));
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    fixture.signal("CONT");
    within("the store to answer again", async { while store.read(&key("a")).await.is_err() {} }).await;
}

pub async fn an_engine_that_was_killed_comes_back_with_what_it_had<F: OnEngine>() {
    let mut fixture = F::start(10).await;
    let store = fixture.store();
    let kept = put(&*store, "a", busy(store.now().await.unwrap())).await;
    fixture.signal("KILL");
    fixture.restart().await;
    within("the store to answer again", async { while store.read(&key("a")).await.is_err() {} }).await;
    let current = store.read(&key("a")).await.unwrap();
    assert_eq!((current.revision, current.record.claim.is_some()), (kept.revision, true));
    assert!(put(&*store, "b", idle()).await.revision > kept.revision);
}

/// Revisions that go back would make tags and fences come again: nothing is answered any more.
pub async fn an_engine_that_lost_everything_is_trusted_no_longer<F: OnEngine>() {
    let mut fixture = F::start(10).await;
    let store = fixture.store();
    for _ in 0..10 {
        put(&*store, "a", idle()).await;
    }
    fixture.signal("KILL");
    fixture.restart_empty().await;
    let other = within("another process to reach the engine", fixture.other()).await;
    put(&*other, "b", idle()).await;
    assert_eq!(store.read(&key("a")).await, Err(StoreError::LostWrites));
    assert_eq!(store.read(&key("a")).await, Err(StoreError::LostWrites));
}

/// The last revision of the engine hides the loss. The records that this process has seen show it.
pub async fn a_loss_is_seen_though_others_have_written_since<F: OnEngine>() {
    let mut fixture = F::start(10).await;
    let store = fixture.store();
    let lost = put(&*store, "a", idle()).await.revision;
    fixture.signal("KILL");
    fixture.restart_empty().await;
    let other = within("another process to reach the engine", fixture.other()).await;
    while put(&*other, "b", idle()).await.revision <= lost {}
    assert_eq!(store.read(&key("a")).await, Err(StoreError::LostWrites));
    assert_eq!(store.read(&key("b")).await, Err(StoreError::LostWrites), "nothing is trusted any more");
}

/// A backup would give fences and versions again, and leases that have ended since.
pub async fn an_engine_that_was_restored_from_a_copy_is_trusted_no_longer<F: OnEngine>() {
    let mut fixture = F::start(10).await;
    let store = fixture.store();
    put(&*store, "a", idle()).await;
    fixture.signal("KILL");
    fixture.back_up().await;
    fixture.restart().await;
    within("the store to answer again", async { while store.read(&key("a")).await.is_err() {} }).await;
    let granted = put(&*store, "a", leased(store.now().await.unwrap(), Duration::from_secs(60))).await;
    fixture.signal("KILL");
    fixture.restore().await;
    let answered = async {
        loop {
            match store.read(&key("a")).await {
                Err(StoreError::Unavailable) => {}
                other => return other,
            }
        }
    };
    let answered = within("the store to answer", answered).await;
    assert_eq!(answered, Err(StoreError::LostWrites), "it was granted as {:?}", granted.revision);
}
