//! Whether a DELETE would remove a collection, and with it resources that were not judged (`collections`).
//!
//! # Design
//!
//! *Why is OPTIONS asked first?* Each server knows it, and it changes nothing. A server without `WebDAV` may take
//! PROPFIND for anything. That there is no `WebDAV` is remembered for a time, so that a plain API gets one question.
//!
//! *Why is it remembered for one folder alone?* A server can have an application beside its `WebDAV`, and one route can
//! lead to both.

use std::time::Duration;

use http::{HeaderValue, Method, header};
use moka::sync::Cache;
use tokio::time::{Instant, timeout_at};

use super::{
    Probes,
    head::probe_head,
    unreadable::{answered, timed_out, unanswered, unreadable},
};
use crate::{
    body::{Body, MemoryUse},
    core::{
        http::{
            readings::collection::{
                TYPE_OF_RESOURCE, denies_webdav, is_collection, leads_to_slash, may_be_folder, named_folder,
                speaks_webdav,
            },
            request_target::split_query,
        },
        lease::Usage,
        policy::Collections,
        records::trees::{TreeRoot, is_below},
        refusal::{Code, Refusal},
        tags::parts_hash::PartsHasher,
    },
    guard::{Halt, refusals, request::Request},
    upstream::{BufferedBody, Exchange, Failure, read_whole},
};

/// How long it is remembered that a backend does not speak `WebDAV`.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The largest answer to PROPFIND that is read: the type of one resource.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The type of the resource that a backend with `WebDAV` has at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeSeen {
    /// There is no resource.
    Absent,
    /// A resource without members.
    Plain,
    /// A collection.
    Collection,
}

/// The number of folders that are remembered. Each takes about 100 bytes.
const FOLDERS_MAX: u64 = 10_000;

/// The folders in which backends did not speak `WebDAV`.
pub(crate) struct PlainFolders(Cache<[u8; 32], ()>);

impl PlainFolders {
    /// Starts without any.
    pub(crate) fn new() -> Self {
        Self(Cache::builder().max_capacity(FOLDERS_MAX).time_to_live(REMEMBERED).build())
    }

    fn contain(&self, request: &Request) -> bool {
        self.0.contains_key(&folder_of(request))
    }

    fn note(&self, request: &Request) {
        self.0.insert(folder_of(request), ());
    }
}

/// The name of the folder that the target of a request is in.
fn folder_of(request: &Request) -> [u8; 32] {
    let (path, _) = split_query(request.head.raw_path());
    let is_slash = |octet: &u8| *octet == b'/';
    let end = path.iter().rposition(|octet| !is_slash(octet)).unwrap_or_default();
    let folder = path.iter().take(end).rposition(is_slash).and_then(|end| path.get(..end)).unwrap_or_default();
    let route = request.route();
    let mut hasher = PartsHasher::default();
    hasher.add(route.name.as_bytes()).add(route.upstream.identity.as_bytes()).add(folder).hash()
}

impl Probes {
    /// Returns the collections that a request would change, or copy, with all below them. Refuses a request that would
    /// change one where nothing keeps others away from the resources in it. Nothing of it was sent.
    pub(crate) async fn changed_trees(&self, request: &Request) -> Result<Vec<TreeRoot>, Halt> {
        let Some(destination) = request.destination() else {
            let is_removed = self.removes_members(request).await?;
            return if is_removed { as_trees(request, &[(request, false)], members_too) } else { Ok(Vec::new()) };
        };
        let has_members = |request: &Request| request.route().may_hold_members && !request.rules().quirks.is_flat;
        let both = [(request, request.only_reads_target()), (destination, false)];
        // The members of a collection arrive below the destination.
        if (has_members(request) || has_members(destination)) && self.is_collection(request).await? {
            return as_trees(request, &both, || second_tree("it"));
        }
        if has_members(destination) && self.is_collection(destination).await? {
            let [_, at_destination] = both;
            return as_trees(request, &[at_destination], || second_tree("its destination"));
        }
        Ok(Vec::new())
    }

    /// Refuses a request that could remove resources below its target, if it may not. Nothing of it was sent.
    pub(crate) async fn refuse_removal_of_members(&self, request: &Request) -> Result<(), Halt> {
        if !request.has_trees() && self.removes_members(request).await? { Err(members_too().into()) } else { Ok(()) }
    }

