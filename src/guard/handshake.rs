//! WebSocket handshakes, which are permitted whenever a read of the same resource is.

use super::{Guard, lease::usage::judge_read_by_lease, request::incoming};
use crate::{
    body::Client,
    core::tags::precondition::Preconditions,
    dialect::Call,
    routing::{GuardedRequest, Tunnel},
};

impl Guard {
    /// Judges a handshake by the lease. `None` means that the caller handles it as a read instead: the read refuses it,
    /// acquires the lease of its resource, or is an operation that no handshake can be.
    pub async fn admit_handshake(&self, client: &mut dyn Client, guarded: &GuardedRequest) -> Option<Tunnel> {
        let rules = guarded.route.guard.as_ref()?;
        let grammar = rules.dialect.grammar();
        let head = client.head();
        let call = grammar.read(incoming(head, guarded), rules, false).ok()?;
        let takes_lease = rules.lease.as_ref().is_some_and(|rules| rules.acquire_on_read);
        if takes_lease && grammar.asks_for_lease(&head.headers) {
            return None;
        }
        // Its conditions apply only to the answer of a read.
        let call = Call { conditions: Preconditions::default(), ..call };
        let request = self.request(client, guarded, rules, call).ok()?;
        let snapshot = self.knowledge.snapshot(&request.key).await;
        let fence = judge_read_by_lease(&request, snapshot.as_ref()).ok()?;
        Some(Tunnel { fence })
    }
}
