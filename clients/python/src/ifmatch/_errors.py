"""Failures, as types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class IfmatchError(Exception):
    """The base of all errors of this package."""


class Unreachable(IfmatchError):
    """No whole answer came: the connection broke, nothing listens at the address, or the time was over."""

    def __init__(self, request: str, cause: BaseException | str, *, was_sent: bool = True) -> None:
        super().__init__(f"{request}: no answer: {_causes(cause)}")
        #: Whether the request may have reached the server: false where no connection could be made.
        self.was_sent = was_sent
        self.__cause__ = cause if isinstance(cause, BaseException) else None


class Refused(IfmatchError):
    """An answer that is no success, of ifmatch (then it has a `code`) or of the backend."""

    def __init__(self, request: str, status: int, problem: Mapping[str, Any]) -> None:
        self.request = request
        self.status = status
        self.problem = dict(problem)
        #: The code of a refusal of ifmatch, one of `CODES`.
        self.code: str | None = problem.get("code")
        #: The remedy, or the text of the backend.
        self.detail: str = problem.get("detail") or problem.get("title") or ""
        #: The label of the client that holds the lease.
        self.holder: str | None = problem.get("holder")
        #: How long to wait before another attempt, in seconds, where the answer says so.
        self.retry_after: float | None = problem.get("retry_after")
        #: The write was sent to the backend, and its outcome is unknown.
        self.in_doubt: bool = problem.get("in_doubt", False)
        code = f" {self.code}" if self.code else ""
        by = f" (held by {self.holder})" if self.holder else ""
        detail = f": {self.detail}" if self.detail else ""
        super().__init__(f"{request}: {status}{code}{by}{detail}")


class PreconditionFailed(Refused):
    """412: another change came first."""


class PreconditionRequired(Refused):
    """428: the write does not name the version that it is based on."""


class LeaseHeld(Refused):
    """Another client holds the lease of the resource; `holder` is its label."""


class LeaseEnded(Refused):
    """The `Lease-Id` of the request is not, or soon no longer, the id of a lease of the resource."""


class Busy(Refused):
    """Another request on the resource has not ended. Nothing was written."""


class KeyRefused(Refused):
    """The `Idempotency-Key` is missing, or belongs to another write or to one with an unknown outcome."""


class UpstreamFailed(Refused):
    """The backend gave ifmatch no usable answer. `in_doubt` tells whether the write may have been applied."""


class Unavailable(Refused):
    """A limit was reached, or ifmatch cannot learn what it needs. Nothing was written."""


class BadRequest(Refused):
    """The request is wrong, or this client may not send it."""


class GaveUp(IfmatchError):
    """Each attempt has failed. `last` is the error of the last one."""

    def __init__(self, what: str, last: IfmatchError) -> None:
        super().__init__(f"gave up {what}; the last error was: {last}")
        self.last = last
        self.__cause__ = last


class OutcomeUnknown(IfmatchError):
    """The answer to a write was lost, and it cannot be known whether the change was made."""

    def __init__(self, request: str, last: IfmatchError) -> None:
        super().__init__(f"{request}: it is not known whether the change was made; the last error was: {last}")
        self.last = last
        self.__cause__ = last


class LeaseLost(IfmatchError):
    """The client holds its lease no more. `reason` is that of the stream, or the code of a refusal."""

    def __init__(self, url: str, reason: str, last: IfmatchError | None = None) -> None:
        because = f"; the last error was: {last}" if last else ""
        super().__init__(f"the lease of {url} is lost: {reason}{because}")
        self.reason = reason
        self.last = last
        self.__cause__ = last


#: The class of each refusal that a client can meet, by its code (docs/refusals.md).
CODES: Mapping[str, type[Refused]] = {
    "precondition-failed": PreconditionFailed,
    "precondition-required": PreconditionRequired,
    "lease-held": LeaseHeld,
    "lease-id-missing": LeaseHeld,
    "sharing-violation": LeaseHeld,
    "lease-lost": LeaseEnded,
    "lease-id-mismatch": LeaseEnded,
    "lease-not-present": LeaseEnded,
    "lease-broken": LeaseEnded,
    "lease-breaking": LeaseEnded,
    "lease-hold-max": LeaseEnded,
    "write-in-flight": Busy,
    "delete-pending": Busy,
    "idempotency-in-flight": Busy,
    "unsettled": Busy,
    "idempotency-key-missing": KeyRefused,
    "idempotency-key-in-use": KeyRefused,
    "idempotency-mismatch": KeyRefused,
    "idempotency-outcome-unknown": KeyRefused,
    "upstream-failed": UpstreamFailed,
    "upstream-timeout": UpstreamFailed,
    "store-unavailable": Unavailable,
    "store-full": Unavailable,
    "overloaded": Unavailable,
    "validator-unavailable": Unavailable,
    "too-many-leases": Unavailable,
    "malformed-precondition": BadRequest,
    "malformed-request": BadRequest,
    "malformed-lease-header": BadRequest,
    "ambiguous-target": BadRequest,
    "method-override": BadRequest,
    "destination-is-source": BadRequest,
    "destination-elsewhere": BadRequest,
    "no-route": BadRequest,
    "lease-target-missing": BadRequest,
    "lease-access": BadRequest,
    "method-not-allowed": BadRequest,
    "header-timeout": BadRequest,
    "body-timeout": BadRequest,
    "body-too-large": BadRequest,
    "target-too-long": BadRequest,
    "unsupported-media-type": BadRequest,
    "header-too-large": BadRequest,
    "not-supported": BadRequest,
    "loop-detected": BadRequest,
}


def _causes(error: BaseException | str) -> str:
    """The message of an error, or its kind if it has none."""
    return str(error) or type(error).__name__
