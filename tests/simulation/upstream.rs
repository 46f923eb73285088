//! The upstream's seam: a request waits until the schedule lets the backend act on it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use ifmatch::{
    body::{Body, BoxFuture},
    config::Upstream,
    upstream::{Connection, Exchange, Failure, Purpose, Transport, WantedPlace, Wire},
};
use pingora::http::{RequestHeader, ResponseHeader};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    metadata,
    options::ELSEWHERE,
    transfers::named,
    world::{Response, Sent, What, World, current_request},
};

/// The path of one process to the backend.
pub struct Way {
    pub world: World,
    pub process: usize,
}

impl Transport for Way {
    fn connect<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        _wanted: WantedPlace<'a>,
        _purpose: Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move { Ok(Box::new(self.line(upstream)) as Box<dyn Connection>) })
    }

    fn read<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        _wanted: WantedPlace<'a>,
        head: Box<RequestHeader>,
        body: &'a Body,
    ) -> BoxFuture<'a, Result<Exchange, Failure>> {
        Box::new(self.line(upstream)).send(head, body)
    }
}

impl Way {
    fn line(&self, upstream: &Arc<Upstream>) -> Line {
        Line { world: Arc::clone(&self.world), process: self.process, upstream: Arc::clone(upstream) }
    }
}

struct Line {
    world: World,
    process: usize,
    upstream: Arc<Upstream>,
}

impl Connection for Line {
    fn server(&self) -> usize {
        0
    }

    fn send(self: Box<Self>, head: Box<RequestHeader>, body: &Body) -> BoxFuture<'_, Result<Exchange, Failure>> {
        let mut reader = body.reader();
        Box::pin(async move {
            let mut text = Vec::new();
            while let Ok(Some(chunk)) = reader.next_chunk().await {
                text.extend_from_slice(&chunk);
            }
            let sent = Box::new(self.sent(&head, &text));
            let asked = self.world.ask(self.process, |reply| What::Exchange { sent, reply });
            match timeout(self.upstream.timeout, asked).await {
                Ok(Ok(response)) => Ok(exchange(&head, response)),
                Ok(Err(failure)) => Err(failure),
                Err(_elapsed) => Err(Failure::Abandoned { timed_out: true }),
            }
        })
    }
}

impl Line {
    fn sent(&self, head: &RequestHeader, body: &[u8]) -> Sent {
        let field = |name: &str| text(&head.headers, name);
        let (target, body) = (str::from_utf8(head.raw_path()).unwrap(), str::from_utf8(body).unwrap());
        let (method, target, value) = match document_named(target, body) {
            Some((target, value)) => (Method::PUT, target, value),
            None => (head.method.clone(), target.to_owned(), body.parse().ok().or_else(|| metadata::written(body))),
        };
        Sent {
            method,
            target,
            value,
            if_match: field("if-match"),
            if_none_match: field("if-none-match"),
            if_unmodified_since: field("if-unmodified-since"),
            is_late_delete: head.method == Method::DELETE && field("x-sent-by").is_none(),
            fence: field("fencing-token").map(|fence| fence.parse().unwrap()),
            late_write_window: self.upstream.late_write_window,
            is_elsewhere: self.upstream.servers == [ELSEWHERE],
            destination: field("destination").map(|destination| named(&destination)),
            keeps: field("overwrite").is_some_and(|overwrite| overwrite == "F"),
            request: current_request(),
            credentials: field("authorization"),
            body: body.to_owned(),
        }
    }
}

/// The body of a write to the list of documents, which names the document.
pub fn named_body(id: &str, value: &str) -> String {
    json!({ "id": id, "is": value }).to_string()
}

/// The document that a write to the list of documents replaces, and the number of the write.
fn document_named(target: &str, body: &str) -> Option<(String, Option<u32>)> {
    if target != "/docs" {
        return None;
    }
    let named: Value = serde_json::from_str(body).unwrap();
    Some((format!("/docs/{}", named["id"].as_str()?), named["is"].as_str()?.parse().ok()))
}

/// Returns the value of a field.
pub fn text(fields: &HeaderMap, name: &str) -> Option<String> {
    fields.get(name).map(|value| value.to_str().unwrap().to_owned())
}

fn exchange(request: &RequestHeader, response: Response) -> Exchange {
    let mut head = ResponseHeader::build(StatusCode::from_u16(response.status).unwrap(), None).unwrap();
    for (name, value) in response.fields {
        head.insert_header(name, value).unwrap();
    }
    let has_body = request.method != Method::HEAD && !matches!(response.status, 204 | 304);
    let body = Some(Bytes::from(response.body)).filter(|body| has_body && !body.is_empty());
    if let Some(body) = &body {
        head.insert_header("content-length", body.len()).unwrap();
    }
    Exchange::of(Box::new(Content(body)), Box::new(head), 0)
}

/// The rest of a response's body.
struct Content(Option<Bytes>);

impl Wire for Content {
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        let chunk = self.0.take();
        Box::pin(async move { Ok(chunk) })
    }

    fn is_complete(&mut self) -> bool {
        self.0.is_none()
    }

    fn leave_slot(&mut self) {}

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}
