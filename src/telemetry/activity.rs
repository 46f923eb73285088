//! Recent activity, for operators: outcomes by route, the last writes, and the resources over which clients conflict.
//!
//! # Design
//!
//! *What does it cost a request?* One lock that its thread has to itself, and one small map. Without an admin listener
//! it costs nothing.
//!
//! *How does a table of fixed size find the hot resources among millions?* By the space-saving rule: a newcomer
//! replaces the entry with the least weight and inherits that weight. So a frequent resource stays, and a rare one goes
//! with the next newcomer. Counts begin when a resource gets its place, so they are never too high.

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use fnv::FnvHashMap;
use foldhash::{HashMap, HashMapExt as _};
use http::Method;
use parking_lot::Mutex;

use super::{
    access::AccessEntry,
    decision::Decision,
    ended_writes::{EndedWrite, EndedWrites},
};
use crate::core::{refusal::Code, resource::ResourceKey};

/// The number of threads that each have counts and a list of their own; further ones share them.
const THREADS: usize = 16;

/// The number of parts of the table of hot resources, each under its own lock.
const PARTS: usize = 8;

/// The number of resources in one part.
const PLACES: usize = 48;

/// The least time for which the table looks back; at most it looks back twice as long.
const WINDOW: Duration = Duration::from_secs(300);

/// The shortest wait for a claim that counts as a wait.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// The outcomes since the start, and the resources with recent conflicts.
#[derive(Debug)]
pub struct Activity {
    threads: Vec<Mutex<ThreadActivity>>,
    parts: Vec<Mutex<ActivityPart>>,
}

/// The events that the requests of one thread add.
#[derive(Debug, Default)]
struct ThreadActivity {
    tallies: FnvHashMap<Box<str>, Tally>,
    writes: EndedWrites,
}

/// The number of requests of each [meaning](Meaning::ALL).
pub type MeaningCounts = [u64; Meaning::ALL.len()];

/// The outcomes of the requests of one route since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of requests by verdict or code of refusal.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// The number of requests by meaning; each request counts once.
    pub meanings: MeaningCounts,
}

/// The meaning of a request's outcome to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The upstream answered the request.
    Passed,
    /// The proxy answered the request without refusing it: from memory, or as an operation on a lease.
    Local,
    /// The proxy or the upstream answered with 412 because another client came first. A lease has a code of its own.
    Conflict,
    /// The proxy refused the request for another reason.
    Refused,
    /// The request was answered with a status of 500 or more, or not at all.
    Failed,
}

impl Meaning {
    /// All meanings with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("passed", Self::Passed),
        ("local", Self::Local),
        ("conflicts", Self::Conflict),
        ("refused", Self::Refused),
        ("failures", Self::Failed),
    ];

    fn of(entry: &AccessEntry, status: u16) -> Self {
        match (status, entry.verdict) {
            (0 | 500.., _) => Self::Failed,
            (412, _) if entry.refused.is_none_or(|code| code == Code::PreconditionFailed) => Self::Conflict,
            _ if entry.refused.is_some() => Self::Refused,
            (_, Some(Decision::Answered | Decision::NotModified | Decision::Replayed)) => Self::Local,
            _ => Self::Passed,
        }
    }
}

impl Tally {
    /// Returns the number of requests with this meaning.
    pub fn count(&self, meaning: Meaning) -> u64 {
        self.meanings.get(meaning as usize).copied().unwrap_or_default()
    }

    fn add(&mut self, outcome: &'static str, meaning: Meaning) {
        *self.outcomes.entry(outcome).or_default() += 1;
        if let Some(count) = self.meanings.get_mut(meaning as usize) {
            *count += 1;
        }
    }

    fn plus(&mut self, other: &Self) {
        for (outcome, count) in &other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        self.meanings.iter_mut().zip(other.meanings).for_each(|(sum, count)| *sum += count);
    }
}

/// A resource with recent conflicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hot {
    /// The key of the resource.
    pub key: ResourceKey,
    /// The number of requests that were [conflicts](Meaning::Conflict).
    pub conflicts: u64,
    /// The number of writes that waited for the claim.
    pub waits: u64,
    /// The longest of these waits.
    pub longest_wait: Duration,
}

