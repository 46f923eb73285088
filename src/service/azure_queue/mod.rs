//! Azure Queue Storage: queues and messages that are documents of the backend.
//!
//! | at the backend | is |
//! |---|---|
//! | `/jobs.json` | the queue `jobs`: its id and its metadata |
//! | `/jobs/ID` | a message, with its text, its times and the hash of its receipt |
//!
//! # Design
//!
//! *How is a message taken?* By a write that hides it: the document with a later time, one more take and another receipt,
//! with the tag of the state that was read. Of all workers that read one state, the claim and the tag let one succeed.
//!
//! *What if a proxy dies meanwhile?* The document shows the truth. Either the write is applied, and the message comes
//! back when its time is over, or it is not, and the next worker takes it.
//!
//! *Why are requests of clients not forwarded?* None of them is a request for a file. Those to the backend have the client's
//! credentials, other than signatures, which hold for the client's own request alone.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::Service;
use crate::{
    body::Client,
    dialect::{
        Call, Intent, Response, ShownDocument,
        azure::{AzureError, common_failure},
        azure_queue::{
            BODY_BYTES_MAX, QueueCall, QueueOf, QueueOperation, body_too_large, malformed_document, metadata_fields,
            read_message,
        },
    },
    entropy::number_of_answer,
    guard::{Answer, Halt, Relayed, incoming, rules_of},
    routing::GuardedRequest,
};
use documents::QueueDocuments;

mod documents;
mod messages;
mod queues;
mod sent;
mod take;

/// The answer to an operation that has succeeded.
struct OperationDone {
    status: StatusCode,
    fields: Vec<(HeaderName, HeaderValue)>,
    document: Option<ShownDocument>,
}

impl OperationDone {
    fn with_status(status: StatusCode) -> Self {
        Self { status, fields: Vec::new(), document: None }
    }

    fn with_document(status: StatusCode, document: ShownDocument) -> Self {
        Self { document: Some(document), ..Self::with_status(status) }
    }
}

impl Service<'_> {
    /// Handles an operation on queues or messages.
    pub(super) async fn answer_queue(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        call: Call,
    ) -> Result<Answer, Halt> {
        let rules = rules_of(guarded)?;
        if call.intent == Intent::Preflight {
            let (request, verb) = self.called(client, guarded, call)?;
            return self.guard.serve(client, &request, verb).await;
        }
        let fields = rules.dialect.grammar().answer_fields(&client.head().headers, number_of_answer);
        match self.operate(client, guarded).await {
            Ok(done) => Ok(told(done, fields)),
            Err(Halt::Denied(relayed)) => denied(*relayed, fields).await,
            Err(halt) => Err(halt),
        }
    }

    async fn operate(&self, client: &mut dyn Client, guarded: &GuardedRequest) -> Result<OperationDone, Halt> {
        let QueueCall { account, operation } = QueueCall::of(incoming(client.head(), guarded))?;
        let (queue, of_queue) = match operation {
            QueueOperation::List(list) => {
                return QueueDocuments::new(self, client, guarded, account).list_queues(&list).await;
            }
            QueueOperation::Of(queue, of_queue) => (queue, of_queue),
        };
        let text = match of_queue {
            QueueOf::Put(..) => Some(self.message(client).await?.ok_or_else(malformed_document)?),
            QueueOf::Update(..) => self.message(client).await?,
            _ => None,
        };
        let mut documents = QueueDocuments::new(self, client, guarded, account);
        match of_queue {
            QueueOf::Create(metadata) => documents.create_queue(&queue, metadata).await,
            QueueOf::Delete => documents.delete_queue(&queue).await,
            QueueOf::SetMetadata(metadata) => documents.set_metadata(&queue, metadata).await,
            QueueOf::ReadMetadata => {
                let (_, found) = documents.read_queue(&queue).await?;
                let fields = metadata_fields(&found, documents.count(&queue).await?);
                Ok(OperationDone { fields, ..OperationDone::with_status(StatusCode::OK) })
            }
            QueueOf::Put(life, hidden) => documents.put(&queue, text.unwrap_or_default(), (life, hidden)).await,
            QueueOf::Take(count, hidden) => documents.take(&queue, count, hidden).await,
            QueueOf::Peek(count) => documents.peek(&queue, count).await,
            QueueOf::Clear => documents.clear(&queue).await,
            QueueOf::Update(id, receipt, hidden) => documents.update(&queue, (&id, receipt), hidden, text).await,
            QueueOf::DeleteMessage(id, receipt) => documents.delete(&queue, (&id, receipt)).await,
        }
    }

    /// Receives the text of a message.
    async fn message(&self, client: &mut dyn Client) -> Result<Option<String>, Halt> {
        let body = self.receive_short(client, BODY_BYTES_MAX, body_too_large).await?;
        Ok(read_message(&body)?)
    }
}

fn told(done: OperationDone, common: Vec<(HeaderName, HeaderValue)>) -> Answer {
    let OperationDone { status, fields, document } = done;
    let mut fields: HeaderMap = common.into_iter().chain(fields).collect();
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let body = document.map(|document| {
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(document.content_type));
        document.body
    });
    Answer::local(Response { status, fields, body })
}

/// The answer to a client to whom the backend has denied something: an error of Azure, with the fields that say what it
/// needs.
async fn denied(relayed: Relayed, common: Vec<(HeaderName, HeaderValue)>) -> Result<Answer, Halt> {
    let (status, code) = common_failure(relayed.head.status.as_u16());
    let mut fields: HeaderMap = common.into_iter().collect();
    for name in [header::WWW_AUTHENTICATE, header::RETRY_AFTER] {
        if let Some(value) = relayed.head.headers.get(&name) {
            fields.insert(name, value.clone());
        }
    }
    relayed.discard().await;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let detail = "The server behind this proxy has refused the request, or has failed.";
    let document = AzureError { status, code }.document(detail);
    fields.extend(document.fields);
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(document.content_type));
    Ok(Answer::local(Response { status, fields, body: Some(document.body) }))
}
