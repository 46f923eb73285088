//! Clients that watch resources: the states that each of them gets, the truth about these, and settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use fastrand::Rng;
use ifmatch::{core::records::record::Snapshot, guard::Pieces};
use serde_json::Value;
use tokio::time::{Instant, advance};

use crate::{
    backend::{Backend, Tags, resource_of},
    client::Told,
    generate::setting_of,
    judge::{Entry, Ledger, field},
    operation::{Manner, Operation},
    options::Options,
    process::{self, Keeping},
    run::{Run, Setting, Step},
    schedule::Faults,
    told_states::{Heard, HeardContent, HeardLease, read_events, state_of},
    world::{Inner, World},
};

/// The resources.
pub const TARGETS: [&str; 2] = ["/docs/1", "/items/1"];

/// The resources of a run about collections.
pub const MEMBERS: [&str; 2] = ["/tree/1", "/other/1"];

/// How long a lost notice, or the write of a client that has no proxy, may stay unknown (docs/watch.md).
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// The time in which all marks and doubts end, in seconds.
const QUIET_AFTER_SECONDS: u32 = 120;

/// The states that all watching clients have got.
#[derive(Default)]
pub struct Watches {
    /// True if each client has credentials of its own.
    pub names_clients: bool,
    /// The time for which a client gets events of a resource that it may not read any more; `None` if no client
    /// watches.
    pub right_lasts: Option<Duration>,
    heard: Vec<Heard>,
    texts: Vec<String>,
    /// The request by whose stream each client watches, with the resources.
    streams: BTreeMap<usize, (usize, Vec<String>)>,
    /// The name of the states that each client was told last, with the resources.
    ids: BTreeMap<usize, (String, Vec<String>)>,
    /// When each client lost its rights.
    revoked: BTreeMap<usize, Instant>,
}

impl Watches {
    /// The fields of a request to watch.
    pub fn fields(&self, client: usize, manner: Manner) -> Vec<(&'static str, String)> {
        let known = self.ids.get(&client).filter(|_| manner.resumes).map(|(id, _)| id);
        let mut fields = Vec::new();
        if manner.holds {
            fields.push(("accept", "text/event-stream".to_owned()));
            fields.extend(known.map(|id| ("last-event-id", id.clone())));
        } else {
            fields.extend(known.map(|id| ("if-none-match", format!("W/\"{id}\""))));
            fields.push(("prefer", format!("wait={}", manner.waits)));
        }
        fields
    }

    /// Records that the stream of a request has ended.
    pub fn ends(&mut self, number: usize) {
        self.streams.retain(|_, (stream, _)| *stream != number);
    }
}

/// The target by which a client watches a resource, or both.
pub fn watch_target(target: &str, manner: Manner) -> String {
    if manner.watches_both {
        let [one, other] = if MEMBERS.contains(&target) { MEMBERS } else { TARGETS };
        format!("/.watch?path={one}&path={other}")
    } else {
        format!("/.watch{target}")
    }
}

impl Entry {
    fn watched(&self) -> Vec<String> {
        match self.request.target.strip_prefix("/.watch?") {
            Some(names) => names.split('&').filter_map(|name| name.strip_prefix("path=")).map(resource_of).collect(),
            None => vec![self.resource.clone()],
        }
    }
}

/// Hears what a stream says.
pub async fn listen(world: &World, number: usize, mut stream: Box<dyn Pieces>) {
    world.lock().opens(number);
    while let Some(piece) = stream.next().await {
        world.note(|| format!("the watch of request {number} says {piece:?}"));
        world.lock().hears(number, &piece, Instant::now());
        world.stir();
    }
    world.note(|| format!("the watch of request {number} ends"));
    world.lock().ledger.watches.ends(number);
    world.stir();
}

impl Inner {
    fn opens(&mut self, number: usize) {
        let entry = &self.ledger.requests[number];
        let watched = entry.watched();
        self.ledger.watches.streams.insert(entry.client, (number, watched));
    }

    fn hears(&mut self, number: usize, piece: &Bytes, at: Instant) {
        let text = String::from_utf8(piece.to_vec()).unwrap();
        for event in read_events(&text) {
            self.hears_of(number, (&event.name, &event.data), at);
            if let Some(id) = event.id {
                let entry = &self.ledger.requests[number];
                let known = (id, entry.watched());
                self.ledger.watches.ids.insert(entry.client, known);
            }
        }
        self.ledger.watches.texts.push(text);
    }