/// One part of the table, with the current window and the one before.
#[derive(Debug)]
struct ActivityPart {
    began: Instant,
    current: HashMap<ResourceKey, Heat>,
    before: HashMap<ResourceKey, Heat>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Heat {
    weight: u64,
    conflicts: u64,
    waits: u64,
    longest_wait: Duration,
}

impl Default for Activity {
    fn default() -> Self {
        let part = || ActivityPart { began: Instant::now(), current: HashMap::new(), before: HashMap::new() };
        Self {
            threads: (0..THREADS).map(|_| Mutex::default()).collect(),
            parts: (0..PARTS).map(|_| Mutex::new(part())).collect(),
        }
    }
}

impl Activity {
    /// Counts a request that has finished `now`, with the status of its answer, 0 if it had none. `method` is `None` if it
    /// could not be read.
    pub fn ended(&self, entry: &AccessEntry, method: Option<&Method>, status: u16, now: Instant) {
        let outcome = entry.decided().map_or("failed", Decision::word);
        let meaning = Meaning::of(entry, status);
        let route = entry.route.as_deref().map_or("", |route| route.name.as_str());
        if let Some(thread) = self.threads.get(own_number() % THREADS) {
            let mut thread = thread.lock();
            match thread.tallies.get_mut(route) {
                Some(tally) => tally.add(outcome, meaning),
                None => thread.tallies.entry(route.into()).or_default().add(outcome, meaning),
            }
            if let Some(method) = method {
                thread.writes.note(entry, method, status);
            }
        }
        if let (Meaning::Conflict, Some(key)) = (meaning, &entry.key) {
            self.heat(key, now, |heat| heat.conflicts += 1);
        }
    }

    /// Counts the wait of a write for its claim.
    pub fn waited(&self, key: &ResourceKey, wait: Duration) {
        if wait >= WAIT_MIN {
            self.heat(key, Instant::now(), |heat| {
                heat.waits += 1;
                heat.longest_wait = heat.longest_wait.max(wait);
            });
        }
    }

    /// Returns the outcomes of each route. Requests that took no route are under the empty name.
    pub fn routes(&self) -> BTreeMap<String, Tally> {
        let mut routes = BTreeMap::<String, Tally>::new();
        for thread in &self.threads {
            for (route, tally) in &thread.lock().tallies {
                routes.entry(route.to_string()).or_default().plus(tally);
            }
        }
        routes
    }

    /// Returns at most `limit` of the last writes of a resource, the latest first.
    pub fn writes(&self, key: &ResourceKey, limit: usize) -> Vec<EndedWrite> {
        let mut writes: Vec<_> =
            self.threads.iter().flat_map(|thread| thread.lock().writes.of(key).collect::<Vec<_>>()).collect();
        writes.sort_by_key(|write| std::cmp::Reverse(write.at));
        writes.truncate(limit);
        writes
    }

    /// Returns at most `limit` of the hottest resources, the hottest first.
    pub fn hottest(&self, limit: usize) -> Vec<Hot> {
        let mut all = Vec::new();
        for part in &self.parts {
            let mut part = part.lock();
            part.turn(Instant::now());
            for (key, heat) in &part.current {
                all.push((key.clone(), heat.plus(part.before.get(key).copied().unwrap_or_default())));
            }
            let old = part.before.iter().filter(|(key, _)| !part.current.contains_key(*key));
            all.extend(old.map(|(key, heat)| (key.clone(), *heat)));
        }
        let rank = |heat: &Heat| (heat.conflicts, heat.waits, heat.longest_wait);
        all.sort_by(|(one, left), (other, right)| rank(right).cmp(&rank(left)).then_with(|| one.cmp(other)));
        let shown = |(key, Heat { conflicts, waits, longest_wait, .. })| Hot { key, conflicts, waits, longest_wait };
        all.into_iter().take(limit).map(shown).collect()
    }

    fn heat(&self, key: &ResourceKey, now: Instant, add: impl FnOnce(&mut Heat)) {
        if let Some(part) = self.parts.get(usize::from(key.bucket()) % PARTS) {
            let mut part = part.lock();
            part.turn(now);
            let add = |heat: &mut Heat| {
                heat.weight += 1;
                add(heat);
            };
            match part.current.get_mut(key) {
                Some(heat) => add(heat),
                None => add(part.place(key)),
            }
        }
    }
}

impl ActivityPart {
    /// Begins a new window if the current one is over.
    fn turn(&mut self, now: Instant) {
        let windows = now.saturating_duration_since(self.began).as_secs() / WINDOW.as_secs();
        if windows > 0 {
            self.before = if windows == 1 { std::mem::take(&mut self.current) } else { HashMap::new() };
            self.current.clear();
            self.began = now;
        }
    }

