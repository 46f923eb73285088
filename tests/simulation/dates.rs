//! Modification dates, and backends that differ from the operator's statements: settings in which clients name states
//! by their dates, whose tags repeat although `unique_tags` is set, or whose conditions are not checked
//! (docs/simulation.md).

use std::time::Duration;

use fastrand::Rng;
use ifmatch::core::{policy::TagSource, tags::http_date::HttpDate};
use tokio::time::advance;

use crate::{
    backend::{Change, Kind, Resource, Style, Tags},
    generate::{options, remembers},
    operation::{Manner, Operation},
    options::{Options, Source},
    process::{self, Keeping},
    run::{Run, Setting, Step},
    schedule::{Event, Faults},
    world::Sent,
};

/// The clock of the backend and the precision of its modification dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dates {
    /// It sends none.
    #[default]
    None,
    /// A time in seconds. The clock of its answers is ahead of that of its files by this many milliseconds.
    Seconds { ahead: u64 },
    /// A time in minutes.
    Minutes,
    /// A date that comes from the client, and goes back and forth.
    Kept,
}

/// The Unix time of the beginning of a run: the first second of a minute.
const BEGINNING: u64 = 1_699_999_980;

/// The moments that pass between two steps of a client.
const MOMENT: Duration = Duration::from_millis(700);

impl Dates {
    /// Returns the `Date` of an answer at this time in milliseconds.
    pub fn sent(self, now: u64) -> Option<(&'static str, String)> {
        let ahead = match self {
            Self::None => return None,
            Self::Seconds { ahead } => ahead,
            Self::Minutes | Self::Kept => 0,
        };
        Some(("date", HttpDate::from_unix_seconds(BEGINNING + (now + ahead) / 1_000).to_string()))
    }

    fn of(self, change: &Change) -> Option<HttpDate> {
        let date = match self {
            Self::None => return None,
            Self::Seconds { .. } => BEGINNING + change.second,
            Self::Minutes => BEGINNING + change.second - change.second % 60,
            Self::Kept => BEGINNING - 10 + u64::from(change.content.unwrap_or_default() % 2),
        };
        Some(HttpDate::from_unix_seconds(date))
    }

    /// Returns the `Last-Modified` of the state after a change.
    pub fn modified(self, change: &Change) -> Option<(&'static str, String)> {
        self.of(change).map(|date| ("last-modified", date.to_string()))
    }
}

/// True if the date in the condition of a request is before that of the resource.
pub fn is_dated_after(style: &Style, resource: &Resource, sent: &Sent) -> bool {
    let since = sent.if_unmodified_since.as_ref().and_then(|date| HttpDate::parse(date.as_bytes()));
    let modified = resource.changes.last().and_then(|change| style.dates.of(change));
    matches!((since, modified), (Some(since), Some(modified)) if sent.if_match.is_none() && modified > since)
}

/// Returns the number of moments that may pass in a run, and of writes without ifmatch.
pub fn beside(setting: &Setting) -> (u32, u32) {
    let has_moments = setting.style.dates != Dates::None || setting.has_slow_owners;
    let moments = if has_moments { 12 } else { 0 };
    (moments, if setting.style.others_write { 2 } else { 0 })
}

/// True if the configuration says that the backend's tags never repeat.
pub fn says_unique(setting: &Setting) -> bool {
    setting.config.routes.iter().filter_map(|route| route.guard.as_ref()).any(|guard| guard.unique_tags)
}

/// Returns the number of updates that may be lost: a backend that should check and does not is found out by one, in each
/// process. One whose outcome is unknown to ifmatch shows nothing of it, and does not count.
pub fn losses(setting: &Setting) -> usize {
    let mut guards = setting.config.routes.iter().filter_map(|route| route.guard.as_ref());
    let delegates = guards.any(|guard| guard.etag == TagSource::Delegate);
    if delegates && !setting.style.judges { setting.proxies } else { 0 }
}

impl Run {
    /// Returns the events that need no request.
    pub fn events_beside(&self) -> impl Iterator<Item = Event> {
        let (moments, writes) = self.beside_left;
        let moment = (moments > 0).then_some(Event::Tick);
        moment.into_iter().chain((writes > 0).then_some(Event::WriteDirectly))
    }

    /// Lets a moment pass.
    pub async fn tick(&mut self) {
        self.beside_left.0 -= 1;
        advance(MOMENT).await;
    }

