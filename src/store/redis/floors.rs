//! Raising the floors of all buckets, a range of them at a time: a script that did all at once would hold Redis up.

use super::{
    RedisShared,
    reply::{RAISE, Reply},
};
use crate::{core::record::Revision, store::StoreError};

/// Buckets in one script: some hundred microseconds.
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
