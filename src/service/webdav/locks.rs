//! LOCK and UNLOCK (RFC 4918 sections 9.10 and 9.11).

use http::{HeaderMap, HeaderValue, StatusCode, header};
use pingora::http::RequestHeader;

use super::{DavRequest, Service, content_of, creation, path_of};
use crate::{
    body::{Body, Client},
    core::{
        lease::{Acquire, Action, Done, LeaseId},
        policy::LeaseRules,
        records::record::Snapshot,
        refusal::{Code, Refusal},
    },
    dialect::{
        LeaseOperation, Response,
        webdav::{
            LOCK_INFO_BYTES_MAX, LOCK_TOKEN, LockDepth, LockInfoFault, LockNote, ShownLock, StateToken, TIMEOUT,
            WantedLock, lock_answer, timeout, token_uri,
        },
    },
    guard::{Answer, Halt, ReceivedClient, TypeSeen, Verb, fresh_id, incoming, refusals},
    routing::door::Door,
};

impl Service<'_> {
    /// Takes a lock, or refreshes one: a LOCK without content is a refresh, whatever its fields say.
    pub(super) async fn lock_file(&self, client: &mut dyn Client, mut dav: DavRequest<'_>) -> Result<Answer, Halt> {
        let Some(rules) = dav.rules.lease.as_ref() else { return Err(no_locks().into()) };
        let body = self.guard.bodies().receive(client).await.map_err(refusals::of_body)?;
        if body.is_empty() {
            return self.refresh(client, &mut dav, rules).await;
        }
        let content = content_of(&body, LOCK_INFO_BYTES_MAX).await?;
        let info = WantedLock::parse(&content).map_err(of_lock_info)?;
        if dav.fields.depth == Some(LockDepth::One) {
            return Err(Refusal::new(Code::MalformedLeaseHeader, "a lock has the depth 0 or infinity").into());
        }
        let seen = self.guard.type_of(&dav.request).await?;
        let is_named_as_collection = dav.request.head.raw_path().split(|octet| *octet == b'?').next();
        if seen == Some(TypeSeen::Collection)
            || seen.is_none() && is_named_as_collection.is_some_and(|path| path.ends_with(b"/"))
        {
            return Err(no_collections().into());
        }
        self.judge_conditions(&mut dav).await?;
        let note = LockNote {
            maker: dav.request.sender.principal.holder(),
            is_deep: dav.fields.depth != Some(LockDepth::Zero),
            owner: info.owner,
        };
        let wanted = Acquire {
            proposed: None,
            fresh: fresh_id()?,
            mode: info.mode,
            duration: timeout(&dav.received.headers, rules),
            holder: None,
            note: Some(note.to_note().map_err(|_error| of_lock_info(LockInfoFault::TooLarge))?),
            keeper: None,
            takes_over: false,
        };
        let operation = LeaseOperation::Step { action: Action::Acquire(wanted), wait: None };
        let locked = self.guard.operate_lease(client, &dav.request, operation).await?;
        let Some(Done::Acquired { id, .. }) = locked.done else { return Err(refusals::of_field().into()) };
        let mut status = StatusCode::OK;
        // A lock of nothing creates an empty resource. If that fails, nobody is told of the lock, and it is taken back.
        if seen != Some(TypeSeen::Plain) && self.create(client, &dav, id).await? {
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
        let found = match self.guard.door(&head.method, &head, dav.guarded.client) {
            Door::Guarded(found) if found.key == dav.guarded.key => found,
            Door::Refuse { refusal, .. } => return Err(refusal.into()),
            _ => return Err(refusals::of_field().into()),
        };
        let call = dav.rules.dialect.grammar().read(incoming(&head, &found), dav.rules, false)?;
        let mut client = ReceivedClient { client, head, has_content: false, body: Some(Body::empty()) };
        let mut request = self.guard.request(&mut client, &found, dav.rules, call)?;
        request.sender.lease_id = Some(id);
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
            Ok(Answer::Local(..) | Answer::NotModified(_) | Answer::Lasting(..) | Answer::Current(..)) => Ok(false),
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
        let operation = LeaseOperation::Step { action: Action::Renew { id, duration }, wait: None };
        let renewed = self.guard.operate_lease(client, &dav.request, operation).await?;
        told(dav, (&renewed.snapshot, id), StatusCode::OK)
    }

    /// Gives a lock up.
    pub(super) async fn unlock_file(&self, client: &mut dyn Client, dav: &DavRequest<'_>) -> Result<Answer, Halt> {
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
        let operation = LeaseOperation::Step { action: Action::Release { id }, wait: None };
        self.guard.operate_lease(client, &dav.request, operation).await?;
        let fields = HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))]);
        Ok(Answer::local(Response { status: StatusCode::NO_CONTENT, fields, body: None }))
    }
}

/// The answer that tells the maker of a lock of it.
fn told(dav: &DavRequest<'_>, (snapshot, id): (&Snapshot, LeaseId), status: StatusCode) -> Result<Answer, Halt> {
    let lease = snapshot.leases().find(|lease| lease.id == id).ok_or_else(unknown_token)?;
    // A client of a shared principal may refresh a lock that another has made.
    let shown = ShownLock { token: token_uri(id), ..ShownLock::of(lease, snapshot, [0; 16], &path_of(&dav.received)) };
    let mut fields = HeaderMap::new();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml; charset=\"utf-8\""));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(Answer::local(Response { status, fields, body: Some(lock_answer(&shown)) }))
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
    let detail = "collections cannot be locked here, because such a lock would not hold: lock each file by itself";
    Refusal::new(Code::NotSupported, detail)
}
