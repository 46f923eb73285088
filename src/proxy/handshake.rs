//! WebSocket handshakes on guarded routes that let them open a tunnel (`websocket = true`).
//!
//! # Design
//!
//! *Why is the upstream asked twice if no tunnel opens?* Pingora's own path carries the bytes of a tunnel, but cannot
//! label a representation. The guard's exchange can label it, but carries no tunnel. Only the upstream's answer tells
//! which of the two is needed. So any answer but a 101 is discarded, and the guard reads without `Upgrade`, as for any
//! other client.

use http::StatusCode;
use pingora::{Error, ErrorType, http::RequestHeader};

use crate::{
    core::{
        fields::{self, Remover},
        lease::field_names::FENCING_TOKEN,
    },
    routing::{GuardedRequest, Tunnel},
    upstream::fields::FieldsOfHead as _,
};

/// The error with which an answer that opens no tunnel ends the handshake's exchange.
const NO_TUNNEL: ErrorType = ErrorType::Custom("no tunnel");

/// A handshake that has gone, or is about to go, to the upstream.
#[derive(Debug)]
pub struct Handshake {
    /// The read that the handshake is judged as.
    pub request: GuardedRequest,
    /// The permission to open a tunnel.
    pub tunnel: Tunnel,
}

/// Makes the changes that the upstream sees in a handshake. The answer is no representation, so conditions have
/// nothing to be judged by (RFC 9110 section 13.2.1).
pub(super) fn request_to_upstream(handshake: &Handshake, request: &mut RequestHeader) -> pingora::Result<()> {
    request.remove_all(|name| fields::of(name.as_str()).is_some_and(|field| field.remover == Remover::Verdict));
    match handshake.tunnel.fence {
        Some(fence) => request.insert_header(FENCING_TOKEN.title, fence.0),
        None => Ok(()),
    }
}

/// Lets the answer that opens the tunnel through, and ends the exchange after any other answer.
pub(super) fn check_answer(handshake: &mut Option<Handshake>, status: StatusCode) -> pingora::Result<()> {
    match status {
        StatusCode::SWITCHING_PROTOCOLS => *handshake = None,
        status if status.is_informational() || handshake.is_none() => {}
        _ => return Err(Error::explain(NO_TUNNEL, "the handshake is handled as a plain read instead")),
    }
    Ok(())
}

/// Whether an exchange was ended because no tunnel opened.
pub(super) fn opened_no_tunnel(error: &Error) -> bool {
    *error.etype() == NO_TUNNEL
}
