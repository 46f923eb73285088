//! The rules that every applied write, every answer and the end of a run must obey.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use tokio::time::Instant;

use crate::{
    azure_queues::Queues,
    backend::{Kind, resource_of},
    client::{Request, Told},
    deferred::{Waiting, is_deferred},
    grants::{Grant, Opening},
    metadata::Parts,
    operation::Operation,
    retries::{Keys, is_success},
    trees::{is_member, is_shared_lock, lasts_of},
    turns::Turns,
    watchers::Watches,
    world::{Inner, Response, Sent},
};

/// The knowledge about requests and the clients that sent them.
#[derive(Default)]
pub struct Ledger {
    pub requests: Vec<Entry>,
    pub clients: Vec<Knowledge>,
    pub grants: Vec<Grant>,
    /// The first way in which the promise was broken.
    pub broken: Option<String>,
    /// The accesses that leases keep from other clients.
    pub guards_reads: bool,
    pub guards_writes: bool,
    pub guards_deletes: bool,
    /// True if equal content is the same state, no matter what was there in between.
    pub equal_content_is_one_state: bool,
    /// True if a version is the tag. A doubt gives a state another version, and may have left the state as it was.
    pub tags_are_versions: bool,
    /// True if any fault has happened.
    pub is_faulty: bool,
    /// The greatest fence that each resource was written with.
    fences: BTreeMap<String, u64>,
    /// True if a process was killed.
    pub has_died: bool,
    pub settled_reads: bool,
    /// True if each write that replaces what exists must name a version.
    pub demands_versions: bool,
    /// True if resources have metadata, which are the second part of each.
    pub has_metadata: bool,
    pub keys: Keys,
    /// True if records may be forgotten, for want of room or with time.
    pub store_forgets: bool,
    /// True if the clock of the store is set back at times: then no lease ends by a certain time.
    pub sets_clock_back: bool,
    /// The number of updates that may be lost before ifmatch knows that a backend does not check what it should.
    pub losses_max: usize,
    /// The writes by which updates were lost so.
    lost_by: Vec<usize>,
    /// True if tags may come back after a write in doubt.
    pub forgives_doubts: bool,
    /// The tags on which writes were applied, by resource.
    used: BTreeMap<(String, String), usize>,
    /// The moment from which tags are reliable: what a memory store knew before is gone.
    tags_since: u64,
    /// True if the source of tags has changed since a client got one.
    pub tags_are_others: bool,
    pub turns: Turns,
    /// The resources that wait to be deleted.
    pub waiting: Waiting,
    pub watches: Watches,
    pub queues: Queues,
    moments: u64,
}

/// One request of a client.
#[derive(Clone, Debug)]
pub struct Entry {
    pub client: usize,
    pub process: usize,
    pub operation: Operation,
    /// The first request with the key of this one, if it is sent again.
    pub retry_of: Option<usize>,
    pub request: Request,
    pub resource: String,
    /// The state that the request is based on, by the knowledge of its client.
    pub base: Option<Seen>,
    pub lease: Option<String>,
    pub invoked: u64,
    pub invoked_at: Instant,
    pub answered: Option<(u64, Told)>,
    /// True if no client waits for the answer any more.
    pub is_given_up: bool,
    /// A write of the resource that was in flight at the backend when it last acted on this read.
    pub shows_beside: Option<usize>,
    /// True if the backend has answered a read with its credentials.
    pub asked: bool,
    /// True if any of the content has reached the backend.
    pub arrived: bool,
    pub applied: usize,
    pub parts: Parts,
}

/// The state of a resource that a client was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub tag: String,
    /// The modification date.
    pub date: Option<String>,
    pub serial: u64,
    pub content: Option<u32>,
    /// True if a write was in flight meanwhile: a version may be older than the state that it labels (DESIGN, rule 2).
    pub is_beside_write: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    pub seen: BTreeMap<String, Seen>,
    /// The id of the lease that the client has or had, by resource.
    pub leases: BTreeMap<String, String>,
}

