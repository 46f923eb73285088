//! A repository, with the rights of one client: requests for what lies below its path.

use http::Method;

use crate::{
    body::Client,
    core::resource::ResourceKey,
    dialect::{
        git_lfs::{elsewhere, too_large},
        native,
    },
    guard::{Halt, ReceivedClient, Request, incoming, rules_of},
    routing::GuardedRequest,
    service::{Service, own_request::made_head},
};

/// A repository, as one client uses it.
pub(super) struct Repository<'a> {
    pub(super) service: &'a Service<'a>,
    pub(super) client: &'a mut dyn Client,
    pub(super) guarded: &'a GuardedRequest,
    /// Its path, without a slash at its end.
    pub(super) path: String,
}

impl<'a> Repository<'a> {
    pub(super) fn new(
        service: &'a Service<'a>,
        client: &'a mut dyn Client,
        guarded: &'a GuardedRequest,
        path: String,
    ) -> Self {
        Self { service, client, guarded, path }
    }

    /// Receives the document of the client's request.
    pub(super) async fn document(&mut self, bytes_max: usize) -> Result<Vec<u8>, Halt> {
        self.service.receive_short(self.client, bytes_max, too_large).await
    }

    /// Returns a request for what has this path, with the client that it stands for.
    pub(super) fn request(&mut self, method: &Method, path: &str) -> Result<(ReceivedClient<'_>, Request), Halt> {
        let head = made_head(self.client.head(), (method, path), rules_of(self.guarded)?)?;
        let guarded = self.service.guarded_here(&head, self.guarded, elsewhere)?;
        let rules = rules_of(&guarded)?;
        let call = native::call(incoming(&head, &guarded), rules, false)?;
        let mut client = ReceivedClient::without_content(self.client, head);
        let request = self.service.guard.request(&mut client, &guarded, rules, call)?;
        Ok((client, request))
    }

    /// Returns a request for the locks of the repository, and the key of their list.
    pub(super) fn locks(&mut self) -> Result<(Request, ResourceKey), Halt> {
        let path = format!("{}/locks", self.path);
        let (_, request) = self.request(&Method::GET, &path)?;
        let listed = ResourceKey::of_leases_below(&request.key);
        Ok((request, listed))
    }
}
