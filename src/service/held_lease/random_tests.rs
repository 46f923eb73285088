//! Random lives of leases that streams hold at two processes with one store: connections break off, clients come back or
//! do not, renew, release and break leases, and the store fails for moments.
//!
//! `IFMATCH_SEED=7 cargo test --lib held_lease::random` repeats one life, and `SIMULATE_RUNS=2000` lives more of them.

use std::{env, fmt, sync::Arc, time::Duration};

use fastrand::Rng;
use http::Method;
use tokio::time::Instant;

use super::tests::{DOC, lossy_rules};
use crate::{
    core::resource::ResourceKey,
    guard::testing::{EventClient, Fault, Fixture, When},
};

/// The number of lives in each run of the tests.
const LIVES: u64 = 60;

const STEPS: usize = 40;
const CLIENTS: usize = 3;
const TERM_SECONDS: u64 = 15;
const LINGER: Duration = Duration::from_secs(5);

/// The longest delay of a loss while the store answers: a notice of the store is lost with its answer, and a keeper
/// looks again a second after its last attempt.
const LATE_MAX: Duration = Duration::from_millis(2_500);

/// A client, and what it knows.
#[derive(Default)]
struct Person {
    stream: Option<EventClient>,
    /// True if this stream has granted it the lease, and has not reported its loss.
    holds: bool,
    /// The id and fence of the lease that it was granted last.
    lease: Option<(String, u64)>,
    /// True if it has renewed its lease itself, or may have, since the last grant. The end of its stream releases
    /// nothing then.
    is_in_charge: bool,
    /// When its stream broke off, if it has done nothing about its lease since.
    left: Option<Instant>,
    /// Until when its lease lasts in any case, because it has renewed the lease itself.
    renewed_until: Option<Instant>,
}

struct Life {
    random: Rng,
    fixtures: [Arc<Fixture>; 2],
    people: Vec<Person>,
    /// When the store failed last, and when a lease was ended on purpose.
    disturbed: Instant,
    story: Vec<String>,
}

#[test]
fn random_lives_of_leases_keep_the_rules() {
    let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let again = number("IFMATCH_SEED");
    let (first, lives) =
        (again.unwrap_or(1), number("SIMULATE_RUNS").unwrap_or(if again.is_some() { 1 } else { LIVES }));
    println!("IFMATCH_SEED={first}, {lives} lives");
    for seed in first..first + lives {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(live(seed));
    }
}

async fn live(seed: u64) {
    let one = Arc::new(Fixture::sharing(lossy_rules()).await);
    let other = Arc::new(one.beside().await);
    let people = (0..CLIENTS).map(|_| Person::default()).collect();
    let (random, disturbed) = (Rng::with_seed(seed), Instant::now());
    let mut life =
        Life { random, fixtures: [one, other], people, disturbed, story: vec![format!("IFMATCH_SEED={seed}")] };
    for _ in 0..STEPS {
        life.step().await;
        life.hear().await;
        life.check().await;
    }
}