impl Ledger {
    pub fn moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }

    /// Makes all clients forget their tags.
    pub fn forget_tags(&mut self) {
        self.used.clear();
        self.tags_since = self.moment();
        self.clients.iter_mut().for_each(|client| client.seen.clear());
    }

    pub fn breaks(&mut self, how: String) {
        self.broken.get_or_insert(how);
    }

    /// Records that a client sends a request.
    pub fn begin(&mut self, mut entry: Entry) -> usize {
        entry.invoked = self.moment();
        let is_own = |grant: &Grant| entry.lease.as_ref().is_some_and(|id| grant.ids.contains(id));
        for grant in self.grants.iter_mut().filter(|grant| grant.resource == entry.resource) {
            grant.is_over |= match entry.operation {
                Operation::Release => is_own(grant),
                Operation::Break => true,
                _ => false,
            };
        }
        if let (Operation::Change, Some(proposed)) = (entry.operation, field(&entry.request, "proposed-lease-id")) {
            let mut grants = self.grants.iter_mut().filter(|grant| grant.resource == entry.resource);
            if let Some(grant) = grants.rfind(|grant| grant.is_of(&entry)) {
                grant.ids.push(proposed);
            }
        }
        if entry.operation == Operation::Renew {
            // Until the answer is there, the lease may or may not last longer.
            self.grants.iter_mut().filter(|grant| grant.is_of(&entry)).for_each(|grant| grant.ends_by = None);
        }
        self.requests.push(entry);
        self.requests.len() - 1
    }
}

/// Returns the value of a request field.
pub fn field(request: &Request, name: &str) -> Option<String> {
    request.fields.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone())
}

impl Inner {
    /// Lets the backend act on a request.
    pub fn act(&mut self, sent: &Sent, now: Instant, second: u64) -> Response {
        if self.ledger.queues.is_there {
            return self.act_on_queue(sent);
        }
        let resource = resource_of(&sent.target);
        let before = self.backend.resource(&resource);
        if let Some(number) = sent.request.filter(|_| !sent.writes()) {
            self.ledger.requests[number].shows_beside = self.write_under_way(&resource);
            self.ledger.requests[number].asked = true;
        }
        if sent.changes_tree() {
            return self.act_on_tree(sent, now, second);
        }
        if let Some(destination) = &sent.destination {
            return self.act_on_transfer(sent, destination, now, second);
        }
        let (response, changed) = self.backend.act(sent, second);
        if self.ledger.has_metadata {
            self.changed_part(sent, (&before, !changed.is_empty()), now);
            return response;
        }
        if sent.is_late_delete
            && let Some(how) = self.ledger.late_delete(&resource, (!changed.is_empty(), &before), now)
        {
            self.ledger.breaks(how);
        }
        let is_own = sent
            .request
            .filter(|_| !sent.is_late_delete)
            .is_some_and(|number| sent.method == self.ledger.requests[number].request.method);
        if sent.writes()
            && let Some(number) = sent.request.filter(|_| is_own)
        {
            self.ledger.requests[number].arrived = true;
            if !changed.is_empty() {
                self.ledger.requests[number].applied += 1;
                let entry = self.ledger.requests[number].clone();
                if sent.method != Method::POST
                    && let Some(how) = self.acts_beside_transfer(number, &resource)
                {
                    self.ledger.breaks(how);
                }
                if let Some(how) = self.ledger.application(number, (&entry, sent.fence), &before, now) {
                    self.ledger.loses(number, how);
                }
                if let Some(how) = self.ledger.fence_goes_back(number, &resource, sent.fence) {
                    self.ledger.breaks(how);
                }
            }
        }
        response
    }

