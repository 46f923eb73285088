//! The API of Git LFS in front of a file server: its objects are files, and its locks are leases of this proxy.
//!
//! # Design
//!
//! *What does a lock keep others from?* From nothing at the backend. Each client asks for the locks before it pushes,
//! and pushes no file that another one has locked. The file itself goes to the Git server, which is another server.
//!
//! *Who may lock?* Each client that the backend lets read below the repository. The proxy asks with the client's
//! credentials.

use http::StatusCode;

use super::Service;
use crate::{
    body::Client,
    dialect::{
        Call, Intent, Response,
        git_lfs::{LfsCall, LfsOperation, MEDIA_TYPE},
    },
    guard::{Answer, Halt, incoming, refusals},
    routing::GuardedRequest,
};
use repository::Repository;

mod batch;
mod locks;
mod owner;
mod repository;
#[cfg(test)]
mod tests;

impl Service<'_> {
    /// Handles a request of a client of Git LFS.
    pub(super) async fn answer_git_lfs(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        call: Call,
    ) -> Result<Answer, Halt> {
        if matches!(call.intent, Intent::Preflight | Intent::Read | Intent::Write) {
            let (request, verb) = self.called(client, guarded, call)?;
            return self.guard.serve(client, &request, verb).await;
        }
        let LfsCall { repository, operation } = LfsCall::of(incoming(client.head(), guarded))?;
        let mut repository = Repository::new(self, client, guarded, repository);
        match operation {
            LfsOperation::Batch => repository.batch().await,
            LfsOperation::Lock => repository.lock().await,
            LfsOperation::ListLocks(filter, page) => repository.list_locks(&filter, page).await,
            LfsOperation::VerifyLocks => repository.verify_locks().await,
            LfsOperation::Unlock(name) => repository.unlock(&name).await,
            LfsOperation::ReadObject | LfsOperation::WriteObject(_) => Err(refusals::of_field().into()),
        }
    }
}

/// The answer with a document.
fn told(status: StatusCode, document: String) -> Answer {
    Answer::local(Response::document(status, MEDIA_TYPE, document))
}
