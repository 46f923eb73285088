//! WebSocket handshakes: what a read of the same resource may do, they may.

use super::{
    Guard,
    lease::usage::judge_read_by_lease,
    request::{Received, Request, name_resource},
};
use crate::{
    body::Client,
    core::{policy::ErrorShape, precondition::Preconditions},
    dialect::{
        native::{LEASE_DURATION, presented_id},
        s3,
    },
    routing::{GuardedRequest, Tunnel},
};

impl Guard {
    /// Judges a handshake by the lease. `None` where it is to be handled as a read: it is refused there, or takes the lease
    /// of what it reads, or is something that only a read can be.
    pub async fn admit_handshake(&self, client: &mut dyn Client, guarded: &GuardedRequest) -> Option<Tunnel> {
        let guard = guarded.route.guard.as_ref()?;
        let mut head = client.head().clone();
        let lease_id = presented_id(&head.headers).ok()?;
        let takes_lease = guard.lease.as_ref().is_some_and(|rules| rules.acquire_on_read);
        if takes_lease && head.headers.contains_key(&LEASE_DURATION) {
            return None;
        }
        name_resource(&mut head, guarded).ok()?;
        if guard.errors == ErrorShape::S3 {
            s3::refuse_unguardable(&guarded.method, head.raw_path(), &head.headers, &guard.etag).ok()?;
        }
        let (key, method) = (guarded.key.clone(), guarded.method.clone());
        let (place, head) = (self.place(guarded), Received::of(client, head, guarded.client));
        let request = Request::new(place, guard, key, method, head, Preconditions::default(), lease_id);
        let snapshot = self.knowledge.snapshot(&request.key).await;
        let fence = judge_read_by_lease(&request, snapshot.as_ref()).ok()?;
        Some(Tunnel { fence })
    }
}
