//! Raises the floors of all buckets, one range at a time. A script for all of them at once would block Redis.

use super::{
    RedisShared,
    reply::{RAISE, Reply},
};
use crate::{core::record::Revision, store::StoreError};

/// The number of buckets in one script, which takes a few hundred microseconds.
const RANGE: u16 = 1_024;

impl RedisShared {
    /// Gives every absent record a later revision.
    pub(super) async fn raise_floors(&self) -> Result<(), StoreError> {
        for first in (0..=u16::MAX).step_by(usize::from(RANGE)) {
            let reached = self.epoch.reached()?;
            let mut script = RAISE.key(&self.keys.floors);
            script.key(&self.keys.counter).arg(first).arg(first + (RANGE - 1));
            let (_, _, _, counter, _, _) = self.engine.run::<Reply>(&script).await?.reply;
            self.epoch.accept(reached, Revision(counter))?;
        }
        Ok(())
    }
}
