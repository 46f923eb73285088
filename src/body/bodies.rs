//! The limits on one request body, together with the totals of all bodies.

use std::sync::Arc;

use http::{HeaderMap, header};

use super::{Body, BodyBudget, BodyLimits, Client, MemoryUse, ReceiveError, content_length, receive};

/// The limits that one generation of the configuration sets for bodies. Clones share the totals.
#[derive(Clone, Debug)]
pub struct Bodies {
    limits: BodyLimits,
    /// Returns the totals of all bodies.
    pub(crate) budget: Arc<BodyBudget>,
}

impl Bodies {
    /// Combines the limits on each body with the totals of `budget`.
    pub const fn new(limits: BodyLimits, budget: Arc<BodyBudget>) -> Self {
        Self { limits, budget }
    }

    /// Combines other limits on each body with the same totals.
    #[must_use]
    pub fn with_limits(&self, limits: BodyLimits) -> Self {
        Self { limits, budget: Arc::clone(&self.budget) }
    }

    /// Returns the totals, together with this use of them.
    pub const fn budget_for(&self, purpose: MemoryUse) -> (&Arc<BodyBudget>, MemoryUse) {
        (&self.budget, purpose)
    }

    /// Receives the whole body of a request ([`receive`]).
    ///
    /// # Errors
    ///
    /// Those of [`receive`].
    pub async fn receive(&self, client: &mut dyn Client) -> Result<Body, ReceiveError> {
        receive(client, &self.limits, &self.budget).await
    }

    /// Whether the body that these fields announce justifies a probe before it is received. It does if the client waits
    /// for permission to send it, or if it does not fit into memory.
    pub fn is_costly(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(header::EXPECT)
            || content_length(headers).is_some_and(|length| length > self.limits.memory_bytes as u64)
    }
}
