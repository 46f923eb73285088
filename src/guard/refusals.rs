//! The refusals of the guard, with their details for the client.

use std::{io, time::Duration};

use super::{Halt, claim::queue::NoTurn};
use crate::{
    body::ReceiveError,
    core::{
        cause::Reason,
        records::steps::Outcome,
        refusal::{Code, Refusal},
    },
    store::StoreError,
    telemetry::Seldom,
    upstream::{Failure, fields::HeadError},
};

static STORE_FAILED: Seldom = Seldom::usual();
static SPOOL_FAILED: Seldom = Seldom::usual();

/// The time after which a client should retry while others write: most writes take less.
pub(crate) const RETRY_SOON: Duration = Duration::from_secs(1);

/// The refusal of a request that got no response, with this detail if the failure has none of its own.
fn without_response(failure: Failure, detail: &'static str) -> Refusal {
    let code = match failure {
        Failure::Full => return upstream_full(),
        Failure::Insecure => return insecure(),
        Failure::NotSent { timed_out: true } => Code::UpstreamConnectTimeout,
        Failure::NotSent { timed_out: false } => Code::UpstreamUnreachable,
        Failure::Abandoned { timed_out: true } => Code::UpstreamTimeout,
        Failure::Abandoned { timed_out: false } => Code::UpstreamFailed,
    };
    Refusal::new(code, detail)
}

/// The refusal of a read that got no response.
pub(crate) fn of_read(failure: Failure) -> Refusal {
    without_response(failure, "the upstream gave no complete answer; try again")
}

/// The refusal of a request to an upstream that could not be trusted.
fn insecure() -> Refusal {
    Refusal::new(
        Code::UpstreamInsecure,
        "the TLS handshake with the upstream failed, and nothing was sent: the log of this proxy has the reason",
    )
}

/// The refusal of a request for which no server has a free connection.
fn upstream_full() -> Refusal {
    let detail = "the upstream is at its connection limit; nothing was sent. Try again.";
    Refusal::new(Code::Overloaded, detail).retry_after(RETRY_SOON).because(Reason::UpstreamFull)
}

/// The refusal of a write that got no response. The write is in doubt if a byte of it may have been sent.
pub(crate) fn of_write(failure: Failure, late_write_window: Duration) -> Refusal {
    if !matches!(failure, Failure::Abandoned { .. }) {
        return without_response(failure, "the upstream could not be reached: nothing was written; try again");
    }
    let detail = "the write was sent and no answer came: whether it was applied cannot be known. Other writes on the \
                  resource are held back for a while; then read it to see";
    without_response(failure, detail).retry_after(late_write_window).in_doubt()
}

/// The refusal of an unguarded request that got no response.
pub(crate) fn of_forwarded(failure: Failure, is_safe: bool) -> Refusal {
    let detail = match failure {
        Failure::NotSent { timed_out: true } => "no server could be reached in time; try again later",
        Failure::Abandoned { timed_out: true } => "the server did not answer in time; read before you write again",
        Failure::Abandoned { timed_out: false } => "the server gave no usable answer; read before you write again",
        Failure::NotSent { timed_out: false } | Failure::Full | Failure::Insecure => {
            "no server could be reached; try again later"
        }
    };
    let refusal = without_response(failure, detail);
    let may_be_applied = !is_safe && matches!(failure, Failure::Abandoned { .. });
    if may_be_applied { refusal.in_doubt() } else { refusal }
}

/// The refusal of a write whose response broke off after its head. The head has already shown the outcome.
pub(crate) fn of_lost_response(status: u16, outcome: Outcome, late_write_window: Duration) -> Refusal {
    let detail = format!("the upstream answered the write with {status}, but the rest of its answer was lost");
    let refusal = Refusal::new(Code::UpstreamFailed, detail);
    if outcome == Outcome::Doubt { refusal.retry_after(late_write_window).in_doubt() } else { refusal }
}

/// The refusal of a request that cannot be forwarded.
pub(crate) fn of_head(error: &HeadError) -> Refusal {
    match error {
        HeadError::TransferCoding => {
            Refusal::new(Code::NotSupported, "the body is in a transfer coding other than chunked; send it without")
        }
        HeadError::Target | HeadError::Field(_) => of_field(),
    }
}

/// The refusal of a head that cannot be written.
pub(crate) fn of_field() -> Refusal {
    Refusal::new(Code::MalformedRequest, "the request has a target or a field that cannot be sent on")
}

