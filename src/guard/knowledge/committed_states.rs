//! The states before writes in flight, for the reads beside them (`reads = "last"`).
//!
//! # Design
//!
//! *Why is the state before a write the last committed one?* The write was judged by it, and its claim was swapped in
//! against the very record that it was judged by. So no write of this proxy has come between, and none can while the
//! claim is there. A read that finds that claim in the record finds the state too.
//!
//! *Why is it never kept longer?* After the write the backend shows its result.
//!
//! *Who gets it?* A client that would have got the very same answer from the backend: the same principal, target and
//! selecting fields, which the backend has let read it.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use http::{HeaderMap, HeaderName, StatusCode, header};
use parking_lot::Mutex;
use pingora::http::ResponseHeader;

use super::{
    responses::{is_shareable, selecting_fields},
    selection::Selection,
};
use crate::{
    core::{
        http::credentials::CREDENTIAL_FIELDS,
        policy::{GuardRules, TagSource},
        records::record::{Availability, Mark, Snapshot, VariantName},
        resource::ResourceKey,
        tags::validators::Validators,
    },
    guard::request::Request,
    upstream::{BodyPrefix, SharedBody},
};

/// A state of a resource, as the check before a write has seen it.
pub(crate) struct CommittedState {
    /// The record that the write was judged by.
    pub(crate) snapshot: Snapshot,
    /// The head of the backend's answer.
    pub(crate) head: Box<ResponseHeader>,
    /// Its whole body.
    pub(crate) body: SharedBody,
    /// Its validators, as clients get them.
    pub(crate) validators: Validators,
    /// The name of the variant.
    pub(crate) variant: VariantName,
    /// The selection of the variant.
    pub(crate) selection: Selection,
}

/// The states before writes in flight, each with the mark of its write.
type StatesByKey = HashMap<ResourceKey, (Mark, Arc<CommittedState>)>;

/// The states before the writes of this process that are in flight. Each has a share of the memory for bodies.
#[derive(Clone, Default)]
pub(crate) struct CommittedStates(Arc<Mutex<StatesByKey>>);

/// A state that reads get until this is dropped.
pub(crate) struct KeptState {
    states: CommittedStates,
    key: ResourceKey,
    mark: Mark,
}

impl CommittedStates {
    /// Gives this state to the reads beside the write with this mark.
    pub(crate) fn show(&self, key: &ResourceKey, mark: Mark, state: CommittedState) -> KeptState {
        self.0.lock().insert(key.clone(), (mark, Arc::new(state)));
        KeptState { states: self.clone(), key: key.clone(), mark }
    }

    /// Returns the state before the one write in flight by this record. It must be a write of this process, and the
    /// request must select that state.
    pub(crate) fn before_write(&self, request: &Request, snapshot: &Snapshot) -> Option<Arc<CommittedState>> {
        let claim = snapshot.record.claim.as_ref().filter(|_| snapshot.record.unclaimed.is_empty())?;
        let is_in_flight = matches!(snapshot.availability(), Availability::Busy { .. });
        let states = self.0.lock();
        let (_, state) = states.get(&request.key).filter(|(mark, _)| is_in_flight && mark.is_same_write(claim))?;
        state.is_selected_by(request).then(|| Arc::clone(state))
    }
}

impl CommittedState {
    /// The state that the backend has shown to the check of a request, by the record that it was read under.
    pub(crate) fn new(
        request: &Request,
        snapshot: &Snapshot,
        (head, body): (Box<ResponseHeader>, BodyPrefix),
        validators: &Validators,
        selection: Selection,
    ) -> Self {
        let (snapshot, validators) = (snapshot.clone(), validators.clone());
        Self { snapshot, head, body: body.into(), validators, variant: request.variant(), selection }
    }

    fn is_selected_by(&self, request: &Request) -> bool {
        self.variant == request.variant() && self.selection.is_that_of(&request.head)
    }
}

impl Drop for KeptState {
    fn drop(&mut self) {
        if let Entry::Occupied(kept) = self.states.0.lock().entry(self.key.clone())
            && kept.get().0.is_same_write(&self.mark)
        {
            kept.remove();
        }
    }
}

/// True if an answer with this status and these fields can be kept for the reads beside the write.
pub(crate) fn can_be_kept(request: &Request, status: StatusCode, fields: &HeaderMap) -> bool {
    status == StatusCode::OK
        && !request.rules().keeps_descriptions()
        // The tag of a version names the selecting fields of its reader.
        && (request.rules().etag != TagSource::Version || !fields.contains_key(header::VARY))
        && is_shareable(fields)
        && is_selected_by_identity(request.rules(), fields)
}

/// True if an answer depends on no credentials but those that are part of the identity of its client.
fn is_selected_by_identity(rules: &GuardRules, fields: &HeaderMap) -> bool {
    let is_known = |name: &HeaderName| !CREDENTIAL_FIELDS.contains(name) || rules.identifies(name);
    selecting_fields(&HeaderMap::new(), fields)
        .is_some_and(|selecting| selecting.iter().all(|(name, _)| is_known(name)))
}