    /// Records the answer to a watch without a stream.
    pub fn hears_states(&mut self, number: usize, told: &Told, at: Instant) {
        if told.status != 200 || told.body.is_empty() {
            return;
        }
        let states: Value = serde_json::from_str(&told.body).unwrap();
        let states = if let Value::Array(states) = states { states } else { vec![states] };
        for state in states {
            self.hears_of(number, ("state", &state), at);
        }
        let entry = &self.ledger.requests[number];
        let id = told.tag.as_ref().map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
        let known = (id.unwrap(), entry.watched());
        self.ledger.watches.ids.insert(entry.client, known);
        self.ledger.watches.texts.push(told.body.clone());
    }

    fn hears_of(&mut self, number: usize, (name, data): (&str, &Value), at: Instant) {
        let Some((content, lease)) = state_of(name, data) else { return };
        let (client, process) = (self.ledger.requests[number].client, self.ledger.requests[number].process);
        let resource = resource_of(data["path"].as_str().unwrap());
        let states = self.backend.resource(&resource);
        let serial = states.serial();
        if content == Some(HeardContent::Deleted) && (0..=serial).all(|serial| states.content_at(serial).is_some()) {
            self.ledger.breaks(format!("client {client} is told of a deletion that never was"));
        }
        let watches = &self.ledger.watches;
        let lasts = watches.right_lasts.unwrap();
        if content != Some(HeardContent::Denied)
            && let Some(revoked) = watches.revoked.get(&client).filter(|revoked| at > **revoked + lasts)
        {
            let late = at - *revoked;
            self.ledger.breaks(format!("client {client} is told of {resource} {late:?} after its rights have ended"));
        }
        self.ledger.watches.heard.push(Heard { watch: number, client, process, resource, content, lease, serial });
    }
}

impl Ledger {
    /// Takes the right to read from a client.
    fn revoke(&mut self, client: usize) {
        self.watches.revoked.entry(client).or_insert_with(Instant::now);
    }

    /// Records that the watches of a process break off.
    pub fn watches_break_off(&mut self, process: usize) {
        let requests = &self.requests;
        self.watches.streams.retain(|_, (stream, _)| requests[*stream].process != process);
    }

    /// Returns the number of the state that the writes before a request have left, by the answers to their clients.
    fn known_before(&self, number: usize, resource: &str) -> u64 {
        let invoked = self.requests[number].invoked;
        let known = self.requests.iter().filter(|entry| entry.resource == resource).filter_map(|entry| {
            let (answered, told) = entry.answered.as_ref()?;
            told.serial.filter(|_| *answered < invoked && told.code.is_none() && told.status < 300)
        });
        known.max().unwrap_or_default()
    }

    /// Returns the numbers of the states that each tag names, by the answers to reads and writes that show both. A tag
    /// of the content names all states with that content.
    fn tagged(&self, backend: &Backend) -> BTreeMap<(String, String), BTreeSet<u64>> {
        let mut tagged: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
        for entry in self.requests.iter().filter(|entry| entry.operation != Operation::Watch) {
            let Some((_, told)) = &entry.answered else { continue };
            if let (Some(tag), Some(serial)) = (&told.tag, told.serial) {
                let states = backend.resource(&entry.resource);
                let content = states.content_at(serial);
                let is_same = |other: &u64| {
                    *other == serial || self.equal_content_is_one_state && states.content_at(*other) == content
                };
                let serials = (1..=states.serial()).filter(is_same);
                tagged.entry((entry.resource.clone(), tag.clone())).or_default().extend(serials);
            }
        }
        tagged
    }

