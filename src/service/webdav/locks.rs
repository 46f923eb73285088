//! LOCK and UNLOCK (RFC 4918 sections 9.10 and 9.11).

use http::{HeaderValue, StatusCode};
use pingora::http::RequestHeader;

use super::{DavRequest, Service, content_of, creation, path_of, remove_lock_fields};
use crate::{
    body::Client,
    core::{
        cause::Reason,
        lease::{Acquire, Action, Done, LeaseId},
        policy::LeaseRules,
        records::{record::Snapshot, settled::shows_settled_state, tree_leases::LeaseReach, trees::is_below},
        refusal::{Code, Refusal},
        resource::ResourceKey,
    },
    dialect::{
        LeaseOperation, Response,
        webdav::{
            LOCK_INFO_BYTES_MAX, LOCK_TOKEN, LockDepth, LockInfoFault, LockNote, ShownLock, StateToken, TIMEOUT,
            WantedLock, lock_answer, not_locked, timeout, token_uri,
        },
    },
    guard::{Answer, Halt, Operated, TypeSeen, Verb, fresh_id, refusals},
    routing::GuardedRequest,
};

impl Service<'_> {
    /// Takes a lock, or refreshes one: a LOCK without content is a refresh, with any fields.
    pub(super) async fn lock_file(&self, client: &mut dyn Client, mut dav: DavRequest<'_>) -> Result<Answer, Halt> {
        let Some(rules) = dav.rules.lease.as_ref() else { return Err(no_locks().into()) };
        let body = self.guard.bodies().receive(client).await.map_err(refusals::of_body)?;
        if body.is_empty() {
            return self.refresh(client, &mut dav, rules).await;
        }
        let content = content_of(&body, LOCK_INFO_BYTES_MAX).await?;
        let lock = WantedLock::parse(&content).map_err(of_lock_info)?;
        if dav.fields.depth == Some(LockDepth::One) {
            return Err(Refusal::new(Code::MalformedLeaseHeader, "a lock has the depth 0 or infinity").into());
        }
        let before = self.read(&dav.request.key).await?;
        let seen = self.guard.type_of(&dav.request).await?;
        let reach = reach_of(&dav, seen)?;
        self.judge_conditions(&mut dav).await?;
        let wanted = lease_of(&dav, lock, rules, reach.is_some())?;
        let locked = if let Some(reach) = reach {
            Box::pin(self.guard.leases().acquire_tree(client, &dav.request, (wanted, reach))).await
        } else {
            let operation = LeaseOperation::Step { action: Action::Acquire(wanted), wait: None };
            self.guard.operate_lease(client, &dav.request, operation).await
        };
        let locked = match locked {
            Err(Halt::Refused(refusal)) if reach.is_some() => return told_below(&dav, refusal),
            locked => locked?,
        };
        let Some(Done::Acquired { id, .. }) = locked.done else { return Err(refusals::of_field().into()) };
        let is_as_seen = reach.is_some() || !dav.request.has_trees() || shows_settled_state(&before, &locked.snapshot);
        // Others can no longer make a collection of the locked resource, so this look is the last one.
        if !is_as_seen && self.guard.type_of(&dav.request).await? == Some(TypeSeen::Collection) {
            let release = LeaseOperation::Step { action: Action::Release { id }, wait: None };
            self.guard.operate_lease(client, &dav.request, release).await?;
            return Err(refusals::write_in_flight(refusals::RETRY_SOON, Reason::WriteInFlight).into());
        }
        let mut status = StatusCode::OK;
        // A lock of a missing resource creates an empty one. If that fails, no client learns of the lock, and it is
        // taken back.
        if !matches!(seen, Some(TypeSeen::Plain | TypeSeen::Collection)) && self.create(client, &dav, id).await? {
            status = StatusCode::CREATED;
        }
        let mut answer = told(&dav, (&locked.snapshot, id), status)?;
        if let Answer::Local(head, _) = &mut answer {
            head.insert_header(LOCK_TOKEN, HeaderValue::try_from(format!("<{}>", token_uri(id))).map_err(of_value)?)?;
            if let Some(untold) = locked.untold {
                untold.travel_with(head);
            }
        }
        Ok(answer)
    }

    /// Creates the resource of a lock, unless it exists. Returns whether it did.
    async fn create(&self, client: &mut dyn Client, dav: &DavRequest<'_>, id: LeaseId) -> Result<bool, Halt> {
        let head: RequestHeader = creation(&dav.received)?;
        let found = self.guarded_at(&dav.guarded.key, &head, dav)?;
        let (mut client, mut request) = self.own_request(client, head, &found)?;
        request.sender.lease_id = Some(id);
        request.sender.lease_ids = dav.fields.submitted();
        match self.guard.serve(&mut client, &request, Verb::Write(None)).await {
            Ok(Answer::Relayed(relayed)) if relayed.head.status.is_success() => {
                relayed.discard().await;
                Ok(true)
            }
            Ok(Answer::Relayed(relayed)) if relayed.head.status == StatusCode::PRECONDITION_FAILED => {
                relayed.discard().await;
                Ok(false)
            }
            Ok(Answer::Relayed(relayed)) => Err(Halt::Denied(relayed)),
            Ok(_) => Ok(false),
            Err(Halt::Refused(refusal)) if refusal.code == Code::PreconditionFailed => Ok(false),
            Err(halt) => Err(halt),
        }
    }

    async fn refresh(
        &self,
        client: &mut dyn Client,
        dav: &mut DavRequest<'_>,
        rules: &LeaseRules,
    ) -> Result<Answer, Halt> {
        if dav.fields.conditions.is_none() {
            let detail =
                "a LOCK without content refreshes a lock: send its token in If, or send a lockinfo for a new lock";
            return Err(Refusal::new(Code::MalformedLeaseHeader, detail).into());
        }
        self.judge_conditions(dav).await?;
        let submitted = dav.fields.submitted();
        let Some(id) = dav.request.sender.lease_id.or_else(|| submitted.first().copied()) else {
            return Err(unknown_token().into());
        };
        let headers = &dav.received.headers;
        let duration = headers.contains_key(TIMEOUT).then(|| timeout(headers, rules));
        let renewed = self.operate_lock(client, dav, (id, Action::Renew { id, duration })).await?;
        told(dav, (&renewed.snapshot, id), StatusCode::OK)
    }

    /// Refreshes a lock or gives it up, for a request from any place in its scope. The request is then one of the root
    /// of the lock.
    async fn operate_lock(
        &self,
        client: &mut dyn Client,
        dav: &mut DavRequest<'_>,
        (id, action): (LeaseId, Action),
    ) -> Result<Operated, Halt> {
        let own = self.read(&dav.request.key).await?;
        if let Some(around) = own.held_around(LeaseReach::Tree).find(|around| around.lease.id == id) {
            self.go_to_root(client, dav, &around.root).await?;
            return Box::pin(self.guard.leases().operate_tree(client, &dav.request, action)).await;
        }
        let note = own.held_leases().find(|lease| lease.id == id).and_then(|lease| lease.note.as_ref());
        if note.and_then(LockNote::of).is_some_and(|note| note.is_of_collection) {
            return Box::pin(self.guard.leases().operate_tree(client, &dav.request, action)).await;
        }
        self.guard.operate_lease(client, &dav.request, LeaseOperation::Step { action, wait: None }).await
    }

    /// Lets a request go to the root of a lock around its target, which has judged its conditions.
    async fn go_to_root(
        &self,
        client: &mut dyn Client,
        dav: &mut DavRequest<'_>,
        root: &ResourceKey,
    ) -> Result<(), Halt> {
        if !dav.request.conditions.is_empty() {
            self.guard.judge_now(&dav.request).await?;
        }
        let path = dav.request.path_of(root).ok_or_else(refusals::of_field)?;
        let mut head = RequestHeader::clone(&dav.received);
        head.set_raw_path(path.as_bytes())?;
        remove_lock_fields(&mut head);
        let found = self.guarded_at(root, &head, dav)?;
        let (client, request) = self.own_request(client, head, &found)?;
        (dav.request, dav.received) = (request, client.head);
        Ok(())
    }

    /// Sends a request for the resource with this key through the door.
    fn guarded_at(
        &self,
        key: &ResourceKey,
        head: &RequestHeader,
        dav: &DavRequest<'_>,
    ) -> Result<GuardedRequest, Refusal> {
        let found = self.guarded(head, dav.guarded, refusals::of_field)?;
        if found.key == *key { Ok(found) } else { Err(refusals::of_field()) }
    }

    /// Gives a lock up.
    pub(super) async fn unlock_file(&self, client: &mut dyn Client, mut dav: DavRequest<'_>) -> Result<Answer, Halt> {
        let id = match dav.fields.token {
            Some(StateToken::Lock(id)) => id,
            Some(StateToken::Unknown) => {
                self.guard.let_in(&dav.request).await?;
                return Err(unknown_token().into());
            }
            None => {
                let detail = "send the token of the lock in Lock-Token";
                return Err(Refusal::new(Code::MalformedLeaseHeader, detail).into());
            }
        };
        self.operate_lock(client, &mut dav, (id, Action::Release { id })).await?;
        Ok(Answer::local(Response::empty(StatusCode::NO_CONTENT)))
    }
}

