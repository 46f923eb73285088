//! A clock that stands still until a test changes it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use ifmatch::{clock::Clock, core::time::StoreTime};

#[derive(Default)]
pub struct StillClock(AtomicU64);

impl StillClock {
    pub fn pass(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).expect("a short time"), Ordering::Relaxed);
    }
}

impl Clock for StillClock {
    fn now(&self) -> StoreTime {
        StoreTime::from_milliseconds(self.0.load(Ordering::Relaxed))
    }
}
