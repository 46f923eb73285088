//! The wait of a holder for the end of its lease: it learns at once that it must stop.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Leases, bound_to};
use crate::{
    body::Client,
    core::{policy::LeaseRules, records::record::Snapshot, watch::next_change},
    dialect::native,
    guard::{Halt, answer::while_client_waits, request::Request},
};

/// The longest time between two looks at the record. Stores report each change, and this bounds how long a lost notice
/// stays unknown.
const LOOK_AFTER: Duration = Duration::from_secs(1);

impl Leases {
    /// Waits until the lease that a request names is no longer held, for as long as its client is willing to. Returns the
    /// record then.
    pub(super) async fn after_end(
        &self,
        client: &mut dyn Client,
        request: &Request,
        rules: &LeaseRules,
        mut snapshot: Snapshot,
    ) -> Result<Snapshot, Halt> {
        let wait = native::wait(&client.head().headers).unwrap_or_default().min(rules.max_wait);
        let Some(id) = request.sender.lease_id else { return Ok(snapshot) };
        let (end, principal) = (Instant::now() + wait, bound_to(request, rules));
        let is_held = |snapshot: &Snapshot| snapshot.held_leases().any(|lease| lease.is_proved_by(id, principal));
        while is_held(&snapshot) && Instant::now() < end && !request.place.gate.has_cancelled_waiters() {
            let left = end.saturating_duration_since(Instant::now()).min(LOOK_AFTER);
            let wait = next_change(&snapshot).map_or(left, |change| change.min(left));
            let change = timeout(wait, self.knowledge.records.changed(&request.key, &snapshot, snapshot.revision));
            let _ = while_client_waits(client, request.place.gate.unless_cancelled(change)).await?;
            snapshot = self.knowledge.record(request).await?;
        }
        Ok(snapshot)
    }
}
