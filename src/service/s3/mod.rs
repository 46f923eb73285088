//! S3: writes like those of plain HTTP. A copy is one as well, and before it the proxy looks at its source. A list of
//! objects to remove is many of them (`removals`).
//!
//! # Design
//!
//! *Why does the proxy only look?* The server reads the source itself, by a request that its client has signed for that. So
//! the proxy looks at a settled state, judges the lease and the conditions, and sends the copy on as it came. A server that
//! ignores the conditions may still read a state that another write has made since.
//!
//! *What about a source without a guarded route?* It is only read, so no update is lost. A condition on it is refused:
//! neither the proxy nor, perhaps, the server judges it.

use std::sync::Arc;

use http::Method;
use pingora::http::RequestHeader;

use super::Service;
use crate::{
    body::Client,
    core::policy::GuardRules,
    dialect::{
        Call,
        objects::{CopySource, SentContent},
        s3::{is_of_source, not_judged},
    },
    guard::{Answer, Halt},
    routing::{GuardedRequest, door::Door},
    upstream::fields::FieldsOfHead as _,
};

mod removals;

impl Service<'_> {
    /// Handles a request of an S3 client.
    pub(super) async fn answer_s3(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        rules: &Arc<GuardRules>,
        call: Call,
    ) -> Result<Answer, Halt> {
        match &call.content {
            SentContent::CopyOf(source) => self.look_at_source(client, guarded, source).await?,
            SentContent::Removals => return self.remove_listed(client, guarded, (rules, call)).await,
            _ => {}
        }
        let (request, verb) = self.called(client, guarded, call)?;
        self.guard.serve(client, &request, verb).await
    }

    /// Judges the source of a copy, if its route is guarded.
    async fn look_at_source(
        &self,
        client: &mut dyn Client,
        copy: &GuardedRequest,
        source: &CopySource,
    ) -> Result<(), Halt> {
        let head = head_of_source(client.head(), source)?;
        let guarded = match self.guard.door(&head.method, &head, copy.client) {
            Door::Guarded(guarded) => guarded,
            Door::Refuse { refusal, .. } => return Err(refusal.into()),
            _ if source.fields.is_empty() => return Ok(()),
            _ => return Err(not_judged().into()),
        };
        let (mut client, request) = self.own_request(client, head, &guarded)?;
        self.guard.may_be_read(&mut client, &request).await
    }
}

/// Returns the head of a read of the source, with the credentials of the copy.
fn head_of_source(copy: &RequestHeader, source: &CopySource) -> Result<RequestHeader, Halt> {
    let mut head = copy.clone();
    head.set_method(Method::GET);
    head.set_raw_path(source.url.as_bytes())?;
    head.remove_all(|name| !is_of_source(name));
    for (name, value) in &source.fields {
        head.insert_header(name.clone(), value.clone())?;
    }
    Ok(head)
}