    /// Returns a place for a resource that has none. If none is left, it is that of the resource with the least weight.
    fn place(&mut self, key: &ResourceKey) -> &mut Heat {
        let mut weight = 0;
        if self.current.len() >= PLACES {
            let least = self.current.iter().min_by_key(|(_, heat)| heat.weight);
            if let Some((least, heat)) = least.map(|(least, heat)| (least.clone(), *heat)) {
                self.current.remove(&least);
                weight = heat.weight;
            }
        }
        self.current.entry(key.clone()).or_insert(Heat { weight, ..Heat::default() })
    }
}

impl Heat {
    fn plus(self, other: Self) -> Self {
        Self {
            weight: self.weight + other.weight,
            conflicts: self.conflicts + other.conflicts,
            waits: self.waits + other.waits,
            longest_wait: self.longest_wait.max(other.longest_wait),
        }
    }
}

/// Returns the number of this thread, in the order of the first calls.
fn own_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    OWN.with(|own| {
        let number = own.get().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        own.set(Some(number));
        number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(key: &str) -> AccessEntry {
        AccessEntry {
            key: Some(ResourceKey::from_text(key)),
            refused: Some(Code::PreconditionFailed),
            ..AccessEntry::default()
        }
    }

    #[test]
    fn outcomes_are_counted_by_their_word() {
        let activity = Activity::default();
        activity.ended(&conflict("a"), None, 412, Instant::now());
        let passed = AccessEntry { verdict: Some(Decision::Passed), ..AccessEntry::default() };
        activity.ended(&passed, None, 200, Instant::now());
        activity.ended(&passed, None, 502, Instant::now());
        activity.ended(&AccessEntry::default(), None, 0, Instant::now());
        let outcomes = BTreeMap::from([("failed", 1), ("passed", 2), ("precondition-failed", 1)]);
        let expected = Tally { outcomes, meanings: [1, 0, 1, 0, 2] };
        assert_eq!(activity.routes(), BTreeMap::from([(String::new(), expected)]));
    }

    #[test]
    fn a_refusal_for_a_lease_is_no_conflict() {
        let refused = |code, status| {
            let entry = AccessEntry { refused: Some(code), ..AccessEntry::default() };
            Meaning::of(&entry, status)
        };
        assert_eq!(refused(Code::SharingViolation, 409), Meaning::Refused);
        let of_leases = [Code::LeaseIdMissing, Code::LeaseIdMismatchOnUse, Code::LeaseNotPresentOnUse, Code::LeaseLost];
        assert_eq!(of_leases.map(|code| refused(code, 412)), [Meaning::Refused; 4]);
        assert_eq!(refused(Code::LeaseHeld, 409), Meaning::Refused);
        assert_eq!(refused(Code::PreconditionFailed, 412), Meaning::Conflict);
        assert_eq!(Meaning::of(&AccessEntry::default(), 412), Meaning::Conflict, "the backend's own");
    }

    #[test]
    fn what_is_hot_stays_among_many_that_come_once() {
        let activity = Activity::default();
        for round in 0..2_000 {
            activity.ended(&conflict(&format!("once {round}")), None, 412, Instant::now());
            activity.ended(&conflict("hot"), None, 412, Instant::now());
        }
        let hottest = activity.hottest(1);
        assert_eq!(hottest.iter().map(|hot| (hot.key.as_str(), hot.conflicts)).collect::<Vec<_>>(), [("hot", 2_000)]);
        assert!(activity.hottest(usize::MAX).len() <= PARTS * PLACES);
    }

    #[test]
    fn who_did_not_have_to_wait_is_not_counted() {
        let (activity, key) = (Activity::default(), ResourceKey::from_text("a"));
        activity.waited(&key, Duration::from_micros(900));
        assert_eq!(activity.hottest(1), []);
        activity.waited(&key, Duration::from_millis(7));
        activity.waited(&key, Duration::from_millis(5));
        let expected = Hot { key, conflicts: 0, waits: 2, longest_wait: Duration::from_millis(7) };
        assert_eq!(activity.hottest(1), [expected]);
    }
}
