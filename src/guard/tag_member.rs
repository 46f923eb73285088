//! The tag in the body of an answer (`tag_member`), for clients that look for it there.
//!
//! # Design
//!
//! *When is it put in?* Last, when the field `ETag` is final: the body has exactly the tag of the field, or none.
//!
//! *What becomes of other bodies?* One that is compressed, too large to hash, or no JSON object passes as it came.

use bytes::Bytes;
use http::{HeaderName, StatusCode, header};

use super::{Answer, Guard, Relayed, refusals};
use crate::{
    body::{Bodies, MemoryUse, content_length},
    config::Route,
    core::{
        policy::GuardRules,
        records::steps::Outcome,
        refusal::Refusal,
        tags::{json::JsonPointer, tag_member::with_tag, validators::Validators},
    },
    routing::GuardedRequest,
    upstream::{BufferedBody, Failure, read_whole},
};

/// The fields of an answer that describe bytes which the client does not get.
const OF_OTHER_BYTES: [HeaderName; 5] = [
    header::ACCEPT_RANGES,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
];

impl Guard {
    /// Puts its tag into the body of an answer.
    pub(super) async fn with_tag_member(
        &self,
        guarded: &GuardedRequest,
        rules: &GuardRules,
        answer: Result<Answer, Refusal>,
    ) -> Result<Answer, Refusal> {
        let (mut answer, is_read) = (answer?, !guarded.methods.usages.changes());
        answer.show_tag((&guarded.route, rules), self.bodies(), is_read).await?;
        Ok(answer)
    }
}

impl Answer {
    /// Puts the tag of the answer to a read, or to another request, into the member of its body.
    async fn show_tag(
        &mut self,
        (route, rules): (&Route, &GuardRules),
        bodies: &Bodies,
        is_read: bool,
    ) -> Result<(), Refusal> {
        let Some(place) = &rules.tag_member else { return Ok(()) };
        let (Self::Relayed(relayed) | Self::Current(_, relayed)) = self else { return Ok(()) };
        let represents = matches!(
            relayed.head.status,
            StatusCode::OK | StatusCode::CREATED | StatusCode::NON_AUTHORITATIVE_INFORMATION
        );
        if !represents || relayed.head.headers.contains_key(header::CONTENT_ENCODING) {
            return Ok(());
        }
        // A read whose tag is made of the body has it already.
        if !is_read || !rules.etag.needs_body() {
            let (status, window) = (relayed.head.status, route.upstream.late_write_window);
            let lost = |failure| {
                if is_read {
                    refusals::of_read(failure)
                } else {
                    refusals::of_lost_response(status.as_u16(), Outcome::of_status(status), window)
                }
            };
            relayed.complete(route, rules, bodies).await.map_err(lost)?;
        }
        relayed.show_tag(place).map_err(|_error| refusals::of_field())
    }
}

impl Relayed {
    /// Reads the body to its end, if it is short enough.
    async fn complete(&mut self, route: &Route, rules: &GuardRules, bodies: &Bodies) -> Result<(), Failure> {
        let Some(mut exchange) = self.rest.take_if(|_| self.begun.is_empty()) else { return Ok(()) };
        let wait = rules.wait_for_body(content_length(&self.head.headers), route.upstream.read_timeout);
        let budget = bodies.budget_for(MemoryUse::Response);
        let whole = read_whole(&mut exchange, rules.max_hash_size_bytes, wait, budget).await;
        match whole? {
            BufferedBody::Complete(body) => {
                exchange.finish().await;
                self.begun = body;
            }
            BufferedBody::TooLarge(begun) | BufferedBody::TooSlow(begun) => {
                (self.begun, self.rest) = (begun, Some(exchange));
            }
        }
        Ok(())
    }

    fn show_tag(&mut self, place: &JsonPointer) -> pingora::Result<()> {
        if self.rest.is_some() {
            return Ok(());
        }
        let tag = Validators::from_headers(&self.head.headers).0.tag;
        let Some(edited) = with_tag(&self.begun.chunks().concat(), place, tag.as_ref()) else { return Ok(()) };
        for name in &OF_OTHER_BYTES {
            self.head.remove_header(name);
        }
        self.head.insert_header(header::CONTENT_LENGTH, edited.len())?;
        self.begun.replace(Bytes::from(edited));
        Ok(())
    }
}
