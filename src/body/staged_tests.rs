//! Blocks in real spool files.

use tempfile::TempDir;

use super::*;
use crate::{
    body::{Content, MemoryUse, Share},
    core::http::client_address::ClientAddress,
    telemetry::metrics::Gauged as _,
};

const KIB: u64 = 1024;

struct Stage {
    staged: Arc<StagedBlocks>,
    budget: Arc<BodyBudget>,
    limits: BodyLimits,
    _dir: TempDir,
}

/// The upload of one client to one resource.
fn upload(resource: u8, client: [u8; 4]) -> UploadOf {
    let address = ClientAddress::V4(client);
    let owner = UploadOwner { client: [0; 16], address: Some(address) };
    UploadOf { name: UploadName { resource: [resource; 16], owner }, address, turn: Revision(1) }
}

const HOME: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 0, 2];

fn id(name: &str) -> BlockId {
    BlockId(name.as_bytes().to_vec())
}

impl Stage {
    /// Blocks whose spool files take at most this many bytes, other bodies included.
    fn with_spool(max_bytes: u64) -> Self {
        let (dir, budget) = (TempDir::new().unwrap(), Arc::new(BodyBudget::new(1 << 20, max_bytes)));
        let limits = BodyLimits {
            memory_bytes: 1 << 20,
            max_bytes: 100 * KIB,
            timeout: Duration::from_secs(10),
            spool_dir: dir.path().to_owned(),
            max_uploads: 256,
            max_blocks: 3,
            block_ttl: Duration::from_secs(60),
        };
        Self { staged: Arc::new(StagedBlocks::new(Arc::clone(&budget))), budget, limits, _dir: dir }
    }

    async fn stage(&self, upload: UploadOf, name: &str, content: &[u8]) -> Result<(), String> {
        let share = Share::none_of(&self.budget, MemoryUse::Body);
        let bytes = bytes::Bytes::copy_from_slice(content);
        let block = Body::received(Content::Memory(bytes), content.len() as u64, blake3::hash(content), share);
        self.staged.stage(upload, id(name), &block, &self.limits).await.map_err(|error| format!("{error:?}"))
    }

    async fn join(&self, upload: UploadOf, names: &[&str]) -> Result<Body, String> {
        let list: Vec<BlockId> = names.iter().map(|name| id(name)).collect();
        self.staged.join((&upload.name, upload.turn), &list, &self.limits).await.map_err(|error| format!("{error:?}"))
    }

    fn spooled(&self) -> u64 {
        self.budget.body_bytes().1
    }
}

