//! Requests in the azure dialect: each is one operation of its list, and is told in Azure's words how it went.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use super::{
    Guard,
    answer::{Answer, Relayed},
    knowledge::{collections::has_removed_nothing, responses::not_modified_fields},
    lease::{Needs, fresh_id},
    request::{Received, Request, name_resource},
};
use crate::{
    body::Client,
    core::{
        policy::{AbsentLease, GuardRules, LeaseGuards, LeaseRules},
        validators::{Modified, Validators},
    },
    dialect::{
        azure::{self, AnswerBody, AzureError, AzureOperation, BackendOutcome, Call, ERROR_CODE},
        xml,
    },
    entropy::random_bytes,
    routing::GuardedRequest,
    upstream::BodyPrefix,
};

impl Guard {
    /// Handles a request in the azure dialect.
    pub(crate) async fn answer_in_azure(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        guard: &Arc<GuardRules>,
        rules: &LeaseRules,
    ) -> Result<Answer, Answer> {
        let received = client.head();
        let containers = rules.guards == LeaseGuards::Delete;
        let call = Call::read(&guarded.method, received.raw_path(), &received.headers, containers)?;
        // A number that could be guessed does no harm here.
        let told = AzureAnswer {
            fields: azure::common_fields(&received.headers, random_bytes().unwrap_or_default()),
            operation: call.operation,
        };
        let mut head = forwarded_head(received, &call)?;
        name_resource(&mut head, guarded)?;
        let head = Received::of(client, head, guarded.client);
        let (key, method) = (guarded.key.clone(), guarded.method.clone());
        let conditions = call.conditions.clone();
        let request = Request::new(self.place(guarded), guard, key, method, head, conditions, call.lease_id);
        let answer = match call.operation {
            operation if operation.is_lease() => Box::pin(self.lease_in_azure(client, &request, rules, &call)).await,
            operation if operation.is_read() => self.reads.read(client, &request).await,
            AzureOperation::DeleteContainer => self.remove_container(client, &request).await,
            _ => self.writes.write(client, &request).await,
        };
        self.tell_in_azure(&request, &told, answer.unwrap_or_else(|answer| answer)).await
    }

    /// Removes a container, and with it what is known of its blobs.
    async fn remove_container(&self, client: &mut dyn Client, request: &Request) -> Result<Answer, Answer> {
        self.knowledge.note_removal(request).await?;
        let answer = self.writes.write(client, request).await;
        if !has_removed_nothing(&answer) {
            self.knowledge.note_removal(request).await?;
        }
        answer
    }

    /// Does a lease operation. Its answer has the validators of the resource, which no lease changes.
    async fn lease_in_azure(
        &self,
        client: &mut dyn Client,
        request: &Request,
        rules: &LeaseRules,
        call: &Call,
    ) -> Result<Answer, Answer> {
        let action = azure::action(&client.head().headers, rules, fresh_id)?;
        let needs = Needs { presence: rules.absent == AbsentLease::Refuse, tag: true };
        let seen = self.leases.authorize(request, rules, needs).await?;
        let stepped = self.leases.take_step(client, request, rules, action, None).await?;
        let (status, field) = azure::done(stepped.done, call.lease_id)?;
        let mut head = ResponseHeader::build(status, Some(8))?;
        if let Some((name, value)) = field {
            head.insert_header(name, value)?;
        }
        if let Some(Validators { tag, modified }) = seen.and_then(|seen| seen.still_current(&stepped.snapshot)) {
            if let Some(tag) = tag {
                head.insert_header(header::ETAG, tag.to_header_value())?;
            }
            if let Some(modified) = modified {
                head.insert_header(header::LAST_MODIFIED, modified.told().to_string())?;
            }
        }
        Ok(Answer::Local(Box::new(head), None))
    }

    /// Brings an answer into Azure's form; a refusal gets it where it is written.
    async fn tell_in_azure(&self, request: &Request, told: &AzureAnswer, answer: Answer) -> Result<Answer, Answer> {
        match answer {
            Answer::Relayed(relayed) => self.tell_relayed(request, told, *relayed).await,
            Answer::NotModified(mut head) => {
                head.insert_header(ERROR_CODE, "ConditionNotMet")?;
                told.write_to(&mut head)?;
                Ok(Answer::NotModified(head))
            }
            Answer::Local(mut head, body) => {
                told.write_to(&mut head)?;
                Ok(Answer::Local(head, body))
            }
            answer @ (Answer::Refused(_) | Answer::Broken(_)) => Ok(answer),
        }
    }

