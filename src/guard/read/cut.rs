//! Parts of blobs, where the backend has answered with the whole: because it knows no parts, or because it was not asked
//! for one while the tag was not known.
//!
//! Clients of Azure take what they get for the part that they have asked for, so the whole never leaves instead.

use std::ops::Range;

use http::{Method, StatusCode, header};
use pingora::http::ResponseHeader;

use super::Reads;
use crate::{
    body::MemoryUse,
    core::{
        policy::TagSource,
        range::{WantedRange, wanted},
        refusal::{Code, Refusal},
        validators::Validators,
    },
    guard::{
        answer::{Answer, Relayed},
        refusals::{self, RETRY_SOON},
        request::Request,
    },
    upstream::{BodyPrefix, BufferedBody, read_whole},
};

impl Reads {
    /// Makes the part that a read asks for of a whole.
    ///
    /// # Errors
    ///
    /// It cannot be made: the whole is too large to hold, or a write is in flight, so that the tag may be older than what
    /// it labels. Parts of one tag are put together by the client: each must be of one content.
    pub(crate) async fn part_of(&self, request: &Request, relayed: Relayed) -> Result<Relayed, Answer> {
        let fields = &request.head.headers;
        if !fields.contains_key(header::RANGE) || relayed.head.status != StatusCode::OK || request.method != Method::GET
        {
            return Ok(relayed);
        }
        let Relayed { mut head, begun, rest } = match length_of(&relayed) {
            Some(_) => relayed,
            None => self.read_all(request, relayed).await?,
        };
        let length = content_length(&head).unwrap_or(begun.len() as u64);
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
        let Relayed { head, begun, rest } = self.read_all(request, Relayed { head, begun, rest }).await?;
        if request.rules().etag == TagSource::Version && !self.is_settled(request, &head).await {
            return Err(busy().into());
        }
        Ok(Relayed { head, begun: begun.part(part), rest })
    }

    /// Reads the rest of a body, as far as it may be held.
    async fn read_all(&self, request: &Request, relayed: Relayed) -> Result<Relayed, Answer> {
        let Relayed { head, begun, rest } = relayed;
        let Some(mut exchange) = rest else { return Ok(Relayed { head, begun, rest: None }) };
        let wait = request.upstream().timeout;
        let read = read_whole(
            &mut exchange,
            request.rules().hash_max_bytes,
            wait,
            self.bodies.budget_for(MemoryUse::Response),
        )
        .await;
        match read.map_err(refusals::of_read)? {
            // What was read before was given up as too large.
            BufferedBody::Complete(whole) if begun.is_empty() => {
                exchange.finish().await;
                Ok(Relayed { head, begun: whole, rest: None })
            }
            // The backend was not asked for the part because of a write, and will be soon.
            _ if request.rules().etag == TagSource::Version && serves_parts(&head) => Err(busy().into()),
            BufferedBody::Complete(_) | BufferedBody::TooLarge(_) | BufferedBody::TooSlow(_) => {
                let detail = "The server behind this proxy serves no parts, and the blob is too large to take one from \
                              (hash_max).";
                Err(Refusal::new(Code::NotSupported, detail).into())
            }
        }
    }

    /// Whether the version that a response is labelled with is still that of its resource, and nothing is in flight: no
    /// write has come between the label and the last byte.
    async fn is_settled(&self, request: &Request, head: &ResponseHeader) -> bool {
        let Ok(now) = self.knowledge.snapshot(&request.key).await else { return false };
        let current = self.knowledge.version_tag(request, &now, &[]);
        now.has_no_pending_writes() && current.is_some() && current == Validators::from_headers(&head.headers).0.tag
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
    if relayed.rest.is_none() { Some(relayed.begun.len() as u64) } else { content_length(&relayed.head) }
}

fn content_length(head: &ResponseHeader) -> Option<u64> {
    head.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Says of a head what part of how many bytes it goes with (RFC 9110 section 15.3.7).
pub(crate) fn label_part(head: &mut ResponseHeader, part: &Range<u64>, length: u64) -> pingora::Result<()> {
    head.set_status(StatusCode::PARTIAL_CONTENT)?;
    let last = part.end.saturating_sub(1);
    head.insert_header(header::CONTENT_RANGE, format!("bytes {}-{last}/{length}", part.start))?;
    head.insert_header(header::CONTENT_LENGTH, part.end.saturating_sub(part.start))
}

/// Makes a head say that a body of this length has no such part (RFC 9110 section 15.5.17).
pub(crate) fn label_unsatisfiable(head: &mut ResponseHeader, length: u64) -> pingora::Result<()> {
    head.set_status(StatusCode::RANGE_NOT_SATISFIABLE)?;
    head.insert_header(header::CONTENT_RANGE, format!("bytes */{length}"))
}
