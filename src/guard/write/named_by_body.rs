//! Writes whose body names their resource (`writes_to`): the body is received first, and then the write is judged as one
//! to that resource.
//!
//! # Design
//!
//! *Why is the door asked again?* The named resource has a route of its own, with its key, tags, leases and conditions.
//! The same rules judge a write to its path and a write that names it in the body, so neither evades the other. Only
//! the target that the upstream gets is different.
//!
//! *What happens to a body without the name?* The upstream can only create a resource under a name of its own choice. So
//! the request is judged by the rules of the route that it came by, as if that had no `writes_to`.
//!
//! *Why is every other body refused?* A body that is not declared as JSON may be JSON and a form at once. The upstream
//! could find a name where there is none for ifmatch.

use std::sync::Arc;

use http::Method;
use pingora::http::RequestHeader;
use serde_json::de::IoRead;

use super::{
    Writes,
    method_in_body::{method_in, named_in_body},
};
use crate::{
    body::{Body, Client},
    core::{
        http::readings::{body_name::name_from_json, declared_json::is_declared_json, named_method::NamedMethod},
        refusal::{Code, Refusal},
        route::WritesTo,
        tags::json::JsonPointer,
    },
    guard::{Halt, received_client::ReceivedClient, refusals},
    routing::{GuardedRequest, door::Door},
    telemetry::stream_info,
};

impl Writes {
    /// Receives the body of a request. Returns the request as one to the resource that the body names, if it names one.
    pub(crate) async fn name_by_body<'a>(
        &self,
        client: &'a mut dyn Client,
        guarded: &GuardedRequest,
    ) -> Result<(ReceivedClient<'a>, GuardedRequest), Halt> {
        let mut head = Arc::clone(client.head());
        if !is_declared_json(&head.headers) {
            return Err(not_json().into());
        }
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        // A body names a resource or a method, but no backend takes both from it.
        if guarded.methods.may_be(&[Method::POST]) && method_in(&head.headers, &body).await? != NamedMethod::None {
            return Err(named_in_body().into());
        }
        let mut named = guarded.clone();
        if let Some(template) = guarded.writes_to()
            && let Some(values) = names_in(&body, template).await?
        {
            let target = self.related.written_to(template, &head, &values).ok_or_else(unusable_name)?;
            let mut written = RequestHeader::clone(&head);
            written.set_raw_path(&target)?;
            if let Some(request) = self.as_write_to(&written, guarded)? {
                stream_info::acts_on(&request.key);
                let received = guarded.target_at_upstream(head.raw_path());
                named = GuardedRequest { forwarded_target: Some(received.into()), ..request };
                head = Arc::new(written);
            }
        }
        Ok((ReceivedClient { has_content: client.has_content(), client, head, body: Some(body) }, named))
    }

    /// The request as the door makes it of a write to this target; `None` if no route guards the target.
    fn as_write_to(&self, head: &RequestHeader, guarded: &GuardedRequest) -> Result<Option<GuardedRequest>, Refusal> {
        // Any write that names its resource replaces it, for all that ifmatch knows.
        let methods = &guarded.methods;
        let keeps = [Method::PUT, Method::PATCH].contains(&methods.judged) && !methods.may_be(&[Method::POST]);
        let method = if keeps { &methods.judged } else { &Method::PUT };
        match self.door(method, head, guarded.client) {
            Door::Guarded(request) if !request.is_lease() => {
                Ok(Some(GuardedRequest { methods: request.methods.clone().joined(methods), ..request }))
            }
            Door::Refuse { refusal, .. } => Err(refusal),
            _ => Ok(None),
        }
    }
}

/// The values in a body that name the resource; `None` if the body has none of them.
async fn names_in(body: &Body, template: &WritesTo) -> Result<Option<Vec<String>>, Halt> {
    let mut names = Vec::new();
    let mut lacking = 0;
    for pointer in template.members() {
        let wanted = pointer.clone();
        let read = body.read_with(move |text| name_from_json(IoRead::new(text), &wanted)).await;
        match read.map_err(|error| refusals::of_spool(&error))? {
            Ok(Some(name)) => names.push(name),
            Ok(None) => lacking += 1,
            Err(_) => return Err(unreadable_name(pointer).into()),
        }
    }
    match (names.is_empty(), lacking) {
        (true, _) => Ok(None),
        (false, 0) => Ok(Some(names)),
        (false, _) => Err(unusable_name().into()),
    }
}

fn not_json() -> Refusal {
    let detail = "the body may name the resource that is written: send it as JSON in UTF-8, with one field \
                  Content-Type: application/json and without Content-Encoding";
    Refusal::new(Code::UnsupportedMediaType, detail)
}

fn unreadable_name(pointer: &JsonPointer) -> Refusal {
    let detail = format!(
        "the body names the resource by its member {pointer}: send one JSON object in UTF-8 that has it once, as a \
         string or an integer of at most 2^53, and no member that some reader takes for it"
    );
    Refusal::new(Code::MalformedRequest, detail)
}

fn unusable_name() -> Refusal {
    let detail =
        "the body names the resource: send all members that name it, each as a text that can be a path segment";
    Refusal::new(Code::AmbiguousTarget, detail)
}
