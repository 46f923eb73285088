//! The limits on one request body, together with the totals of all bodies.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, header};

use super::{
    Body, BodyBudget, BodyLimits, Client, MemoryUse, ReceiveError, StageError, UploadName, UploadOf, UploadOwner,
    content_length, receive, staged::StagedBlocks,
};
use crate::core::{objects::blocks::BlockId, records::revision::Revision};

/// The limits that one generation of the configuration sets for bodies. Clones share the totals and the staged blocks.
#[derive(Clone, Debug)]
pub struct Bodies {
    limits: BodyLimits,
    /// Returns the totals of all bodies.
    pub(crate) budget: Arc<BodyBudget>,
    staged: Arc<StagedBlocks>,
}

impl Bodies {
    /// Combines the limits on each body with the totals of `budget`.
    pub fn new(limits: BodyLimits, budget: Arc<BodyBudget>) -> Self {
        let staged = Arc::new(StagedBlocks::new(Arc::clone(&budget)));
        Self { limits, budget, staged }
    }

    /// Combines other limits on each body with the same totals and staged blocks.
    #[must_use]
    pub fn with_limits(&self, limits: BodyLimits) -> Self {
        Self { limits, budget: Arc::clone(&self.budget), staged: Arc::clone(&self.staged) }
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

    /// Receives the whole body of a request with a short content. A longer one is too large.
    ///
    /// # Errors
    ///
    /// Those of [`receive`].
    pub async fn receive_short(&self, client: &mut dyn Client, max_bytes: usize) -> Result<Vec<u8>, ReceiveError> {
        let max_bytes = self.limits.max_bytes.min(max_bytes as u64);
        let limits = BodyLimits { max_bytes, ..self.limits.clone() };
        let body = receive(client, &limits, &self.budget).await?;
        // A body that was received before has other limits.
        if body.len() > max_bytes {
            return Err(ReceiveError::TooLarge);
        }
        let mut bytes = Vec::new();
        body.each_chunk(|chunk| bytes.extend_from_slice(chunk)).await?;
        Ok(bytes)
    }

    /// True if the body that these fields announce justifies a probe before it is received: the client waits for
    /// permission to send it, or it does not fit into memory.
    pub fn is_costly(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(header::EXPECT)
            || content_length(headers).is_some_and(|length| length > self.limits.memory_bytes as u64)
    }

    /// Keeps a block of an upload until a list joins it, or its time is over. It replaces the block with the same id. An
    /// upload of an earlier turn ends.
    ///
    /// # Errors
    ///
    /// The upload cannot have the block, or there is no room for it.
    pub async fn stage(&self, upload: UploadOf, id: BlockId, block: &Body) -> Result<(), StageError> {
        self.staged.stage(upload, id, block, &self.limits).await
    }

    /// Joins blocks that an upload has at this turn to one body. The blocks stay.
    ///
    /// # Errors
    ///
    /// The list names an unknown block, or the body would be too large.
    pub async fn join(&self, upload: (&UploadName, Revision), list: &[BlockId]) -> Result<Body, StageError> {
        self.staged.join(upload, list, &self.limits).await
    }

    /// Returns the id and the length of each block that an upload has at this turn, ordered by id.
    pub fn staged(&self, name: &UploadName, turn: Revision) -> Vec<(BlockId, u64)> {
        self.staged.lengths(name, turn)
    }

    /// Returns the turn at which this process got the blocks that it has of an upload.
    pub fn turn_of(&self, name: &UploadName) -> Option<Revision> {
        self.staged.turn_of(name)
    }

    /// Drops the blocks of an upload.
    pub fn discard(&self, name: &UploadName) {
        self.staged.discard(name);
    }

    /// Notes that the upstream has let a client write. Such a client has more room for blocks.
    pub fn has_written(&self, owner: UploadOwner) {
        self.staged.has_written(owner);
    }

    /// The time for which blocks wait for their list.
    pub const fn block_ttl(&self) -> Duration {
        self.limits.block_ttl
    }

    /// The largest number of blocks that an upload has.
    pub const fn max_blocks(&self) -> usize {
        self.limits.max_blocks
    }
}