    /// Lets moments pass before one of the first steps, so that their reads show dates.
    pub async fn pause(&self) {
        if self.setting.style.dates != Dates::None {
            advance(2 * MOMENT).await;
        }
    }

    /// Replaces the first document without ifmatch.
    pub fn write_directly(&mut self) {
        self.beside_left.1 -= 1;
        let second = self.world.now() / 1_000;
        let mut inner = self.world.lock();
        let metadata = inner.backend.resource("document 1").metadata();
        let content = Some(900 + self.beside_left.1);
        let change = Change { by: None, kind: Kind::Beside, content, metadata, second };
        inner.backend.change("document 1", change);
    }
}

/// Builds a setting whose clients name states by their dates, from a seed.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = if random.u32(..3) == 0 { Keeping::Memory } else { Keeping::Shared };
    let drawn = options(random, keeping);
    let dates = match random.u32(..4) {
        0 => Dates::Minutes,
        1 => Dates::Kept,
        _ => Dates::Seconds { ahead: if random.bool() { 0 } else { random.u64(300..1_500) } },
    };
    let exclusive = drawn.exclusive;
    let options = Options {
        tags: Tags::Precise,
        contents: u32::MAX,
        leased: (false, false),
        idempotent: false,
        others_write: !exclusive && random.bool(),
        dates,
        ..drawn.without_sharing()
    };
    let operations = [Operation::Put, Operation::Put, Operation::Put, Operation::Patch, Operation::Post];
    let faults = if random.u32(..3) == 0 { random.u32(1..3) } else { 0 };
    assemble(random, keeping, &options, (&operations, 4), faults)
}

/// Builds a setting with tags that are not what they seem, from a seed. They repeat although the operator says that
/// they do not, or are not checked although the operator says that the backend does. Or others write the states
/// between, or the tags are spelled like those with a suffix.
pub fn setting_with_untrue_tags(random: &mut Rng) -> Setting {
    let keeping = if random.u32(..3) == 0 { Keeping::Memory } else { Keeping::Shared };
    let by_backend = [Source::Upstream, Source::Header, Source::Json, Source::Delegate];
    let source = by_backend[random.usize(..by_backend.len())];
    let drawn = options(random, keeping);
    let says_unique = source != Source::Delegate && random.bool();
    let tags = match random.u32(..3) {
        0 => Tags::Seconds,
        1 => Tags::Alternating,
        _ if says_unique => Tags::Alternating,
        _ => Tags::LikeSuffixed,
    };
    let exclusive = source != Source::Delegate && random.bool();
    let options = Options {
        source,
        exclusive,
        tags,
        says_unique,
        judges: source == Source::Delegate && random.bool(),
        contents: u32::MAX,
        leased: (false, false),
        idempotent: false,
        others_write: !exclusive && !says_unique && random.bool(),
        ..drawn.without_touches().without_sharing()
    };
    assemble(random, keeping, &options, (&[Operation::Put], 0), 0)
}

/// Builds a setting of one document. Of four writes, `by_date` name its state by its date.
fn assemble(
    random: &mut Rng,
    keeping: Keeping,
    options: &Options,
    (operations, by_date): (&[Operation], u32),
    faults: u32,
) -> Setting {
    let proxies = if keeping == Keeping::Shared { random.usize(1..3) } else { 1 };
    let clients = random.usize(2..4);
    let mut steps = vec![Vec::new(); clients];
    let step = |operation, manner| Step { operation, target: "/docs/1".to_owned(), manner };
    for number in 0..random.usize(3..7) {
        let client = if number < clients { number } else { random.usize(..clients) };
        let manner =
            Manner { by_date: random.u32(..5) < by_date, goes_elsewhere: random.u32(..4) == 0, ..Manner::default() };
        if random.bool() {
            steps[client].push(step(Operation::Read, Manner::default()));
        }
        steps[client].push(step(operations[random.usize(..operations.len())], manner));
    }
    let mut prologue = vec![vec![step(Operation::Read, Manner::default())]; clients];
    prologue[0].insert(0, step(Operation::Create, Manner::default()));
    let remembers = if faults > 0 { remembers(random) } else { process::ALL };
    Setting {
        keeping,
        remembers,
        proxies,
        prologue,
        steps,
        faults: Faults { left: faults, kills: keeping == Keeping::Shared, fails: true },
        ..Setting::of(options, &options.text())
    }
}
