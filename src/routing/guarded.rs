//! The door's description of a request for the guard.

use std::{borrow::Cow, sync::Arc};

use crate::{
    config::Route,
    core::{
        http::{client_address::ClientAddress, readings::method::MethodReadings},
        records::record::Revision,
        resource::ResourceKey,
        route::WritesTo,
    },
};

/// The second resource of a COPY or MOVE.
#[derive(Clone, Debug)]
pub struct GuardedDestination {
    /// The write of the COPY or MOVE at its destination.
    pub request: GuardedRequest,
    /// The target that `Destination` names, in origin-form and as received.
    pub target: Box<[u8]>,
}

/// One of the URLs of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facet {
    /// The URL of the resource itself.
    Resource,
    /// The URL of its lease, below `lease.prefix`.
    Lease,
    /// The URL by which clients watch it, below `watch_prefix`.
    Watch,
}

/// A request on a guarded route.
#[derive(Clone, Debug)]
pub struct GuardedRequest {
    /// The route that it took.
    pub route: Arc<Route>,
    /// The place of the route in the configuration.
    pub route_index: usize,
    /// The resource that it acts on.
    pub key: ResourceKey,
    /// The methods that a backend could read in the request, the one that it is judged by among them.
    pub methods: MethodReadings,
    /// The target by which the upstream gets the request, if it is not that of the resource (`writes_to`).
    pub forwarded_target: Option<Arc<[u8]>>,
    /// The address of the client, as a trusted proxy reports it.
    pub client: ClientAddress,
    /// The kind of URL that the request has, of those of the resource.
    pub facet: Facet,
    /// The second resource that it changes, if it is a COPY or MOVE.
    pub destination: Option<Box<GuardedDestination>>,
}

impl GuardedRequest {
    /// True if the request is an operation on the lease of its resource, on the lease's own path.
    pub fn is_lease(&self) -> bool {
        self.facet == Facet::Lease
    }

    /// The path of the resource that the body may name, if the request is a write in some reading. Servers give the bodies
    /// of unknown methods, and of DELETE, the meaning of a POST's.
    pub fn writes_to(&self) -> Option<&WritesTo> {
        let is_write = self.facet == Facet::Resource && self.methods.usages.changes();
        self.route.writes_to.as_ref().filter(|_| is_write)
    }

    /// Returns the target by which the upstream knows the resource of a received one: without the prefix of leases or
    /// watches, and with the route's path mapping.
    pub fn target_at_upstream<'a>(&self, target: &'a [u8]) -> Cow<'a, [u8]> {
        let rules = self.route.guard.as_ref();
        let prefix = rules.and_then(|rules| match self.facet {
            Facet::Resource => None,
            Facet::Lease => rules.lease.as_ref().map(|rules| &rules.prefix),
            Facet::Watch => Some(&rules.watch_prefix),
        });
        let bare = prefix.map(|prefix| target.get(prefix.len()..).unwrap_or_default());
        let target = match bare {
            Some(bare) if !bare.starts_with(b"/") => Cow::Owned([b"/", bare].concat()),
            bare => Cow::Borrowed(bare.unwrap_or(target)),
        };
        let mapping = &self.route.mapping;
        if mapping.is_identity() {
            return target;
        }
        // The door rejects every target that cannot be mapped.
        mapping.to_upstream(&target).map_or(target, Cow::Owned)
    }
}

/// The permission for a WebSocket handshake to go to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The fence of the holder of the lease that guards what the handshake reads.
    pub fence: Option<Revision>,
}
