//! WebSocket handshakes on guarded routes that let them open a tunnel (`websocket = true`).
//!
//! # Design
//!
//! *Why is the upstream asked twice if no tunnel opens?* The unguarded path carries the bytes of a tunnel, but cannot
//! label a representation. The guard's exchange can label it, but carries no tunnel. Only the upstream's answer tells
//! which of the two is needed. So any answer but a 101 is discarded, and the guard reads without `Upgrade`, as for any
//! other client.

use http::HeaderName;
use pingora::http::RequestHeader;

use crate::{
    core::{
        http::fields::{self, Remover},
        lease::field_names::FENCING_TOKEN,
    },
    routing::{GuardedRequest, Tunnel},
};

/// A handshake that has gone, or is about to go, to the upstream.
#[derive(Debug)]
pub(super) struct Handshake {
    /// The read that the handshake is judged as.
    pub(super) request: GuardedRequest,
    /// The permission to open a tunnel.
    pub(super) tunnel: Tunnel,
}

/// True if the upstream sees this field in no handshake. The answer is no representation, so conditions have nothing to
/// be judged by (RFC 9110 section 13.2.1).
pub(super) fn is_condition(name: &HeaderName) -> bool {
    fields::of(name.as_str()).is_some_and(|field| field.remover == Remover::Verdict)
}

/// Adds the fence of the lease that the client holds.
pub(super) fn add_fence(handshake: &Handshake, head: &mut RequestHeader) -> pingora::Result<()> {
    match handshake.tunnel.fence {
        Some(fence) => head.insert_header(FENCING_TOKEN.title, fence.0),
        None => Ok(()),
    }
}
