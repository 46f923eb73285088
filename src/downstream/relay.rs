//! Sending the answer to a guarded request.

use pingora::proxy::Session;

use super::{respond, unread};
use crate::{
    core::{idempotency::REPLAYED, policy::Dialect},
    guard::{Answer, Relayed},
    telemetry::access::AccessEntry,
    upstream::fields::frame_response,
};

/// Sends an answer to its end, and records the verdict for the access log.
pub(crate) async fn send(
    session: &mut Session,
    answer: Answer,
    dialect: Dialect,
    entry: &mut AccessEntry,
) -> pingora::Result<()> {
    match answer {
        Answer::Refused(refusal) => respond::refuse(session, refusal, dialect, entry).await,
        Answer::Local(head, body) => {
            entry.verdict = Some("answered");
            respond::respond(session, *head, body).await
        }
        Answer::NotModified(head) => {
            entry.verdict = Some("not-modified");
            respond::respond(session, *head, None).await
        }
        Answer::Relayed(relayed) => {
            let is_replayed = relayed.head.headers.contains_key(&REPLAYED);
            entry.verdict = Some(if is_replayed { "replayed" } else { "passed" });
            relay(session, *relayed).await
        }
        Answer::Broken(error) => Err(error),
    }
}

/// Forwards the upstream's response. If it breaks off there, it breaks off here too: the client must not take a part
/// for the whole.
async fn relay(session: &mut Session, relayed: Relayed) -> pingora::Result<()> {
    let Relayed { mut head, begun, rest } = relayed;
    let is_head = session.req_header().method == http::Method::HEAD;
    let rest = match rest {
        // Released first, so that the client's next request finds the connection.
        Some(exchange) if is_head => {
            exchange.finish().await;
            None
        }
        rest => rest,
    };
    frame_response(&mut head, session.req_header());
    session.write_response_header(head, false).await?;
    if !is_head {
        let _sending = unread::sending(begun.len());
        for chunk in begun.chunks() {
            session.write_response_body(Some(chunk.clone()), false).await?;
        }
        if let Some(mut exchange) = rest {
            loop {
                match exchange.next_chunk().await {
                    Ok(Some(chunk)) => {
                        let _sending = unread::sending(chunk.len());
                        session.write_response_body(Some(chunk), false).await?;
                    }
                    Ok(None) => break,
                    Err(failure) => {
                        return Err(pingora::Error::because(
                            pingora::ErrorType::ReadError,
                            "relaying the upstream's response",
                            failure,
                        ));
                    }
                }
            }
            exchange.finish().await;
        }
    }
    session.write_response_body(None, true).await
}