    /// Returns what is wrong with the order of what clients were told, or with the time of it.
    fn misheard(&self, backend: &Backend) -> Option<String> {
        let (tagged, heard) = (self.tagged(backend), &self.watches.heard);
        for (place, told) in heard.iter().enumerate() {
            let Some(serials) = told.tag().and_then(|tag| tagged.get(&(told.resource.clone(), tag.to_owned()))) else {
                continue;
            };
            let (oldest, newest) = (*serials.first()?, *serials.last()?);
            // A version may be older than the content that a read has shown with it.
            if oldest > told.serial && !self.tags_are_versions {
                return Some(format!("{told:?} tells a state that did not exist"));
            }
            let is_first = !heard[..place].iter().any(|other| other.watch == told.watch && other.content.is_some());
            let floor = self.known_before(told.watch, &told.resource);
            if is_first && newest < floor {
                return Some(format!("{told:?} tells state {newest}, and state {floor} was acknowledged before"));
            }
            let is_before = |other: &&Heard| {
                (other.client, other.process, &other.resource) == (told.client, told.process, &told.resource)
            };
            for other in heard[..place].iter().filter(is_before) {
                let earlier = other.tag().and_then(|tag| tagged.get(&(other.resource.clone(), tag.to_owned())));
                if let Some(earlier) = earlier.and_then(BTreeSet::first).filter(|earlier| newest < **earlier) {
                    return Some(format!("{told:?} tells state {newest} after state {earlier}"));
                }
            }
        }
        self.fences_go_back().or_else(|| self.told_secret())
    }

    fn fences_go_back(&self) -> Option<String> {
        let mut last: BTreeMap<(usize, usize, &str), u64> = BTreeMap::new();
        for told in &self.watches.heard {
            let Some(fence) = told.lease.as_ref().and_then(|lease| lease.fence) else { continue };
            let before = last.insert((told.watch, told.process, &told.resource), fence);
            if before.is_some_and(|before| fence < before) {
                return Some(format!("{told:?} tells an earlier lease than before"));
            }
        }
        None
    }

    /// Returns how a client was told the id of a lease.
    fn told_secret(&self) -> Option<String> {
        let granted = self.grants.iter().flat_map(|grant| grant.ids.iter().cloned());
        let presented = self.requests.iter().flat_map(|entry| {
            ["lease-id", "proposed-lease-id"].into_iter().filter_map(|name| field(&entry.request, name))
        });
        let ids: BTreeSet<String> = granted.chain(presented).collect();
        let tells = |id: &&String| self.watches.texts.iter().any(|text| text.contains(id.as_str()));
        ids.iter().find(tells).map(|id| format!("a watch tells the lease id {id}"))
    }
}

impl Run {
    /// Takes the right to read from a client.
    pub fn revoke(&self, client: usize) {
        let mut inner = self.world.lock();
        inner.backend.denied.insert(name_of(client));
        inner.ledger.revoke(client);
        drop(inner);
        self.world.note(|| format!("client {client} loses its rights"));
        self.world.stir();
    }

    /// Checks that each client that watches has been told what is so, once everything is quiet.
    pub async fn check_watches(&mut self) {
        let Some(right_lasts) = self.world.lock().ledger.watches.right_lasts else { return };
        for _ in 0..QUIET_AFTER_SECONDS {
            self.passes(Duration::from_secs(1)).await;
            if self.is_quiet() {
                break;
            }
        }
        self.passes(self.told_within()).await;
        for client in 0..self.clients.len() - 1 {
            let (stream, known, is_revoked) = {
                let watches = &self.world.lock().ledger.watches;
                let (stream, known) = (watches.streams.get(&client).cloned(), watches.ids.get(&client).cloned());
                (stream, known, watches.revoked.contains_key(&client))
            };
            match (stream, known) {
                _ if is_revoked => {}
                (Some((_, watched)), _) => self.check_client(client, &watched, None).await,
                (None, Some((_, watched))) => {
                    let manner = Manner { resumes: true, watches_both: watched.len() > 1, ..Manner::default() };
                    let step = Step { operation: Operation::Watch, target: target_of(&watched[0]), manner };
                    self.check_client(client, &watched, Some(step)).await;
                }
                (None, None) => {}
            }
        }
        let has_revoked = !self.world.lock().ledger.watches.revoked.is_empty();
        if has_revoked {
            self.passes(right_lasts).await;
        }
        let how = {
            let inner = self.world.lock();
            let watches = &inner.ledger.watches;
            let goes_on = watches.revoked.keys().find(|client| watches.streams.contains_key(client));
            let goes_on = goes_on.map(|client| format!("client {client} has lost its rights, and watches on"));
            goes_on.or_else(|| inner.ledger.misheard(&inner.backend))
        };
        if let Some(how) = how {
            self.breaks(how);
        }
    }

