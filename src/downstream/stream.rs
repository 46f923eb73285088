//! Sending an answer that is made piece by piece while its client stays.

use bytes::Bytes;
use http::header;
use pingora::http::ResponseHeader;

use super::session::ClientSession;
use crate::{guard::Pieces, upstream::fields::frame_response};

/// Sends an answer until it ends, or its client goes. The next piece is made when the one before it is written, so a slow
/// client holds one piece at most.
pub(crate) async fn stream(
    session: &mut ClientSession,
    mut head: Box<ResponseHeader>,
    mut pieces: Box<dyn Pieces>,
) -> pingora::Result<()> {
    frame_response(&mut head, session.request());
    if !head.headers.contains_key(header::TRANSFER_ENCODING) {
        // The end of the connection is the end of the body.
        session.end_connection();
    }
    session.begin(head, false)?;
    // The future of a write is boxed, so a client that waits holds little memory.
    Box::pin(session.flush()).await?;
    session.forget_fields();
    loop {
        let piece = tokio::select! {
            biased;
            piece = pieces.next() => piece,
            gone = session.gone() => return Err(gone),
        };
        let Some(piece) = piece else { break };
        Box::pin(session.write_piece(piece, false)).await?;
    }
    Box::pin(session.write_piece(Bytes::new(), true)).await
}