/// Returns how far a lock reaches below its target of this type; `None` if nothing is below that.
fn reach_of(dav: &DavRequest<'_>, seen: Option<TypeSeen>) -> Result<Option<LeaseReach>, Refusal> {
    match (seen, dav.fields.depth) {
        (Some(TypeSeen::Collection), _) if !dav.request.has_trees() => Err(no_collections()),
        (Some(TypeSeen::Collection), Some(LockDepth::Zero)) => Ok(Some(LeaseReach::Membership)),
        (Some(TypeSeen::Collection), _) => Ok(Some(LeaseReach::Tree)),
        (None, _) if path_of(&dav.received).ends_with('/') => Err(no_collections()),
        _ => Ok(None),
    }
}

/// Returns the lease that stands for a lock.
fn lease_of(
    dav: &DavRequest<'_>,
    lock: WantedLock,
    rules: &LeaseRules,
    is_of_collection: bool,
) -> Result<Acquire, Halt> {
    let note = LockNote {
        maker: dav.request.sender.principal.holder(),
        is_deep: dav.fields.depth != Some(LockDepth::Zero),
        is_of_collection,
        owner: lock.owner,
    };
    Ok(Acquire {
        proposed: None,
        fresh: fresh_id()?,
        mode: lock.mode,
        duration: timeout(&dav.received.headers, rules),
        holder: None,
        note: Some(note.to_note().map_err(|_error| of_lock_info(LockInfoFault::TooLarge))?),
        keeper: None,
        takes_over: false,
    })
}

