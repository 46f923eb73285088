//! The sources of tags, for scenarios that hold for each of them.

use std::fmt;

use super::{
    backend::{Backend, Validators},
    proxy::{Proxy, Setup},
};

/// A source of tags: what the backend must send for it, and the lines of the route.
#[derive(Clone, Copy)]
pub struct Source {
    validators: Validators,
    route: &'static str,
}

/// A hash of the bytes; the backend is asked each time.
pub const CONTENT: Source = Source { validators: Validators::None, route: "etag = \"content\"" };
/// A hash of the bytes; what is remembered counts.
pub const CONTENT_EXCLUSIVE: Source =
    Source { validators: Validators::None, route: "etag = \"content\"\nother_writers = false" };
/// The backend's own tag; it is asked each time.
pub const UPSTREAM: Source = Source { validators: Validators::Tags, route: "etag = \"upstream\"" };
/// The backend's own tag; what is remembered counts.
pub const UPSTREAM_EXCLUSIVE: Source =
    Source { validators: Validators::Tags, route: "etag = \"upstream\"\nother_writers = false" };
/// The version of the record.
pub const VERSION: Source = Source { validators: Validators::None, route: "etag = \"version\"\nother_writers = false" };

pub const ALL: [Source; 5] = [CONTENT, CONTENT_EXCLUSIVE, UPSTREAM, UPSTREAM_EXCLUSIVE, VERSION];
/// The sources that ask the backend before each write.
pub const SHARED: [Source; 2] = [CONTENT, UPSTREAM];
/// The sources that answer from memory.
pub const EXCLUSIVE: [Source; 3] = [CONTENT_EXCLUSIVE, UPSTREAM_EXCLUSIVE, VERSION];

impl Source {
    /// A source of the backend's own tags that a scenario has for itself.
    pub const fn of_tags(route: &'static str) -> Self {
        Self { validators: Validators::Tags, route }
    }

    /// True if equal tags mean equal bytes.
    pub fn hashes_content(self) -> bool {
        [CONTENT, CONTENT_EXCLUSIVE].contains(&self)
    }

    /// A backend that keeps this at `target`, and the start of a proxy's configuration.
    pub async fn start(self, target: &str, content: &str) -> (Backend, Setup) {
        let backend = Backend::with(self.validators).await;
        backend.put(target, content);
        // A busy machine must not cost a response its tag.
        let setup = Proxy::to(backend.addr()).route(self.route).route("hash_wait = \"10s\"");
        (backend, setup)
    }
}

/// For the messages of assertions.
impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.route.replace('\n', ", "))
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.route == other.route
    }
}
