"""How a client gets a lease and keeps it, by a stream or by renewals."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from ._answers import is_temporary, refusal_of, refused
from ._effects import Answered, Ask, Ended, Event, Give, Hear, Listen, Pause, Steps
from ._errors import IfmatchError, LeaseHeld, LeaseLost, Refused, Unreachable

#: The longest time in line that a request asks for, in seconds.
_LINE_MAX = 60

#: The lease ends by itself if its release does not arrive, so no client waits long for that.
_RELEASE_PATIENCE = 5.0


@dataclass(frozen=True)
class Granted:
    """The client holds the lease, until this time on the monotonic clock unless another grant comes before it."""

    fence: int
    etag: str | None
    seconds: float
    until: float | None


@dataclass(frozen=True)
class Waiting:
    """The client has to wait. `reason` is a `LeaseHeld`, or why there is no answer."""

    reason: IfmatchError


@dataclass(frozen=True)
class Broken:
    """The connection is broken: the lease is lost at this time, unless a grant comes before it."""

    error: IfmatchError
    until: float


@dataclass(frozen=True)
class _Refusal:
    refusal: Refused


@dataclass(frozen=True)
class _NotStreamed:
    """The request is answered, but not by a stream: a gateway has removed the field that asks for one."""


_Told = Granted | Waiting | Broken | LeaseLost | _Refusal | _NotStreamed


class LeaseSteps:
    def __init__(self, url: str, holder: str | None, seconds: float | None, prefix: str) -> None:
        self.resource = url
        target = httpx.URL(url)
        self.url = str(target.copy_with(raw_path=prefix.encode() + target.raw_path))
        #: A client that chose the id can claim a grant whose answer is lost.
        self.id = str(uuid.uuid4())
        self._fields = {"Lease-Id": self.id}
        if holder is not None:
            # A field has no other way to carry all scripts (RFC 8187).
            self._fields["Lease-Holder"] = f"UTF-8''{quote(holder, safe='')}"
        if seconds is not None:
            self._fields["Lease-Duration"] = f"{seconds:g}"
        self._grant: Granted | None = None
        #: Streams cannot get through.
        self._renews = False

    def take(self) -> Steps[LeaseLost]:
        """Asks until the client has the lease, and keeps it. Gives what happens; the last thing is a `LeaseLost`."""
        while True:
            after = 1.0
            yield from self._request()
            while True:
                told = yield from self._hear()
                match told:
                    case None:
                        break
                    case Granted():
                        if self._grant and told.fence != self._grant.fence:
                            # Another client has had the lease in between, so what this client knows is old.
                            yield self.release()
                            return (yield from self._lose(LeaseLost(self.resource, "expired")))
                        self._grant = self._grant or told
                    case LeaseLost():
                        return (yield from self._lose(told))
                    case _NotStreamed():
                        self._renews, after = True, 0
                        continue
                    case Waiting():
                        pass
                    case Broken():
                        after = self._retry
                        if not self._grant:
                            told = Waiting(told.error)
                    case _Refusal(refusal):
                        after = self._after(refusal)
                        if not self._is_worth_another(refusal):
                            if not self._grant:
                                raise refusal
                            reason = refusal.code or str(refusal.status)
                            return (yield from self._lose(LeaseLost(self.resource, reason, refusal)))
                        if self._grant:
                            continue
                        told = Waiting(refusal)
                yield Give(told)
            yield Pause(after)

    def release(self) -> Ask:
        """Gives the lease to the next client in line."""
        return Ask("DELETE", self.url, {"Lease-Id": self.id}, patience=_RELEASE_PATIENCE)

    def _lose(self, lost: LeaseLost) -> Steps[LeaseLost]:
        yield Give(lost)
        return lost

    def _request(self) -> Steps[None]:
        """Begins a request for the lease."""
        self._retry = 1.0
        #: When the next renewal is due; nothing is said of the lease before that.
        self._renews_at: float | None = None
        self._is_over = False
        if not self._renews:
            yield Listen("POST", self.url, self._in_line())

    def _in_line(self) -> Mapping[str, str]:
        return self._fields if self._grant else {**self._fields, "Prefer": f"wait={_LINE_MAX}"}

    def _hear(self) -> Steps[_Told | None]:
        """The next news of the request; None at its end."""
        if self._is_over:
            return None
        told = yield from (self._renew() if self._renews else self._hear_stream())
        self._is_over = not isinstance(told, Granted | Waiting)
        return told

    def _hear_stream(self) -> Steps[_Told]:
        """A stream: ifmatch renews the lease."""
        heard = yield Hear()
        match heard:
            case Event("granted", data):
                return Granted(data["fence"], data.get("etag"), data["seconds"], None)
            case Event("waiting", data):
                problem = {"code": "lease-held", "holder": data.get("holder"), "detail": "the client waits in line"}
                return Waiting(LeaseHeld(f"POST {self.url}", 409, problem))
            case Event("lost", data):
                return LeaseLost(self.resource, data["reason"])
            case Event("refused", data):
                return _Refusal(refused(f"POST {self.url}", data["status"], data))
            case Event():
                return (yield from self._hear_stream())
            case Answered(answer) if _is_grant(answer):
                return _NotStreamed()
            case Answered(answer):
                return _Refusal(_refusal_of_lease(f"POST {self.url}", answer))
            case Ended(error, retry):
                self._retry = retry
                seconds = self._grant.seconds if self._grant else 0
                return Broken(error, time.monotonic() + seconds)
        raise AssertionError(heard)

    def _renew(self) -> Steps[_Told]:
        """Renewals, for where a stream cannot get through."""
        if self._renews_at is not None:
            yield Pause(max(0, self._renews_at - time.monotonic()))
        method = "PUT" if self._grant else "POST"
        # The term counts from before the request: the client cannot know when the answer was written.
        sent = time.monotonic()
        answer = yield Ask(method, self.url, self._fields if self._grant else self._in_line())
        if isinstance(answer, Unreachable):
            seconds = self._grant.seconds if self._grant else 0
            # An earlier end that is known already counts.
            return Broken(answer, sent + seconds)
        if not _is_grant(answer):
            return _Refusal(_refusal_of_lease(f"{method} {self.url}", answer))
        seconds = float(answer.headers["Lease-Duration"])
        self._renews_at = sent + seconds / 3
        fence = int(answer.headers["Fencing-Token"])
        return Granted(fence, answer.headers.get("ETag"), seconds, sent + seconds)

    def _is_worth_another(self, refusal: Refused) -> bool:
        if self._grant:
            return refusal.status >= 500 or refusal.code == "write-in-flight"
        return isinstance(refusal, LeaseHeld) or is_temporary(refusal) or refusal.status >= 500

    def _after(self, refusal: Refused) -> float:
        """How long to wait. Where ifmatch has no place for a stream, the client renews."""
        if refusal.code == "overloaded" and not self._renews:
            self._renews = True
            return 0
        return 1.0 if refusal.retry_after is None else refusal.retry_after


def _is_grant(answer: httpx.Response) -> bool:
    """Whether an answer grants a lease. A backend may answer a path that it does not know with a success."""
    return answer.is_success and "Fencing-Token" in answer.headers


def _refusal_of_lease(request: str, answer: httpx.Response) -> Refused:
    """The error that an answer without a lease is."""
    is_of_backend = not answer.headers.get("Proxy-Status", "").startswith("ifmatch")
    if not is_of_backend or not (answer.is_success or answer.status_code in (404, 405)):
        return refusal_of(request, answer)
    detail = 'the backend has answered, because ifmatch has no lease here: the route needs policy = "pessimistic"'
    return refused(request, answer.status_code, {"detail": detail})


class LeaseBase:
    """The state of a lease."""

    def __init__(self, url: str, holder: str | None, seconds: float | None, prefix: str) -> None:
        self._steps = LeaseSteps(url, holder, seconds, prefix)
        self._grant: Granted | None = None
        #: Why the lease is held no more.
        self.lost: LeaseLost | None = None

    @property
    def id(self) -> str:
        """The secret that proves the lease."""
        return self._steps.id

    @property
    def headers(self) -> dict[str, str]:
        """The fields of a write under this lease."""
        return {"Lease-Id": self.id}

    @property
    def fence(self) -> int:
        """A number that grows with each lease of the resource."""
        return self._held.fence

    @property
    def etag(self) -> str | None:
        """The tag of the resource when the lease was granted, if it is known."""
        return self._held.etag

    def raise_if_lost(self) -> None:
        if self.lost is not None:
            raise self.lost

    def lose(self, refusal: Refused) -> LeaseLost:
        """Ends the lease because a write was refused with its id. Returns why it is lost."""
        lost = self._loss(refusal.code or str(refusal.status), refusal)
        self._lose(lost)
        return self.lost or lost

    def _lose(self, lost: LeaseLost) -> bool:
        """Whether it was not lost before."""
        raise NotImplementedError

    @property
    def _held(self) -> Granted:
        if self._grant is None:
            raise RuntimeError("the lease is not acquired")
        return self._grant

    def _loss(self, reason: str, last: Any = None) -> LeaseLost:
        return LeaseLost(self._steps.resource, reason, last)