/// The answer to a LOCK of a collection that was refused. A lock below it has an element of its own.
fn told_below(dav: &DavRequest<'_>, refusal: Refusal) -> Result<Answer, Halt> {
    let own = dav.request.path_of(&dav.request.key).unwrap_or_default();
    let elsewhere = refusal.cause.as_ref().and_then(|cause| cause.leased_elsewhere.as_deref());
    match elsewhere.filter(|path| is_below(path, &own)) {
        Some(locked) => {
            let told = document(StatusCode::MULTI_STATUS, not_locked(&path_of(&dav.received), locked));
            Ok(Answer::told(refusal, told))
        }
        None => Err(refusal.into()),
    }
}

/// Returns the answer that describes a lock to its maker.
fn told(dav: &DavRequest<'_>, (snapshot, id): (&Snapshot, LeaseId), status: StatusCode) -> Result<Answer, Halt> {
    let lease = snapshot.leases().find(|lease| lease.id == id).ok_or_else(unknown_token)?;
    // A client of a shared principal may refresh a lock that another has made.
    let shown = ShownLock { token: token_uri(id), ..ShownLock::of(lease, snapshot, [0; 16], &path_of(&dav.received)) };
    Ok(Answer::local(document(status, lock_answer(&shown))))
}

fn document(status: StatusCode, body: String) -> Response {
    Response::document(status, "application/xml; charset=\"utf-8\"", body)
}

fn of_lock_info(fault: LockInfoFault) -> Refusal {
    let code = match fault {
        LockInfoFault::Encoding => Code::UnsupportedMediaType,
        LockInfoFault::TooLarge => Code::BodyTooLarge,
        LockInfoFault::Malformed | LockInfoFault::Unsupported => Code::MalformedRequest,
    };
    let refusal = Refusal::new(code, fault.to_string());
    // The document can be read, but asks for what cannot be done (RFC 9110 section 15.5.21).
    if fault == LockInfoFault::Unsupported { refusal.called(422, "unknown-lock") } else { refusal }
}

fn of_value(_error: http::header::InvalidHeaderValue) -> Refusal {
    refusals::of_field()
}

fn unknown_token() -> Refusal {
    Refusal::new(Code::LeaseIdMismatch, "the resource has no lock with this token: lock it again")
}

fn no_locks() -> Refusal {
    Refusal::new(Code::NotSupported, "its route has no locks: policy = \"pessimistic\" gives it some")
}

fn no_collections() -> Refusal {
    let detail = "the collection cannot be locked here, because such a lock would not hold: lock each file by itself. With \
                  collections = \"webdav\" on its route, and a backend that knows PROPFIND, it can be";
    Refusal::new(Code::NotSupported, detail)
}
