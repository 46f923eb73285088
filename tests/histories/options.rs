//! Random configurations: their options, and their text.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

use super::{
    history::named,
    plan::{LATE_PERCENT, Late},
    support::{
        backend::style::{Dates, Shown, Style, Tags},
        random::Random,
    },
};

/// The store of the records, and the number of proxies that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// One proxy.
    Disk,
    /// Two proxies.
    Etcd,
    /// Two proxies.
    Postgres,
    /// Two proxies.
    Redis,
}

pub const KEEPINGS: [Keeping; 4] = [Keeping::Disk, Keeping::Etcd, Keeping::Postgres, Keeping::Redis];

/// The source of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Content,
    Version,
    Upstream,
    Header,
    Json,
}

const SOURCES: [Source; 5] = [Source::Content, Source::Version, Source::Upstream, Source::Header, Source::Json];

impl Source {
    fn word(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Version => "version",
            Self::Upstream => "upstream",
            Self::Header => "header:X-Rev",
            Self::Json => "json:/rev",
        }
    }

    fn shown(self) -> Shown {
        match self {
            Self::Content | Self::Version => Shown::Nowhere,
            Self::Upstream => Shown::Entity,
            Self::Header => Shown::Field,
            Self::Json => Shown::Member,
        }
    }
}

/// The choices behind a configuration of three routes: documents, which are optimistic; the same documents by another
/// path and through another upstream, where they can be leased; and items, which touch their documents.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Options {
    pub source: Source,
    tags: Tags,
    dates: Dates,
    tells: bool,
    exclusive: bool,
    omits: bool,
    pub creates_freely: bool,
    pub guards_reads: bool,
    pub required: bool,
    /// Milliseconds, for the first and the second upstream.
    timeout: (usize, usize),
    late_write_window: (usize, usize),
}

/// Parts of a mark's deadline: a connection to a backend that accepts none, and a place in the queue for one.
const CONNECT_MS: usize = 500;
const QUEUE_MS: usize = 200;
const PROBE_MS: usize = 500;

/// The part of a mark's deadline beyond all that its owner may wait for.
const DEADLINE_GRACE: Duration = Duration::from_secs(5);

/// The time that others then have to write.
const OTHERS_WRITE: Duration = Duration::from_secs(1);

/// The step of the coarse dates. It is long, so that most states of a resource share one with others.
const DATE_STEP_SECONDS: u64 = 60;

/// The shortest times: the backend applies late writes between the two.
const TIMEOUT_MS: usize = 250;
const LATE_WRITE_WINDOW_MS: usize = 1_000;

impl Options {
    pub fn by_chance(random: &mut Random) -> Self {
        let source = SOURCES[random.below(SOURCES.len())];
        Self {
            source,
            tags: [Tags::Precise, Tags::Seconds, Tags::Seconds, Tags::Alternating][random.below(4)],
            dates: [Dates::Seconds, Dates::Steps(DATE_STEP_SECONDS)][random.below(2)],
            tells: random.is_one_of(50),
            exclusive: source == Source::Version || random.is_one_of(50),
            omits: random.is_one_of(25),
            creates_freely: random.is_one_of(50),
            guards_reads: random.is_one_of(25),
            required: random.is_one_of(50),
            timeout: (TIMEOUT_MS + random.below(500), TIMEOUT_MS + random.below(500)),
            late_write_window: (LATE_WRITE_WINDOW_MS + random.below(1_000), LATE_WRITE_WINDOW_MS + random.below(1_000)),
        }
    }

    /// Returns the same choices with leases that guard no reads and that no write needs.
    pub fn with_free_leases(self) -> Self {
        Self { guards_reads: false, required: false, ..self }
    }

    /// Returns the same choices with dates that most states share, as the only conditions of writes.
    pub fn with_coarse_dates(self) -> Self {
        Self { dates: Dates::Steps(DATE_STEP_SECONDS), creates_freely: false, ..self }
    }

    /// Returns the same choices with the statement that all writers come through the proxy.
    pub fn with_no_other_writers(self) -> Self {
        Self { exclusive: true, ..self }
    }

    /// Returns the same choices with this statement of how late the backend may apply a write.
    pub fn with_late_write_window(self, milliseconds: usize) -> Self {
        Self { late_write_window: (milliseconds, milliseconds), ..self }
    }