    /// True if no write is in flight or in doubt any more.
    fn is_quiet(&self) -> bool {
        let is_held_back = self.world.lock().held_until.iter().any(|until| *until > Instant::now());
        let is_settled = |snapshot: &Snapshot| {
            let marks = snapshot.record.marks().map(|mark| mark.deadline.plus(mark.late_write_window));
            marks.chain(snapshot.record.doubt.map(|doubt| doubt.until)).all(|end| end <= snapshot.now)
        };
        !is_held_back && self.cellar.records().iter().all(|(_, snapshot)| is_settled(snapshot))
    }

    /// The time within which clients get a state.
    fn told_within(&self) -> Duration {
        let probes = self.setting.config.routes.iter().filter_map(|route| route.guard.as_ref());
        let probe = probes.filter(|rules| rules.other_writers).filter_map(|rules| rules.watch_probe).max();
        TOLD_WITHIN + probe.unwrap_or_default()
    }

    async fn passes(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.settle_all().await;
        while Instant::now() < end {
            advance(Duration::from_secs(1)).await;
            self.settle_all().await;
        }
    }

    /// Checks what a client has been told of what it watches, by its stream or by this request.
    async fn check_client(&mut self, client: usize, watched: &[String], watch: Option<Step>) {
        for resource in watched {
            let read = Step { operation: Operation::Read, target: target_of(resource), manner: Manner::default() };
            let Some(told) = self.alone(client, read).await else { return };
            // The read may find changes that no probe has asked about.
            self.passes(self.told_within()).await;
            if let Some(watch) = watch.clone() {
                let told = self.alone(client, watch).await;
                if !told.is_some_and(|told| matches!(told.status, 200 | 304)) {
                    return;
                }
            } else if !self.world.lock().ledger.watches.streams.contains_key(&client) {
                // The backend denies it the resource, or has failed.
                return;
            }
            let lease = self.lease_of(resource);
            let inner = self.world.lock();
            let states = inner.backend.resource(resource);
            let heard = inner.ledger.watches.heard.iter();
            let own = heard.filter(|heard| heard.client == client && heard.resource == *resource);
            let (content, heard_lease) = (
                own.clone().rfind(|heard| heard.content.is_some()).cloned(),
                own.clone().rfind(|heard| heard.lease.is_some()).and_then(|heard| heard.lease.clone()),
            );
            drop(inner);
            let about = format!("client {client} about {resource}");
            match content.map(|heard| (heard.content.unwrap(), heard.serial)) {
                None => self.breaks(format!("{about} is told nothing")),
                Some((HeardContent::Tagged(tag), _))
                    if told.status == 404 || told.tag.as_ref().is_some_and(|read| *read != tag) =>
                {
                    self.breaks(format!("{about} was told {tag} last, and reads {told:?}"));
                }
                Some((HeardContent::Deleted, _)) if told.status == 200 => {
                    self.breaks(format!("{about} was told of a deletion, and reads {told:?}"));
                }
                Some((HeardContent::Denied, _)) => continue,
                Some((_, serial)) if serial < states.serial() => {
                    self.breaks(format!("{about} was told nothing after change {serial} of {}", states.serial()));
                }
                Some(_) => {}
            }
            // Clients learn that a lease has ended, but not that the record has forgotten it.
            let is_forgotten = lease == HeardLease::none();
            if heard_lease.as_ref().is_some_and(|heard| *heard != lease && !(is_forgotten && heard.has_ended())) {
                self.breaks(format!("{about} was told {heard_lease:?} last, and it is {lease:?}"));
            }
        }
    }

    fn lease_of(&self, resource: &str) -> HeardLease {
        let records = self.cellar.records();
        let end = target_of(resource);
        let record = records.iter().find(|(key, _)| key.as_str().ends_with(&end));
        record.map_or_else(HeardLease::none, |(_, snapshot)| HeardLease::of(snapshot))
    }
}

fn target_of(resource: &str) -> String {
    TARGETS.into_iter().chain(MEMBERS).find(|target| resource_of(target) == resource).unwrap().to_owned()
}

