//! Uploads in blocks: a block waits in this process, without a claim, until a list joins it to the body of one write.
//!
//! # Design
//!
//! *Why is the upstream asked before the first block?* It knows nothing of blocks, and gets none before the list. A block
//! of a client that it refuses would take room from others.
//!
//! *Why is it asked for the right to read?* A right to write shows only in a write, and a write that changes nothing does
//! not exist for an upstream that knows no conditions. The list itself is the proof: it is a write with the credentials
//! of the client, and joins only blocks that came with the very same ones. So no bytes are ever written by a right that
//! their sender did not have. Until then a client without the right to write has less room ([`upload_room`]).
//!
//! *Why is it asked again for each block of some clients?* A client that signs each request is known by a name that
//! others can write too, and so is one without credentials. Nothing but each request itself can show who sent it.
//!
//! [`upload_room`]: crate::core::shares::upload_room

use std::sync::OnceLock;

use crate::{
    body::{Body, BoxFuture, Client, MemoryUse, ReceiveError, Share, StageError, UploadName, UploadOf, UploadOwner},
    core::{
        cause::Reason,
        objects::blocks::{BlockFault, BlockId},
        records::{record::Revision, upload_turn::take_turn},
        refusal::{Code, Refusal},
        resource::ResourceKey,
        tags::checksum::{Checksum, ChecksumKind},
    },
    dialect::{
        ShownDocument,
        objects::{BlockGrammar, SentContent},
    },
    guard::{Answer, Halt, Request, WriteContent, WrittenContent, checksums, refusals},
    service::Service,
};

impl Service<'_> {
    /// Keeps a block of a client that the upstream lets in. The upstream gets nothing of it, so the lease is judged once
    /// more when the list arrives.
    pub(crate) async fn stage_block(
        &self,
        client: &mut dyn Client,
        request: &Request,
        content: &SentContent,
    ) -> Result<Answer, Halt> {
        let (SentContent::Block(id), Some(grammar)) = (content, request.grammar().blocks()) else {
            return Err(refusals::of_field().into());
        };
        let name = upload_of(request);
        let asks_upstream = name.owner.address.is_some() || self.guard.bodies().turn_of(&name).is_none();
        self.guard.must_permit(request, asks_upstream).await?;
        let block = self.guard.bodies().receive(client).await.map_err(refusals::of_body)?;
        checksums::check(request, &request.content.checksums, &block).await?;
        let crc64 = checksums::of(&block, ChecksumKind::Crc64).await?;
        let turn = self.take_turn(&name).await?;
        let upload = UploadOf { name, address: request.sender.address, turn };
        self.guard.bodies().stage(upload, id.clone(), &block).await.map_err(|error| refused(grammar, error))?;
        Ok(Answer::local(grammar.kept(crc64)))
    }

    /// Returns the blocks in a list that was received, or the content that was received instead of a list.
    async fn joined(&self, request: &Request, content: &SentContent, received: Body) -> Result<Body, Halt> {
        let (SentContent::BlockList { checksums }, Some(grammar)) = (content, request.grammar().blocks()) else {
            return Ok(received);
        };
        let list = self.read_list(grammar, &received).await?;
        let name = upload_of(request);
        let turn = self.last_turn(&name).await?;
        let body = self.guard.bodies().join((&name, turn), &list).await.map_err(|error| refused(grammar, error))?;
        checksums::check(request, checksums, &body).await?;
        Ok(body)
    }

    /// Drops the blocks of a client whose write of the resource was applied, and notes that it may write.
    pub(crate) fn end_upload(&self, request: &Request) {
        if request.grammar().blocks().is_some() {
            let name = upload_of(request);
            self.guard.bodies().discard(&name);
            self.guard.bodies().has_written(name.owner);
        }
    }

    /// Returns the document that shows the blocks of a client's upload, and whether there are any.
    pub(crate) async fn shown_blocks(
        &self,
        request: &Request,
        target: &[u8],
    ) -> Result<Option<(ShownDocument, bool)>, Halt> {
        let Some(grammar) = request.grammar().blocks() else { return Ok(None) };
        let name = upload_of(request);
        let blocks = self.guard.bodies().staged(&name, self.last_turn(&name).await?);
        Ok(Some((grammar.shown(target, &blocks), !blocks.is_empty())))
    }

    /// Gives this process the turn at an upload that it gets a block of. In a store of its own it always has it.
    async fn take_turn(&self, name: &UploadName) -> Result<Revision, Halt> {
        let records = self.guard.records();
        if !records.are_shared() {
            return Ok(Revision::default());
        }
        let (key, owner) = (ResourceKey::of_upload(name.digest()), self.guard.owner());
        let (held, lasts) = (self.guard.bodies().turn_of(name), self.guard.bodies().block_ttl());
        let taken = records.update(&key, None, |snapshot| take_turn(snapshot, owner, held, lasts)).await;
        Ok(taken.map_err(|error| refusals::of_store(&error))?.snapshot.revision)
    }

    /// Returns the turn of the process that got the last block of an upload.
    async fn last_turn(&self, name: &UploadName) -> Result<Revision, Halt> {
        let records = self.guard.records();
        if !records.are_shared() {
            return Ok(Revision::default());
        }
        let last = records.read(&ResourceKey::of_upload(name.digest())).await;
        Ok(last.map_err(|error| refusals::of_store(&error))?.revision)
    }

    /// Reads a list.
    async fn read_list(&self, grammar: &dyn BlockGrammar, received: &Body) -> Result<Vec<BlockId>, Halt> {
        let max_bytes = grammar.max_list_bytes(self.guard.bodies().max_blocks());
        let Some(len) = usize::try_from(received.len()).ok().filter(|len| *len <= max_bytes) else {
            return Err(grammar.refused(BlockFault::ListTooLong).into());
        };
        let mut share = Share::none_of(&self.guard.bodies().budget, MemoryUse::Body);
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

/// The content of a write: its own, or that of the blocks in its list.
pub(crate) struct JoinedBlocks<'a> {
    pub(crate) service: &'a Service<'a>,
    pub(crate) content: &'a SentContent,
    /// The MD5 that the answer has, once it is known.
    pub(crate) told_md5: &'a OnceLock<Checksum>,
}

