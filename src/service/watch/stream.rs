//! The stream of events of one client.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;
use tokio::time::{Instant, sleep_until};

use super::{ASKED_AT_ONCE, Watched, any_changed, fields_of_state, state_id};
use crate::{
    box_future::{BoxFuture, box_future},
    core::{
        records::record::Snapshot,
        watch::{StateId, changed_event, denied_event, lease_event, state_event},
    },
    drain::GenerationEnd,
    guard::{Answer, Halt, Pieces, WatchPlaces},
    service::events::{COMMENT, Silence, farewell, greeting},
};

/// When clients come back at the latest whose streams this proxy ends.
const COMES_BACK_MAX: Duration = Duration::from_secs(5);

/// A stream of the events of some resources.
pub(super) struct EventStream {
    watched: Vec<Watched>,
    /// True if the client has named several resources, so that one of them can be denied alone.
    has_several: bool,
    /// The first event.
    first: Option<Bytes>,
    silence: Silence,
    is_over: bool,
    /// Given back when the stream ends.
    _places: WatchPlaces,
    end: GenerationEnd,
}

/// The reason why a stream wakes up.
#[derive(Clone, Copy)]
enum Wake {
    End,
    Right,
    Comment,
    Change,
}

impl EventStream {
    /// A stream whose client saw the states with the name `last_event` before.
    pub(super) fn new(
        watched: Vec<Watched>,
        (snapshots, denied): (&[Snapshot], &[(String, StatusCode)]),
        last_event: Option<&str>,
        (places, end): (WatchPlaces, GenerationEnd),
    ) -> Self {
        let id = state_id(&watched);
        let mut first = greeting();
        first.extend(denied.iter().map(|(name, status)| denied_event(name, *status)));
        if last_event != Some(id.as_str()) {
            let last = watched.len() - 1;
            for (place, (one, snapshot)) in watched.iter().zip(snapshots).enumerate() {
                let id = (place == last).then_some(&id);
                first.push_str(&state_event(&one.name, one.observer.content(), snapshot, id));
            }
        }
        Self {
            has_several: watched.len() + denied.len() > 1,
            watched,
            first: Some(first.into()),
            silence: Silence::begin(),
            is_over: false,
            _places: places,
            end,
        }
    }

    /// The answer that sends the stream.
    pub(super) fn into_answer(self) -> Answer {
        let mut fields = fields_of_state(&state_id(&self.watched), "text/event-stream");
        // The stream shows many states.
        fields.remove(http::header::ETAG);
        Answer::lasting(fields, Box::new(self))
    }

    pub(super) async fn next_piece(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        while !self.is_over {
            let right_until = self.watched.iter().map(|one| one.watcher.right_until()).min()?;
            let wake = tokio::select! {
                biased;
                () = self.end.wait() => Wake::End,
                () = sleep_until(right_until) => Wake::Right,
                () = any_changed(&self.watched) => Wake::Change,
                () = self.silence.is_too_long() => Wake::Comment,
            };
            let text = match wake {
                Wake::End => self.farewell(),
                Wake::Comment => COMMENT.to_owned(),
                // Boxed, so that a client that waits holds little memory.
                Wake::Right | Wake::Change => Box::pin(self.asks_backend(wake)).await,
            };
            if let Some(piece) = self.silence.broken_by(text) {
                return Some(piece);
            }
        }
        None
    }

    /// Returns the last words of a stream that this proxy ends.
    fn farewell(&mut self) -> String {
        self.is_over = true;
        farewell(COMES_BACK_MAX)
    }

    /// Asks the backend, and returns the events that follow. The end of the stream does not wait for the answer.
    async fn asks_backend(&mut self, wake: Wake) -> String {
        let end = self.end.clone();
        let asked = async { if matches!(wake, Wake::Right) { self.prove_rights().await } else { self.events().await } };
        let told = tokio::select! {
            biased;
            () = end.wait() => None,
            told = asked => Some(told),
        };
        told.unwrap_or_else(|| self.farewell())
    }

    /// Asks for the rights that are due. The client gets no more events of a resource whose right has ended.
    async fn prove_rights(&mut self) -> String {
        let mut text = String::new();
        let now = Instant::now();
        let mut place = 0;
        while let Some(one) = self.watched.get_mut(place) {
            if one.watcher.right_until() > now {
                place += 1;
                continue;
            }
            match one.watcher.prove_right().await {
                Ok(()) => place += 1,
                Err(Halt::Denied(relayed)) => {
                    let status = relayed.head.status;
                    relayed.discard().await;
                    let lost = self.watched.remove(place);
                    if self.has_several {
                        text.push_str(&denied_event(&lost.name, status));
                    }
                }
                // Without an answer there is no event. The client comes back, and the proxy then asks the upstream.
                Err(_) => self.is_over = true,
            }
            if self.is_over {
                break;
            }
        }
        self.is_over |= self.watched.is_empty();
        text
    }

    /// Returns what has changed.
    async fn events(&mut self) -> String {
        let mut told = Vec::new();
        let mut looks = Vec::with_capacity(self.watched.len());
        for portion in self.watched.chunks_mut(ASKED_AT_ONCE) {
            let mut looking = Vec::with_capacity(portion.len());
            for one in portion {
                looking.push(one.watcher.look());
            }
            looks.extend(join_all(looking).await);
        }
        for (place, (one, (snapshot, sight))) in self.watched.iter_mut().zip(looks).enumerate() {
            let changes = one.observer.look(&snapshot, sight);
            if !changes.is_empty() {
                told.push((place, changes, snapshot));
            }
        }
        let Some((last, ..)) = told.last() else { return String::new() };
        let (last, id) = (*last, state_id(&self.watched));
        let mut text = String::new();
        for (place, changes, snapshot) in &told {
            let Some(one) = self.watched.get(*place) else { continue };
            let is_last = *place == last;
            let of = |is_end: bool| -> Option<&StateId> { (is_last && is_end).then_some(&id) };
            if changes.content {
                text.push_str(&changed_event(&one.name, one.observer.content(), of(changes.leases.is_empty())));
            }
            for (number, change) in changes.leases.iter().enumerate() {
                let is_end = number + 1 == changes.leases.len();
                text.push_str(&lease_event(&one.name, *change, snapshot, of(is_end)));
            }
        }
        text
    }
}

impl Pieces for EventStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>> {
        box_future(|| self.next_piece())
    }
}
