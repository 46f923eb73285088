//! `WebDAV` class 2 (RFC 4918) before a server without locks, or with locks of its own that it never gets to use.
//!
//! A lock is a lease of its resource. So it holds on every route that reaches the resource, in any dialect. The locks
//! of a request are judged here, and never arrive at the backend.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use super::{Service, verb};
use crate::{
    body::{Body, Client},
    core::{
        policy::GuardRules,
        refusal::{Code, Refusal},
    },
    dialect::{
        Call, Intent,
        webdav::{IF, LOCK_TOKEN, LockFields, TIMEOUT},
    },
    guard::{Answer, Halt, Relayed, Request, Verb, refusals, remove_validators},
    routing::GuardedRequest,
    upstream::BodyPrefix,
};

mod conditions;
mod locks;
mod properties;

/// A request of the protocol.
struct DavRequest<'a> {
    guarded: &'a GuardedRequest,
    /// The head as the client sent it.
    received: Arc<RequestHeader>,
    rules: &'a Arc<GuardRules>,
    fields: LockFields,
    request: Request,
}

impl Service<'_> {
    /// Handles a request of a `WebDAV` client.
    pub(super) async fn answer_webdav(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        rules: &Arc<GuardRules>,
        call: Call,
    ) -> Result<Answer, Halt> {
        let (intent, received) = (call.intent, client.head().clone());
        let fields = LockFields::read(&guarded.methods.judged, &received.headers)?;
        let mut request = self.guard.request(client, guarded, rules, call)?;
        remove_lock_fields(Arc::make_mut(&mut request.head));
        if let Some(destination) = request.destination_mut() {
            remove_lock_fields(Arc::make_mut(&mut destination.head));
        }
        let mut dav = DavRequest { guarded, received, rules, fields, request };
        match dav.request.method.as_str() {
            _ if intent == Intent::Preflight => {}
            "OPTIONS" => return self.tell_options(client, &dav).await,
            "LOCK" => return self.lock_file(client, dav).await,
            "UNLOCK" => return self.unlock_file(client, dav).await,
            "PROPFIND" => {
                self.judge_conditions(&mut dav).await?;
                return self.find_properties(client, dav).await;
            }
            // A backend that ignores case would take it for its own.
            other if ["LOCK", "UNLOCK"].iter().any(|name| other.eq_ignore_ascii_case(name)) => {
                return Err(Refusal::new(Code::MethodNotAllowed, "spell LOCK and UNLOCK in upper case").into());
            }
            _ => self.judge_conditions(&mut dav).await?,
        }
        self.guard.serve(client, &dav.request, verb(intent, false)).await
    }

    /// Forwards OPTIONS, and adds to the answer what this proxy can do.
    async fn tell_options(&self, client: &mut dyn Client, dav: &DavRequest<'_>) -> Result<Answer, Halt> {
        let answer = self.guard.serve(client, &dav.request, Verb::Read).await?;
        let Answer::Relayed(relayed) = answer else { return Ok(answer) };
        let Relayed { mut head, begun, rest } = *relayed;
        if !head.status.is_success() && !matches!(head.status.as_u16(), 405 | 501) {
            return Ok(Answer::Relayed(Box::new(Relayed { head, begun, rest })));
        }
        if let Some(exchange) = rest {
            exchange.discard().await;
        }
        head.set_status(StatusCode::OK)?;
        remove_validators(&mut head);
        for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::TRANSFER_ENCODING] {
            head.remove_header(&name);
        }
        head.insert_header(header::CONTENT_LENGTH, 0)?;
        add_to_list(&mut head, "DAV", &["1", "2"])?;
        add_to_list(&mut head, "Allow", &["OPTIONS", "LOCK", "UNLOCK"])?;
        // Office opens documents for writing only where it stands.
        head.insert_header("MS-Author-Via", HeaderValue::from_static("DAV"))?;
        Ok(Answer::Relayed(Box::new(Relayed { head, begun: BodyPrefix::default(), rest: None })))
    }
}

/// Removes the lock fields of a request. A backend that has locks of its own would judge it by another table.
fn remove_lock_fields(head: &mut RequestHeader) {
    for name in [IF, LOCK_TOKEN, TIMEOUT] {
        head.remove_header(&name);
    }
}

/// Adds members to a field that is a list.
fn add_to_list(head: &mut ResponseHeader, name: &'static str, members: &[&str]) -> Result<(), Halt> {
    let lines = head.headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    let there: Vec<String> = lines
        .flat_map(|line| line.split(','))
        .map(|member| member.trim().to_owned())
        .filter(|one| !one.is_empty())
        .collect();
    // The added ones stand first, in their order: some clients look at the beginning alone.
    let others = there.into_iter().filter(|one| members.iter().all(|member| !one.eq_ignore_ascii_case(member)));
    let list: Vec<String> = members.iter().map(ToString::to_string).chain(others).collect();
    head.insert_header(name, list.join(", "))?;
    Ok(())
}

/// Receives the content of a request, of which at most this number of bytes is read.
async fn content_of(body: &Body, most_bytes: usize) -> Result<Vec<u8>, Halt> {
    let mut content = Vec::new();
    let mut reader = body.reader();
    while let Some(chunk) = reader.next_chunk().await.map_err(|error| refusals::of_spool(&error))? {
        content.extend_from_slice(&chunk);
        if content.len() > most_bytes {
            break;
        }
    }
    Ok(content)
}

/// The path of a target, as a reference.
fn path_of(head: &RequestHeader) -> String {
    let target = String::from_utf8_lossy(head.raw_path()).into_owned();
    target.split('?').next().unwrap_or_default().to_owned()
}

/// The PUT that creates an empty resource, on behalf of a request.
fn creation(received: &RequestHeader) -> Result<RequestHeader, Refusal> {
    let mut head = received.clone();
    let is_of_content =
        |name: &str| name.starts_with("content-") || name.starts_with("if") || name.starts_with("lease-");
    let others = ["depth", "expect", "idempotency-key", "lock-token", "overwrite", "timeout", "transfer-encoding"];
    let removed: Vec<_> = head
        .headers
        .keys()
        .filter(|name| is_of_content(name.as_str()) || others.contains(&name.as_str()))
        .cloned()
        .collect();
    for name in &removed {
        head.remove_header(name);
    }
    head.set_method(Method::PUT);
    let of_field = |_error| refusals::of_field();
    head.insert_header(header::IF_NONE_MATCH, "*").map_err(of_field)?;
    head.insert_header(header::CONTENT_LENGTH, 0).map_err(of_field)?;
    Ok(head)
}