    /// Records the answer that a client gets.
    pub fn answered(&mut self, number: usize, told: &Told, at: Instant) {
        let ledger = &mut self.ledger;
        ledger.names_member(number, told);
        let moment = ledger.moment();
        ledger.requests[number].answered = Some((moment, told.clone()));
        let entry = ledger.requests[number].clone();
        match entry.operation {
            Operation::Watch => return self.hears_states(number, told, at),
            Operation::OfQueue(of) => return ledger.answered_of_queue(number, of, told),
            _ => {}
        }
        let is_refused = told.code.is_some() && !told.in_doubt;
        if is_refused && entry.arrived && !entry.is_half_done(told) {
            ledger.breaks(format!("request {number} was refused with {told:?}, and has reached the backend"));
        }
        let writes = entry.operation.writes();
        if entry.operation.transfers() && told.tag.is_some() {
            ledger.breaks(format!("request {number} is answered with a tag, of one of two resources"));
        }
        ledger.give_up(&entry, told);
        // Azure's clients get 202 for each deletion.
        if !ledger.has_metadata && is_deferred(&entry) {
            ledger.defer(&entry, moment);
        } else if writes && is_success(told) && entry.applied != 1 {
            let wrong = if entry.retry_of.is_some() && entry.applied == 0 {
                ledger.replay(number, told)
            } else {
                Some(format!("request {number} was acknowledged, and was applied {} times", entry.applied))
            };
            if let Some(wrong) = wrong {
                ledger.breaks(wrong);
            }
        }
        if let Some(how) = ledger.misread_retry(number, told) {
            ledger.breaks(how);
        }
        if let Some(how) = ledger.shows_deferred(number, &entry, told) {
            ledger.breaks(how);
        }
        // A failure of the backend, which comes on as it is, shows no state.
        let shows_state = told.code.is_none() && told.status < 500;
        if let Some(write) = entry.shows_beside.filter(|_| ledger.settled_reads && shows_state) {
            entry
                .shows_state(told)
                .then(|| ledger.breaks(format!("request {number} shows a state while write {write} is under way")));
        }
        if ledger.guards_reads && entry.operation == Operation::Read && told.status == 200 {
            let is_foreign = |grant: &Grant| {
                grant.keeps_off(&entry, &ledger.grants) && grant.answered < entry.invoked && grant.is_held(at)
            };
            if ledger.grants.iter().any(is_foreign) {
                ledger.breaks(format!("request {number} reads what a lease keeps from it"));
            }
        }
        let resource = self.backend.resource(&entry.resource);
        if self.ledger.has_metadata {
            self.ledger.answered_with_metadata((number, &entry), told, &resource, at);
            return;
        }
        if let Some(how) = self.ledger.outdated(number, (&entry, told), &resource) {
            self.ledger.loses(number, how);
        }
        let serial = told.serial.or_else(|| self.ledger.replayed_serial(number, &resource));
        let state = serial.and_then(|serial| resource.content_at(serial));
        let state = self.backend.style.believed(&entry).or(state);
        self.ledger.learn(&entry, &Told { serial, ..told.clone() }, state, at);
    }
}

impl Ledger {
    /// Returns how a fence goes back, for a backend that checks them. What comes late after a fault is such a case.
    fn fence_goes_back(&mut self, number: usize, resource: &str, fence: Option<u64>) -> Option<String> {
        let fence = fence.filter(|_| !self.is_faulty)?;
        let greatest = self.fences.entry(resource.to_owned()).or_default();
        let before = std::mem::replace(greatest, fence.max(*greatest));
        (fence < before).then(|| format!("request {number} is sent with the fence {fence} after {before}"))
    }

