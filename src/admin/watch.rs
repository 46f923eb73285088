//! The stream of events that keeps a console up to date (`GET /watch`).
//!
//! # Design
//!
//! *What does a console cost?* One task looks at the process for all consoles that show the same. It ends with the last
//! of them. After each look it rests for a second, and for nine times as long as the look took: a large store is read
//! less often.
//!
//! *What does a slow reader get?* The newest state. A watcher takes the parts that changed since it last took some, at
//! the time when its connection has room for them.
//!
//! *Why do streams end on their own?* A connection of this listener does not live for longer than five minutes, and a
//! console comes back at once.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Weak},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, sleep, sleep_until},
};

use super::{
    AdminAnswer, AdminListener, AdminState,
    answer::AdminProblem,
    key,
    overview::{self, Interest},
    parts::StatePart,
};

/// The number of streams at once: some consoles, of the connections that this listener has.
const WATCHERS_MAX: usize = 16;
/// The least pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// How many times longer the pause is than the look before it.
const PAUSE_FACTOR: u32 = 9;
/// How often a stream without events gets a comment.
const COMMENT_EACH: Duration = Duration::from_secs(15);
/// How long a stream lasts; less than its connection.
const STREAM_MAX: Duration = Duration::from_secs(270);

/// The parts of the state at one look.
type StateParts = Arc<[StatePart]>;

/// The looks that are going on, and the places of watchers.
#[derive(Debug)]
pub(super) struct Rounds {
    looks: Mutex<HashMap<Interest, Weak<watch::Sender<StateParts>>>>,
    places: Arc<Semaphore>,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { looks: Mutex::default(), places: Arc::new(Semaphore::new(WATCHERS_MAX)) }
    }
}

/// Serves the stream of one console.
pub(super) async fn stream(State(admin): AdminState, asked: Result<Query<Interest>, QueryRejection>) -> AdminAnswer {
    let Query(interest) = asked?;
    interest.key.as_deref().map(key).transpose()?;
    let place = Arc::clone(&admin.rounds.places).try_acquire_owned().map_err(|_none_is_left| {
        let detail = format!("{WATCHERS_MAX} consoles watch this process, and no more may: close one of them");
        AdminProblem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-watchers", detail)
    })?;
    let watcher = ConsoleWatcher::new(subscribe(&admin, interest), place);
    let events =
        unfold(watcher, async |mut watcher| watcher.next().await.map(|piece| (Ok::<_, Infallible>(piece), watcher)));
    let media_type = [(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))];
    Ok::<Response, _>((media_type, Body::from_stream(events)).into_response())
}

/// Joins the looks for an interest, and begins them if no other console has it.
fn subscribe(admin: &Arc<AdminListener>, interest: Interest) -> watch::Receiver<StateParts> {
    let mut looks = admin.rounds.looks.lock();
    if let Some(going_on) = looks.get(&interest).and_then(Weak::upgrade) {
        return going_on.subscribe();
    }
    let (sender, receiver) = watch::channel(StateParts::default());
    let sender = Arc::new(sender);
    looks.insert(interest.clone(), Arc::downgrade(&sender));
    drop(looks);
    tokio::spawn(look_again_and_again(Arc::clone(admin), interest, sender));
    receiver
}

/// Looks until no console watches.
async fn look_again_and_again(admin: Arc<AdminListener>, interest: Interest, sender: Arc<watch::Sender<StateParts>>) {
    loop {
        let began = Instant::now();
        sender.send_replace(overview::look(&admin, &interest).await.into());
        tokio::select! {
            () = sleep(PAUSE.max(began.elapsed() * PAUSE_FACTOR)) => {}
            () = sender.closed() => {}
        }
        let mut looks = admin.rounds.looks.lock();
        // A watcher subscribes under the same lock.
        if sender.receiver_count() == 0 {
            looks.remove(&interest);
            return;
        }
    }
}

/// One stream.
struct ConsoleWatcher {
    looks: watch::Receiver<StateParts>,
    /// The marks of the parts that were sent.
    told: HashMap<&'static str, u64>,
    comment_at: Instant,
    ends_at: Instant,
    /// Given back when the stream ends.
    _place: OwnedSemaphorePermit,
}

impl ConsoleWatcher {
    fn new(mut looks: watch::Receiver<StateParts>, place: OwnedSemaphorePermit) -> Self {
        looks.mark_changed();
        let now = Instant::now();
        Self { looks, told: HashMap::new(), comment_at: now + COMMENT_EACH, ends_at: now + STREAM_MAX, _place: place }
    }

    /// Waits for the next piece of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let text = tokio::select! {
                biased;
                () = sleep_until(self.ends_at) => return None,
                looked = self.looks.changed() => {
                    looked.ok()?;
                    let parts = Arc::clone(&self.looks.borrow_and_update());
                    self.news(&parts)
                }
                () = sleep_until(self.comment_at) => ":\n\n".to_owned(),
            };
            if !text.is_empty() {
                self.comment_at = Instant::now() + COMMENT_EACH;
                return Some(text.into());
            }
        }
    }

    /// Returns the parts that this console does not show yet.
    fn news(&mut self, parts: &[StatePart]) -> String {
        let mut text = String::new();
        for part in parts {
            if self.told.insert(part.name, part.mark) != Some(part.mark) {
                text.push_str(&part.text);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn watcher() -> (watch::Sender<StateParts>, ConsoleWatcher) {
        let (sender, receiver) = watch::channel(StateParts::default());
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("a place");
        (sender, ConsoleWatcher::new(receiver, place))
    }

    fn parts(leases: u64, doubts: u64) -> StateParts {
        [StatePart::new("leases", &json!(leases), 0), StatePart::new("doubts", &json!(doubts), 0)].into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_console_is_told_what_changed() {
        let (sender, mut watcher) = watcher();
        sender.send_replace(parts(1, 0));
        assert_eq!(watcher.next().await.unwrap(), "event: leases\ndata: 1\n\nevent: doubts\ndata: 0\n\n");
        sender.send_replace(parts(1, 0));
        sender.send_replace(parts(1, 7));
        assert_eq!(watcher.next().await.unwrap(), "event: doubts\ndata: 7\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_gets_the_newest_state_alone() {
        let (sender, mut watcher) = watcher();
        for leases in 0..1_000 {
            sender.send_replace(parts(leases, 0));
        }
        assert_eq!(watcher.next().await.unwrap(), "event: leases\ndata: 999\n\nevent: doubts\ndata: 0\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_gets_comments_until_its_end() {
        let (_sender, mut watcher) = watcher();
        let began = Instant::now();
        let mut comments = 0;
        while let Some(piece) = watcher.next().await {
            assert_eq!(piece, ":\n\n");
            comments += 1;
            assert_eq!(began.elapsed(), COMMENT_EACH * comments);
        }
        assert_eq!((comments, began.elapsed()), (17, STREAM_MAX));
    }
}