impl JoinedBlocks<'_> {
    /// Notes the MD5 of a whole that its request has brought. One that the client named has been checked.
    async fn note_md5(&self, request: &Request, received: &Body) -> Result<(), Halt> {
        if !matches!(self.content, SentContent::Whole) {
            return Ok(());
        }
        let is_md5 = |checksum: &&Checksum| matches!(checksum, Checksum::Md5(_));
        let md5 = match request.content.checksums.iter().find(is_md5) {
            Some(checked) => *checked,
            None => checksums::of(received, ChecksumKind::Md5).await?,
        };
        self.told_md5.get_or_init(|| md5);
        Ok(())
    }
}

impl WrittenContent for JoinedBlocks<'_> {
    fn written<'a>(&'a self, request: &'a Request, received: Body) -> BoxFuture<'a, Result<WriteContent, Halt>> {
        Box::pin(async {
            self.note_md5(request, &received).await?;
            Ok(self.service.joined(request, self.content, received).await?.into())
        })
    }
}

/// Returns the name of the client's upload to the resource. A client whose identity others can name too counts together
/// with its address.
fn upload_of(request: &Request) -> UploadName {
    let (principal, address) = (request.sender.principal, request.sender.address);
    let owner = match principal.secret() {
        Some(client) => UploadOwner { client, address: None },
        None => UploadOwner { client: principal.holder(), address: Some(address) },
    };
    UploadName { resource: request.key.digest(), owner }
}

fn refused(grammar: &dyn BlockGrammar, error: StageError) -> Halt {
    match error {
        StageError::Fault(fault) => grammar.refused(fault).into(),
        StageError::Full => too_many_blocks().into(),
        StageError::Body(error) => refusals::of_body(error),
    }
}

/// The refusal of a block for which other blocks leave no room.
fn too_many_blocks() -> Refusal {
    let detail = "blocks that wait for their list take all room that there is for blocks; send this one again later";
    Refusal::new(Code::Overloaded, detail).retry_after(refusals::RETRY_SOON).because(Reason::BodiesFull)
}
