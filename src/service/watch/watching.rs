//! The resources that one request watches, and the looks at them.
//!
//! # Design
//!
//! *What waits for a backend that keeps silent?* Only the events that its answer makes: those of the content of this
//! resource. The steps of leases, and the events of other resources, go out at once.
//!
//! *What if the right of a client is proved too late?* The backend is asked before the right ends. If its answer is late
//! all the same, the client gets no event until it comes.

use futures_util::future::select_all;
use http::StatusCode;
use tokio::time::{Instant, sleep_until};

use super::questions::Questions;
use crate::{
    core::{
        records::record::Snapshot,
        watch::{SeenChanges, Sight, StateId, StateObserver, state_json},
    },
    guard::{ContentLook, RightEnd, Watcher},
};

/// A resource that a client watches.
pub(super) struct Watched {
    /// The target of the resource, as the client knows it.
    pub(super) name: String,
    pub(super) watcher: Watcher,
    pub(super) observer: StateObserver,
    /// Its place among the resources that the request named.
    number: usize,
    content: ContentQuestion,
    /// True while the backend is asked about the right of the client.
    is_right_asked: bool,
}

/// The question to the backend about the content of a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentQuestion {
    None,
    Asked,
    /// The resource may have changed since the question.
    Outdated,
}

/// The resources that one request watches.
pub(super) struct Watching {
    pub(super) watched: Vec<Watched>,
    contents: Questions<Box<ContentAnswer>>,
    rights: Questions<(usize, Result<Instant, RightEnd>)>,
}

/// A state of the resource with this number that the backend has shown, at the time of the record.
struct ContentAnswer {
    number: usize,
    snapshot: Snapshot,
    sight: Sight,
}

/// A look at a resource.
pub(super) struct WatchLook {
    pub(super) place: usize,
    pub(super) snapshot: Snapshot,
    pub(super) changes: SeenChanges,
}

/// The reason for a look.
enum LookReason {
    /// One of the resources may look different.
    Changed,
    /// The backend has shown the content of one of them.
    Answered(Box<ContentAnswer>),
}

/// The news for a client that reads a stream.
pub(super) enum News {
    /// The resources that may look different.
    Looked(Vec<WatchLook>),
    /// The backend denies the client the resource with this name.
    Denied(String, StatusCode),
    /// The backend does not answer about the right of the client.
    RightUnknown,
}

impl Watched {
    pub(super) const fn new(name: String, watcher: Watcher, observer: StateObserver) -> Self {
        Self { name, watcher, observer, number: 0, content: ContentQuestion::None, is_right_asked: false }
    }

    /// When something happens to the right of the client: the backend is asked for it, or it ends before the answer.
    fn right_moment(&self, now: Instant) -> Option<Instant> {
        if self.is_right_asked {
            return Some(self.watcher.right_until()).filter(|until| *until > now);
        }
        Some(self.watcher.right_due())
    }
}

impl Watching {
    pub(super) fn of(mut watched: Vec<Watched>) -> Self {
        for (number, one) in watched.iter_mut().enumerate() {
            one.number = number;
        }
        Self { watched, contents: Questions::none(), rights: Questions::none() }
    }

    /// Waits for news. May be dropped and called again.
    pub(super) async fn news(&mut self) -> News {
        loop {
            let now = Instant::now();
            let is_proved = self.watched.iter().all(|one| one.watcher.right_until() > now);
            let moment = self.watched.iter().filter_map(|one| one.right_moment(now)).min();
            let reason = tokio::select! {
                biased;
                () = sleep_until(moment.unwrap_or(now)), if moment.is_some() => {
                    self.ask_for_rights();
                    continue;
                }
                (number, right) = self.rights.answered() => match self.learn_right(number, right) {
                    Some(news) => return news,
                    None => continue,
                },
                reason = look_reason(&self.watched, &mut self.contents), if is_proved => reason,
            };
            return News::Looked(self.look_for(reason));
        }
    }

    /// Waits until a resource may look different, and looks. May be dropped and called again.
    pub(super) async fn looked(&mut self) -> Vec<WatchLook> {
        let reason = look_reason(&self.watched, &mut self.contents).await;
        self.look_for(reason)
    }

