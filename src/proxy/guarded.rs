//! The seam between the door and the guard: what the door found out, and who handles it.

use std::{pin::Pin, sync::Arc};

use http::Method;
use pingora::proxy::Session;

use crate::{config::Route, core::resource::ResourceKey, telemetry::access::Entry};

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
    /// Whether it is an operation on the lease of that resource, by a path of its own.
    pub is_lease: bool,
}

/// The handling of one guarded request.
pub type Handling<'a> = Pin<Box<dyn Future<Output = pingora::Result<()>> + Send + 'a>>;

/// Whoever handles guarded requests.
pub trait GuardedPath: Send + Sync {
    /// Handles one request to its end: afterwards its response was sent, or its connection is broken.
    ///
    /// Fills in what the access log is to say of it.
    fn handle<'a>(
        &'a self,
        session: &'a mut Session,
        request: &'a GuardedRequest,
        entry: &'a mut Entry,
    ) -> Handling<'a>;
}
