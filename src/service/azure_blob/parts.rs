//! Parts cut from blobs that the backend has sent whole. Either the backend serves no parts, or the proxy did not
//! request one because the tag was unknown.
//!
//! Azure clients take any content for the part that they requested, so the proxy never sends them the whole instead.

use http::{Method, StatusCode, header};
use pingora::http::ResponseHeader;

use crate::{
    body::{MemoryUse, content_length},
    core::{
        http::range::{WantedRange, wanted},
        policy::TagSource,
        refusal::{Code, Refusal},
    },
    dialect::PartChecksum,
    guard::{
        Halt, Relayed, Request, label_part, label_unsatisfiable,
        refusals::{self, RETRY_SOON},
    },
    service::Service,
    upstream::{BodyPrefix, BufferedBody, read_whole},
};

impl Service<'_> {
    /// Cuts the part that a read requests out of the whole.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the whole is too large to hold, or if a write is in flight. During a write the tag may be
    /// older than the content. A client joins parts that have one tag, so all of them must be of one content.
    pub(crate) async fn part_of(&self, request: &Request, relayed: Relayed) -> Result<Relayed, Halt> {
        let fields = &request.head.headers;
        if !fields.contains_key(header::RANGE) || relayed.head.status != StatusCode::OK || request.method != Method::GET
        {
            return Ok(relayed);
        }
        let Relayed { mut head, begun, rest } = match length_of(&relayed) {
            Some(_) => relayed,
            None => self.read_all(request, relayed, request.rules().max_hash_size_bytes).await?,
        };
        let length = content_length(&head.headers).unwrap_or(begun.len() as u64);
        let part = match wanted(fields, length) {
            WantedRange::Whole => return Ok(Relayed { head, begun, rest }),
            WantedRange::Nothing => {
                if let Some(exchange) = rest {
                    exchange.discard().await;
                }
                label_unsatisfiable(&mut head, length)?;
                return Ok(Relayed { head, begun: BodyPrefix::default(), rest: None });
            }
            WantedRange::Part { first, last } => first..last.saturating_add(1),
        };
        label_part(&mut head, &part, length)?;
        if part == (0..length) {
            return Ok(Relayed { head, begun, rest });
        }
        let max_bytes = request.rules().max_hash_size_bytes;
        let Relayed { head, begun, rest } = self.read_all(request, Relayed { head, begun, rest }, max_bytes).await?;
        if request.rules().etag == TagSource::Version && !self.guard.is_settled(request, &head).await {
            return Err(busy().into());
        }
        Ok(Relayed { head, begun: begun.part(part), rest })
    }

    /// Adds the checksum that the client wants with a part.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the part is too large to have one, or cannot be read.
    pub(crate) async fn with_checksum(
        &self,
        request: &Request,
        relayed: Relayed,
        wanted: &PartChecksum,
    ) -> Result<Relayed, Halt> {
        let is_part = relayed.head.status == StatusCode::PARTIAL_CONTENT
            && relayed.head.headers.contains_key(header::CONTENT_RANGE);
        if !is_part {
            return Ok(relayed);
        }
        if length_of(&relayed).is_none_or(|length| length > wanted.max_bytes as u64) {
            return Err((wanted.too_large)().into());
        }
        let Relayed { mut head, begun, rest } = self.read_all(request, relayed, wanted.max_bytes).await?;
        let mut running = wanted.kind.begin();
        begun.chunks().iter().for_each(|chunk| running.add(chunk));
        head.insert_header(wanted.field.clone(), running.end().to_base64())?;
        Ok(Relayed { head, begun, rest })
    }

    /// Reads the rest of a body, up to the size that may be held.
    async fn read_all(&self, request: &Request, relayed: Relayed, max_bytes: usize) -> Result<Relayed, Halt> {
        let Relayed { head, begun, rest } = relayed;
        let Some(mut exchange) = rest else { return Ok(Relayed { head, begun, rest: None }) };
        let wait = request.upstream().timeout;
        let budget = self.guard.bodies().budget_for(MemoryUse::Response);
        let read = read_whole(&mut exchange, max_bytes, wait, budget).await;
        match read.map_err(refusals::of_read)? {
            // Bytes that were read before belong to a body that an earlier read gave up as too large.
            BufferedBody::Complete(whole) if begun.is_empty() => {
                exchange.finish().await;
                Ok(Relayed { head, begun: whole, rest: None })
            }
            // The proxy did not request the part because of a write, and soon will.
            _ if request.rules().etag == TagSource::Version && serves_parts(&head) => Err(busy().into()),
            BufferedBody::Complete(_) | BufferedBody::TooLarge(_) | BufferedBody::TooSlow(_) => {
                let detail = "The server behind this proxy serves no parts, and the blob is too large to cut one from \
                              (max_hash_size).";
                Err(Refusal::new(Code::NotSupported, detail).into())
            }
        }
    }
}

fn busy() -> Refusal {
    let detail = "A write of the blob is in flight or in doubt; its parts can be read afterwards.";
    Refusal::new(Code::WriteInFlight, detail).retry_after(RETRY_SOON)
}

fn serves_parts(head: &ResponseHeader) -> bool {
    head.headers.get(header::ACCEPT_RANGES).is_some_and(|unit| unit.as_bytes().eq_ignore_ascii_case(b"bytes"))
}

fn length_of(relayed: &Relayed) -> Option<u64> {
    if relayed.rest.is_none() { Some(relayed.begun.len() as u64) } else { content_length(&relayed.head.headers) }
}
