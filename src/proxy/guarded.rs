//! The seam between the door and the guard: what the door found out, and who handles it.

use std::{pin::Pin, sync::Arc};

use crate::{
    config::Route,
    core::{client_address::ClientAddress, record::Revision, resource::ResourceKey},
    exchange::Client,
    guard::Answer,
};
use http::Method;

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

/// The handling of one guarded request.
pub type Handling<'a> = Pin<Box<dyn Future<Output = pingora::Result<Answer>> + Send + 'a>>;

/// The leave of a WebSocket handshake to go to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The fence of the holder of the lease that guards what it reads.
    pub fence: Option<Revision>,
}

/// The judging of one handshake.
pub type Judging<'a> = Pin<Box<dyn Future<Output = Option<Tunnel>> + Send + 'a>>;

/// Whoever handles guarded requests.
pub trait GuardedPath: Send + Sync {
    /// Judges a WebSocket handshake as a read, before anything is sent. `None` where it is to be handled as one: there the
    /// client is told why.
    fn judge_handshake<'a>(&'a self, client: &'a mut dyn Client, request: &'a GuardedRequest) -> Judging<'a>;

    /// Handles one request, up to the answer that its client is to get. An error: there is nobody to answer.
    fn handle<'a>(&'a self, client: &'a mut dyn Client, request: &'a GuardedRequest) -> Handling<'a>;
}
