//! The `If` of a request: judged, and then counted as the submission of its tokens (RFC 4918 section 10.4).

use http::Method;
use pingora::http::RequestHeader;

use super::{DavRequest, Service};
use crate::{
    core::{
        http::{readings::destination::DESTINATION, request_target::same_origin_target},
        lease::LeaseId,
        records::record::Snapshot,
        refusal::{Code, Refusal},
        resource::ResourceKey,
    },
    dialect::webdav::{Place, Truth, judge, narrowed},
    guard::{Halt, Request, host, refusals},
    routing::door::Door,
};

impl Service<'_> {
    /// Judges the conditions of a request by the locks, and leaves to the guard what the tag of its target decides. A lock
    /// of the target whose token the request submits is the lease that it names.
    pub(super) async fn judge_conditions(&self, dav: &mut DavRequest<'_>) -> Result<(), Halt> {
        let submitted = dav.fields.submitted();
        if dav.fields.conditions.is_none() && submitted.is_empty() {
            return Ok(());
        }
        let own = self.read(&dav.request.key).await?;
        let there = match dav.request.destination() {
            Some(destination) => Some((destination.key.clone(), self.read(&destination.key).await?)),
            None => None,
        };
        if self.truth(dav, &own, there.as_ref()).await? == Truth::False {
            self.guard.let_in(&dav.request).await?;
            return Err(false_condition().into());
        }
        submit(&mut dav.request, &own, &submitted);
        dav.request.sender.lease_ids.clone_from(&submitted);
        if let (Some(destination), Some((_, there))) = (dav.request.destination_mut(), &there) {
            submit(destination, there, &submitted);
        }
        Ok(())
    }

    /// Judges `If`. What the tags of the target and of the destination decide becomes a condition of the request.
    async fn truth(
        &self,
        dav: &mut DavRequest<'_>,
        own: &Snapshot,
        there: Option<&(ResourceKey, Snapshot)>,
    ) -> Result<Truth, Halt> {
        let Some(conditions) = dav.fields.conditions.clone() else { return Ok(Truth::True) };
        let mut places = Vec::new();
        for group in conditions.groups() {
            places.push(self.place(dav, (own, there), group.resource.as_deref()).await?);
        }
        let mut places = places.into_iter();
        let truth = judge(&conditions, |_resource| places.next().unwrap_or(Place::Foreign));
        let Truth::ByTags(lists) = truth else { return Ok(truth) };
        let at_destination = dav.request.destination().map(|other| other.conditions.clone()).unwrap_or_default();
        let open = narrowed(&lists, [&dav.request.conditions, &at_destination]);
        let mut open = open.into_iter().peekable();
        while let Some([own, at_destination]) = open.next() {
            dav.request.demand(own);
            if let Some(destination) = dav.request.destination_mut() {
                destination.demand(at_destination);
            }
            // The last one is judged under the claim alone.
            if open.peek().is_none() || self.is_true_now(&dav.request).await {
                return Ok(Truth::True);
            }
        }
        Ok(Truth::False)
    }

    async fn is_true_now(&self, request: &Request) -> bool {
        let at_destination = match request.destination() {
            Some(destination) => self.guard.judge_now(destination).await.is_ok(),
            None => true,
        };
        at_destination && self.guard.judge_now(request).await.is_ok()
    }

    /// The resource that a reference in `If` names, with its locks.
    async fn place(
        &self,
        dav: &DavRequest<'_>,
        (own, there): (&Snapshot, Option<&(ResourceKey, Snapshot)>),
        reference: Option<&str>,
    ) -> Result<Place, Halt> {
        let Some(reference) = reference else { return Ok(Place::Target(locks_of(own))) };
        let target = String::from_utf8_lossy(dav.received.raw_path());
        let Some(target) = same_origin_target(reference, host(&dav.received), &target) else {
            return Ok(Place::Foreign);
        };
        let mut head = RequestHeader::clone(&dav.received);
        head.set_raw_path(target.as_bytes())?;
        head.remove_header(&DESTINATION);
        let Door::Guarded(found) = self.guard.door(&Method::GET, &head, dav.guarded.client) else {
            return Ok(Place::Foreign);
        };
        Ok(match there {
            _ if found.key == dav.request.key => Place::Target(locks_of(own)),
            Some((key, there)) if *key == found.key => Place::Destination(locks_of(there)),
            _ => Place::Other(locks_of(&self.read(&found.key).await?)),
        })
    }

    /// Reads a record as it is now.
    pub(super) async fn read(&self, key: &ResourceKey) -> Result<Snapshot, Refusal> {
        self.guard.records().read(key).await.map_err(|error| refusals::of_store(&error))
    }
}

/// The tokens of the locks on a resource, and of those of the collections around it.
fn locks_of(snapshot: &Snapshot) -> Vec<LeaseId> {
    snapshot.holding_leases().map(|lease| lease.id).collect()
}

/// Lets a request write a locked resource, if it submits the token of one of the locks. It then names that lease, and
/// the guard refuses it if the lease has ended.
fn submit(request: &mut Request, snapshot: &Snapshot, submitted: &[LeaseId]) {
    let principal = Some(request.sender.principal.holder());
    let proves = |id: &&LeaseId| snapshot.holding_leases().any(|lease| lease.is_proved_by(**id, principal));
    if let Some(id) = submitted.iter().find(proves) {
        request.sender.lease_id = Some(*id);
        request.conditions.lease_suffices = true;
    }
}

fn false_condition() -> Refusal {
    let detail = "no list in If is true of the resource now: read it again, and lock it again if your lock has ended";
    Refusal::new(Code::PreconditionFailed, detail)
}
