//! A gate that a test opens.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::sleep};

use super::wait::within;

/// Closed at first. All tasks that wait at it go on when it is opened, and all later ones pass.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Returns a gate that opens on its own after this time.
    pub fn opened_after(time: Duration) -> Self {
        let gate = Self::closed();
        let opened = gate.clone();
        tokio::spawn(async move {
            sleep(time).await;
            opened.open();
        });
        gate
    }

    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub fn is_open(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is open, at most until the deadline.
    pub async fn passed(&self) {
        let mut state = self.0.subscribe();
        within("a gate to be opened", state.wait_for(|open| *open)).await.expect("the gate holds the sender");
    }
}
