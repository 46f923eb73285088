//! One client that watches one resource, for as long as the upstream lets it read the resource.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{
    Guard, Halt, Request,
    claim::Claims,
    knowledge::Knowledge,
    looks::{SharedLook, SharedLooks},
    probe::Probes,
    request::RestingRequest,
    watch_places::WatchPlaces,
};
use crate::{
    box_future::{BoxFuture, box_future},
    core::{
        http::client_address::ClientAddress,
        lease::Usage,
        policy::{GuardRules, TagSource},
        records::record::Snapshot,
        refusal::Refusal,
        tags::{entity_tag::EntityTag, head_answer::Aim, validators::Representation},
        watch::{SeenContent, Sight},
    },
    drain::GenerationEnd,
    store::Follower,
};

/// The least time between two questions to the upstream about the right of one client, if `identity_ttl` is shorter.
const RIGHT_LASTS_MIN: Duration = Duration::from_secs(1);

/// A client that watches a resource.
pub(crate) struct Watcher {
    request: Arc<RestingRequest>,
    follower: Follower,
    rooms: Arc<WatchRooms>,
    /// When the right of the client ends, unless it is proved again.
    right_until: Instant,
    /// When no write from before the start can arrive any more, as long as one can.
    held_until: Option<Instant>,
    /// The looks at the backend, if others write too.
    backend: Option<BackendView>,
}

/// The content of a resource, at the time of a look at it.
pub(crate) enum ContentLook {
    /// The content, as far as it is known.
    Seen(Sight),
    /// The backend must be asked. [`Watcher::has_asked`] takes its answer.
    Asks(BoxFuture<'static, Sight>),
}

/// The end of the right of a client to watch.
#[derive(Clone, Copy)]
pub(crate) enum RightEnd {
    /// The upstream denies the client the resource, with this status.
    Denied(StatusCode),
    /// The upstream has given no answer.
    Unknown,
}

/// One client's part in the looks at the backend.
struct BackendView {
    look: Arc<SharedLook>,
    /// The number of changes that this client has seen.
    seen: u64,
    interval: Duration,
    due: Instant,
    /// Tells the others when this client has gone.
    looker: Arc<()>,
}

/// The rooms that all who watch look into.
pub(super) struct WatchRooms {
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) claims: Arc<Claims>,
    pub(super) probes: Arc<Probes>,
    pub(super) looks: SharedLooks,
}

impl Guard {
    /// Lets the client of a request watch its resource, and returns the state that the client sees first. If the
    /// upstream does not let it read the resource, fails with the upstream's own answer.
    pub(crate) async fn watch(&self, request: Request) -> Result<(Watcher, Snapshot, Sight), Halt> {
        let rooms = Arc::clone(&self.progress.watch_rooms);
        let before = rooms.knowledge.record(&request).await?;
        let asked = Instant::now();
        let tag = match rooms.probes.show(&request, &before, Aim::Tag).await? {
            Representation::Present(validators) => validators.tag,
            Representation::Absent | Representation::Unknown => None,
        };
        let current = rooms.knowledge.record(&request).await?;
        // A doubt that ends meanwhile touches nothing, and brings another version.
        let may_tell = rooms.may_tell_tag(&before) && rooms.may_tell_tag(&current);
        let is_current = current.touched() == before.touched() && may_tell;
        let content = SeenContent::of(tag.filter(|_| is_current));
        let follower = rooms.knowledge.records.follow(&request.key, &current);
        let right_until = asked + right_lasts(request.rules());
        let backend = BackendView::of(&rooms, &request, asked);
        let sight = match &backend {
            Some(backend) if is_current => backend.begin(&request, &current, content).await,
            Some(backend) => Sight { changes: backend.look.changes.number(), ..content.into() },
            None => content.into(),
        };
        let held_back = rooms.claims.held_back(current.now);
        let held_until = (!held_back.is_zero()).then(|| Instant::now() + held_back);
        let sight = Sight { is_held_back: held_until.is_some(), ..sight };
        let request = Arc::new(request.rest());
        Ok((Watcher { request, follower, rooms, right_until, held_until, backend }, current, sight))
    }

