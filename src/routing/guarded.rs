//! What the door tells the guard of a request.

use std::sync::Arc;

use http::Method;

use crate::{
    config::Route,
    core::{client_address::ClientAddress, record::Revision, resource::ResourceKey},
};

/// A request on a guarded route.
#[derive(Clone, Debug)]
pub struct GuardedRequest {
    /// The route that it took.
    pub route: Arc<Route>,
    /// The place of the route in the configuration.
    pub route_index: usize,
    /// The resource that it acts on.
    pub key: ResourceKey,
    /// The method that it is judged by: its own, or a stricter one that a header field names.
    pub method: Method,
    /// Where its client comes from, as far as a proxy that is believed tells.
    pub client: ClientAddress,
    /// Whether it is an operation on the lease of that resource, by a path of its own.
    pub is_lease: bool,
}

/// The leave of a WebSocket handshake to go to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The fence of the holder of the lease that guards what it reads.
    pub fence: Option<Revision>,
}