    fn look_for(&mut self, reason: LookReason) -> Vec<WatchLook> {
        let ContentAnswer { number, snapshot, sight } = *match reason {
            LookReason::Changed => return (0..self.watched.len()).filter_map(|place| self.look_at(place)).collect(),
            LookReason::Answered(answer) => answer,
        };
        let Some((place, one)) = self.with_number(number) else { return Vec::new() };
        let sight = one.watcher.has_asked(sight);
        let content = one.observer.look_at_content(&snapshot, sight);
        let is_outdated = std::mem::replace(&mut one.content, ContentQuestion::None) == ContentQuestion::Outdated;
        let answered = WatchLook { place, snapshot, changes: SeenChanges { content, leases: Vec::new() } };
        let again = is_outdated.then(|| self.look_at(place)).flatten();
        [answered].into_iter().chain(again).collect()
    }

    /// Looks at the resource at this place, and asks the backend for its content if only the backend shows it.
    fn look_at(&mut self, place: usize) -> Option<WatchLook> {
        let one = self.watched.get_mut(place)?;
        let (snapshot, content) = one.watcher.look();
        let content = match content {
            ContentLook::Seen(sight) => one.observer.look_at_content(&snapshot, sight),
            ContentLook::Asks(_) if one.content != ContentQuestion::None => {
                one.content = ContentQuestion::Outdated;
                false
            }
            ContentLook::Asks(asks) => {
                one.content = ContentQuestion::Asked;
                let (number, then) = (one.number, snapshot.clone());
                let answer = async move { Box::new(ContentAnswer { number, snapshot: then, sight: asks.await }) };
                self.contents.ask(Box::pin(answer));
                false
            }
        };
        let changes = SeenChanges { content, leases: one.observer.look_at_leases(&snapshot) };
        Some(WatchLook { place, snapshot, changes })
    }

    /// Asks for the rights that are due.
    fn ask_for_rights(&mut self) {
        let now = Instant::now();
        for one in self.watched.iter_mut().filter(|one| !one.is_right_asked && one.watcher.right_due() <= now) {
            one.is_right_asked = true;
            let (number, right) = (one.number, one.watcher.prove_right());
            self.rights.ask(Box::pin(async move { (number, right.await) }));
        }
    }

    /// Learns of the right to the resource with this number, and returns the news for the client. The client gets no more
    /// events of a resource whose right has ended.
    fn learn_right(&mut self, number: usize, right: Result<Instant, RightEnd>) -> Option<News> {
        let (place, one) = self.with_number(number)?;
        one.is_right_asked = false;
        match right {
            Ok(until) => {
                one.watcher.has_proved(until);
                None
            }
            Err(RightEnd::Denied(status)) => Some(News::Denied(self.watched.remove(place).name, status)),
            Err(RightEnd::Unknown) => Some(News::RightUnknown),
        }
    }

    fn with_number(&mut self, number: usize) -> Option<(usize, &mut Watched)> {
        self.watched.iter_mut().enumerate().find(|(_, one)| one.number == number)
    }

    /// Returns the name of the states of these resources together.
    pub(super) fn state_id(&self) -> StateId {
        let incarnation = self.watched.first().map_or(0, |first| first.watcher.incarnation());
        let states =
            self.watched.iter().map(|one| (one.name.as_bytes(), &one.observer, one.watcher.has_other_writers()));
        StateId::of(incarnation, states)
    }

    /// The states of these resources as JSON: that of a single one, or a list.
    pub(super) fn states(&self, snapshots: &[Snapshot]) -> String {
        let one = |(one, snapshot): (&Watched, &Snapshot)| state_json(&one.name, one.observer.content(), snapshot);
        let mut states: Vec<String> = self.watched.iter().zip(snapshots).map(one).collect();
        if states.len() == 1 { states.remove(0) } else { format!("[{}]", states.join(",")) }
    }
}

/// Waits for a reason to look. May be dropped and called again.
async fn look_reason(watched: &[Watched], contents: &mut Questions<Box<ContentAnswer>>) -> LookReason {
    tokio::select! {
        biased;
        () = any_changed(watched) => LookReason::Changed,
        answer = contents.answered() => LookReason::Answered(answer),
    }
}

/// Waits until one of these resources may look different. May be dropped and called again.
async fn any_changed(watched: &[Watched]) {
    match watched {
        // Most clients watch one, and need no list of futures.
        [one] => one.watcher.changed().await,
        several => drop(select_all(several.iter().map(|one| Box::pin(one.watcher.changed()))).await),
    }
}