/// The answer to a request whose body was not received. If the client broke off, its error decides whether it gets an
/// answer.
pub(crate) fn of_body(error: ReceiveError) -> Halt {
    let refusal = match error {
        ReceiveError::TooLarge => {
            Refusal::new(Code::BodyTooLarge, "send a smaller body: this one is larger than max_body_size of the proxy")
        }
        ReceiveError::TimedOut => Refusal::new(
            Code::BodyTimeout,
            "the body did not arrive within body_timeout of this proxy; nothing was written",
        ),
        ReceiveError::Full => {
            let detail = "send it again later; nothing was written: too many bodies are being received at this moment";
            Refusal::new(Code::Overloaded, detail).retry_after(RETRY_SOON).because(Reason::BodiesFull)
        }
        ReceiveError::Spool(error) => return of_spool(&error),
        ReceiveError::Client(error) => return Halt::Broken(error.into_down()),
    };
    refusal.into()
}

/// The answer to a request whose body cannot be written to the spool, or read from it.
pub(crate) fn of_spool(error: &io::Error) -> Halt {
    if let Some(left_out) = SPOOL_FAILED.due() {
        tracing::error!(%error, left_out, "a body cannot be spooled: see spool_dir");
    }
    Refusal::new(
        Code::Overloaded,
        "send it again later; the proxy cannot keep the body. An operator makes room in spool_dir",
    )
    .retry_after(RETRY_SOON)
    .because(Reason::SpoolFailed)
    .into()
}

/// The refusal of a request because a store operation failed.
pub(crate) fn of_store(error: &StoreError) -> Refusal {
    if let Some(left_out) = STORE_FAILED.due() {
        tracing::error!(%error, left_out, "the store failed a guarded write");
    }
    match error {
        StoreError::Full => {
            let detail = "send it again later; nothing was written: the store has no room for another resource that is \
                          leased or written. An operator makes room by store.capacity and store.max_size";
            Refusal::new(Code::StoreFull, detail).retry_after(RETRY_SOON)
        }
        StoreError::Unavailable => store_failed("the store does not answer; nothing was written"),
        StoreError::Damaged => of_damaged_record("nothing was written"),
        StoreError::LostWrites => of_lost_writes("nothing was written"),
    }
}

/// The refusal of a lease operation that the store did not carry out, or did not confirm.
pub(crate) fn of_lease_store(error: &StoreError) -> Refusal {
    if let Some(left_out) = STORE_FAILED.due() {
        tracing::error!(%error, left_out, "the store failed a lease operation");
    }
    match error {
        StoreError::Full => {
            let detail = "send it again later: the store has no room for another resource that is leased or written. An \
                          operator makes room by store.capacity and store.max_size";
            Refusal::new(Code::StoreFull, detail).retry_after(RETRY_SOON)
        }
        StoreError::Unavailable => store_failed(
            "the store did not confirm it: no lease was granted, and a held lease may or may not have changed; send \
             it again",
        ),
        StoreError::Damaged => of_damaged_record("no lease was granted"),
        StoreError::LostWrites => of_lost_writes("no lease was granted"),
    }
}

fn store_failed(detail: &'static str) -> Refusal {
    Refusal::new(Code::StoreUnavailable, detail).retry_after(RETRY_SOON).because(Reason::StoreFailed)
}

/// The refusal of a request because the record of its resource is damaged. Time does not change that.
fn of_damaged_record(outcome: &str) -> Refusal {
    Refusal::new(
        Code::StoreUnavailable,
        format!(
            "the store answers, but its record of this resource cannot be read; {outcome}. An operator must delete the \
             record that the log names"
        ),
    )
    .because(Reason::StoreFailed)
}

/// The refusal of a request because the store can no longer be trusted. Time does not change that.
fn of_lost_writes(outcome: &str) -> Refusal {
    Refusal::new(
        Code::StoreUnavailable,
        format!(
            "the store has lost writes that it had acknowledged; {outcome}. An operator must delete the store's \
             incarnation key and restart this proxy"
        ),
    )
    .because(Reason::StoreLostWrites)
}

/// The refusal of a write that did not get its turn.
pub(crate) fn of_turn(no_turn: NoTurn) -> Refusal {
    match no_turn {
        NoTurn::LineFull => write_in_flight(RETRY_SOON, Reason::LineFull),
        NoTurn::TimedOut => write_in_flight(RETRY_SOON, Reason::WaitTooLong),
        NoTurn::AllFull => Refusal::new(Code::Overloaded, "too many writes wait at this moment; nothing was written")
            .retry_after(RETRY_SOON)
            .because(Reason::AllLinesFull),
    }
}

