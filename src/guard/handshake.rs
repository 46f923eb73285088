//! WebSocket handshakes: what a read of the same resource may do, they may.

use super::{Guard, lease::usage::judge_read_by_lease};
use crate::{
    body::Client,
    core::precondition::Preconditions,
    dialect::{Call, Incoming},
    routing::{GuardedRequest, Tunnel},
};

impl Guard {
    /// Judges a handshake by the lease. `None` where it is to be handled as a read: it is refused there, or takes the lease
    /// of what it reads, or is something that only a read can be.
    pub async fn admit_handshake(&self, client: &mut dyn Client, guarded: &GuardedRequest) -> Option<Tunnel> {
        let rules = guarded.route.guard.as_ref()?;
        let grammar = rules.dialect.grammar();
        let head = client.head();
        let incoming = Incoming { method: &guarded.method, target: head.raw_path(), headers: &head.headers };
        let call = grammar.read(incoming, rules, false).ok()?;
        let takes_lease = rules.lease.as_ref().is_some_and(|rules| rules.acquire_on_read);
        if takes_lease && grammar.asks_for_lease(&head.headers) {
            return None;
        }
        // Its conditions are about what a read gets.
        let call = Call { conditions: Preconditions::default(), ..call };
        let request = self.request(client, guarded, rules, call).ok()?;
        let snapshot = self.knowledge.snapshot(&request.key).await;
        let fence = judge_read_by_lease(&request, snapshot.as_ref()).ok()?;
        Some(Tunnel { fence })
    }
}
