//! The demo's backend: it keeps the content that is written under each path, and has no notion of tags and conditions.

use std::collections::HashMap;

use async_trait::async_trait;
use http::{Method, Response, StatusCode, header};
use parking_lot::Mutex;
use pingora::{
    apps::http_app::ServeHttp, protocols::http::ServerSession, server::ShutdownWatch, services::Service as _,
    services::listening::Service,
};

use crate::server::Listeners;

/// The largest document, in bytes; it is kept in memory.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// The largest number of documents.
const DOCUMENTS_MAX: usize = 1000;

/// The documents, by path.
#[derive(Debug, Default)]
struct Documents(Mutex<HashMap<String, Vec<u8>>>);

/// Serves an empty set of documents until the shutdown.
pub(super) async fn serve(listeners: Listeners, shutdown: ShutdownWatch) {
    let mut service = Service::new("backend".to_owned(), Documents::default());
    let descriptors = listeners.attach::<_, ()>(&mut service, None);
    service.start_service(Some(descriptors), shutdown, 1).await;
}

#[async_trait]
impl ServeHttp for Documents {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let path = session.req_header().uri.path().to_owned();
        let method = session.req_header().method.clone();
        let body = match receive(session).await {
            Ok(body) => body,
            Err(status) => return answer(status, Vec::new()),
        };
        let (status, content) = self.act(&method, path, body);
        answer(status, content)
    }
}

impl Documents {
    fn act(&self, method: &Method, path: String, body: Vec<u8>) -> (StatusCode, Vec<u8>) {
        let mut documents = self.0.lock();
        let full = documents.len() >= DOCUMENTS_MAX && !documents.contains_key(&path);
        match *method {
            Method::GET | Method::HEAD => match documents.get(&path) {
                Some(content) => (StatusCode::OK, content.clone()),
                None => (StatusCode::NOT_FOUND, Vec::new()),
            },
            Method::PUT if full => (StatusCode::INSUFFICIENT_STORAGE, Vec::new()),
            Method::PUT => match documents.insert(path, body) {
                Some(_) => (StatusCode::NO_CONTENT, Vec::new()),
                None => (StatusCode::CREATED, Vec::new()),
            },
            Method::DELETE => match documents.remove(&path) {
                Some(_) => (StatusCode::NO_CONTENT, Vec::new()),
                None => (StatusCode::NOT_FOUND, Vec::new()),
            },
            _ => (StatusCode::METHOD_NOT_ALLOWED, Vec::new()),
        }
    }
}

async fn receive(session: &mut ServerSession) -> Result<Vec<u8>, StatusCode> {
    let mut body = Vec::new();
    loop {
        match session.read_request_body().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > DOCUMENT_BYTES_MAX => {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(_) => return Err(StatusCode::BAD_REQUEST),
        }
    }
}

fn answer(status: StatusCode, content: Vec<u8>) -> Response<Vec<u8>> {
    let length = content.len();
    let mut response = Response::new(content);
    *response.status_mut() = status;
    if status != StatusCode::NO_CONTENT {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response
}
