//! The settings that are explored in every schedule: two requests on related resources, over each pair of operations,
//! each source of tags, and each way in which the two can meet.

use std::{fmt, sync::Arc};

use crate::{
    backend::Tags,
    operation::{ALL, Manner, Operation, WITH_METADATA},
    options::{Options, SOURCES, Source},
    process::Keeping,
    run::{Setting, Step},
    schedule::Faults,
};

/// The way in which two requests meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// On one path, in one process.
    InProcess,
    /// On one path, in two processes.
    Between,
    /// On one resource by two paths, whose routes have two upstreams.
    ByAlias,
    /// On two resources, one of which changes with the other.
    ByTouch,
    /// Like [`Meeting::ByTouch`], but the other resource is leased, in a file.
    OnDisk,
    /// Like [`Meeting::InProcess`], on a resource with metadata.
    WithMetadata,
    /// Like [`Meeting::Between`], on a resource with metadata.
    WithMetadataBetween,
    /// On a document onto which the first request copies or moves an item, in two processes.
    AtDestination,
    /// On a document that the first request copies or moves onto an item, in two processes.
    AtSource,
}

/// The meetings of a COPY or MOVE with another request.
const MEETINGS_OF_TRANSFERS: [Meeting; 2] = [Meeting::AtDestination, Meeting::AtSource];

const MEETINGS: [Meeting; 5] =
    [Meeting::InProcess, Meeting::Between, Meeting::ByAlias, Meeting::ByTouch, Meeting::OnDisk];

/// The meetings on a resource with metadata. Its only source of tags is the version.
const MEETINGS_WITH_METADATA: [Meeting; 2] = [Meeting::WithMetadata, Meeting::WithMetadataBetween];

impl Meeting {
    /// True if the first request is on an item whose document changes with it.
    pub fn is_by_touch(self) -> bool {
        matches!(self, Self::ByTouch | Self::OnDisk)
    }

    /// True if a pair can meet in this way, and the scenario does not repeat another one.
    fn is_of_interest(self, (one, other): (Operation, Operation)) -> bool {
        let changes = one.writes() || other.writes() || one.is_of_lease() && other.is_of_lease();
        match self {
            Self::InProcess | Self::Between | Self::WithMetadata | Self::WithMetadataBetween => changes && one <= other,
            Self::ByAlias => changes,
            Self::ByTouch => one.writes() && !one.is_of_lease(),
            Self::OnDisk => one.writes() && other.is_of_lease(),
            Self::AtDestination | Self::AtSource => one.transfers(),
        }
    }
}

/// Two requests, and the way in which they meet.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub source: Source,
    pub pair: (Operation, Operation),
    pub meeting: Meeting,
    pub faults: u32,
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, pair: (one, other), meeting, faults } = self;
        write!(formatter, "{one:?} and {other:?}, {source:?}, {meeting:?}, {faults} faults")
    }
}

/// Returns all scenarios, with at most this number of faults.
pub fn all(faults: u32) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (meeting, source) in MEETINGS.into_iter().flat_map(|meeting| SOURCES.map(|source| (meeting, source))) {
        let pairs = ALL.into_iter().flat_map(|one| ALL.map(|other| (one, other)));
        let pairs = pairs.filter(|pair| meeting.is_of_interest(*pair));
        scenarios.extend(pairs.map(|pair| Scenario { source, pair, meeting, faults }));
    }
    for meeting in MEETINGS_WITH_METADATA {
        let pairs = WITH_METADATA.into_iter().flat_map(|one| WITH_METADATA.map(|other| (one, other)));
        let pairs = pairs.filter(|pair| meeting.is_of_interest(*pair));
        scenarios.extend(pairs.map(|pair| Scenario { source: Source::Version, pair, meeting, faults }));
    }
    let transfers = [Operation::Copy, Operation::Move];
    for (meeting, source) in
        MEETINGS_OF_TRANSFERS.into_iter().flat_map(|meeting| SOURCES.map(|source| (meeting, source)))
    {
        let others = ALL.into_iter().chain(transfers);
        let pairs = others.flat_map(|other| transfers.map(|one| (one, other)));
        scenarios.extend(pairs.map(|pair| Scenario { source, pair, meeting, faults }));
    }
    scenarios
}

impl Scenario {
    pub fn setting(self) -> Arc<Setting> {
        let Self { source, pair: (one, other), meeting, .. } = self;
        let has_lease = one.is_of_lease() || other.is_of_lease();
        // A backend that makes the tags gives all states of such a run one tag; elsewhere each state has its own.
        let tags = if meeting == Meeting::Between { Tags::Precise } else { Tags::Seconds };
        let options = Options {
            tags,
            leased: (has_lease, has_lease),
            item_touches_document: meeting.is_by_touch(),
            has_metadata: MEETINGS_WITH_METADATA.contains(&meeting),
            late_write_window: (5, 3),
            require: if MEETINGS_OF_TRANSFERS.contains(&meeting) { "never" } else { "always" },
            ..Options::plain(source)
        };
        let first = match meeting {
            Meeting::InProcess
            | Meeting::Between
            | Meeting::WithMetadata
            | Meeting::WithMetadataBetween
            | Meeting::AtSource => "/docs/1",
            Meeting::ByAlias => "/alias/1",
            Meeting::ByTouch | Meeting::OnDisk | Meeting::AtDestination => "/items/1",
        };
        let steps = [(first, one), ("/docs/1", other)];
        let step = |operation, target: &str| Step { operation, target: target.to_owned(), manner: Manner::default() };
        let mut prologue: Vec<Vec<Step>> = vec![Vec::new(); 2];
        if (one, other) != (Operation::Create, Operation::Create) {
            prologue[0].push(step(Operation::Create, "/docs/1"));
        }
        if meeting.is_by_touch() || MEETINGS_OF_TRANSFERS.contains(&meeting) {
            prologue[0].push(step(Operation::Create, "/items/1"));
        }
        for (client, (target, operation)) in steps.iter().enumerate() {
            if operation.needs_tag() {
                prologue[client].push(step(Operation::Read, target));
            }
            if operation.needs_lease() || meeting == Meeting::OnDisk && client == 1 {
                prologue[client].push(step(Operation::Acquire, target));
            }
        }
        let (keeping, proxies) = match meeting {
            Meeting::InProcess | Meeting::WithMetadata => (Keeping::Memory, 1),
            Meeting::OnDisk => (Keeping::Disk, 1),
            Meeting::Between
            | Meeting::ByAlias
            | Meeting::ByTouch
            | Meeting::WithMetadataBetween
            | Meeting::AtDestination
            | Meeting::AtSource => (Keeping::Shared, 2),
        };
        Arc::new(Setting {
            keeping,
            proxies,
            prologue,
            steps: steps.iter().map(|(target, operation)| vec![step(*operation, target)]).collect(),
            faults: Faults { left: self.faults, kills: keeping != Keeping::Memory, fails: false },
            settled_reads: false,
            ..Setting::of(&options, &options.text())
        })
    }
}