    /// Returns what is wrong with the application of a write.
    pub fn application(
        &mut self,
        number: usize,
        (entry, fence): (&Entry, Option<u64>),
        before: &crate::backend::Resource,
        now: Instant,
    ) -> Option<String> {
        if entry.applied > 1 {
            return Some(format!("request {number} was applied twice"));
        }
        if let Some(wrong) = self.reapplication(number) {
            return Some(wrong);
        }
        if self.waiting.hides(entry, &self.grants) {
            return Some(format!("request {number} is applied to what waits to be deleted"));
        }
        let deletes = entry.request.method == Method::DELETE;
        let keeps_off = |grant: &Grant| {
            let is_guarded = if deletes { self.guards_deletes } else { self.guards_writes };
            is_guarded && grant.is_held(now) && grant.keeps_off(entry, &self.grants) && !self.may_be_given_up(grant)
        };
        if let Some(grant) = self.grants.iter().find(|grant| keeps_off(grant)) {
            return Some(format!("request {number} is applied while another client holds the lease {}", grant.fence));
        }
        let own = self.grants.iter().find(|grant| grant.is_of(entry) && grant.is_held(now));
        if let Some(own) = own.filter(|own| !own.opening.permits(entry)) {
            return Some(format!("request {number} does what the lease {} was not acquired for", own.fence));
        }
        if let Some(own) = own.filter(|own| !own.has_sent(fence)) {
            return Some(format!(
                "request {number} of the holder of lease {} is sent with the fence {fence:?}",
                own.fence
            ));
        }
        if deletes && self.guards_deletes && !entry.request.target.contains("/parts/") {
            self.waiting.end(&entry.resource);
            let ended = self.grants.iter_mut().filter(|grant| grant.resource == entry.resource);
            ended.for_each(|grant| grant.is_over = true);
        }
        if entry.operation == Operation::Create {
            let mut states = 0..=before.serial();
            let was_absent =
                |serial: u64| before.content_at(serial).is_none() && self.is_beside(number, before, serial);
            let is_lost = before.content().is_some() && !states.any(was_absent);
            return is_lost.then(|| format!("request {number} creates what is there already"));
        }
        if entry.operation == Operation::Unless {
            // A forgotten version comes back as a later one of the same state.
            let is_renewed = self.is_faulty || self.store_forgets;
            let may_be_new = |base: &Seen| self.tags_are_versions && (is_renewed || base.is_beside_write);
            let base = entry.base.as_ref().filter(|base| base.serial == before.serial() && !may_be_new(base));
            let base = base.filter(|_| !self.tags_are_others);
            return base.map(|base| format!("request {number} is applied on the state that it excludes, {}", base.tag));
        }
        if let Some(wrong) = self.unnamed(number, entry, before) {
            return Some(wrong);
        }
        let date = field(&entry.request, "if-unmodified-since");
        let is_based = |_: &Seen| date.is_some() || field(&entry.request, "if-match").is_some();
        let base = entry.base.clone().filter(is_based)?;
        let mut states = base.serial..=before.serial();
        let is_based_on = |serial: u64| {
            let is_it =
                serial == base.serial || self.equal_content_is_one_state && before.content_at(serial) == base.content;
            is_it && self.is_beside(number, before, serial)
        };
        if !states.any(is_based_on) {
            return Some(format!(
                "request {number} is based on change {} and replaces change {}: an update is lost",
                base.serial,
                before.serial()
            ));
        }
        if entry.invoked < self.tags_since {
            return None;
        }
        let name = date.unwrap_or(base.tag.clone());
        let used = self.used.insert((entry.resource.clone(), name.clone()), number);
        if let Some(other) = used.filter(|_| !self.equal_content_is_one_state) {
            return Some(format!("requests {other} and {number} were both applied on {name}"));
        }
        None
    }

    /// Records that an update was lost, which is forgiven as long as ifmatch could not know what the backend does.
    fn loses(&mut self, number: usize, how: String) {
        self.lost_by.push(number);
        // A write in doubt shows neither tags nor whether the backend checked them.
        let is_in_doubt =
            |number: usize| self.requests[number].answered.as_ref().is_some_and(|(_, told)| told.in_doubt);
        let tells = |&&number: &&usize| self.losses_max == 0 || !is_in_doubt(number);
        let shown = self.lost_by.iter().filter(tells).count();
        if shown > self.losses_max && !(self.forgives_doubts && self.is_faulty) {
            self.breaks(how);
        }
    }

    /// True if all changes since `serial` came from writes that ran beside this one, so that it may replace them.
    pub fn is_beside(&self, number: usize, resource: &crate::backend::Resource, serial: u64) -> bool {
        let invoked = self.requests[number].invoked;
        let since = usize::try_from(serial).unwrap().min(resource.changes.len());
        resource.changes[since..].iter().all(|change| {
            let answered = change.by.and_then(|by| self.requests[by].answered.as_ref());
            change.kind == Kind::Beside && answered.is_none_or(|(at, _)| *at > invoked)
        })
    }

    /// The number of a request.
    fn number_of(&self, entry: &Entry) -> usize {
        self.requests.iter().position(|other| other.invoked == entry.invoked).unwrap()
    }

    /// True if a break may have ended the lease that a request was granted.
    pub fn may_be_broken(&self, entry: &Entry) -> bool {
        self.requests.iter().any(|other| {
            let ended = other.answered.as_ref().map(|(at, _)| *at);
            let ends = other.operation == Operation::Break && other.resource == entry.resource;
            ends && ended.is_none_or(|ended| ended > entry.invoked)
        })
    }