impl Life {
    fn tell(&mut self, what: impl fmt::Display) {
        self.story.push(what.to_string());
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}\n{}", self.story.join("\n"));
    }

    fn fixture(&mut self) -> Arc<Fixture> {
        Arc::clone(&self.fixtures[self.random.usize(..2)])
    }

    async fn step(&mut self) {
        let who = self.random.usize(..CLIENTS);
        match self.random.u8(..12) {
            0..=2 => self.come(who).await,
            3 => self.leave(who),
            4 => self.renew(who).await,
            5 => self.release(who).await,
            6 if self.random.bool() => self.break_all().await,
            7 => self.fail_once(),
            _ => {
                let seconds = self.random.u64(1..8);
                self.tell(format!("{seconds} s pass"));
                self.fixtures[0].pass_seconds(seconds).await;
            }
        }
    }

    /// A client asks for a lease by a stream, with the id of the one that it had.
    async fn come(&mut self, who: usize) {
        let (fixture, waits) = (self.fixture(), self.random.bool());
        let (mut fields, known) = (format!("Lease-Duration: {TERM_SECONDS}\r\n"), self.people[who].lease.clone());
        if let Some((id, _)) = &known {
            fields = format!("{fields}Lease-Id: {id}\r\n");
        } else if waits {
            fields.push_str("Prefer: wait=10\r\n");
        }
        self.tell(format!("{who} comes: {}", fields.replace("\r\n", " ")));
        let stream = fixture.hold(DOC, &fields).await;
        let person = &mut self.people[who];
        (person.stream, person.holds, person.renewed_until) = (Some(stream), false, None);
        if known.is_some() {
            person.left = None;
        }
    }

    fn leave(&mut self, who: usize) {
        let person = &mut self.people[who];
        if person.stream.take().is_some() {
            person.left = (person.holds && !person.is_in_charge).then(Instant::now);
            if !std::mem::take(&mut person.holds) {
                // Its request may still take the lease up, after all that it has done itself.
                person.renewed_until = None;
            }
            self.tell(format!("{who} leaves"));
        }
    }

    async fn renew(&mut self, who: usize) {
        let Some((id, _)) = self.people[who].lease.clone() else { return };
        let begun = Instant::now();
        let renewed = self.fixture().lease(DOC, Method::PUT, &format!("Lease-Id: {id}\r\n")).await;
        self.tell(format!("{who} renews: {}", renewed.status));
        let person = &mut self.people[who];
        if matches!(renewed.status, 200 | 503) {
            (person.left, person.is_in_charge) = (None, true);
        }
        if renewed.status == 200 {
            person.renewed_until = Some(begun + Duration::from_secs(TERM_SECONDS));
        }
    }

    async fn release(&mut self, who: usize) {
        let Some((id, _)) = self.people[who].lease.clone() else { return };
        let released = self.fixture().lease(DOC, Method::DELETE, &format!("Lease-Id: {id}\r\n")).await;
        self.tell(format!("{who} releases: {}", released.status));
        self.disturb();
        if released.status == 204 {
            self.people[who] = Person { stream: self.people[who].stream.take(), ..Person::default() };
        }
    }

    async fn break_all(&mut self) {
        let broken = self.fixture().lease(DOC, Method::DELETE, "Lease-Break-Period: 0\r\n").await;
        self.tell(format!("a break: {}", broken.status));
        self.disturb();
    }

    fn fail_once(&mut self) {
        let faults = [Fault::Unavailable, Fault::Hangs, Fault::AnswerLost, Fault::Late];
        let (fault, number) = (faults[self.random.usize(..4)], self.random.u64(..4));
        self.tell(format!("{fault:?} at the next operation but {number}"));
        self.fixtures[0].store.fail(fault, When::Once(number));
        self.disturb();
    }

    /// From now on, events may be late.
    fn disturb(&mut self) {
        self.disturbed = Instant::now();
        for person in &mut self.people {
            person.renewed_until = None;
        }
    }

    /// Lets all clients hear what their streams say.
    async fn hear(&mut self) {
        for who in 0..CLIENTS {
            while let Some(stream) = &mut self.people[who].stream {
                match stream.heard().await {
                    Some((name, data)) => {
                        self.tell(format!("{who} hears {name} {data}"));
                        self.note(who, &name, &data);
                    }
                    None if stream.has_ended() => self.people[who].stream = None,
                    None => break,
                }
            }
        }
    }

    fn note(&mut self, who: usize, name: &str, data: &serde_json::Value) {
        match name {
            "granted" => {
                let id = data["id"].as_str().expect("an id").to_owned();
                let lease = (id, data["fence"].as_u64().expect("a fence"));
                let person = &mut self.people[who];
                (person.lease, person.holds, person.is_in_charge) = (Some(lease), true, false);
                // From now on the end of this stream releases the lease.
                person.renewed_until = None;
            }
            "lost" if data["reason"] == "taken-up" => self.fail("no client here has two streams"),
            "lost" => {
                let person = &mut self.people[who];
                *person = Person { stream: person.stream.take(), ..Person::default() };
            }
            _ => {}
        }
    }

    async fn check(&mut self) {
        let key = ResourceKey::from_text(DOC);
        let snapshot = self.fixtures[0].store.look(&key).await;
        let is_held = |person: &Person| {
            person.lease.as_ref().is_some_and(|(_, fence)| {
                snapshot.held_leases().any(|lease| lease.fence.resolve(snapshot.revision).0 == *fence)
            })
        };
        let is_calm = self.disturbed.elapsed() > LATE_MAX;
        for (who, person) in self.people.iter().enumerate() {
            let is_held = is_held(person);
            if is_calm && person.stream.is_some() && person.holds && !is_held {
                self.fail(&format!("{who} was not told that its lease has ended"));
            }
            if is_calm && person.left.is_some_and(|left| left.elapsed() > LINGER + LATE_MAX) && is_held {
                self.fail(&format!("{who} has left for longer than a linger, and still holds the lease"));
            }
            if person.renewed_until.is_some_and(|until| Instant::now() < until) && !is_held {
                self.fail(&format!("{who} has renewed its lease, and it was released"));
            }
        }
    }
}
