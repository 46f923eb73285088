//! A look at one member: the client takes it, or leaves it to others.

use std::time::{Duration, SystemTime};

use http::{HeaderName, Method, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use super::{Collection, Looked, Service, Taken};
use crate::{
    body::Client,
    core::{
        cause::Reason,
        http::request_target::{join_query, split_query},
        lease::field_names::LEASE_EXPIRES,
        members::line::Dealt,
        refusal::{Code, Refusal},
    },
    dialect::native::{LEASE_DURATION, LEASE_ID},
    guard::{Answer, Halt, PlaceInLine, Relayed, Verb, fresh_id, refusals, rules_of},
    routing::GuardedRequest,
};

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// How long clients may wait for a member, and how many of them.
pub(super) struct WaitLimits {
    pub(super) max_wait: Duration,
    pub(super) max_waiters: usize,
}

impl Service<'_> {
    /// Checks the lease that a request wants by the rules of the members, and returns how long it may wait.
    pub(super) fn wait_limits(
        &self,
        client: &mut dyn Client,
        collection: &Collection,
        guarded: &GuardedRequest,
    ) -> Result<WaitLimits, Halt> {
        let any = collection.members.file_of("x");
        let (head, _) = head_of_member(client.head(), collection, &any)?.ok_or_else(not_leased)?;
        let member = self.member_at(&head, guarded)?;
        let rules = rules_of(&member)?;
        let lease = rules.lease.as_ref().filter(|lease| lease.acquire_on_read).ok_or_else(not_leased)?;
        rules.dialect.grammar().lease_on_read(&head.headers, lease, fresh_id)?;
        Ok(WaitLimits { max_wait: lease.max_wait, max_waiters: lease.max_waiters })
    }

    /// Looks at a member that was dealt to a client, and takes it if no client holds it.
    pub(super) async fn look(
        &self,
        client: &mut dyn Client,
        (collection, guarded): (&Collection, &GuardedRequest),
        place: &PlaceInLine,
        dealt: &Dealt,
    ) -> Result<Looked, Halt> {
        let Some((head, path)) = head_of_member(client.head(), collection, &dealt.file)? else {
            return Ok(Looked::Passed);
        };
        // The door refuses some names on some routes. No client can take a member with such a name.
        let Ok(member) = self.member_at(&head, guarded) else { return Ok(Looked::Passed) };
        let (mut client, request) = self.own_request(client, head, &member)?;
        let snapshot = self.guard.record_without_dead_marks(&request).await;
        let snapshot = snapshot.map_err(|error| refusals::of_store(&error))?;
        if snapshot.lease_state().is_held() {
            return Ok(Looked::Held(snapshot.lease().and_then(|lease| lease.remaining(snapshot.now))));
        }
        if !snapshot.has_no_pending_writes() {
            return Ok(Looked::Held(Some(refusals::RETRY_SOON)));
        }
        if snapshot.touched() > place.newest() && !dealt.is_last_resort {
            return Ok(Looked::Changed);
        }
        let asked = self.guard.date();
        match self.guard.serve(&mut client, &request, Verb::Read).await {
            Ok(Answer::Relayed(answer)) | Err(Halt::Denied(answer)) => judge(member, path, *answer, asked).await,
            Ok(answer) => Ok(Looked::Failed(answer)),
            Err(Halt::Refused(refusal)) if is_in_use(&refusal) => Ok(Looked::Held(refusal.retry_after)),
            Err(halt) => Err(halt),
        }
    }

    /// Sends the read of a member through the door.
    fn member_at(&self, head: &RequestHeader, collection: &GuardedRequest) -> Result<GuardedRequest, Refusal> {
        let member = self.guarded(head, collection, not_leased)?;
        if member.is_lease() { Err(not_leased()) } else { Ok(member) }
    }
}

/// Judges the answer of the backend about a member. `asked` is a moment before its lease was granted.
async fn judge(guarded: GuardedRequest, path: String, mut answer: Relayed, asked: SystemTime) -> Result<Looked, Halt> {
    match answer.head.status {
        StatusCode::OK if answer.head.headers.contains_key(&LEASE_ID) => {
            tell_expiry(&mut answer.head, asked)?;
            Ok(Looked::Taken(Taken { guarded, path, answer: Box::new(answer) }))
        }
        StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::GONE => {
            answer.discard().await;
            Ok(Looked::Passed)
        }
        _ => {
            answer.head.insert_header(header::CONTENT_LOCATION, path)?;
            Ok(Looked::Failed(Answer::Relayed(Box::new(answer))))
        }
    }
}

/// Tells the moment when others can take the member. A client that counts on less time than it has is safe.
fn tell_expiry(head: &mut ResponseHeader, asked: SystemTime) -> pingora::Result<()> {
    let duration = head.headers.get(&LEASE_DURATION).and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    // A lease without an end never expires.
    let Some(end) = duration.and_then(|seconds| asked.checked_add(Duration::from_secs(seconds))) else {
        return Ok(());
    };
    head.insert_header(LEASE_EXPIRES.title, httpdate::fmt_http_date(end))
}

/// Returns the head of the read of a member, with the path by which the client knows it. `None` if its name is that of no
/// member.
fn head_of_member(
    received: &RequestHeader,
    collection: &Collection,
    file: &str,
) -> Result<Option<(RequestHeader, String)>, Halt> {
    let Some(path) = collection.members.member(file) else { return Ok(None) };
    let (_, query) = split_query(received.raw_path());
    let mut head = received.clone();
    head.set_method(Method::GET);
    head.set_raw_path(&join_query(path.as_str().as_bytes(), query))?;
    // If another client holds the member, another member may be free.
    head.remove_header(&PREFER);
    head.remove_header(&header::RANGE);
    Ok(Some((head, path.as_str().to_owned())))
}

/// True if a refusal says that another client uses the member at this moment. While this proxy gives no member to any
/// client, its client must not learn that there is none.
pub(in crate::service) fn is_in_use(refusal: &Refusal) -> bool {
    let is_of_all = refusal.cause.as_ref().is_some_and(|cause| cause.reason == Some(Reason::StartGrace));
    let is_of_member = matches!(
        refusal.code,
        Code::LeaseHeld
            | Code::WriteInFlight
            | Code::DeletePending
            | Code::Unsettled
            | Code::LeaseIdMissing
            | Code::SharingViolation
    );
    is_of_member && !is_of_all && !refusal.in_doubt
}

fn not_leased() -> Refusal {
    Refusal::new(
        Code::NotSupported,
        "the members have no leases that a read can take: see members in the configuration",
    )
}