async fn read(body: &Body) -> Vec<u8> {
    let (mut reader, mut bytes) = (body.reader(), Vec::new());
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

#[tokio::test]
async fn blocks_are_joined_in_the_order_of_the_list() {
    let (stage, blob) = (Stage::with_spool(1 << 30), upload(1, HOME));
    let large = vec![b'x'; 90 * 1024];
    stage.stage(blob, "b", b"second").await.unwrap();
    stage.stage(blob, "a", b"first ").await.unwrap();
    stage.stage(blob, "c", &large).await.unwrap();
    let body = stage.join(blob, &["a", "b"]).await.unwrap();
    assert_eq!((read(&body).await.as_slice(), body.len()), (&b"first second"[..], 12));
    assert_eq!(body.digest(), blake3::hash(b"first second"));
    let body = stage.join(blob, &["c", "a"]).await.unwrap();
    assert_eq!(read(&body).await, [large.as_slice(), b"first "].concat());
    assert_eq!(read(&stage.join(blob, &[]).await.unwrap()).await, b"");
}

/// The bytes of a body that is being sent stay as they are, even if its upload is replaced or ends.
#[tokio::test]
async fn a_joined_body_outlives_its_upload() {
    let (stage, blob) = (Stage::with_spool(1 << 30), upload(1, HOME));
    stage.stage(blob, "a", b"one").await.unwrap();
    let body = stage.join(blob, &["a"]).await.unwrap();
    stage.stage(blob, "a", b"two").await.unwrap();
    assert_eq!(stage.staged.lengths(&blob.name, blob.turn), [(id("a"), 3)]);
    stage.staged.discard(&blob.name);
    assert_eq!(stage.staged.lengths(&blob.name, blob.turn), []);
    assert_eq!((read(&body).await.as_slice(), stage.spooled()), (&b"one"[..], 6));
    drop(body);
    assert_eq!(stage.spooled(), 0, "the room is free again");
    assert!(stage.join(blob, &["a"]).await.unwrap_err().contains("Unknown"));
    assert_eq!(read(&stage.join(blob, &[]).await.unwrap()).await, b"", "an empty list names no unknown block");
}

#[tokio::test]
async fn uploads_do_not_mix() {
    let stage = Stage::with_spool(1 << 30);
    let (own, others) = (upload(1, HOME), upload(1, OTHER));
    stage.stage(own, "a", b"own").await.unwrap();
    stage.stage(others, "a", b"of another").await.unwrap();
    assert_eq!(read(&stage.join(own, &["a"]).await.unwrap()).await, b"own");
    assert!(stage.join(upload(2, HOME), &["a"]).await.is_err());
}

#[tokio::test]
async fn an_upload_has_its_limits() {
    let (stage, blob) = (Stage::with_spool(1 << 30), upload(1, HOME));
    for name in ["a", "b", "c", "c"] {
        stage.stage(blob, name, b"x").await.unwrap();
    }
    assert!(stage.stage(blob, "d", b"x").await.unwrap_err().contains("TooMany"));
    let large = vec![b'x'; 100 * 1024];
    assert!(stage.stage(blob, "a", &large).await.unwrap_err().contains("TooLarge"));
    assert_eq!(read(&stage.join(blob, &["a", "b", "c"]).await.unwrap()).await, b"xxx");
}

/// Blocks take half of the spool at most, and clients that have not written half of that.
#[tokio::test]
async fn blocks_leave_room_for_others() {
    let stage = Stage::with_spool(800 * KIB);
    let (block, third) = (vec![b'x'; 50 * 1024], [127, 0, 0, 3]);
    stage.stage(upload(1, HOME), "a", &block).await.unwrap();
    stage.stage(upload(2, HOME), "a", &block).await.unwrap();
    assert_eq!(stage.stage(upload(3, HOME), "a", &block).await, Err("Full".to_owned()));
    stage.stage(upload(1, OTHER), "a", &block).await.unwrap();
    assert_eq!(stage.stage(upload(1, OTHER), "b", &block).await, Err("Full".to_owned()));
    stage.stage(upload(1, third), "a", &block[..25 * 1024]).await.unwrap();
    stage.staged.has_written(upload(1, OTHER).name.owner);
    stage.stage(upload(1, OTHER), "b", &block).await.unwrap();
    stage.stage(upload(1, third), "b", &block[..20 * 1024]).await.expect("the writer has left the room of the others");
    stage.staged.discard(&upload(1, HOME).name);
    stage.stage(upload(3, HOME), "a", &block[..25 * 1024]).await.unwrap();
}

#[tokio::test]
async fn one_client_has_a_part_of_all_uploads() {
    let stage = Stage::with_spool(1 << 30);
    for resource in 0..32 {
        stage.stage(upload(resource, HOME), "a", b"x").await.unwrap();
    }
    assert_eq!(stage.stage(upload(32, HOME), "a", b"x").await, Err("Full".to_owned()));
    stage.stage(upload(0, HOME), "b", b"x").await.expect("it has this upload already");
    stage.stage(upload(32, OTHER), "a", b"x").await.unwrap();
    stage.staged.has_written(upload(0, HOME).name.owner);
    stage.stage(upload(32, HOME), "a", b"x").await.expect("it may write");
}

/// A block that comes late must not end the upload that has taken its place.
#[tokio::test]
async fn an_upload_of_an_earlier_turn_ends() {
    let (stage, first) = (Stage::with_spool(1 << 30), upload(1, HOME));
    let second = UploadOf { turn: Revision(2), ..first };
    stage.stage(first, "a", b"one").await.unwrap();
    stage.stage(second, "b", b"two").await.unwrap();
    assert_eq!(stage.staged.lengths(&first.name, second.turn), [(id("b"), 3)]);
    assert_eq!(stage.staged.lengths(&first.name, first.turn), []);
    assert!(stage.join(second, &["a"]).await.unwrap_err().contains("Unknown"));
    assert!(stage.join(first, &["b"]).await.unwrap_err().contains("Unknown"));
    assert_eq!(stage.stage(first, "a", b"one").await, Err("Full".to_owned()));
    assert_eq!(read(&stage.join(second, &["b"]).await.unwrap()).await, b"two");
}

/// The time is counted from the last block.
#[tokio::test(start_paused = true)]
async fn blocks_without_a_list_expire() {
    let (stage, blob) = (Stage::with_spool(1 << 30), upload(1, HOME));
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    stage.stage(blob, "a", b"one").await.unwrap();
    pass(40).await;
    stage.stage(blob, "b", b"two").await.unwrap();
    pass(40).await;
    assert_eq!(stage.staged.lengths(&blob.name, blob.turn).len(), 2);
    let mut waits = 0;
    while stage.spooled() > 0 {
        pass(1).await;
        waits += 1;
        assert!(waits < 60, "the upload has expired");
    }
    assert_eq!((stage.staged.lengths(&blob.name, blob.turn), waits >= 19), (vec![], true));
    stage.stage(blob, "a", b"one").await.expect("another upload can begin");
    pass(62).await;
    while stage.spooled() > 0 {
        tokio::task::yield_now().await;
    }
}
