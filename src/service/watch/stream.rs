//! The stream of events of one client.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use super::{
    fields_of_state,
    watching::{News, WatchLook, Watching},
};
use crate::{
    box_future::{BoxFuture, box_future},
    core::{
        records::record::Snapshot,
        watch::{StateId, changed_event, denied_event, lease_event, state_event},
    },
    drain::GenerationEnd,
    guard::{Answer, Pieces, WatchPlaces},
    service::events::{COMMENT, Silence, farewell, greeting},
};

/// When clients come back at the latest whose streams this proxy ends.
const COMES_BACK_MAX: Duration = Duration::from_secs(5);

/// A stream of the events of some resources.
pub(super) struct EventStream {
    watching: Watching,
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

impl EventStream {
    /// A stream whose client saw the states with the name `last_event` before.
    pub(super) fn new(
        watching: Watching,
        (snapshots, denied): (&[Snapshot], &[(String, StatusCode)]),
        last_event: Option<&str>,
        (places, end): (WatchPlaces, GenerationEnd),
    ) -> Self {
        let (id, watched) = (watching.state_id(), &watching.watched);
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
            watching,
            first: Some(first.into()),
            silence: Silence::begin(),
            is_over: false,
            _places: places,
            end,
        }
    }

    /// The answer that sends the stream.
    pub(super) fn into_answer(self) -> Answer {
        let mut fields = fields_of_state(&self.watching.state_id(), "text/event-stream");
        // The stream shows many states.
        fields.remove(http::header::ETAG);
        Answer::lasting(fields, Box::new(self))
    }

    pub(super) async fn next_piece(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        while !self.is_over {
            let text = tokio::select! {
                biased;
                () = self.end.wait() => {
                    self.is_over = true;
                    farewell(COMES_BACK_MAX)
                }
                news = self.watching.news() => self.tell(news),
                () = self.silence.is_too_long() => COMMENT.to_owned(),
            };
            if let Some(piece) = self.silence.broken_by(text) {
                return Some(piece);
            }
        }
        None
    }

    /// Returns the events that tell the client these news.
    fn tell(&mut self, news: News) -> String {
        match news {
            News::Looked(looked) => self.events(looked),
            News::Denied(name, status) => {
                self.is_over = self.watching.watched.is_empty();
                if self.has_several { denied_event(&name, status) } else { String::new() }
            }
            // Without an answer there is no event. The client comes back, and the proxy then asks the upstream.
            News::RightUnknown => {
                self.is_over = true;
                String::new()
            }
        }
    }

    /// Returns what has changed.
    fn events(&self, mut looked: Vec<WatchLook>) -> String {
        looked.retain(|one| !one.changes.is_empty());
        if looked.is_empty() {
            return String::new();
        }
        let (last, id) = (looked.len(), self.watching.state_id());
        let mut text = String::new();
        for (number, WatchLook { place, changes, snapshot }) in looked.iter().enumerate() {
            let Some(one) = self.watching.watched.get(*place) else { continue };
            let of = |is_end: bool| -> Option<&StateId> { (number + 1 == last && is_end).then_some(&id) };
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