    /// Returns places for this number of resources that a client is about to watch.
    pub(crate) fn watch_places(&self, client: ClientAddress, resources: usize) -> Result<WatchPlaces, Refusal> {
        self.progress.watches.take(client, resources, self.progress.watch_limits)
    }

    /// Returns the end of this generation, at which watches end.
    pub(crate) const fn end(&self) -> &GenerationEnd {
        &self.progress.end
    }
}

impl Watcher {
    /// Waits until the resource may look different than at the last [`look`](Self::look). May be dropped and called again.
    pub(crate) async fn changed(&self) {
        if let Some(held_until) = self.held_until {
            // Boxed like the look at the backend, so that most clients that wait hold little memory.
            let _ = Box::pin(timeout_at(held_until, self.record_or_backend_changed())).await;
            return;
        }
        self.record_or_backend_changed().await;
    }

    async fn record_or_backend_changed(&self) {
        let Some(backend) = &self.backend else { return self.follower.changed().await };
        Box::pin(async {
            tokio::select! {
                biased;
                () = self.follower.changed() => {}
                () = backend.look.changes.other_than(backend.seen) => {}
                () = sleep_until(backend.due) => {}
            }
        })
        .await;
    }

    /// Looks at the resource. The record shows its leases at once; if others write too, only the backend shows its
    /// content.
    pub(crate) fn look(&mut self) -> (Snapshot, ContentLook) {
        self.held_until = self.held_until.filter(|until| *until > Instant::now());
        let snapshot = self.follower.latest();
        let content = match &mut self.backend {
            None => ContentLook::Seen(self.completed(self.content(&snapshot).into())),
            Some(backend) => {
                (backend.seen, backend.due) = (backend.look.changes.number(), Instant::now() + backend.interval);
                if self.rooms.may_tell_tag(&snapshot) {
                    ContentLook::Asks(backend.ask(&self.rooms, &self.request, &snapshot))
                } else {
                    let sight = Sight { changes: backend.seen, ..SeenContent::Unknown.into() };
                    ContentLook::Seen(self.completed(sight))
                }
            }
        };
        (snapshot, content)
    }

    /// Takes the answer of the backend, and completes it.
    pub(crate) fn has_asked(&mut self, sight: Sight) -> Sight {
        if let Some(backend) = &mut self.backend {
            (backend.seen, backend.due) = (sight.changes, Instant::now() + backend.interval);
        }
        self.completed(sight)
    }

    fn completed(&self, sight: Sight) -> Sight {
        Sight { is_held_back: self.held_until.is_some(), ..sight }
    }

    fn content(&self, snapshot: &Snapshot) -> SeenContent {
        // The head was a request before it rested, so it still is one.
        self.request.wake().map_or(SeenContent::Unknown, |request| self.rooms.content(&request, snapshot))
    }

    /// When the right of the client ends, unless it is proved again.
    pub(crate) const fn right_until(&self) -> Instant {
        self.right_until
    }

    /// When the right of the client is to be proved again: so early that the upstream can answer before the right ends.
    pub(crate) fn right_due(&self) -> Instant {
        let rules = self.request.rules();
        self.right_until - rules.probe.timeout.min(right_lasts(rules) / 2)
    }

    /// Asks the upstream whether the client may still read the resource. Returns when this right ends
    /// ([`has_proved`](Self::has_proved)).
    pub(crate) fn prove_right(&self) -> BoxFuture<'static, Result<Instant, RightEnd>> {
        let (asked, request, rooms) = (Instant::now(), Arc::clone(&self.request), Arc::clone(&self.rooms));
        box_future(move || async move {
            match rooms.prove_right(&request).await {
                Ok(()) => Ok(asked + right_lasts(request.rules())),
                Err(Halt::Denied(relayed)) => {
                    let status = relayed.head.status;
                    relayed.discard().await;
                    Err(RightEnd::Denied(status))
                }
                Err(_) => Err(RightEnd::Unknown),
            }
        })
    }

    /// Notes that the client has its right until then.
    pub(crate) const fn has_proved(&mut self, until: Instant) {
        self.right_until = until;
    }

    /// True if the content can change without a new version of the resource.
    pub(crate) fn has_other_writers(&self) -> bool {
        self.request.rules().other_writers
    }

    /// The number that tells the versions of this store from those of others.
    pub(crate) fn incarnation(&self) -> u64 {
        self.rooms.knowledge.records.incarnation().0
    }
}