    pub fn style(&self) -> Style {
        Style { tags: self.tags, dates: self.dates, shown: self.source.shown(), tells: self.tells, named }
    }

    /// Returns the late writes that all choices allow for: most of them have been abandoned, and no `late_write_window`
    /// is over.
    pub const fn late() -> Late {
        Late { percent: LATE_PERCENT, after_ms: TIMEOUT_MS, spread_ms: LATE_WRITE_WINDOW_MS - 2 * TIMEOUT_MS }
    }

    /// Returns the time after which the mark of a stopped proxy has no owner, the doubt about its write is over, and
    /// others have written.
    pub fn outlasts_marks(&self) -> Duration {
        let timeout = self.timeout.0.max(self.timeout.1);
        let waits = CONNECT_MS + 3 * QUEUE_MS + 2 * timeout + 2 * PROBE_MS;
        let doubt = self.late_write_window.0.max(self.late_write_window.1);
        DEADLINE_GRACE + Duration::from_millis((waits + doubt) as u64) + OTHERS_WRITE
    }

    /// Returns the text of the configuration, in which `{backend}` stands for the backend.
    pub fn text(&self, store: &str) -> String {
        let mut text = format!(
            "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n[store]\n{store}\ntimeout = \"1s\"\nidle_ttl = \"1s\"\n"
        );
        for (name, timeout, late_write_window) in
            [("one", self.timeout.0, self.late_write_window.0), ("two", self.timeout.1, self.late_write_window.1)]
        {
            let _ = write!(
                text,
                "[upstreams.{name}]\nservers = [\"{{backend}}\"]\nidentity = \"backend\"\n\
                 connect_timeout = \"{CONNECT_MS}ms\"\ntimeout = \"{timeout}ms\"\nlate_write_window = \"{late_write_window}ms\"\n\
                 queue = {{ max_wait = \"{QUEUE_MS}ms\" }}\n"
            );
        }
        let _ = write!(
            text,
            "[defaults]\netag = \"{}\"\nother_writers = {}\non_write = \"{}\"\n\
             claim = {{ max_wait = \"150ms\" }}\nprobe = {{ timeout = \"{PROBE_MS}ms\" }}\nhash_wait = \"5s\"\n\
             idempotency = \"accept\"\n",
            self.source.word(),
            !self.exclusive,
            if self.omits { "omit" } else { "probe" },
        );
        let require = if self.creates_freely { "existing" } else { "always" };
        let _ = write!(
            text,
            "[[routes]]\nname = \"documents\"\npath = \"/docs/{{id}}\"\nkey = \"/docs/{{id}}\"\nupstream = \"one\"\n\
             policy = \"optimistic\"\nrequire = \"{require}\"\n\
             [[routes]]\nname = \"items\"\npath = \"/items/{{id}}\"\nkey = \"/items/{{id}}\"\nupstream = \"two\"\n\
             policy = \"optimistic\"\nrequire = \"{require}\"\nalso_changes = [\"/docs/{{id}}\"]\n\
             [[routes]]\nname = \"alias\"\npath = \"/alias/{{id}}\"\nkey = \"/docs/{{id}}\"\nupstream = \"two\"\n\
             policy = \"pessimistic\"\n[routes.lease]\nauth = \"none\"\nabsent = \"allow\"\nmin = \"1s\"\n\
             remember_time = \"1s\"\nmax_per_principal = 100000\nguards = {}\nrequired = {}\n",
            if self.guards_reads { "[\"read\", \"write\"]" } else { "[\"write\"]" },
            self.required,
        );
        text
    }
}

impl fmt::Display for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            source,
            tags,
            dates,
            tells,
            exclusive,
            omits,
            guards_reads,
            required,
            timeout,
            late_write_window,
            ..
        } = self;
        write!(
            formatter,
            "{} {tags:?} {dates:?}{}{}{}{}{}, timeout {} and {} ms, late_write_window {} and {} ms",
            source.word(),
            if *tells { " told" } else { "" },
            if *exclusive { " exclusive" } else { " shared" },
            if *omits { " omit" } else { "" },
            if *guards_reads { " guards reads" } else { "" },
            if *required { " lease required" } else { "" },
            timeout.0,
            timeout.1,
            late_write_window.0,
            late_write_window.1
        )
    }
}
