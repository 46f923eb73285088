//! The client's seam: a request as it arrives, and the answer as its client sees it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Version};
use ifmatch::{
    body::{BoxFuture, Client},
    core::{http::client_address::ClientAddress, refusal::Refusal},
    guard::{Answer, Relayed, UntoldGrant},
    routing::door::{Door, Head, decide},
    service,
};
use pingora::http::RequestHeader;

use crate::{
    azure_queues::QUEUE,
    metadata,
    options::LOCKS_HOST,
    process::Process,
    streams::{LeaseEvents, listen, outcome},
    trees::is_of_lock,
    upstream::{named_body, text},
    watchers,
    world::{REQUEST, World},
};

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub target: String,
    pub fields: Vec<(&'static str, String)>,
    pub body: Option<String>,
    /// True if the request goes to the list of documents, and its body names the document.
    pub is_named_by_body: bool,
    /// True if the request concerns the metadata alone.
    pub describes: bool,
}

impl Request {
    /// The request as it is sent.
    fn sent(&self) -> Self {
        match (&self.body, self.target.strip_prefix("/docs/")) {
            (Some(value), Some(id)) if self.is_named_by_body && !id.contains('/') => Self {
                method: Method::POST,
                target: "/docs".to_owned(),
                body: Some(named_body(id, value)),
                fields: [&self.fields[..], &[("content-type", "application/json".to_owned())]].concat(),
                ..self.clone()
            },
            _ if self.describes => Self { target: format!("{}?comp=metadata", self.target), ..self.clone() },
            _ => self.clone(),
        }
    }
}

/// The answer that a client gets.
#[derive(Clone, Debug, Default, Hash)]
pub struct Told {
    pub status: u16,
    /// The code of a refusal, when ifmatch answered instead of the backend.
    pub code: Option<&'static str>,
    pub in_doubt: bool,
    pub tag: Option<String>,
    /// The modification date.
    pub modified: Option<String>,
    /// The number of the resource's change that the backend shows.
    pub serial: Option<u64>,
    pub metadata: Option<u32>,
    pub body: String,
    pub lease_id: Option<String>,
    pub fence: Option<u64>,
    /// The member of a collection that the client has taken.
    pub taken: Option<String>,
    /// The right to delete a message.
    pub receipt: Option<String>,
}

struct Caller {
    head: Arc<RequestHeader>,
    body: Option<Bytes>,
}

impl Client for Caller {
    fn head(&self) -> &Arc<RequestHeader> {
        &self.head
    }

    fn has_content(&mut self) -> bool {
        self.body.is_some()
    }

    fn certificate(&self) -> Option<&[u8]> {
        None
    }

    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>> {
        let chunk = self.body.take();
        Box::pin(async { Ok(chunk) })
    }

    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>> {
        Box::pin(std::future::pending())
    }

    fn has_gone(&mut self) -> bool {
        false
    }
}

/// Sends a request through the door and the guard of a process, and records its answer.
pub async fn send(world: World, process: Arc<Process>, number: usize, request: Request) {
    let (told, stream) = REQUEST.scope(number, answer(&process, &request)).await;
    let at = tokio::time::Instant::now();
    world.note(|| format!("request {number} is answered {told:?}"));
    world.lock().answered(number, &told, at);
    world.stir();
    match stream {
        Some(stream) if is_watch(&request) => watchers::listen(&world, number, stream).await,
        Some(stream) => listen(&world, number, stream).await,
        None => {}
    }
}

fn is_watch(request: &Request) -> bool {
    request.target.starts_with("/.watch")
}

async fn answer(process: &Process, request: &Request) -> (Told, Option<LeaseEvents>) {
    let request = &request.sent();
    let mut head = RequestHeader::build(request.method.clone(), request.target.as_bytes(), None).unwrap();
    let host = if is_of_lock(&request.method) { LOCKS_HOST } else { "x" };
    head.insert_header("host", host).unwrap();
    for (name, value) in &request.fields {
        head.insert_header(*name, value.as_str()).unwrap();
    }
    if let Some(body) = &request.body {
        head.insert_header("content-length", body.len()).unwrap();
    }
    let serving = process.live.serving();
    let door = decide(
        &serving.table,
        &Head {
            method: &head.method,
            version: Version::HTTP_11,
            host,
            target: head.raw_path(),
            headers: &head.headers,
            client: ClientAddress::Local,
        },
    );
    let body = request.body.clone().map(Bytes::from);
    let mut caller = Caller { head: Arc::new(head.clone()), body };
    match door {
        Door::Guarded(guarded) => {
            let answer = service::handle(&serving.guards, &mut caller, &guarded).await;
            match answer.unwrap_or_else(|error| panic!("{request:?}: {error}")) {
                Ok(Answer::Lasting(_, stream)) if is_watch(request) => {
                    (Told { status: 200, ..Told::default() }, Some(stream))
                }
                Ok(Answer::Local(head, Some(body))) if is_watch(request) || request.target.starts_with(QUEUE) => {
                    let body = String::from_utf8(body.to_vec()).unwrap();
                    (told(head.status.as_u16(), &head.headers, body), None)
                }
                Ok(Answer::Lasting(_, stream)) => outcome(stream).await,
                answer => (read(answer).await, None),
            }
        }
        Door::Refuse { refusal, .. } => (read(Err(refusal)).await, None),
        other => panic!("{request:?} is not guarded: {other:?}"),
    }
}

async fn read(answer: Result<Answer, Refusal>) -> Told {
    match answer {
        Err(refusal) => Told {
            status: refusal.code.status().as_u16(),
            code: Some(refusal.code.as_str()),
            in_doubt: refusal.in_doubt,
            ..Told::default()
        },
        Ok(Answer::Local(mut head, _) | Answer::NotModified(mut head) | Answer::Told(_, mut head, _)) => {
            UntoldGrant::of(&mut head).into_iter().for_each(UntoldGrant::told);
            told(head.status.as_u16(), &head.headers, String::new())
        }
        Ok(Answer::Relayed(relayed) | Answer::Current(_, relayed)) => {
            let Relayed { mut head, begun, rest } = *relayed;
            UntoldGrant::of(&mut head).into_iter().for_each(UntoldGrant::told);
            let mut body = begun.chunks().concat();
            if let Some(mut exchange) = rest {
                while let Some(chunk) = exchange.next_chunk().await.unwrap() {
                    body.extend_from_slice(&chunk);
                }
            }
            told(head.status.as_u16(), &head.headers, String::from_utf8(body).unwrap())
        }
        Ok(Answer::Lasting(..)) => panic!("a stream is read elsewhere"),
    }
}

fn told(status: u16, fields: &HeaderMap, body: String) -> Told {
    let number = |name| text(fields, name).map(|number| number.parse().unwrap());
    let of_lock = || Some(text(fields, "lock-token")?.trim_matches(['<', '>']).split_once(':')?.1.to_owned());
    let (tag, lease_id) = (text(fields, "etag"), text(fields, "lease-id").or_else(of_lock));
    let modified = text(fields, "last-modified");
    let (serial, fence) = (number("x-serial"), number("fencing-token"));
    let metadata = text(fields, metadata::FIELD).map(|number| number.parse().unwrap());
    let (taken, receipt) = (text(fields, "content-location"), text(fields, "x-ms-popreceipt"));
    Told { status, tag, modified, serial, metadata, body, lease_id, fence, taken, receipt, ..Told::default() }
}
