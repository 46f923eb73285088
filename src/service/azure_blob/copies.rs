//! Copies: a settled read of the source, and then a write of the target like any other.
//!
//! # Design
//!
//! *Why is no claim held on the source?* A copy shows the state of the source at one moment, as a read does. A read
//! holds no claim (rule 5), so a copy never lets a writer of its source wait.
//!
//! *Why is the record of the source read again after the last byte?* A backend may replace a file while it sends it. What
//! no write has touched from before the first byte until after the last is one state.
//!
//! *What of a copy of a blob to itself?* It sets metadata, and would bring back the content that it has read. So its write
//! has the tag of that content as its condition.

use std::sync::{Arc, OnceLock};

use http::{Method, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};
use tokio::time::Instant;

use super::{super::head_alone::HeadAlone, copied_content::CopiedContent};
use crate::{
    body::{Body, BoxFuture, Client},
    core::{
        http::request_target::{same_origin_target, split_authority},
        policy::GuardRules,
        refusal::{Code, Refusal},
        tags::{checksum::Checksum, precondition::TagCondition, validators::Validators},
    },
    dialect::{
        Call, Intent,
        objects::{CopyGrammar, CopySource},
    },
    guard::{Answer, Halt, Relayed, Request, WriteContent, WrittenContent, checksums, incoming, overtaken, refusals},
    routing::{GuardedRequest, door::Door},
    service::{Service, own_request::call_of},
    upstream::fields::FieldsOfHead as _,
};

/// The content of a copy: that of its source.
pub(crate) struct Copied<'a> {
    service: &'a Service<'a>,
    target: (&'a GuardedRequest, &'a Arc<GuardRules>),
    source: &'a CopySource,
    /// The MD5 that the answer has, once the source was seen to have it.
    told_md5: &'a OnceLock<Checksum>,
    /// The copy itself.
    copy: HeadAlone,
}

/// A source that was read.
struct ReadSource {
    is_target: bool,
    head: Box<ResponseHeader>,
    content: Body,
}

impl WrittenContent for Copied<'_> {
    fn written<'a>(&'a self, request: &'a Request, _received: Body) -> BoxFuture<'a, Result<WriteContent, Halt>> {
        Box::pin(async {
            let Some(copies) = request.grammar().copies() else { return Err(refusals::of_field().into()) };
            let read = self.read(copies).await?;
            let request = Box::new(self.write(copies, &read)?);
            Ok(WriteContent { body: read.content, request: Some(request) })
        })
    }
}

impl<'a> Copied<'a> {
    /// Returns the content of a copy of this source to this target.
    pub(crate) fn of(
        service: &'a Service<'a>,
        client: &mut dyn Client,
        target: (&'a GuardedRequest, &'a Arc<GuardRules>),
        (source, told_md5): (&'a CopySource, &'a OnceLock<Checksum>),
    ) -> Self {
        Self { service, target, source, told_md5, copy: HeadAlone::of(client) }
    }

    /// Reads the source: the content of one state, with what describes it.
    async fn read(&self, copies: &dyn CopyGrammar) -> Result<ReadSource, Halt> {
        let (target, _) = self.target;
        let mut client = self.copy.with(self.head_of_read(copies)?);
        let (head, guard) = (client.head().clone(), self.service.guard);
        let Door::Guarded(guarded) = guard.door(&head.method, &head, target.client) else {
            return Err(copies.not_here(UNGUARDED).into());
        };
        if guarded.route.upstream != target.route.upstream {
            return Err(copies.not_here(ELSEWHERE).into());
        }
        let (rules, call) = call_of(&head, &guarded)?;
        if call.intent != Intent::Read || !call.cuts_parts {
            return Err(copies.not_here(NO_BLOB).into());
        }
        let request = guard.request(&mut client, &guarded, rules, call)?;
        let (head, content) = self.read_whole(copies, &mut client, &request).await?;
        if let Some(md5) = self.source.md5 {
            checksums::check(&request, &[md5], &content).await?;
            self.told_md5.get_or_init(|| md5);
        }
        Ok(ReadSource { is_target: guarded.key == target.key, head, content })
    }

    /// Reads the whole of a settled state. If a write comes before the last byte, it is read again.
    async fn read_whole(
        &self,
        copies: &dyn CopyGrammar,
        client: &mut HeadAlone,
        request: &Request,
    ) -> Result<(Box<ResponseHeader>, Body), Halt> {
        let (guard, end) = (self.service.guard, Instant::now() + request.rules().claim.max_wait);
        loop {
            let (answer, state) = match guard.read_settled(client, request).await {
                Err(Halt::Refused(refusal)) if refusal.code == Code::PreconditionFailed => {
                    return Err(copies.source_differs().into());
                }
                answer => answer?,
            };
            let relayed = shown(copies, answer).await?;
            let (head, content) = CopiedContent::receive(guard.bodies(), relayed).await?;
            if guard.is_unchanged(request, &state).await? {
                return Ok((head, content));
            }
            if Instant::now() >= end {
                return Err(overtaken());
            }
        }
    }

