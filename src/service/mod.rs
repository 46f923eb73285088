//! Guarded requests, each carried out by the verbs of the guard.
//!
//! [`handle`] is the entry. In plain HTTP a request is one verb. Some services have more: their requests are operations of
//! their own, and each takes one verb or several. The dialect of the route names its service
//! ([`ServiceKind`]), and each service is a folder here.

use std::sync::Arc;

use http::Method;

use crate::{
    body::{Client, ReceiveError},
    box_future::box_future,
    core::{quirks::ServiceKind, refusal::Refusal},
    dialect::{Call, Intent},
    guard::{Answer, Guard, Halt, Request, Verb, refusals, rules_of},
    routing::{Facet, GuardedRequest},
};

mod azure_blob;
mod azure_queue;
mod current_state;
mod events;
mod git_lfs;
mod head_alone;
mod held_lease;
mod next_member;
mod operation;
mod own_request;
mod restated;
mod s3;
mod tag_member;
mod terraform;
#[cfg(test)]
mod toy;
mod watch;
mod webdav;

use next_member::takes_member;
use own_request::call_of;

/// The operations of services, over one guard.
pub(crate) struct Service<'a> {
    guard: &'a Guard,
}

/// Handles one request and returns the answer for its client, or its refusal. The outer error means that no answer can be
/// given.
pub fn handle<'a>(
    guard: &'a Guard,
    client: &'a mut dyn Client,
    guarded: &'a GuardedRequest,
) -> impl Future<Output = pingora::Result<Result<Answer, Refusal>>> + Send + 'a {
    box_future(|| Service { guard }.handle(client, guarded))
}

impl Service<'_> {
    async fn handle(
        self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
    ) -> pingora::Result<Result<Answer, Refusal>> {
        if guarded.route.members.is_some() && takes_member(client.head(), guarded) {
            return Box::pin(self.handle_next(client, guarded)).await;
        }
        if Guard::is_named_by_content(client, guarded) {
            return Box::pin(self.handle_named(client, guarded)).await;
        }
        let answer = self.answer(client, guarded).await;
        if guarded.is_lease() || guarded.methods.usages.changes() {
            self.guard.may_be_free(client.head().raw_path());
        }
        self.guard.complete(client.head(), guarded, answer).await
    }

    /// Handles a request whose content may name its resource or its method.
    async fn handle_named(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
    ) -> pingora::Result<Result<Answer, Refusal>> {
        let head = Arc::clone(client.head());
        match self.guard.name_by_content(client, guarded).await {
            Ok((mut client, named)) => {
                let answer = self.answer(&mut client, &named).await;
                self.guard.complete(client.head(), &named, answer).await
            }
            Err(halt) => self.guard.complete(&head, guarded, Err(halt)).await,
        }
    }

    async fn answer(&self, client: &mut dyn Client, guarded: &GuardedRequest) -> Result<Answer, Halt> {
        let rules = rules_of(guarded)?;
        // Boxed, so that the futures of other requests stay small.
        match guarded.facet {
            Facet::Watch if guarded.methods.judged == Method::GET => Box::pin(self.answer_watch(client, guarded)).await,
            Facet::Lease if held_lease::is_wanted(client.head(), &guarded.methods.judged) => {
                Box::pin(self.answer_held_lease(client, guarded)).await
            }
            _ if rules.restates() && restated::may_be_needed(&client.head().headers, guarded, rules) => {
                Box::pin(self.answer_restated(client, guarded)).await
            }
            _ => self.answer_as_stated(client, guarded).await,
        }
    }

    async fn answer_as_stated(&self, client: &mut dyn Client, guarded: &GuardedRequest) -> Result<Answer, Halt> {
        let (rules, call) = call_of(client.head(), guarded)?;
        match rules.quirks.service {
            ServiceKind::Plain => {
                let (request, verb) = self.called(client, guarded, call)?;
                match self.guard.serve(client, &request, verb).await {
                    Err(Halt::Refused(refusal)) if current_state::is_wanted(client, guarded, &refusal) => {
                        Box::pin(self.with_current_state(client, guarded, refusal)).await
                    }
                    answer => answer,
                }
            }
            // Boxed, so that the futures of plain requests stay small.
            ServiceKind::S3 => box_future(|| self.answer_s3(client, guarded, rules, call)).await,
            ServiceKind::Azure => box_future(|| self.answer_operation(client, guarded, rules, call)).await,
            ServiceKind::AzureQueue => box_future(|| self.answer_queue(client, guarded, call)).await,
            ServiceKind::Terraform => box_future(|| self.answer_of_states(client, guarded, call)).await,
            ServiceKind::GitLfs => box_future(|| self.answer_git_lfs(client, guarded, call)).await,
            ServiceKind::WebDav => box_future(|| self.answer_webdav(client, guarded, rules, call)).await,
            #[cfg(test)]
            ServiceKind::Toy => box_future(|| self.answer_toy(client, guarded, call)).await,
        }
    }

    /// Returns the request of a call, and the one verb that its purpose names.
    fn called(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        call: Call,
    ) -> pingora::Result<(Request, Verb<'static>)> {
        let verb = verb(call.intent, guarded.is_lease());
        Ok((self.guard.request(client, guarded, rules_of(guarded)?, call)?, verb))
    }

    /// Receives a body of at most this length.
    async fn receive_short(
        &self,
        client: &mut dyn Client,
        bytes_max: usize,
        too_large: impl FnOnce() -> Refusal + Send,
    ) -> Result<Vec<u8>, Halt> {
        self.guard.bodies().receive_short(client, bytes_max).await.map_err(|error| match error {
            ReceiveError::TooLarge => too_large().into(),
            error => refusals::of_body(error),
        })
    }
}

/// The verb that a request with this purpose is carried out by.
const fn verb(intent: Intent, is_of_lease: bool) -> Verb<'static> {
    match intent {
        Intent::Read | Intent::ReadBlocks | Intent::List => Verb::Read,
        Intent::Write | Intent::StageBlock | Intent::RemoveTree => Verb::Write(None),
        Intent::Append => Verb::Append,
        Intent::Lease => Verb::Lease,
        Intent::Preflight => Verb::Preflight { is_of_lease },
    }
}
