//! Uploads in blocks: a block waits in this process, without a claim, until a list joins it to the body of one write.

use super::{Writes, checksums};
use crate::{
    body::{Body, Client, MemoryUse, ReceiveError, Share, StageError, UploadName, UploadOf},
    core::blocks::{BlockFault, BlockId},
    dialect::{
        ShownDocument,
        blocks::{BlockGrammar, SentContent},
    },
    guard::{answer::Answer, lease::usage::judge_write_by_lease, refusals, request::Request},
};

impl Writes {
    /// Keeps a block. The upstream gets nothing, so the lease is judged once more when the list arrives.
    pub(crate) async fn stage_block(&self, client: &mut dyn Client, request: &Request) -> Result<Answer, Answer> {
        let (SentContent::Block(id), Some(grammar)) = (&request.content.kind, request.grammar().blocks()) else {
            return Err(refusals::of_field().into());
        };
        let snapshot = self.knowledge.record(request).await?;
        if let Err(denied) = judge_write_by_lease(request, &snapshot) {
            return Err(self.leases.refuse_by_lease(request, &snapshot, denied).await);
        }
        let block = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        checksums::check(request, &request.content.checksums, &block).await?;
        let upload = UploadOf { name: upload_of(request), client: request.sender.address };
        self.bodies.stage(upload, id.clone(), &block).await.map_err(|error| refused(grammar, error))?;
        Ok(Answer::local(grammar.kept()))
    }

    /// Returns the body of a write: what was received, or the blocks in a list that was received.
    pub(crate) async fn written_body(&self, request: &Request, received: Body) -> Result<Body, Answer> {
        let (SentContent::BlockList { checksums }, Some(grammar)) = (&request.content.kind, request.grammar().blocks())
        else {
            return Ok(received);
        };
        let list = self.read_list(grammar, &received).await?;
        let body = self.bodies.join(&upload_of(request), &list).await.map_err(|error| refused(grammar, error))?;
        checksums::check(request, checksums, &body).await?;
        Ok(body)
    }

    /// Drops the blocks of a client's upload, if there are any.
    pub(crate) fn discard_blocks(&self, request: &Request) {
        if request.grammar().blocks().is_some() {
            self.bodies.discard(&upload_of(request));
        }
    }

    /// Returns the document that shows the blocks of a client's upload, and whether there are any.
    pub(crate) fn shown_blocks(&self, request: &Request, target: &[u8]) -> Option<(ShownDocument, bool)> {
        let grammar = request.grammar().blocks()?;
        let blocks = self.bodies.staged(&upload_of(request));
        Some((grammar.shown(target, &blocks), !blocks.is_empty()))
    }

    /// Reads a list.
    async fn read_list(&self, grammar: &dyn BlockGrammar, received: &Body) -> Result<Vec<BlockId>, Answer> {
        let max_bytes = grammar.max_list_bytes(self.bodies.max_blocks());
        let Some(len) = usize::try_from(received.len()).ok().filter(|len| *len <= max_bytes) else {
            return Err(grammar.refused(BlockFault::ListTooLong).into());
        };
        let mut share = Share::none_of(&self.bodies.budget, MemoryUse::Body);
        if !share.hold_memory(len) {
            return Err(refusals::of_body(ReceiveError::Full));
        }
        let mut list = Vec::with_capacity(len);
        received.each_chunk(|chunk| list.extend_from_slice(chunk)).await.map_err(|error| refusals::of_spool(&error))?;
        let list = grammar.list(&list);
        drop(share);
        Ok(list?)
    }
}

/// Returns the name of the client's upload to the resource. Only credentials that nobody else can name tell clients
/// apart. All others count together with the address.
fn upload_of(request: &Request) -> UploadName {
    let (principal, address) = (request.sender.principal, request.sender.address);
    UploadName {
        resource: request.key.digest(),
        client: principal.holder(),
        address: (!principal.is_secret()).then_some(address),
    }
}

fn refused(grammar: &dyn BlockGrammar, error: StageError) -> Answer {
    match error {
        StageError::Fault(fault) => grammar.refused(fault).into(),
        StageError::Full => refusals::too_many_blocks().into(),
        StageError::Body(error) => refusals::of_body(error),
    }
}
