//! The resources on a page of a list, each read by the route of its own.
//!
//! # Design
//!
//! *Why a whole read of each?* An index shows no tag, lease or metadata. A tag labels only the response that it was taken
//! from, so a resource that is listed with its tag is read like any other: by its own route, judged by its lease, and with
//! the rights of the client.

use http::{HeaderValue, Method, StatusCode};
use pingora::http::{RequestHeader, ResponseHeader};

use super::folders::target_in;
use crate::{
    body::Client,
    core::{
        http::request_target::split_query,
        objects::folders::{Item, Listing, Page},
        refusal::{Code, Refusal},
    },
    guard::{Answer, Halt, ReceivedClient, Request, incoming},
    routing::{GuardedRequest, door::Door},
    service::Service,
    upstream::fields::FieldsOfHead as _,
};

/// A list whose items are read.
pub(crate) struct ListedReads<'a> {
    pub(crate) guarded: &'a GuardedRequest,
    pub(crate) request: &'a Request,
    pub(crate) listing: &'a Listing,
    /// The part of the query of a read that names a folder.
    pub(crate) folder_query: &'static [u8],
}

impl Service<'_> {
    /// Reads each item on a page, and adds what the reads show. An item that is gone by now is left out. A folder that
    /// stands for the files in it is no resource.
    pub(crate) async fn read_listed(
        &self,
        client: &mut dyn Client,
        list: &ListedReads<'_>,
        page: &mut Page,
    ) -> Result<(), Halt> {
        let mut items = Vec::with_capacity(page.items.len());
        for mut item in page.items.drain(..) {
            if item.is_folder() == list.listing.has_only_folders {
                match self.read_item(client, list, &item).await? {
                    Read::Shown(head) => {
                        item.metadata = metadata_in(list.request, &head);
                        item.fields = Some(head.headers.clone());
                    }
                    Read::Hidden => {}
                    Read::Gone => continue,
                }
            }
            items.push(item);
        }
        page.items = items;
        Ok(())
    }

    /// Reads an item by HEAD. If that does not show it, GET decides (rule 19).
    async fn read_item(&self, client: &mut dyn Client, list: &ListedReads<'_>, item: &Item) -> Result<Read, Halt> {
        match self.read_item_by(Method::HEAD, client, list, item).await {
            Ok(Read::Shown(head)) => Ok(Read::Shown(head)),
            Err(Halt::Broken(error)) => Err(Halt::Broken(error)),
            Ok(Read::Hidden | Read::Gone) | Err(_) => self.read_item_by(Method::GET, client, list, item).await,
        }
    }

    async fn read_item_by(
        &self,
        method: Method,
        client: &mut dyn Client,
        list: &ListedReads<'_>,
        item: &Item,
    ) -> Result<Read, Halt> {
        let head = head_of_item(method, client.head(), list, item)?;
        let Door::Guarded(guarded) = self.guard.door(&head.method, &head, list.guarded.client) else {
            return Ok(Read::Hidden);
        };
        // A route with other rules may call another file by this name.
        let is_here = guarded.route.upstream == list.guarded.route.upstream;
        let Some(rules) = guarded.route.guard.as_ref().filter(|_| is_here) else {
            return Ok(Read::Hidden);
        };
        let Ok(call) = rules.dialect.grammar().read(incoming(&head, &guarded), rules, guarded.is_lease()) else {
            return Ok(Read::Hidden);
        };
        let mut client = ReceivedClient::without_content(client, head);
        // Boxed, because a list is an operation too.
        let answer = Box::pin(self.answer_operation(&mut client, &guarded, rules, call)).await;
        match answer {
            Ok(Answer::Relayed(relayed)) if relayed.head.status.is_success() => Ok(Read::Shown(relayed.head)),
            Ok(Answer::Relayed(relayed)) if relayed.head.status == StatusCode::NOT_FOUND => Ok(Read::Gone),
            Ok(Answer::Relayed(relayed)) if relayed.head.status.is_server_error() => Err(failed().into()),
            Err(Halt::Refused(refusal)) if refusal.code.status().is_server_error() => Err(refusal.into()),
            Err(Halt::Broken(error)) => Err(Halt::Broken(error)),
            Ok(_) | Err(_) => Ok(Read::Hidden),
        }
    }
}

/// The result of the read of a listed item.
enum Read {
    /// The item, described by this head.
    Shown(Box<ResponseHeader>),
    /// The item is hidden, because the client may not read it.
    Hidden,
    /// The item does not exist any more.
    Gone,
}

/// Returns the metadata in the fields of a head: each name with its value.
fn metadata_in(request: &Request, head: &ResponseHeader) -> Vec<(String, String)> {
    let Some(grammar) = request.grammar().description() else { return Vec::new() };
    let value = |(field, value): (&str, &HeaderValue)| {
        Some((grammar.name_in(field)?.to_owned(), value.to_str().ok()?.to_owned()))
    };
    head.spelled_fields().filter_map(value).collect()
}

/// Returns the head of a read of an item in the collection that a list names. It has the credentials of the list.
fn head_of_item(
    method: Method,
    received: &RequestHeader,
    list: &ListedReads<'_>,
    item: &Item,
) -> pingora::Result<RequestHeader> {
    // The rest of the query is for the upstream.
    let ((path, _), (_, query)) = (split_query(received.raw_path()), split_query(list.request.head.raw_path()));
    let folder_query = Some(list.folder_query).filter(|_| item.is_folder());
    let query: Vec<&[u8]> = folder_query.into_iter().chain(query).collect();
    let query = Some(query.join(&b"&"[..])).filter(|query| !query.is_empty());
    let mut head = received.clone();
    // A lease in the request of a list is not that of each item.
    head.remove_header(list.request.grammar().lease_field());
    head.set_method(method);
    head.set_raw_path(&target_in(path, item.name.trim_end_matches('/'), query.as_deref()))?;
    Ok(head)
}

fn failed() -> Refusal {
    Refusal::new(Code::UpstreamFailed, "the upstream has failed to show a file of the list; try again")
}