    /// Records what a client learns from an answer; `content` is the state that the answer shows, if any.
    pub fn learn(&mut self, entry: &Entry, told: &Told, content: Option<u32>, at: Instant) {
        let is_beside_write = self.requests.iter().any(|other| {
            let was_under_way = other.answered.as_ref().is_none_or(|(at, _)| *at > entry.invoked);
            // A write of another resource may change this one too.
            other.operation.writes() && other.arrived && was_under_way
        });
        let known = &mut self.clients[entry.client];
        if let (Some(tag), Some(serial)) = (&told.tag, told.serial)
            && matches!(told.status, 200 | 201 | 204)
        {
            let seen = Seen { tag: tag.clone(), date: told.modified.clone(), serial, content, is_beside_write };
            known.seen.insert(entry.request.target.clone(), seen);
        }
        if told.status == 404 {
            known.seen.remove(&entry.request.target);
        }
        match (entry.operation, &told.lease_id) {
            (Operation::Acquire, Some(id)) if told.status == 201 || told.status == 200 => {
                known.leases.insert(entry.resource.clone(), id.clone());
                let fence = told.fence.unwrap_or_default();
                // The client of a stream relies on its lease once it has heard what follows the grant.
                let stream = entry.holds_by_stream().then(|| self.number_of(entry));
                let lasts = lasts_of(&entry.request).and_then(|seconds| seconds.parse().ok());
                let is_same = |grant: &&mut Grant| grant.fence == fence && (fence > 0 || grant.ids.contains(id));
                let same = self.grants.iter_mut().filter(|grant| grant.resource == entry.resource).find(is_same);
                if let Some(grant) = same {
                    (grant.since, grant.stream) = (entry.invoked_at, stream);
                    grant.lasts = lasts.map(Duration::from_secs).filter(|_| stream.is_none());
                    grant.is_over |= stream.is_some();
                    return;
                }
                let is_shared = field(&entry.request, "lease-mode").is_some() || is_shared_lock(&entry.request);
                let is_around =
                    |grant: &&Grant| grant.reaches(&entry.resource) || is_member(&grant.resource, &entry.resource);
                let earlier = self.grants.iter().filter(is_around);
                let is_held = lasts.is_none_or(|seconds| at < entry.invoked_at + Duration::from_secs(seconds));
                // Two that share the lease may get their answers in either order, unless one asked after the other's answer.
                let are_in_order =
                    |grant: &Grant| grant.answered < entry.invoked && grant.resource == entry.resource && fence > 0;
                let is_held = is_held && stream.is_none();
                let opening = Opening::of(&entry.request);
                let shares = |grant: &Grant| grant.is_shared && is_shared && grant.opening.stands_beside(opening);
                let is_beside = |grant: &Grant| is_held && grant.is_held(at) && !shares(grant);
                let mut earlier = earlier.filter(|grant| is_beside(grant) || are_in_order(grant));
                let wrong = earlier.find(|grant| is_beside(grant) || grant.fence >= fence).map(|other| other.fence);
                if let Some(other) = wrong {
                    self.breaks(format!("the leases {other} and {fence} are held at once, or in the other order"));
                }
                let answered = self.moment();
                let is_over = stream.is_some() || self.may_be_broken(entry);
                self.grants.push(Grant {
                    resource: entry.resource.clone(),
                    ids: vec![id.clone()],
                    fence,
                    lasts: lasts.map(Duration::from_secs).filter(|_| stream.is_none()),
                    since: entry.invoked_at,
                    stream,
                    answered,
                    is_over,
                    is_shared,
                    opening,
                    ends_by: lasts
                        .filter(|_| stream.is_none() && !self.sets_clock_back)
                        .map(|seconds| at + Duration::from_secs(seconds)),
                });
            }
            (Operation::Change, _) if told.status == 200 => {
                let proposed = field(&entry.request, "proposed-lease-id").unwrap();
                self.clients[entry.client].leases.insert(entry.resource.clone(), proposed);
            }
            (Operation::Renew, _) if told.status == 200 => {
                let renewed = self.moment();
                let mut own = self
                    .grants
                    .iter_mut()
                    .filter(|grant| entry.lease.as_ref().is_some_and(|id| grant.ids.contains(id)));
                if let Some(grant) = own.next_back().filter(|grant| !grant.is_over) {
                    // A lease that had run out begins anew: a client that read meanwhile could not know of it.
                    if !grant.is_held(at) {
                        grant.answered = renewed;
                    }
                    grant.since = grant.since.max(entry.invoked_at);
                    grant.ends_by = grant.lasts.filter(|_| !self.sets_clock_back).map(|lasts| at + lasts);
                    // A grant that was taken back meanwhile has used its token. Clients that share a lease get the last
                    // token.
                    if !grant.is_shared {
                        grant.fence = grant.fence.max(told.fence.unwrap_or_default());
                    }
                }
            }
            _ => {}
        }
    }
}
