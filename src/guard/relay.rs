//! Sending the answer to a guarded request.

use http::header;
use pingora::{http::ResponseHeader, proxy::Session};

use super::answer::{Answer, Relayed};
use crate::{
    core::{
        idempotency::REPLAYED,
        policy::{Guard, TagSource},
        validators::{ToldDate, told_date},
    },
    exchange::fields::frame_response,
    proxy::answer,
    telemetry::access::Entry,
};

/// Sends an answer to its end, and tells the access log what it was.
pub(super) async fn send(
    session: &mut Session,
    answer: Answer,
    guard: &Guard,
    entry: &mut Entry,
) -> pingora::Result<()> {
    match answer {
        Answer::Refused(refusal) => {
            entry.refused = Some(refusal.code);
            answer::refuse(session, &refusal, guard.errors).await
        }
        Answer::Local(head, body) => {
            entry.verdict = Some("answered");
            answer::respond(session, *head, body).await
        }
        Answer::NotModified(head) => {
            entry.verdict = Some("not-modified");
            answer::respond(session, *head, None).await
        }
        Answer::Relayed(relayed) => {
            let is_replayed = relayed.head.headers.contains_key(&REPLAYED);
            entry.verdict = Some(if is_replayed { "replayed" } else { "passed" });
            relay(session, *relayed, guard).await
        }
        Answer::Broken(error) => Err(error),
    }
}

/// Sends the upstream's response on. What breaks off there breaks off here: the client must not take a part for the
/// whole.
async fn relay(session: &mut Session, relayed: Relayed, guard: &Guard) -> pingora::Result<()> {
    let Relayed { mut head, begun, rest } = relayed;
    let is_head = session.req_header().method == http::Method::HEAD;
    let rest = match rest {
        // Given back first, so that the client's next request finds the connection.
        Some(exchange) if is_head => {
            exchange.finish().await;
            None
        }
        rest => rest,
    };
    if guard.etag != TagSource::Delegate {
        tell_date(&mut head, guard)?;
    }
    frame_response(&mut head, session.req_header());
    session.write_response_header(head, false).await?;
    if !is_head {
        for chunk in begun.chunks() {
            session.write_response_body(Some(chunk.clone()), false).await?;
        }
        if let Some(mut exchange) = rest {
            loop {
                match exchange.next_chunk().await {
                    Ok(Some(chunk)) => session.write_response_body(Some(chunk), false).await?,
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

/// Tells what may be told of the modification date. Where the upstream judges, dates are its own matter.
fn tell_date(head: &mut ResponseHeader, guard: &Guard) -> pingora::Result<()> {
    match told_date(guard.errors, &head.headers) {
        ToldDate::AsItIs => {}
        ToldDate::Instead(date) => head.insert_header(header::LAST_MODIFIED, date.to_string())?,
        ToldDate::Withheld => {
            head.remove_header(&header::LAST_MODIFIED);
        }
    }
    Ok(())
}
