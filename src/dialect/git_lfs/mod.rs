//! The git-lfs dialect: objects of Git LFS as files of the backend, and the locks of its users (`docs/how-to/git-lfs.md`).
//!
//! | request, below the path of a repository | effect | success |
//! |---|---|---|
//! | `POST objects/batch` | tells where objects are read or written | 200 |
//! | `GET`, `PUT objects/ab/cd/ID` | reads or writes an object | the upstream's |
//! | `POST locks` | locks a path | 201 |
//! | `GET locks`, `POST locks/verify` | shows the locks, in pages | 200 |
//! | `POST locks/ID/unlock` | unlocks it; with `force`, also that of another client | 200 |
//!
//! # Design
//!
//! *What is the name of a lock worth?* Nothing: the proxy shows it to each client. The lease behind it has a secret id
//! that no client gets, and belongs to the principal that took it.
//!
//! *How is a lock found by its name?* The name begins with the hash of its resource. The list of the repository's locks
//! tells which resource has that hash.
//!
//! *Why does a lock cover its path in all branches?* A file that cannot be merged cannot be merged between branches either.
//!
//! *Why are objects in folders of two digits?* So does Git LFS store them itself, and its folder can be copied to a server.

mod documents;
mod error;
mod grammar;
mod lock;
mod object;
mod operation;
mod page;
mod refusals;
#[cfg(test)]
mod tests;

pub use documents::{
    BatchRequest, BatchedObject, FoundObject, LOCK_BYTES_MAX, MEDIA_TYPE, PathToLock, UnlockRequest, VerifyRequest,
    batch_answer, batch_bytes_max, lock_answer, locks_answer, verify_answer,
};
pub use grammar::GitLfs;
pub use lock::{Lock, LockName, LockPath};
pub use object::ObjectId;
pub use operation::{LfsCall, LfsOperation, LockFilter};
pub use page::{LockPage, PageWanted};
pub use refusals::{elsewhere, lock_not_found, no_force, not_owner, too_large, too_long_lock};