impl BackendView {
    fn of(rooms: &WatchRooms, request: &Request, asked: Instant) -> Option<Self> {
        let interval = request.rules().watch_probe.filter(|_| request.rules().other_writers)?;
        let look = rooms.looks.of(&request.key);
        let seen = look.changes.number();
        Some(Self { look, seen, interval, due: asked + interval, looker: Arc::default() })
    }

    /// Asks the backend for the content, unless another client has done so of late.
    fn ask(
        &self,
        rooms: &Arc<WatchRooms>,
        request: &Arc<RestingRequest>,
        snapshot: &Snapshot,
    ) -> BoxFuture<'static, Sight> {
        let (look, looker, max_age) = (Arc::clone(&self.look), Arc::clone(&self.looker), self.interval);
        let (rooms, request, snapshot) = (Arc::clone(rooms), Arc::clone(request), snapshot.clone());
        box_future(move || async move {
            match request.wake() {
                Ok(request) => look.look(&rooms.probes, (&request, &looker), &snapshot, max_age).await,
                Err(_no_request) => Sight { changes: look.changes.number(), ..SeenContent::Unknown.into() },
            }
        })
    }

    /// Shares what the first probe of a client has shown.
    async fn begin(&self, request: &Request, snapshot: &Snapshot, content: SeenContent) -> Sight {
        self.look.note((request, &self.looker), snapshot, content.clone()).await;
        Sight { changes: self.look.changes.number(), ..content.into() }
    }
}

impl WatchRooms {
    async fn prove_right(&self, request: &RestingRequest) -> Result<(), Halt> {
        let request = request.wake()?;
        let snapshot = self.knowledge.record(&request).await?;
        self.probes.show(&request, &snapshot, Aim::Right).await.map(drop)
    }

    /// Returns the content that a read of this client would find, if the record shows it (rule 2).
    fn content(&self, request: &Request, snapshot: &Snapshot) -> SeenContent {
        if request.rules().other_writers || !self.may_tell_tag(snapshot) {
            return SeenContent::Unknown;
        }
        match snapshot.presence_of(|| request.target()).map(|presence| presence.is_present) {
            Some(false) => SeenContent::Deleted,
            Some(true) if request.rules().etag == TagSource::Version => {
                SeenContent::of(self.knowledge.version_tag(request, snapshot, &[]))
            }
            _ => SeenContent::of(self.known_tag(request, snapshot)),
        }
    }

    /// Returns the tag that the last write has revealed to this client.
    fn known_tag(&self, request: &Request, snapshot: &Snapshot) -> Option<EntityTag> {
        let known = snapshot.known().filter(|known| known.variant == request.variant())?;
        let Representation::Present(validators) = &known.representation else { return None };
        if request.rules().etag == TagSource::Version {
            return self.knowledge.version_tag(request, snapshot, &[]);
        }
        self.knowledge.spelling(request, Some(snapshot)).issued(validators.tag.as_ref()?)
    }

    /// True if a read could answer with the tag of this state: no write is changing it, and no lease keeps readers away.
    fn may_tell_tag(&self, snapshot: &Snapshot) -> bool {
        let is_leased = snapshot.held_leases().any(|lease| lease.guards.covers(Usage::Read));
        snapshot.has_no_pending_writes() && !is_leased && self.claims.may_begin(snapshot).is_ok()
    }
}

fn right_lasts(rules: &GuardRules) -> Duration {
    rules.identity_ttl.max(RIGHT_LASTS_MIN)
}
