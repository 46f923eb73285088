//! PROPFIND: the list of the backend, with the locks and the tags of this proxy (RFC 4918 section 9.1).

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::{DavRequest, Service, content_of};
use crate::{
    body::{BoxFuture, Client},
    core::{
        http::request_target::same_origin_target,
        records::tree_leases::{LeaseAround, LeaseReach},
        refusal::{Code, Refusal},
        tags::entity_tag::EntityTag,
    },
    dialect::webdav::{
        Cutter, ListPiece, MalformedMultistatus, MultistatusResponse, QUESTION_BYTES_MAX, Question, ResourceFacts,
        ShownLock,
    },
    guard::{
        Answer, Halt, ReceivedClient, Relayed, Verb, ask_for_identity, refusals, remove_validators, viewer::Viewer,
    },
    upstream::{BodyPrefix, Exchange, Failure, Wire},
};

/// The length of a piece of a list, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

/// The number of records that are read at the same time: a shared store answers many in about the time of one.
const AT_ONCE: usize = 32;

/// The fields that describe the content as the backend has sent it.
const OF_CONTENT: [HeaderName; 6] = [
    header::CONTENT_LENGTH,
    header::ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
];

impl Service<'_> {
    /// Forwards a PROPFIND, and tells what comes back.
    pub(super) async fn find_properties(
        &self,
        client: &mut dyn Client,
        mut dav: DavRequest<'_>,
    ) -> Result<Answer, Halt> {
        let body = self.guard.bodies().receive(client).await.map_err(refusals::of_body)?;
        let question = Question::parse(&content_of(&body, QUESTION_BYTES_MAX).await?);
        let head = Arc::make_mut(&mut dav.request.head);
        ask_for_identity(head)?;
        head.remove_header(&header::RANGE);
        let (head, has_content) = (dav.received.clone(), client.has_content());
        let mut client = ReceivedClient { client, head, has_content, body: Some(body) };
        let newest = self.guard.records().newest_seen();
        let answer = self.guard.serve(&mut client, &dav.request, Verb::Read).await?;
        let Answer::Relayed(relayed) = answer else { return Ok(answer) };
        let Relayed { mut head, begun, rest } = *relayed;
        if head.status != StatusCode::MULTI_STATUS {
            return Ok(Answer::Relayed(Box::new(Relayed { head, begun, rest })));
        }
        let coding = head.headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
        if coding.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
            let detail = "the backend has compressed its list of properties although it was asked not to";
            return Err(Refusal::new(Code::UpstreamFailed, detail).into());
        }
        remove_validators(&mut head);
        for name in &OF_CONTENT {
            head.remove_header(name);
        }
        let server = rest.as_ref().map_or(0, Exchange::server);
        let wire = Multistatus {
            received: begun.chunks().iter().cloned().collect(),
            _held: begun,
            rest,
            cutter: Cutter::default(),
            pieces: VecDeque::new(),
            told: Vec::new(),
            is_over: false,
            teller: Teller { question, viewer: self.guard.viewer((dav.request, dav.received), newest) },
        };
        let exchange = Exchange::of(Box::new(wire), head.clone(), server);
        Ok(Answer::Relayed(Box::new(Relayed { head, begun: BodyPrefix::default(), rest: Some(exchange) })))
    }
}

/// A list of properties on its way to the client.
struct Multistatus {
    /// The bytes from the backend that are not cut yet.
    received: VecDeque<Bytes>,
    /// The share of the memory that it takes.
    _held: BodyPrefix,
    rest: Option<Exchange>,
    cutter: Cutter,
    pieces: VecDeque<ListPiece>,
    /// The bytes that the client gets next.
    told: Vec<u8>,
    is_over: bool,
    teller: Teller,
}

/// The question and the view by which elements of a list are completed.
struct Teller {
    question: Question,
    viewer: Viewer,
}

impl Multistatus {
    /// Returns the next bytes for the client. May be dropped and called again: the result so far is kept.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            while !self.pieces.is_empty() {
                let mut telling = Vec::with_capacity(AT_ONCE);
                for piece in self.pieces.iter().take(AT_ONCE) {
                    telling.push(self.teller.tell(self.cutter.root(), piece));
                }
                for told in join_all(telling).await {
                    self.pieces.pop_front();
                    self.told.extend(told.map_err(of_malformed)?);
                }
                if self.told.len() >= PIECE_BYTES {
                    return Ok(Some(std::mem::take(&mut self.told).into()));
                }
            }
            if self.is_over || !self.told.is_empty() && self.received.is_empty() {
                return Ok(Some(std::mem::take(&mut self.told)).filter(|told| !told.is_empty()).map(Into::into));
            }
            let chunk = match (self.received.pop_front(), &mut self.rest) {
                (Some(chunk), _) => Some(chunk),
                (None, Some(exchange)) => exchange.next_chunk().await?,
                (None, None) => None,
            };
            if let Some(chunk) = chunk {
                self.pieces.extend(self.cutter.push(&chunk).map_err(of_malformed)?);
            } else {
                std::mem::take(&mut self.cutter).finish().map_err(of_malformed)?;
                self.is_over = true;
            }
        }
    }
}

impl Teller {
    /// Returns a piece of the list as the client gets it. `root` is the start tag of the list.
    async fn tell(&self, root: &[u8], piece: &ListPiece) -> Result<Vec<u8>, MalformedMultistatus> {
        let element = match piece {
            ListPiece::Other(octets) => return Ok(octets.clone()),
            ListPiece::Element(element) => element,
        };
        let Some(response) = MultistatusResponse::read(root, element)? else {
            return Ok(element.clone());
        };
        let facts = self.facts(&response).await;
        Ok(response.with(self.question, &facts).into_bytes())
    }

    async fn facts(&self, response: &MultistatusResponse) -> ResourceFacts {
        let href = response.href();
        let Some(target) = same_origin_target(href, self.viewer.host(), "/") else { return ResourceFacts::default() };
        let Some(viewed) = self.viewer.view(target.as_bytes()).await else { return ResourceFacts::default() };
        let (snapshot, reader) = (&viewed.snapshot, self.viewer.reader());
        let own = snapshot.held_leases().map(|lease| ShownLock::of(lease, snapshot, reader, href));
        let around = snapshot.held_around(LeaseReach::Tree).filter_map(|LeaseAround { root, lease, .. }| {
            Some(ShownLock::of(lease, snapshot, reader, &self.viewer.path_of(root)?))
        });
        let locks = own.chain(around).collect();
        // Some servers leave the quotes of a tag out here.
        let listed = response.etag().and_then(|tag| EntityTag::parse_unquoted(tag.trim().as_bytes()).ok());
        let etag = listed.and_then(|tag| self.viewer.issued(&viewed, &tag)).map(|tag| tag.to_header_value());
        ResourceFacts {
            locks,
            can_be_locked: viewed.is_of_route && (self.viewer.has_trees() || !target.ends_with('/')),
            etag: etag.as_ref().and_then(|tag| tag.to_str().ok()).map(str::to_owned),
        }
    }
}

impl Wire for Multistatus {
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        Box::pin(self.next())
    }

    fn is_complete(&mut self) -> bool {
        self.is_over && self.pieces.is_empty() && self.told.is_empty()
    }

    fn leave_slot(&mut self) {}

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Some(exchange) = self.rest {
                exchange.finish().await;
            }
        })
    }
}

/// A list that cannot be read breaks off, so that no client takes a part for the whole.
fn of_malformed(malformed: MalformedMultistatus) -> Failure {
    tracing::warn!("{malformed}");
    Failure::Abandoned { timed_out: false }
}
