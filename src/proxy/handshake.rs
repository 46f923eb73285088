//! WebSocket handshakes on guarded routes that let them open a tunnel (`websocket = true`).
//!
//! # Design
//!
//! *Why is it asked twice where no tunnel opens?* pingora's own path carries the bytes of a tunnel, and cannot label a
//! representation; the guard's exchange can, and carries no tunnel. Which of the two is needed is known by the upstream's
//! answer alone. So anything but a 101 is thrown away, and the guard reads without `Upgrade`, as it reads for everybody.

use http::StatusCode;
use pingora::{Error, ErrorType, http::RequestHeader};

use crate::{
    core::fields::{self, Remover},
    routing::{GuardedRequest, Tunnel},
    upstream::fields::FieldsOfHead as _,
};

/// How an answer that opens no tunnel ends the exchange of its handshake.
const NO_TUNNEL: ErrorType = ErrorType::Custom("no tunnel");

/// A handshake that has gone, or is about to go, to the upstream.
#[derive(Debug)]
pub struct Handshake {
    /// The read that it is judged as.
    pub request: GuardedRequest,
    /// Its leave.
    pub tunnel: Tunnel,
}

/// What the upstream sees differently from what the client sent. The answer to a handshake is no representation, so there
/// is nothing that conditions could be judged by (RFC 9110 section 13.2.1).
pub(super) fn request_to_upstream(handshake: &Handshake, request: &mut RequestHeader) -> pingora::Result<()> {
    request.remove_all(|name| fields::of(name.as_str()).is_some_and(|field| field.remover == Remover::Verdict));
    match handshake.tunnel.fence {
        Some(fence) => request.insert_header("Fencing-Token", fence.0),
        None => Ok(()),
    }
}

/// Lets the answer that opens the tunnel through, and ends the exchange where another one comes.
pub(super) fn check_answer(handshake: &mut Option<Handshake>, status: StatusCode) -> pingora::Result<()> {
    match status {
        StatusCode::SWITCHING_PROTOCOLS => *handshake = None,
        status if status.is_informational() || handshake.is_none() => {}
        _ => return Err(Error::explain(NO_TUNNEL, "the handshake is to be read as anything else")),
    }
    Ok(())
}

/// Whether an exchange was ended because no tunnel opens.
pub(super) fn opened_no_tunnel(error: &Error) -> bool {
    *error.etype() == NO_TUNNEL
}
