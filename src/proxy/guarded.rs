//! The seam between the door and the guard: what the door found out, and who handles it.

use std::{pin::Pin, sync::Arc};

use crate::{config::Route, core::resource::ResourceKey, exchange::Client, guard::Answer};
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
    /// Whether it is an operation on the lease of that resource, by a path of its own.
    pub is_lease: bool,
}

/// The handling of one guarded request.
pub type Handling<'a> = Pin<Box<dyn Future<Output = pingora::Result<Answer>> + Send + 'a>>;

/// Whoever handles guarded requests.
pub trait GuardedPath: Send + Sync {
    /// Handles one request, up to the answer that its client is to get. An error: there is nobody to answer.
    fn handle<'a>(&'a self, client: &'a mut dyn Client, request: &'a GuardedRequest) -> Handling<'a>;
}
