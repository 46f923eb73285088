//! Batches: where each object is read or written, and whether the backend has it.
//!
//! # Design
//!
//! *Why does a HEAD suffice?* It decides nothing against a client (rule 19). An object that it shows as absent is
//! written again. Before a client learns that an object cannot be read, GET has confirmed that.

use futures_util::future::try_join_all;
use http::{Method, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use super::{repository::Repository, told};
use crate::{
    body::content_length,
    core::http::forwarded::PROTO,
    dialect::git_lfs::{BatchRequest, BatchedObject, FoundObject, ObjectId, batch_answer, batch_bytes_max},
    guard::{Answer, Halt, Relayed, Request, host, refusals},
    service::Service,
    upstream::{BodyPrefix, Exchange},
};

/// How many objects the backend is asked for at the same time.
const AT_ONCE: usize = 16;

impl Repository<'_> {
    /// Tells a client where objects are read or written.
    pub(super) async fn batch(&mut self) -> Result<Answer, Halt> {
        let asked = BatchRequest::parse(&self.document(batch_bytes_max()).await?)?;
        if asked.objects.is_empty() {
            let (request, _) = self.locks()?;
            self.service.guard.let_in(&request).await?;
        }
        let origin = self.origin();
        let mut found = Vec::with_capacity(asked.objects.len());
        for portion in asked.objects.chunks(AT_ONCE) {
            let ids: Vec<Option<ObjectId>> = portion.iter().map(BatchedObject::id).collect();
            found.extend(self.find(&ids, &origin, asked.is_upload).await?);
        }
        Ok(told(StatusCode::OK, batch_answer(&asked, &found)))
    }

    /// Asks the backend for objects, and returns their URLs.
    async fn find(
        &mut self,
        ids: &[Option<ObjectId>],
        origin: &str,
        is_upload: bool,
    ) -> Result<Vec<Option<(FoundObject, String)>>, Halt> {
        let mut requests = Vec::with_capacity(ids.len());
        for id in ids {
            let path = id.map(|id| id.path_in(&self.path));
            let request = match &path {
                Some(path) => Some(self.request(&Method::GET, path)?.1),
                None => None,
            };
            requests.push(request.zip(path));
        }
        let service = self.service;
        let look = async |asked: &Option<(Request, String)>| match asked {
            Some((request, path)) => {
                let found = service.look_for(request, is_upload).await?;
                Ok::<_, Halt>(Some((found, format!("{origin}{path}"))))
            }
            None => Ok(None),
        };
        try_join_all(requests.iter().map(look)).await
    }

    /// The beginning of the URLs by which the client reaches this proxy.
    fn origin(&self) -> String {
        let head = self.client.head();
        let told = head.headers.get(&PROTO).and_then(|scheme| scheme.to_str().ok());
        let is_secure = told.map_or_else(|| self.client.is_secure(), |scheme| scheme.eq_ignore_ascii_case("https"));
        format!("{}://{}", if is_secure { "https" } else { "http" }, host(head))
    }
}

impl Service<'_> {
    /// Asks the backend whether it has an object.
    async fn look_for(&self, request: &Request, is_upload: bool) -> Result<FoundObject, Halt> {
        let exchange = self.ask_for(request, Method::HEAD).await?;
        let by_head = found(exchange.head());
        exchange.discard().await;
        if let Some(found) = by_head.filter(|found| is_upload || *found != FoundObject::Absent) {
            return Ok(found);
        }
        let exchange = self.ask_for(request, Method::GET).await?;
        let Some(found) = found(exchange.head()) else {
            let head = Box::new(exchange.head().clone());
            return Err(Halt::Denied(Box::new(Relayed { head, begun: BodyPrefix::default(), rest: Some(exchange) })));
        };
        exchange.discard().await;
        Ok(found)
    }

    async fn ask_for(&self, request: &Request, method: Method) -> Result<Exchange, Halt> {
        let mut head = Box::new(RequestHeader::clone(&request.head));
        head.set_method(method);
        self.guard.ask(request, head).await.map_err(|failure| refusals::of_read(failure).into())
    }
}

/// Returns the state of an object by an answer. `None` if the answer concerns only the client, or the server: that
/// holds for the whole batch.
fn found(head: &ResponseHeader) -> Option<FoundObject> {
    let is_coded = head.headers.contains_key(header::CONTENT_ENCODING);
    match head.status.as_u16() {
        200 => Some(FoundObject::Present(content_length(&head.headers).filter(|_| !is_coded))),
        401 | 403 | 407 | 429 | 500.. => None,
        _ => Some(FoundObject::Absent),
    }
}
