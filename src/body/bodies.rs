//! The limits on one request body, together with the totals of all bodies.

use std::sync::Arc;

use http::{HeaderMap, header};

use super::{Body, BodyBudget, BodyLimits, Client, MemoryUse, ReceiveError, content_length, receive};

/// What one generation of the configuration allows bodies to cost. Clones share the totals.
#[derive(Clone, Debug)]
pub struct Bodies {
    limits: BodyLimits,
    budget: Arc<BodyBudget>,
}

impl Bodies {
    /// These limits on each body, within the totals of `budget`.
    pub const fn new(limits: BodyLimits, budget: Arc<BodyBudget>) -> Self {
        Self { limits, budget }
    }

    /// Other limits on each body, within the same totals.
    #[must_use]
    pub fn with_limits(&self, limits: BodyLimits) -> Self {
        Self { limits, budget: Arc::clone(&self.budget) }
    }

    /// The totals of all bodies.
    pub const fn budget(&self) -> &Arc<BodyBudget> {
        &self.budget
    }

    /// The totals, for a body of this use.
    pub const fn budget_for(&self, purpose: MemoryUse) -> (&Arc<BodyBudget>, MemoryUse) {
        (&self.budget, purpose)
    }

    /// Receives the whole body of a request ([`receive`]).
    ///
    /// # Errors
    ///
    /// As those of [`receive`].
    pub async fn receive(&self, client: &mut dyn Client) -> Result<Body, ReceiveError> {
        receive(client, &self.limits, &self.budget).await
    }

    /// Whether the body that these fields announce is worth a request to the upstream before it is received: the client
    /// waits for permission to send it, or it does not fit into memory.
    pub fn is_costly(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(header::EXPECT)
            || content_length(headers).is_some_and(|length| length > self.limits.memory_bytes as u64)
    }
}
