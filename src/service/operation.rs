//! Requests in a dialect that is a closed list of operations. Each answer is rewritten in the terms of the dialect.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use pingora::http::ResponseHeader;

use super::{
    Service,
    azure_blob::{blocks::JoinedBlocks, copies::Copied, listed::ListedReads},
    verb,
};
use crate::{
    body::Client,
    core::{
        objects::description::CONTENT_MD5,
        policy::GuardRules,
        records::idempotency::REPLAYED,
        tags::{checksum::Checksum, validators::Modified},
    },
    dialect::{Call, CallOutcome, ErrorDocument, Intent, ShownDocument, objects::SentContent},
    entropy::number_of_answer,
    guard::{
        Answer, Halt, Relayed, Request, Verb, not_modified_fields, not_modified_head, refusals, remove_validators,
    },
    routing::GuardedRequest,
    upstream::{BodyPrefix, fields::FieldsOfHead as _},
};

impl Service<'_> {
    /// Handles an operation, and returns the answer in the terms of its dialect.
    pub(super) async fn answer_operation(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        rules: &Arc<GuardRules>,
        call: Call,
    ) -> Result<Answer, Halt> {
        let mut fields = rules.dialect.grammar().answer_fields(&client.head().headers, number_of_answer);
        let request = self.guard.request(client, guarded, rules, call.clone())?;
        let told_md5 = OnceLock::new();
        let answer = self.carry_out(client, (guarded, rules), (&request, &call), &told_md5).await;
        if let Some(md5) = told_md5.get().filter(|_| is_applied(&answer)) {
            let md5 = HeaderValue::try_from(md5.to_base64()).map_err(|_error| refusals::of_field())?;
            fields.push((HeaderName::from_static(CONTENT_MD5), md5));
        }
        if is_applied(&answer) && call.intent == Intent::Write && !request.content.is_description_alone() {
            // The client's own blocks belonged to the state that this write has replaced.
            self.end_upload(&request);
        }
        match answer {
            Ok(Answer::Relayed(relayed)) | Err(Halt::Denied(relayed)) => {
                self.tell_relayed((client, guarded), (&request, &call), &fields, *relayed).await
            }
            Ok(Answer::NotModified(head)) => tell_not_modified(&request, &fields, head),
            Ok(Answer::Local(mut head, body)) => {
                insert(&mut head, &fields)?;
                Ok(Answer::Local(head, body))
            }
            Ok(lasting @ Answer::Lasting(..)) => Ok(lasting),
            // A refusal gets its form when it is written.
            refused => refused,
        }
    }

    /// Carries an operation out by the verbs of the guard.
    async fn carry_out(
        &self,
        client: &mut dyn Client,
        (guarded, rules): (&GuardedRequest, &Arc<GuardRules>),
        (request, call): (&Request, &Call),
        told_md5: &OnceLock<Checksum>,
    ) -> Result<Answer, Halt> {
        match call.intent {
            Intent::StageBlock => {
                self.guard.finish_expected_delete(client, request).await;
                let answer = Box::pin(self.stage_block(client, request, &call.content)).await;
                self.guard.finish_delete_after(client, request, false, answer).await
            }
            Intent::Write if let SentContent::CopyOf(source) = &call.content => {
                let copied = Copied::of(self, client, (guarded, rules), (source, told_md5));
                self.guard.serve(client, request, Verb::Write(Some(&copied))).await
            }
            Intent::Write => {
                let blocks = JoinedBlocks { service: self, content: &call.content, told_md5 };
                self.guard.serve(client, request, Verb::Write(Some(&blocks))).await
            }
            intent => self.guard.serve(client, request, verb(intent, guarded.is_lease())).await,
        }
    }

    /// Returns the document that a read is answered with instead of the upstream's content.
    async fn document(
        &self,
        (client, guarded): (&mut dyn Client, &GuardedRequest),
        (request, call): (&Request, &Call),
        head: &mut ResponseHeader,
    ) -> Result<Option<ShownDocument>, Halt> {
        match (call.intent, &call.listing, request.grammar().lists()) {
            (Intent::ReadBlocks, ..) => self.blocks_document(request, client.head().raw_path(), head).await,
            // The collection is there, and the client may read it.
            (Intent::List, Some(listing), Some(grammar)) if head.status.is_success() => {
                let mut page = self.page(request, listing).await?;
                if listing.reads_items {
                    let reads = ListedReads { guarded, request, listing, folder_query: grammar.folder_query() };
                    self.read_listed(client, &reads, &mut page).await?;
                }
                // They describe the collection.
                remove_validators(head);
                Ok(Some(grammar.page(client.head().raw_path(), &page)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the document that shows the blocks of an upload. A resource that does not exist yet can have blocks.
    async fn blocks_document(
        &self,
        request: &Request,
        received_target: &[u8],
        head: &mut ResponseHeader,
    ) -> Result<Option<ShownDocument>, Halt> {
        let shown = self.shown_blocks(request, received_target).await?;
        let Some((document, has_blocks)) = shown else { return Ok(None) };
        if has_blocks && head.status == StatusCode::NOT_FOUND {
            head.set_status(StatusCode::OK)?;
            remove_validators(head);
        }
        Ok(Some(document))
    }

    async fn tell_relayed(
        &self,
        from: (&mut dyn Client, &GuardedRequest),
        (request, call): (&Request, &Call),
        fields: &[(HeaderName, HeaderValue)],
        relayed: Relayed,
    ) -> Result<Answer, Halt> {
        let relayed = if call.cuts_parts { self.part_of(request, relayed).await? } else { relayed };
        let relayed = match &call.part_checksum {
            Some(wanted) => self.with_checksum(request, relayed, wanted).await?,
            None => relayed,
        };
        let Relayed { mut head, begun, rest } = relayed;
        head.remove_all(|name| request.grammar().is_own_field(name));
        label_checksum(&mut head, request)?;
        // Boxed, so that the futures of other requests stay small.
        let document = Box::pin(self.document(from, (request, call), &mut head)).await?;
        let outcome = request.grammar().outcome(call, head.status, &head.headers);
        let rest = match rest {
            Some(exchange) if !matches!(outcome, CallOutcome::Done { relays_body: true, .. }) => {
                exchange.discard().await;
                None
            }
            rest => rest,
        };
        let (begun, of_outcome) = match outcome {
            CallOutcome::NotModified => {
                let head = not_modified_head(not_modified_fields(&head.headers));
                return tell_not_modified(request, fields, head);
            }
            CallOutcome::Failed(error) => {
                let describes_content =
                    request.method != Method::HEAD || request.rules().quirks.head_errors_have_content;
                (write_error(&mut head, &error, describes_content)?, Vec::new())
            }
            CallOutcome::Done { status, relays_body, fields } => {
                head.set_status(status)?;
                let begun = match document {
                    Some(document) => write_document(&mut head, document)?,
                    None if relays_body => begun,
                    None => {
                        replace_content(&mut head, None)?;
                        BodyPrefix::default()
                    }
                };
                (begun, fields)
            }
        };
        if head.status.is_success() {
            insert(&mut head, &self.fields_of_success(request, call).await)?;
        }
        if let Some(modified) = Modified::from_headers(&head.headers) {
            head.insert_header(header::LAST_MODIFIED, modified.told().to_string())?;
        }
        insert(&mut head, fields)?;
        insert(&mut head, &of_outcome)?;
        Ok(Answer::Relayed(Box::new(Relayed { head, begun, rest })))
    }

    /// Returns the fields that only the answer to a successful operation has: the state of the lease that was read, or the
    /// copy that was made.
    async fn fields_of_success(&self, request: &Request, call: &Call) -> Vec<(HeaderName, HeaderValue)> {
        let fields = match (call.intent, &call.content) {
            (Intent::Read | Intent::ReadBlocks, _) => {
                // Without the store the state of the lease is unknown, and the answer omits it.
                self.guard.record_of(request).await.ok().map(|snapshot| request.grammar().state_fields(&snapshot))
            }
            (_, SentContent::CopyOf(_)) => request.grammar().copies().map(|copies| copies.made(number_of_answer)),
            _ => None,
        };
        fields.unwrap_or_default()
    }
}

fn tell_not_modified(
    request: &Request,
    fields: &[(HeaderName, HeaderValue)],
    mut head: Box<ResponseHeader>,
) -> Result<Answer, Halt> {
    insert(&mut head, &request.grammar().not_modified_fields())?;
    insert(&mut head, fields)?;
    Ok(Answer::NotModified(head))
}

fn insert(head: &mut ResponseHeader, fields: &[(HeaderName, HeaderValue)]) -> pingora::Result<()> {
    fields.iter().try_for_each(|(name, value)| head.insert_header(name.clone(), value.clone()))
}

/// Turns a response into an error. Fields that do not describe the content stay, such as `WWW-Authenticate` and
/// `Retry-After`.
fn write_error(
    head: &mut ResponseHeader,
    error: &ErrorDocument,
    describes_content: bool,
) -> pingora::Result<BodyPrefix> {
    head.set_status(error.status)?;
    remove_validators(head);
    replace_content(head, Some((error.content_type, error.body.len())))?;
    if !describes_content {
        head.remove_header(&header::CONTENT_TYPE);
        head.remove_header(&header::CONTENT_LENGTH);
    }
    insert(head, &error.fields)?;
    Ok(BodyPrefix::of(Bytes::from(error.body.clone())))
}

/// Replaces the content of a response by a document.
fn write_document(head: &mut ResponseHeader, document: ShownDocument) -> pingora::Result<BodyPrefix> {
    replace_content(head, Some((document.content_type, document.body.len())))?;
    Ok(BodyPrefix::of(Bytes::from(document.body)))
}

/// True if an answer tells that a write was applied just now.
fn is_applied(answer: &Result<Answer, Halt>) -> bool {
    let is_told = |head: &ResponseHeader| head.status.is_success() && !head.headers.contains_key(&REPLAYED);
    matches!(answer, Ok(Answer::Relayed(relayed)) if is_told(&relayed.head))
}

/// Replaces the fields that describe the content with those of a document of this type and length, or of empty content.
fn replace_content(head: &mut ResponseHeader, document: Option<(&'static str, usize)>) -> pingora::Result<()> {
    // The Content-Range of a 416 stays: it reports the length of the whole representation.
    let keeps = |name: &HeaderName| *name == header::CONTENT_RANGE && head.status == StatusCode::RANGE_NOT_SATISFIABLE;
    let says = |name: &&HeaderName| name.as_str().starts_with("content-") && !keeps(name);
    let of_content: Vec<_> = head.headers.keys().filter(says).cloned().collect();
    for name in of_content.iter().chain(&[header::LOCATION, header::ACCEPT_RANGES]) {
        head.remove_header(name);
    }
    if let Some((content_type, _)) = document {
        head.insert_header(header::CONTENT_TYPE, content_type)?;
    }
    // RFC 9110 section 8.6: the field has no place in a 204.
    if head.status == StatusCode::NO_CONTENT {
        return Ok(());
    }
    head.insert_header(header::CONTENT_LENGTH, document.map_or(0, |(_, len)| len))
}

/// Names the checksum of the whole as that of the content, if an answer has the whole. That of a part is another one.
fn label_checksum(head: &mut ResponseHeader, request: &Request) -> pingora::Result<()> {
    let is_shown = request.content.shows_description() && head.status == StatusCode::OK;
    let Some(grammar) = request.grammar().description().filter(|_| is_shown) else { return Ok(()) };
    match head.remove_header(&grammar.checksum_of_whole()) {
        Some(checksum) => head.insert_header(CONTENT_MD5, checksum),
        None => Ok(()),
    }
}