/// The refusal of a client that did not get its turn in the line for a lease.
pub(crate) fn of_lease_turn(no_turn: NoTurn) -> Refusal {
    match no_turn {
        NoTurn::AllFull => {
            let detail = "too many clients wait at this moment";
            Refusal::new(Code::Overloaded, detail).retry_after(RETRY_SOON).because(Reason::AllLinesFull)
        }
        NoTurn::LineFull | NoTurn::TimedOut => {
            let detail = "others wait for the lease; come back later";
            Refusal::new(Code::LeaseHeld, detail).retry_after(RETRY_SOON).because(Reason::LeaseAwaited)
        }
    }
}

/// The refusal of a write that meets another one.
pub(crate) fn write_in_flight(retry_after: Duration, reason: Reason) -> Refusal {
    let detail = "another write on this resource is in flight or in doubt; nothing was written, send it again later";
    Refusal::new(Code::WriteInFlight, detail).retry_after(retry_after).because(reason)
}

/// The refusal of a read that has waited in vain for the end of writes.
pub(crate) fn unsettled(retry_after: Duration, reason: Reason) -> Refusal {
    let detail = "a write on this resource is in flight or in doubt, and this route shows settled states only; read it \
                  again later";
    Refusal::new(Code::Unsettled, detail).retry_after(retry_after.max(RETRY_SOON)).because(reason)
}

/// The refusal of a read that may not wait, since too many already do.
pub(crate) fn of_read_turn(no_turn: NoTurn) -> Refusal {
    match no_turn {
        NoTurn::LineFull | NoTurn::TimedOut => unsettled(RETRY_SOON, Reason::LineFull),
        NoTurn::AllFull => Refusal::new(Code::Overloaded, "too many reads wait for the end of writes at this moment")
            .retry_after(RETRY_SOON)
            .because(Reason::AllLinesFull),
    }
}

/// The refusal of a write that comes too soon after a start.
pub(crate) fn held_back(remaining: Duration) -> Refusal {
    let detail = "this proxy was started moments ago, and writes of its predecessor may still be in flight";
    Refusal::new(Code::WriteInFlight, detail).retry_after(remaining).because(Reason::StartGrace)
}

/// The refusal of a write whose route has new rules since it began.
pub(crate) fn of_retired_route() -> Refusal {
    let detail = "the rules of this route have changed since the request began; nothing was written, send it again";
    Refusal::new(Code::WriteInFlight, detail).retry_after(RETRY_SOON).because(Reason::RouteChanged)
}

/// The refusal of an unclaimed write for which the record has no room.
pub(crate) fn too_many_unclaimed() -> Refusal {
    let detail = "too many writes on this resource are in flight";
    Refusal::new(Code::Overloaded, detail).retry_after(RETRY_SOON).because(Reason::RecordFull)
}

/// The refusal of a write whose mark has too little time left to begin.
pub(crate) fn too_late_to_begin() -> Refusal {
    Refusal::new(Code::Overloaded, "connecting to the upstream took too long; nothing was written")
        .retry_after(RETRY_SOON)
        .because(Reason::ConnectionTooSlow)
}

/// The refusal of a request if the state of the resource stays unknown.
pub(crate) fn unknown_state() -> Refusal {
    Refusal::new(
        Code::ValidatorUnavailable,
        "the current state of the resource could not be learned; nothing was written",
    )
}

/// The refusal of a write with a date condition if the upstream sends no date: a write that would overwrite must not
/// pass.
pub(crate) fn no_date() -> Refusal {
    Refusal::new(Code::PreconditionFailed, "the upstream sends no modification date to compare the condition with")
        .because(Reason::ChangedSinceDate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule 12: the refusal names each failure of the store as what it is. Only one that ends on its own names a time.
    #[test]
    fn a_damaged_record_is_no_outage() {
        for refused in [of_store(&StoreError::Damaged), of_lease_store(&StoreError::Damaged)] {
            assert!(refused.detail.contains("the store answers, but its record of this resource cannot be read"));
            assert_eq!((refused.code, refused.retry_after), (Code::StoreUnavailable, None));
        }
        let outage = of_store(&StoreError::Unavailable);
        assert!(outage.detail.contains("does not answer") && outage.retry_after.is_some());
    }
}
