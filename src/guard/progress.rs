//! The parts of a generation that requests in flight share: the gates of its routes, its end, and the watches.

use std::{sync::Arc, time::SystemTime};

use super::{
    Guard,
    seen_documents::SeenDocuments,
    watch_places::{WatchCounts, WatchLimits},
    watcher::WatchRooms,
};
use crate::{
    clock::WallClock,
    config::Server,
    drain::{Gates, GenerationEnd},
};

/// The gates, ends and watches that the requests of one generation share.
pub(super) struct GenerationProgress {
    /// The gates of the routes.
    pub(super) gates: Gates,
    /// The end of the generation.
    pub(super) end: GenerationEnd,
    pub(super) watch_rooms: Arc<WatchRooms>,
    pub(super) watches: Arc<WatchCounts>,
    /// The documents that services have seen.
    pub(super) seen: Arc<SeenDocuments>,
    /// The clock for the dates that services keep.
    pub(super) wall_clock: WallClock,
    pub(super) watch_limits: WatchLimits,
}

impl GenerationProgress {
    /// Returns the parts of the first generation.
    pub(super) fn new(watch_rooms: WatchRooms, server: &Server, gates: Gates) -> Self {
        Self {
            gates,
            end: GenerationEnd::default(),
            watch_rooms: Arc::new(watch_rooms),
            watches: Arc::default(),
            seen: Arc::default(),
            wall_clock: SystemTime::now,
            watch_limits: WatchLimits::of(server),
        }
    }

    /// Returns the parts for the next generation. Both share the watches, and the documents that were seen.
    pub(super) fn renewed(&self, server: &Server, gates: Gates) -> Self {
        Self {
            gates,
            end: GenerationEnd::default(),
            watch_rooms: Arc::clone(&self.watch_rooms),
            watches: Arc::clone(&self.watches),
            seen: Arc::clone(&self.seen),
            wall_clock: self.wall_clock,
            watch_limits: WatchLimits::of(server),
        }
    }
}

impl Guard {
    /// Gives the guard another source of dates.
    #[must_use]
    pub fn dated_by(mut self, wall_clock: WallClock) -> Self {
        self.progress.wall_clock = wall_clock;
        self
    }

    /// Returns the date.
    pub(crate) fn date(&self) -> SystemTime {
        (self.progress.wall_clock)()
    }
}