    /// True if a request would remove resources below its target.
    async fn removes_members(&self, request: &Request) -> Result<bool, Halt> {
        let may_remove = request.place.usages.contains(Usage::Delete)
            && request.route().may_hold_members
            && !request.rules().quirks.is_flat
            && !request.place.removes_tree;
        if may_remove { self.is_collection(request).await } else { Ok(false) }
    }

    /// True if the target of a request is a collection.
    async fn is_collection(&self, request: &Request) -> Result<bool, Halt> {
        let end = Instant::now() + request.rules().probe.timeout;
        let is_webdav = match request.rules().collections {
            Collections::None => return Ok(false),
            Collections::WebDav => true,
            Collections::Detect => self.is_webdav(request, end).await?,
        };
        match if is_webdav { self.type_until(request, end).await? } else { None } {
            Some(seen) => Ok(seen == TypeSeen::Collection),
            None => self.is_folder(request, end).await,
        }
    }

    async fn is_webdav(&self, request: &Request, end: Instant) -> Result<bool, Halt> {
        if self.plain.contain(request) {
            return Ok(false);
        }
        let exchange = self.put(request, Method::OPTIONS, (None, &Body::empty()), end).await?;
        let (status, speaks) = (exchange.head().status, speaks_webdav(&exchange.head().headers));
        match status.as_u16() {
            _ if speaks => {}
            401 | 407 | 429 => return Err(self.upstreams_own(request, exchange).await),
            500 | 502..=599 => return Err(unknown(&answered(status)).into()),
            _ if denies_webdav(status, &exchange.head().headers) => self.plain.note(request),
            _ => {}
        }
        exchange.discard().await;
        Ok(speaks)
    }

    /// Asks for the type of the resource of a request. `None` if the backend does not know the question.
    pub(crate) async fn type_of(&self, request: &Request) -> Result<Option<TypeSeen>, Halt> {
        self.type_until(request, Instant::now() + request.rules().probe.timeout).await
    }

    async fn type_until(&self, request: &Request, end: Instant) -> Result<Option<TypeSeen>, Halt> {
        let mut exchange = self
            .put(
                request,
                Method::from_bytes(b"PROPFIND").map_err(|_error| refusals::of_field())?,
                (None, &Body::made(TYPE_OF_RESOURCE.into())),
                end,
            )
            .await?;
        let status = exchange.head().status;
        match status.as_u16() {
            207 => {
                let wait = end.saturating_duration_since(Instant::now());
                let read = read_whole(&mut exchange, ANSWER_BYTES_MAX, wait, (&self.budget, MemoryUse::Response)).await;
                let Ok(BufferedBody::Complete(body)) = read else {
                    return Err(unknown(&unreadable("its answer to PROPFIND is too long or broke off")).into());
                };
                exchange.finish().await;
                let shown = is_collection(&body.chunks().concat());
                let seen = |is_collection| if is_collection { TypeSeen::Collection } else { TypeSeen::Plain };
                shown
                    .map(seen)
                    .map(Some)
                    .ok_or_else(|| unknown(&unreadable("its answer to PROPFIND tells no type")).into())
            }
            404 | 410 => {
                exchange.discard().await;
                Ok(Some(TypeSeen::Absent))
            }
            300..=399 => {
                exchange.discard().await;
                Ok(Some(TypeSeen::Collection))
            }
            401 | 403 | 407 | 429 => Err(self.upstreams_own(request, exchange).await),
            405 | 501 => {
                exchange.discard().await;
                Ok(None)
            }
            _ => Err(unknown(&answered(status)).into()),
        }
    }

    /// True if the target, with a slash at its end, is a folder of a file server.
    async fn is_folder(&self, request: &Request, end: Instant) -> Result<bool, Halt> {
        let Some(file) = named_folder(request.head.raw_path()) else { return Ok(false) };
        // The root is a folder whose name has a slash already.
        if !file.is_empty() && !self.leads_to_folder(request, &file, end).await? {
            return Ok(false);
        }
        let folder = [&file[..], b"/"].concat();
        let exchange = self.put(request, Method::GET, (Some(&folder), &Body::empty()), end).await?;
        let may_be = may_be_folder(exchange.head().status, &exchange.head().headers);
        exchange.discard().await;
        Ok(may_be)
    }