    /// Returns the head of the read of the source, with the credentials of the copy.
    fn head_of_read(&self, copies: &dyn CopyGrammar) -> Result<RequestHeader, Halt> {
        let mut head = RequestHeader::clone(self.copy.head());
        let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let is_absolute = matches!(split_authority(&self.source.url), Some((_, Some(_), _)));
        let source = same_origin_target(&self.source.url, host, "/").filter(|_| is_absolute);
        let source = source.ok_or_else(|| copies.not_here(OTHER_HOST))?;
        head.set_method(Method::GET);
        head.set_raw_path(source.as_bytes())?;
        head.remove_all(|name| !copies.is_of_read(name));
        for (name, value) in &self.source.fields {
            head.insert_header(name.clone(), value.clone())?;
        }
        Ok(head)
    }

    /// Returns the write of the target, as the source describes its content.
    fn write(&self, copies: &dyn CopyGrammar, read: &ReadSource) -> Result<Request, Halt> {
        let (target, rules) = self.target;
        let mut head = RequestHeader::clone(self.copy.head());
        let shown: Vec<_> = read.head.spelled_fields().collect();
        let described = copies.described(&head.headers, &shown);
        head.remove_all(|name| !copies.is_of_write(name));
        for (name, value) in described {
            head.insert_header(name, value)?;
        }
        let mut call = rules.dialect.grammar().read(incoming(&head, target), rules, target.is_lease())?;
        if read.is_target {
            bind_to(&mut call, &read.head, copies)?;
        }
        Ok(self.service.guard.request(&mut self.copy.with(head), target, rules, call)?)
    }
}

/// Makes the write of content that was read from the target itself depend on the state that was read.
fn bind_to(call: &mut Call, read: &ResponseHeader, copies: &dyn CopyGrammar) -> Result<(), Refusal> {
    let Some(tag) = Validators::from_headers(&read.headers).0.tag else { return Err(copies.not_here(NO_TAG)) };
    match &call.conditions.if_match {
        Some(TagCondition::Tags(own)) if !own.contains(&tag) => {}
        Some(_) | None => call.conditions.if_match = Some(TagCondition::Tags(vec![tag])),
    }
    Ok(())
}

/// Returns the response with the content of a source, or the answer that its client gets instead.
async fn shown(copies: &dyn CopyGrammar, answer: Answer) -> Result<Relayed, Halt> {
    let relayed = match answer {
        Answer::Relayed(relayed) => relayed,
        Answer::NotModified(_) | Answer::Local(..) | Answer::Lasting(..) | Answer::Current(..) | Answer::Told(..) => {
            return Err(copies.source_differs().into());
        }
    };
    let refusal = match relayed.head.status {
        StatusCode::OK => return Ok(*relayed),
        // The upstream's own answer names the credentials that it wants.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Halt::Denied(relayed)),
        StatusCode::NOT_MODIFIED | StatusCode::PRECONDITION_FAILED => copies.source_differs(),
        status => copies.not_read(status),
    };
    relayed.discard().await;
    Err(refusal.into())
}

const OTHER_HOST: &str = "The source of a copy has a URL with http or https and the host of the request: this proxy \
                          reads nothing from elsewhere.";
const UNGUARDED: &str = "The source of a copy is a blob of a guarded route of this proxy: of others the leases and \
                         writes are not known.";
const ELSEWHERE: &str = "The source of a copy is on the server of its target: another one would get the client's \
                         credentials.";
const NO_BLOB: &str = "The source of a copy is a blob, on a route that serves blobs.";
const NO_TAG: &str = "A blob without an ETag cannot be copied to itself: it may change in between.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::tags::{entity_tag::EntityTag, precondition::Preconditions},
        dialect::azure::{Azure, BlobRoute, read},
        dialect::{Grammar as _, Incoming},
    };

    /// Rule 2: a copy of a blob to itself brings back the content that was read, and so names the tag of that.
    #[test]
    fn a_copy_to_itself_is_bound_to_the_state_that_was_read() {
        let copies = Azure.copies().expect("Azure has copies");
        let tag = |text: &[u8]| EntityTag::strong(text).expect("a tag");
        let bound = |if_match: Option<TagCondition>, shown: Option<&str>| {
            let headers = [("x-ms-blob-type", "BlockBlob")];
            let headers = headers.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let headers = headers.collect();
            let request = Incoming { method: &Method::PUT, other_methods: &[], target: b"/c/b", headers: &headers };
            let mut call = read(request, BlobRoute::default()).expect("Put Blob");
            call.conditions = Preconditions { if_match, ..call.conditions };
            let mut head = ResponseHeader::build(200, None).expect("a head");
            if let Some(shown) = shown {
                head.insert_header(header::ETAG, shown).expect("a tag");
            }
            bind_to(&mut call, &head, copies).ok().map(|()| call.conditions.if_match)
        };
        let read = || Some(TagCondition::Tags(vec![tag(b"read")]));
        let other = || Some(TagCondition::Tags(vec![tag(b"other")]));
        for (own, expected) in [(None, read()), (Some(TagCondition::Any), read()), (read(), read()), (other(), other())]
        {
            assert_eq!(bound(own, Some("\"read\"")), Some(expected));
        }
        assert_eq!(bound(None, None), None, "nothing binds it");
    }
}
