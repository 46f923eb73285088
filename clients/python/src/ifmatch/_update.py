"""Read, change, write, and again."""

from __future__ import annotations

import copy
import json as json_module
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import httpx

from ._answers import back_off, is_temporary, refusal_of, shows_state
from ._drive import Driver
from ._effects import Ask, Call, Pause, Steps
from ._errors import (
    GaveUp, IfmatchError, KeyRefused, LeaseEnded, LeaseHeld, LeaseLost, OutcomeUnknown, PreconditionFailed, Refused,
    Unreachable,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Format(Generic[T]):
    """How documents are read and written."""

    content_type: str
    parse: Callable[[bytes], T]
    serialize: Callable[[T], bytes]


json: Format[Any] = Format("application/json", json_module.loads, lambda value: json_module.dumps(value).encode())
text: Format[str] = Format("text/plain; charset=utf-8", bytes.decode, str.encode)


@dataclass(frozen=True)
class Updated(Generic[T]):
    """A document that was written, or had the change already."""

    document: T
    #: The tag for the next write, if it is known.
    etag: str | None


class Held(Protocol):
    """A lease, as far as writes need it."""

    @property
    def id(self) -> str: ...

    def raise_if_lost(self) -> None: ...

    def lose(self, refusal: Refused) -> LeaseLost: ...


@dataclass(frozen=True)
class Options(Generic[T]):
    initial: T | None
    is_applied: Callable[[T], bool] | None
    idempotency_key: str | None
    lease: Held | None
    attempts: int
    format: Format[T]


def update(
    url: str,
    change: Callable[[T], T | None],
    *,
    initial: T | None = None,
    is_applied: Callable[[T], bool] | None = None,
    idempotency_key: str | None = None,
    lease: Held | None = None,
    attempts: int = 40,
    format: Format[T] = json,
    client: httpx.Client | None = None,
) -> Updated[T]:
    """Reads the document at `url`, changes it and writes it, again and again until no other client came in between.

    `change` changes the document that it gets, or returns another one. It is called once for each version, so it does
    nothing else. Where the resource does not exist, it gets `initial`; without that, a 404 is an error.

    `is_applied` tells whether the change is in a document already, by a mark that belongs to this change alone. With it,
    a change is made once, whatever is lost on the way. `idempotency_key` does the same without a mark, on routes with
    `idempotency = "accept"`: a random text that belongs to this call alone.
    """
    options = Options(initial, is_applied, idempotency_key, lease, attempts, format)
    return Driver(client).run(update_steps(url, change, options))


def update_steps(url: str, change: Callable[[T], Any], options: Options[T]) -> Steps[Updated[T]]:
    work = _Work(url, change, options)
    attempt = 1
    while True:
        outcome = yield from work.attempt()
        if isinstance(outcome, Updated):
            return outcome
        if attempt >= options.attempts and work.doubt:
            raise OutcomeUnknown(f"PUT {url}", outcome)
        if attempt >= options.attempts:
            raise GaveUp(f"on {url} after {attempt} attempts", outcome)
        yield Pause(back_off(attempt, outcome))
        attempt += 1


@dataclass(frozen=True)
class _Write(Generic[T]):
    document: T
    content: bytes
    headers: dict[str, str]


class _Work(Generic[T]):
    def __init__(self, url: str, change: Callable[[T], Any], options: Options[T]) -> None:
        self.url = url
        self.change = change
        self.options = options
        #: Why it is not known whether the write was applied.
        self.doubt: IfmatchError | None = None
        #: The same write is sent until its outcome is known: its tag keeps it from being applied twice.
        self._write: _Write[T] | None = None
        self._writes = 0

    def attempt(self) -> Steps[Updated[T] | IfmatchError]:
        """Reads if need be, and writes once. Returns an error if another attempt may succeed, and raises all others."""
        if self.options.lease is not None:
            self.options.lease.raise_if_lost()
        if self._write is None:
            version = yield from self._read()
            if isinstance(version, IfmatchError) or self._is_applied(version):
                return version
            self._write = yield from self._compose(version)
        write = self._write
        answer = yield self._ask("PUT", write.headers, write.content)
        if isinstance(answer, Unreachable):
            self.doubt = answer if answer.was_sent else self.doubt
            return answer
        if answer.status_code in (200, 201, 204):
            return Updated(write.document, answer.headers.get("ETag"))
        refusal = refusal_of(f"PUT {self.url}", answer)
        if isinstance(refusal, PreconditionFailed):
            return (yield from self._start_anew(answer, refusal))
        if refusal.code in ("idempotency-outcome-unknown", "idempotency-key-in-use"):
            self.doubt = refusal
            return (yield from self._start_anew(answer, refusal))
        if _may_be_applied(refusal):
            self.doubt = refusal
        if is_temporary(refusal) or isinstance(refusal, LeaseHeld):
            return refusal
        if self.doubt is refusal:
            raise OutcomeUnknown(f"PUT {self.url}", refusal)
        raise self._final(refusal)

    def _start_anew(self, answer: httpx.Response, refusal: Refused) -> Steps[Updated[T] | IfmatchError]:
        """Another change came first: changes what is there now."""
        version = self._told(answer) or (yield from self._read())
        if isinstance(version, IfmatchError) or self._is_applied(version):
            return version
        is_judged_by_key = self.options.idempotency_key is not None and not isinstance(self.doubt, KeyRefused)
        if self.doubt and self.options.is_applied is None and not is_judged_by_key:
            raise OutcomeUnknown(f"PUT {self.url}", self.doubt)
        self._write = yield from self._compose(version)
        self.doubt = None
        return refusal

    def _told(self, answer: httpx.Response) -> Updated[T] | None:
        """The current state, where the refusal has it."""
        told = shows_state(answer)
        return Updated(self.options.format.parse(answer.content), answer.headers["ETag"]) if told else None

    def _is_applied(self, version: Updated[T]) -> bool:
        return self.options.is_applied is not None and self.options.is_applied(version.document)

    def _read(self) -> Steps[Updated[T] | IfmatchError]:
        request = f"GET {self.url}"
        answer = yield self._ask("GET", {"Cache-Control": "no-cache"})
        if isinstance(answer, Unreachable):
            return answer
        if answer.status_code == 200 and "ETag" in answer.headers:
            return Updated(self.options.format.parse(answer.content), answer.headers["ETag"])
        if answer.status_code == 200:
            return IfmatchError(f"{request}: the answer has no ETag")
        refusal = refusal_of(request, answer)
        is_absent = answer.status_code in (404, 410) and refusal.code is None
        if is_absent and self.options.initial is not None:
            return Updated(copy.deepcopy(self.options.initial), None)
        if is_temporary(refusal):
            return refusal
        raise self._final(refusal)

    def _final(self, refusal: Refused) -> IfmatchError:
        """Reads and writes carry the id of the lease, and the refusal of either ends it."""
        if isinstance(refusal, LeaseEnded) and self.options.lease is not None:
            return self.options.lease.lose(refusal)
        return refusal

    def _compose(self, version: Updated[T]) -> Steps[_Write[T]]:
        changed = yield Call(self.change, version.document)
        document: T = version.document if changed is None else changed
        self._writes += 1
        headers = {"If-None-Match": "*"} if version.etag is None else {"If-Match": version.etag}
        key = self.options.idempotency_key
        if key is not None:
            # Another body is another write, and has another key.
            headers["Idempotency-Key"] = key if self._writes == 1 else f"{key}-{self._writes}"
        headers["Content-Type"] = self.options.format.content_type
        headers["Prefer"] = "return=representation"
        return _Write(document, self.options.format.serialize(document), headers)

    def _ask(self, method: str, headers: dict[str, str], content: bytes | None = None) -> Ask:
        proof = {} if self.options.lease is None else {"Lease-Id": self.options.lease.id}
        return Ask(method, self.url, {**headers, **proof}, content)


def _may_be_applied(refusal: Refused) -> bool:
    """Whether the backend may have applied the write, for all that the answer says."""
    if refusal.code is not None:
        return refusal.in_doubt or refusal.code.startswith("upstream-")
    if refusal.status < 400:
        # 307 and 308 say that nothing was done.
        return refusal.status not in (307, 308)
    return refusal.status in (408, 499) or refusal.status >= 500
