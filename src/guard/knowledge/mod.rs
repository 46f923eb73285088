//! The knowledge room: everything that the guard has learned about resources, and which principals may know it.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::{refusals, request::Request};
use crate::{
    core::{
        records::record::Snapshot,
        refusal::Refusal,
        resource::ResourceKey,
        tags::{coarse_tag::Spelling, entity_tag::EntityTag, precondition::range_applies, validators::Representation},
    },
    store::{Records, StoreError},
};
use causes::Causes;
use committed_states::CommittedStates;
use evidence::{selecting_number, version_tag_of};
use issued_tags::IssuedTags;
use principal::ReadGrants;
use responses::{Memory, Remembered};
use unstable_tags::UnstableTags;
use untrue_statements::UntrueStatements;

pub(crate) mod causes;
pub(crate) mod committed_states;
pub(crate) mod derived_tag;
mod digest_cache;
pub(crate) mod evidence;
pub(crate) mod issued_tags;
pub(crate) mod issued_variants;
pub(crate) mod label;
pub(crate) mod principal;
pub(crate) mod responses;
pub(crate) mod selection;
pub(crate) mod unstable_tags;
pub(crate) mod untrue_statements;
pub(crate) mod warn_once;

/// The records of the store and the memory of this process. All generations of the configuration share them.
pub(crate) struct Knowledge {
    /// The records of the store.
    pub(crate) records: Records,
    memory: Memory,
    issued: IssuedTags,
    unstable_tags: UnstableTags,
    untrue: UntrueStatements,
    read_grants: ReadGrants,
    causes: Causes,
    /// The states before the writes in flight.
    pub(crate) committed: CommittedStates,
}

impl Knowledge {
    /// Builds the knowledge of the resources in these records, with an empty memory.
    pub(crate) fn new(records: Records) -> Self {
        Self {
            records,
            memory: Memory::new(),
            issued: IssuedTags::new(),
            unstable_tags: UnstableTags::new(),
            untrue: UntrueStatements::default(),
            read_grants: ReadGrants::new(),
            causes: Causes::new(),
            committed: CommittedStates::default(),
        }
    }

    /// Reads the record of a resource.
    pub(crate) async fn snapshot(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.records.read(key).await
    }

    /// Reads the record for a request that cannot proceed without it (rule 12).
    pub(crate) async fn record(&self, request: &Request) -> Result<Snapshot, Refusal> {
        self.snapshot(&request.key).await.map_err(|error| refusals::of_store(&error))
    }

    /// True if no write has begun or ended since the record was read.
    pub(crate) async fn is_untouched(&self, request: &Request, snapshot: &Snapshot) -> bool {
        self.snapshot(&request.key).await.is_ok_and(|now| now.touched() == snapshot.touched())
    }

    /// The spelling of tags according to the record as it was read. Without a record, tags that can be coarse are
    /// withheld.
    pub(crate) fn spelling(&self, request: &Request, snapshot: Option<&Snapshot>) -> Spelling {
        let incarnation = self.records.incarnation().0;
        if self.has_coarse_tags(request) {
            Spelling::of(incarnation, snapshot)
        } else if request.rules().etag.is_backends() {
            Spelling::of_unique(incarnation, snapshot)
        } else {
            Spelling::Own
        }
    }

    /// The version tag of the variant that a request and the fields in `selecting` select.
    pub(crate) fn version_tag(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        selecting: &[(HeaderName, Vec<HeaderValue>)],
    ) -> Option<EntityTag> {
        let number = selecting_number(request.labelled_variant(), selecting);
        version_tag_of(self.records.incarnation(), snapshot.version(), number).tag
    }

    /// The last response to a read of this variant, if the record shows that it is still current.
    pub(crate) fn remembered(&self, request: &Request, snapshot: &Snapshot) -> Option<Arc<Remembered>> {
        self.memory.current(request.variant(), snapshot, &request.head.headers)
    }

    /// True if `If-Range` names the version that the proxy is about to request from the upstream.
    pub(crate) fn version_range_applies(&self, request: &Request, snapshot: Option<&Snapshot>) -> bool {
        let remembered = snapshot.and_then(|snapshot| self.remembered(request, snapshot));
        remembered.is_some_and(|remembered| {
            range_applies(&request.conditions, &Representation::Present(remembered.validators.clone()))
        })
    }

    /// Remembers that the upstream lets the sender of a request read the resource.
    pub(crate) fn was_let_read(&self, request: &Request, snapshot: &Snapshot) {
        let (seen, identity_ttl) = ((snapshot.now, snapshot.version()), request.rules().identity_ttl);
        self.read_grants.was_let_read(&request.key, request.sender.principal, seen, identity_ttl);
    }

    /// Remembers that the sender of a request was shown the resource.
    pub(crate) fn was_shown_to_sender(&self, request: &Request, snapshot: &Snapshot) {
        let (seen, identity_ttl) = ((snapshot.now, snapshot.version()), request.rules().identity_ttl);
        self.read_grants.was_shown_to(&request.key, request.sender.principal, seen, identity_ttl);
    }

    /// Notes that the resource of a request is removed.
    pub(crate) fn was_removed(&self, request: &Request) {
        self.read_grants.was_removed(&request.key);
    }

    /// True if the upstream has recently shown the resource to any client, and no write has changed it since. This is
    /// asked before the upstream is: a resource that is created meanwhile was absent.
    pub(crate) fn is_shown(&self, request: &Request, snapshot: &Snapshot) -> bool {
        self.read_grants.is_shown(&request.key, (snapshot.now, snapshot.version()))
    }

    /// Like [`is_shown`](Self::is_shown), no matter what has changed since.
    pub(crate) fn was_shown(&self, request: &Request, snapshot: &Snapshot) -> bool {
        self.read_grants.was_shown(&request.key, snapshot.now)
    }

    /// Forgets which principals may read which resources. The upstream is then asked again for each client.
    pub(crate) fn forget_read_grants(&self) {
        self.read_grants.forget_all();
    }
}
