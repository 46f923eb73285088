//! The documents of requests and answers, as Git LFS specifies them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Lock, LockPath, ObjectId, PageWanted, refusals};
use crate::core::refusal::Refusal;

/// The media type of the API.
pub const MEDIA_TYPE: &str = "application/vnd.git-lfs+json";

/// The most objects in a batch. Each of them costs a request to the backend; clients send 100.
const OBJECTS_MAX: usize = 1_000;

/// The longest document about a lock, in bytes: a path, and the name of a branch.
pub const LOCK_BYTES_MAX: usize = 8 * 1024;

/// The longest document about objects, in bytes.
pub const fn batch_bytes_max() -> usize {
    OBJECTS_MAX * 256
}

/// A request that asks where objects are read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRequest {
    /// True if they are to be written.
    pub is_upload: bool,
    /// The objects.
    pub objects: Vec<BatchedObject>,
}

/// An object in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BatchedObject {
    oid: String,
    /// Its length in bytes, by the client's word.
    pub size: u64,
}

/// The state of an object at the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundObject {
    /// The object, with this length if the backend tells one.
    Present(Option<u64>),
    /// The backend does not have the object.
    Absent,
}

/// A request to lock a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathToLock {
    /// The path.
    pub path: LockPath,
}

/// A request for the locks of the client and those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyRequest {
    /// The page that it wants.
    pub page: PageWanted,
}

/// A request to unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnlockRequest {
    /// True if the client ends the lock of another too.
    pub is_forced: bool,
}

#[derive(Deserialize)]
struct SentBatch {
    operation: String,
    objects: Vec<BatchedObject>,
    #[serde(default)]
    hash_algo: Option<String>,
}

#[derive(Deserialize)]
struct SentLock {
    path: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SentVerify {
    cursor: Option<String>,
    limit: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SentUnlock {
    force: bool,
}

impl BatchRequest {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// It is none, or asks for an operation that is not served.
    pub fn parse(document: &[u8]) -> Result<Self, Refusal> {
        let sent: SentBatch = read(document, "operation and objects, each with oid and size")?;
        let is_upload = match sent.operation.as_str() {
            "upload" => true,
            "download" => false,
            _ => return Err(refusals::malformed_document("operation, which is \"upload\" or \"download\"")),
        };
        if sent.hash_algo.is_some_and(|algorithm| algorithm != "sha256") {
            return Err(refusals::other_hash());
        }
        if sent.objects.len() > OBJECTS_MAX {
            return Err(refusals::too_large());
        }
        Ok(Self { is_upload, objects: sent.objects })
    }
}

impl BatchedObject {
    /// Its name. `None` if it has none.
    pub fn id(&self) -> Option<ObjectId> {
        ObjectId::parse(&self.oid)
    }

    /// Returns the answer about the object, whose URL is `href`.
    fn told(&self, is_upload: bool, found: FoundObject, href: &str) -> Value {
        let (oid, size) = (&self.oid, self.size);
        let is_whole = matches!(found, FoundObject::Present(length) if length.is_none_or(|length| length == size));
        match (is_upload, found) {
            (true, FoundObject::Present(Some(length))) if length == size => json!({ "oid": oid, "size": size }),
            // The backend has something, and it may not be whole.
            (true, _) => json!({ "oid": oid, "size": size, "actions": { "upload": { "href": href } } }),
            (false, _) if is_whole => {
                json!({ "oid": oid, "size": size, "actions": { "download": { "href": href } } })
            }
            (false, FoundObject::Absent) => failed(oid, size, 404, "the server does not have the object"),
            (false, FoundObject::Present(_)) => failed(oid, size, 404, "the server has the object with another length"),
        }
    }
}

/// Returns the answer to a batch: for each object, what the backend has of it and its URL. `None` for one without a name.
pub fn batch_answer(request: &BatchRequest, found: &[Option<(FoundObject, String)>]) -> String {
    let told = |(object, found): (&BatchedObject, &Option<(FoundObject, String)>)| match found {
        Some((found, href)) => object.told(request.is_upload, *found, href),
        None => failed(&object.oid, object.size, 422, "the oid of an object is its SHA-256: 64 hexadecimal digits"),
    };
    let objects: Vec<Value> = request.objects.iter().zip(found).map(told).collect();
    json!({ "transfer": "basic", "objects": objects, "hash_algo": "sha256" }).to_string()
}

fn failed(oid: &str, size: u64, code: u16, message: &str) -> Value {
    json!({ "oid": oid, "size": size, "error": { "code": code, "message": message } })
}

impl PathToLock {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// It is none, or no file has its path.
    pub fn parse(document: &[u8]) -> Result<Self, Refusal> {
        const MEMBER: &str = "path, that of a file in the repository";
        let sent: SentLock = read(document, MEMBER)?;
        let path = LockPath::parse(&sent.path).ok_or_else(|| refusals::malformed_document(MEMBER))?;
        Ok(Self { path })
    }
}

impl VerifyRequest {
    /// Reads a document, which may be empty.
    ///
    /// # Errors
    ///
    /// It is none, or has a cursor that no client was given.
    pub fn parse(document: &[u8]) -> Result<Self, Refusal> {
        let sent: SentVerify = read_or_default(document, "cursor and limit, if it has any")?;
        let limit = sent.limit.filter(|limit| *limit > 0);
        let page = PageWanted::of(sent.cursor.as_deref(), limit).ok_or_else(refusals::bad_page)?;
        Ok(Self { page })
    }
}

impl UnlockRequest {
    /// Reads a document, which may be empty.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn parse(document: &[u8]) -> Result<Self, Refusal> {
        let sent: SentUnlock = read_or_default(document, "force, if it has any")?;
        Ok(Self { is_forced: sent.force })
    }
}

/// Returns the answer about one lock.
pub fn lock_answer(lock: &Lock) -> String {
    json!({ "lock": lock }).to_string()
}

/// Returns the answer about several locks.
pub fn locks_answer(locks: &[Lock], next_cursor: Option<&str>) -> String {
    with_cursor(json!({ "locks": locks }), next_cursor)
}

/// Returns the answer that tells the locks of the client apart from those of others.
pub fn verify_answer(ours: &[Lock], theirs: &[Lock], next_cursor: Option<&str>) -> String {
    with_cursor(json!({ "ours": ours, "theirs": theirs }), next_cursor)
}

fn with_cursor(mut answer: Value, next_cursor: Option<&str>) -> String {
    if let (Some(cursor), Some(members)) = (next_cursor, answer.as_object_mut()) {
        members.insert("next_cursor".to_owned(), cursor.into());
    }
    answer.to_string()
}

fn read<'d, T: Deserialize<'d>>(document: &'d [u8], members: &str) -> Result<T, Refusal> {
    serde_json::from_slice(document).map_err(|_error| refusals::malformed_document(members))
}

fn read_or_default<'d, T: Deserialize<'d> + Default>(document: &'d [u8], members: &str) -> Result<T, Refusal> {
    if document.is_empty() { Ok(T::default()) } else { read(document, members) }
}