    async fn tell_relayed(&self, request: &Request, told: &AzureAnswer, relayed: Relayed) -> Result<Answer, Answer> {
        let is_blob = told.operation == AzureOperation::ReadBlob;
        let relayed = if is_blob { self.reads.part_of(request, relayed).await? } else { relayed };
        let Relayed { mut head, begun, rest } = relayed;
        let matches = request.conditions.if_match.is_some();
        let outcome = azure::outcome(told.operation, head.status, matches);
        let relays = matches!(outcome, BackendOutcome::Done(_, AnswerBody::Relayed));
        let rest = match rest {
            Some(exchange) if !relays => {
                exchange.discard().await;
                None
            }
            rest => rest,
        };
        let begun = match outcome {
            BackendOutcome::NotModified => {
                let not_modified = Answer::not_modified(&not_modified_fields(&head.headers));
                return Box::pin(self.tell_in_azure(request, told, not_modified)).await;
            }
            BackendOutcome::Failed(error) => write_error(&mut head, error)?,
            BackendOutcome::Done(status, AnswerBody::Dropped) => {
                head.set_status(status)?;
                replace_content(&mut head, None)?;
                BodyPrefix::default()
            }
            BackendOutcome::Done(status, AnswerBody::Relayed) => {
                head.set_status(status)?;
                head.insert_header(azure::BLOB_TYPE, azure::BLOCK_BLOB)?;
                head.insert_header(header::ACCEPT_RANGES, "bytes")?;
                begun
            }
        };
        if told.operation.is_read() && head.status.is_success() {
            // Without the store nothing is known of the lease, and nothing is said of it.
            for (name, value) in self.knowledge.snapshot(&request.key).await.iter().flat_map(azure::lease_fields) {
                head.insert_header(name, value)?;
            }
        }
        if let Some(modified) = Modified::from_headers(&head.headers) {
            head.insert_header(header::LAST_MODIFIED, modified.told().to_string())?;
        }
        told.write_to(&mut head)?;
        Ok(Answer::Relayed(Box::new(Relayed { head, begun, rest })))
    }
}

/// What every answer to a request says.
struct AzureAnswer {
    fields: Vec<(HeaderName, HeaderValue)>,
    operation: AzureOperation,
}

impl AzureAnswer {
    fn write_to(&self, head: &mut ResponseHeader) -> pingora::Result<()> {
        self.fields.iter().try_for_each(|(name, value)| head.insert_header(name.clone(), value.clone()))
    }
}

/// The head of a request as the backend is to get it.
fn forwarded_head(received: &RequestHeader, call: &Call) -> pingora::Result<RequestHeader> {
    let mut head = received.clone();
    head.set_method(call.method.clone());
    head.set_raw_path(&call.target)?;
    let fields = call.forwarded_fields(&received.headers);
    for name in received.headers.keys() {
        head.remove_header(name);
    }
    append(&mut head, fields)?;
    Ok(head)
}

fn append(head: &mut RequestHeader, fields: HeaderMap) -> pingora::Result<()> {
    let mut last = None;
    for (name, value) in fields {
        // A name is given with the first of its values alone.
        last = name.or(last);
        if let Some(name) = &last {
            head.append_header(name.clone(), value)?;
        }
    }
    Ok(())
}

/// Makes an error of a response, which keeps what is not about its content: credentials asked for, when to come back.
fn write_error(head: &mut ResponseHeader, error: AzureError) -> pingora::Result<BodyPrefix> {
    let message = "The server behind this proxy has refused the request or failed it.";
    let document = Bytes::from(xml::error(&[("Code", error.code), ("Message", message)]));
    head.set_status(error.status)?;
    head.remove_header(&header::ETAG);
    head.remove_header(&header::LAST_MODIFIED);
    replace_content(head, Some(&document))?;
    head.insert_header(ERROR_CODE, error.code)?;
    Ok(BodyPrefix::of(document))
}

/// Takes away what a head says of its content, and says it of an XML document or of nothing.
fn replace_content(head: &mut ResponseHeader, document: Option<&Bytes>) -> pingora::Result<()> {
    // How long a whole is of which a part could not be given stays.
    let keeps = |name: &HeaderName| *name == header::CONTENT_RANGE && head.status == StatusCode::RANGE_NOT_SATISFIABLE;
    let says = |name: &&HeaderName| name.as_str().starts_with("content-") && !keeps(name);
    let of_content: Vec<_> = head.headers.keys().filter(says).cloned().collect();
    for name in of_content.iter().chain(&[header::LOCATION, header::ACCEPT_RANGES]) {
        head.remove_header(name);
    }
    if document.is_some() {
        head.insert_header(header::CONTENT_TYPE, xml::CONTENT_TYPE)?;
    }
    head.insert_header(header::CONTENT_LENGTH, document.map_or(0, Bytes::len))
}