    /// True if the name of a folder without its slash leads to the one with it.
    async fn leads_to_folder(&self, request: &Request, file: &[u8], end: Instant) -> Result<bool, Halt> {
        let exchange = self.put(request, Method::GET, (Some(file), &Body::empty()), end).await?;
        let leads = leads_to_slash(exchange.head().status, &exchange.head().headers, file);
        exchange.discard().await;
        Ok(leads)
    }

    /// Sends a question about the target of a request, or about another one.
    async fn put(
        &self,
        request: &Request,
        method: Method,
        (target, body): (Option<&[u8]>, &Body),
        end: Instant,
    ) -> Result<Exchange, Refusal> {
        let mut head = probe_head(request, method, false).ok_or_else(refusals::of_field)?;
        if let Some(target) = target {
            head.set_raw_path(target).map_err(|_error| refusals::of_field())?;
        }
        if !body.is_empty() {
            let fields = [
                (header::CONTENT_LENGTH, HeaderValue::from(body.len())),
                (header::CONTENT_TYPE, HeaderValue::from_static("application/xml")),
                (header::HeaderName::from_static("depth"), HeaderValue::from_static("0")),
            ];
            for (name, value) in fields {
                head.insert_header(name, value).map_err(|_error| refusals::of_field())?;
            }
        }
        self.set_credentials(request, &mut head)?;
        match timeout_at(end, self.exchanger.read(request.upstream(), request.to_ask(), head, body)).await {
            Ok(Ok(exchange)) => Ok(exchange),
            Err(_) | Ok(Err(Failure::NotSent { timed_out: true } | Failure::Abandoned { timed_out: true })) => {
                Err(timed_out())
            }
            Ok(Err(Failure::Full)) => Err(refusals::of_read(Failure::Full)),
            Ok(Err(_)) => Err(unanswered()),
        }
    }
}

/// The trees with these roots, each with whether it is only read.
fn as_trees(
    request: &Request,
    roots: &[(&Request, bool)],
    not_supported: impl Fn() -> Refusal,
) -> Result<Vec<TreeRoot>, Halt> {
    if !roots.iter().all(|(root, _)| root.has_trees()) {
        return Err(not_supported().into());
    }
    if let Some(destination) = request.destination() {
        let (source, destination) = (request.key.as_str(), destination.key.as_str());
        if is_below(source, destination) || is_below(destination, source) {
            return Err(into_itself().into());
        }
    }
    let root = |(root, is_read): &(&Request, bool)| TreeRoot { key: root.key.as_str().into(), is_read: *is_read };
    Ok(roots.iter().map(root).collect())
}

/// The refusal of a removal that would take other resources with it.
fn members_too() -> Refusal {
    let detail = "the target is a collection, and its removal would also remove the resources in it, which no one has \
                  judged: delete them one by one. With collections = \"webdav\" on its route, this is one write of all of \
                  them";
    Refusal::new(Code::NotSupported, detail)
}

/// The refusal of a COPY or MOVE of a collection, or onto one. `what` is the collection.
fn second_tree(what: &str) -> Refusal {
    let detail = format!(
        "{what} is a collection, and the request would also change the resources in it, which no one has judged: copy or \
         move them one by one. With collections = \"webdav\" on its route, this is one write of all of them"
    );
    Refusal::new(Code::NotSupported, detail)
}

/// The refusal of a COPY or MOVE of a collection into itself, or onto one that it is in (RFC 4918 section 9.8.5).
fn into_itself() -> Refusal {
    let detail = "one of source and destination is a collection that holds the other: choose another name";
    Refusal::new(Code::DestinationIsSource, detail)
}

/// The refusal if the backend does not show whether its resource is a collection.
fn unknown(cause: &Refusal) -> Refusal {
    let mut refusal = cause.clone();
    refusal.detail =
        "the backend does not show whether the target is a collection, whose removal would also remove the \
                      resources in it; nothing was changed. If a DELETE, COPY or MOVE on this route changes its target \
                      alone, set collections = \"none\""
            .into();
    refusal
}