/// The credentials of a client with some of its own.
pub fn name_of(client: usize) -> String {
    format!("client {client}")
}

/// Builds a setting from a seed: clients watch by streams and without them, and others write and use leases.
pub fn setting(random: &mut Rng) -> Setting {
    let adapt = |options: Options| Options {
        tags: Tags::Precise,
        contents: u32::MAX,
        leased: (true, true),
        delete_pending: false,
        idempotent: false,
        identity_ttl: Some([1, 5, 60][usize::try_from(options.timeout.0).unwrap() % 3]),
        ..options
    };
    let keeping = [Keeping::Shared, Keeping::Shared, Keeping::Memory, Keeping::Disk][random.usize(..4)];
    let (options, mut setting) = setting_of(random, keeping, adapt);
    let clients = random.usize(2..4);
    let watchers = random.usize(1..=2);
    let plain = |operation, target: &str| Step { operation, target: target.to_owned(), manner: Manner::default() };
    let mut prologue = vec![vec![plain(Operation::Read, TARGETS[0])]; clients + watchers];
    prologue[0].splice(0..0, TARGETS.map(|target| plain(Operation::Create, target)));
    let mut steps = vec![Vec::new(); clients + watchers];
    for own in &mut steps[..clients] {
        own.extend((0..random.usize(1..5)).map(|_| change(random, options.items_leased)));
    }
    for own in &mut steps[clients..] {
        own.extend((0..random.usize(1..5)).map(|_| watch(random, TARGETS)));
    }
    if random.u32(..6) == 0 {
        let place = random.usize(..=steps[clients].len());
        steps[clients].insert(place, plain(Operation::Revoke, TARGETS[0]));
    }
    let mut faults = Faults { left: random.u32(..3), ..setting.faults };
    if setting.keeping == Keeping::Shared && random.u32(..8) == 0 {
        // A process dies during the only write, and a client watches at another one.
        let holds = Manner { holds: true, ..Manner::default() };
        let watch = Step { operation: Operation::Watch, target: TARGETS[0].to_owned(), manner: holds };
        prologue = vec![prologue.swap_remove(0), vec![watch]];
        steps = vec![vec![plain(Operation::Put, TARGETS[0])], Vec::new()];
        faults = Faults { left: 1, kills: true, fails: false };
        setting.proxies = 2;
    }
    Setting {
        prologue,
        steps,
        faults,
        remembers: process::ALL,
        loses_notices: random.u32(..3) == 0,
        names_clients: true,
        right_lasts: options.identity_ttl.map(Duration::from_secs),
        ..setting
    }
}

/// Makes a step of a client that watches one of these resources, or both.
pub fn watch(random: &mut Rng, targets: [&str; 2]) -> Step {
    let manner = Manner {
        holds: random.u32(..3) > 0,
        resumes: random.bool(),
        watches_both: random.u32(..4) == 0,
        waits: random.u64(..40),
        goes_elsewhere: random.u32(..3) == 0,
        ..Manner::default()
    };
    let operation = if random.u32(..5) == 0 { Operation::HangUp } else { Operation::Watch };
    Step { operation, target: targets[usize::from(random.u32(..4) == 0)].to_owned(), manner }
}

fn change(random: &mut Rng, items_leased: bool) -> Step {
    use Operation::{Acquire, Break, Create, Delete, Patch, Post, Put, Read, Release, Renew};
    let of_content = [Put, Put, Put, Patch, Post, Delete, Create, Read];
    let of_lease = [Acquire, Acquire, Renew, Release, Break];
    let target = TARGETS[usize::from(random.u32(..4) == 0)];
    let is_leased = target == TARGETS[0] || items_leased;
    let operation = if is_leased && random.u32(..3) == 0 {
        of_lease[random.usize(..of_lease.len())]
    } else {
        of_content[random.usize(..of_content.len())]
    };
    let manner = Manner {
        proposes: random.bool(),
        lasts: random.bool().then(|| random.u64(15..60)),
        waits: if random.bool() { 0 } else { random.u64(1..30) },
        goes_elsewhere: random.u32(..3) == 0,
        ..Manner::default()
    };
    Step { operation, target: target.to_owned(), manner }
}
