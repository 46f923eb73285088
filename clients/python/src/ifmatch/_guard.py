"""A client of httpx that sends the tag of the version that was read with each write."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

import httpx

from ._answers import refusal_of, shows_state, unreachable
from ._errors import Refused

_WRITES = ("PUT", "PATCH", "DELETE")

#: Fields by which a write says itself why it may happen.
_PROOFS = ("If-Match", "If-None-Match", "Lease-Id")

#: How many versions are kept.
_MAX_KEPT = 100


class Conflict(Refused):
    """A write that was refused with 409 or 412, with all versions that a person needs to decide."""

    def __init__(
        self, refusal: Refused, read: httpx.Response | None, current: httpx.Response | None, written: httpx.Request
    ) -> None:
        super().__init__(refusal.request, refusal.status, refusal.problem)
        #: The version that the write was based on, if it is known as a whole.
        self.read = read
        #: The state after the refusal: from the refusal itself, or the answer to a GET, which is a 404 if the resource is
        #: gone. None if there was no answer.
        self.current = current
        #: The write.
        self.written = written


class Memory:
    """The versions that a client has read."""

    def __init__(self, max_wait: float) -> None:
        self.max_wait = max_wait
        self._tags: OrderedDict[str, str] = OrderedDict()
        self._versions: OrderedDict[tuple[str, str], httpx.Response] = OrderedDict()

    def prepare(self, request: httpx.Request) -> None:
        """Gives a write its condition."""
        if request.method == "GET":
            request.headers.setdefault("Cache-Control", "no-cache")
        if request.method not in _WRITES:
            return
        url, headers = str(request.url), request.headers
        if url in self._tags and "If-Match" not in headers and "If-None-Match" not in headers:
            headers["If-Match"] = self._tags[url]
        if not any(name in headers for name in _PROOFS):
            raise ValueError(f"{request.method} {url}: no ETag of it is known; read it")
        headers.setdefault("Prefer", "return=representation")

    def note(self, request: httpx.Request, response: httpx.Response) -> None:
        """Keeps what an answer shows."""
        url, tag = str(request.url), response.headers.get("ETag")
        is_read = request.method == "GET" and response.status_code == 200
        is_gone = request.method == "GET" and response.status_code in (404, 410)
        is_written = request.method in _WRITES and response.is_success
        if not (is_read or is_gone or is_written):
            return
        self._tags.pop(url, None)
        if tag is None or is_gone or request.method == "DELETE":
            return
        self._keep(self._tags, url, tag)
        if is_read and response.is_closed:
            self._keep(self._versions, (url, tag), response)
        # Only the server knows the result of a PATCH.
        if request.method == "PUT" and isinstance(request.stream, httpx.ByteStream):
            kind = request.headers.get("Content-Type", "")
            written = httpx.Response(200, headers={"ETag": tag, "Content-Type": kind}, content=request.content)
            self._keep(self._versions, (url, tag), written)

    def refusal(self, request: httpx.Request, response: httpx.Response) -> Refused | None:
        is_refused = request.method in _WRITES and response.status_code in (409, 412)
        return refusal_of(f"{request.method} {request.url}", response) if is_refused else None

    def wait(self, request: httpx.Request, refusal: Refused, waited: float) -> float | None:
        """How long to wait before the same request is sent again, if it may be: nothing was written."""
        after = 1.0 if refusal.retry_after is None else refusal.retry_after
        may_repeat = refusal.code == "write-in-flight" and isinstance(request.stream, httpx.ByteStream)
        return after if may_repeat and waited + after <= self.max_wait else None

    def read_of(self, request: httpx.Request) -> httpx.Response | None:
        return self._versions.get((str(request.url), request.headers.get("If-Match", "")))

    @staticmethod
    def shown(request: httpx.Request, refused: httpx.Response) -> httpx.Response | None:
        """The state that a refusal has in its body, as the answer to a read."""
        if not shows_state(refused):
            return None
        # The content is no longer compressed, and has its own length.
        coding = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in refused.headers.multi_items() if name.lower() not in coding]
        return httpx.Response(200, headers=headers, content=refused.content, request=Memory.look(request))

    @staticmethod
    def look(request: httpx.Request) -> httpx.Request:
        """The request that shows what is there after a refusal."""
        dropped = (
            "if-match", "if-none-match", "idempotency-key", "content-type", "content-length", "transfer-encoding", "prefer",
        )
        headers = [(name, value) for name, value in request.headers.multi_items() if name.lower() not in dropped]
        return httpx.Request("GET", request.url, headers=headers, extensions=request.extensions)

    @staticmethod
    def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
        kept[key] = value
        kept.move_to_end(key)
        if len(kept) > _MAX_KEPT:
            kept.popitem(last=False)


class GuardedClient(httpx.Client):
    """A `httpx.Client` that remembers the ETag of each URL that it reads, and sends it with each write. An editor that
    keeps a version open has a client for itself.

    `max_wait` is how long a write waits in all for other writes (409 `write-in-flight`), in seconds.
    """

    def __init__(self, *, max_wait: float = 60, **options: Any) -> None:
        super().__init__(**options)
        self._memory = Memory(max_wait)

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        memory = self._memory
        memory.prepare(request)
        waited = 0.0
        while True:
            try:
                response = super().send(request, **options)
            except httpx.TransportError as error:
                raise unreachable(f"{request.method} {request.url}", error) from error
            memory.note(request, response)
            refusal = memory.refusal(request, response)
            if refusal is None:
                return response
            wait = memory.wait(request, refusal, waited)
            if wait is None:
                current = memory.shown(request, response) or self._current(request)
                raise Conflict(refusal, memory.read_of(request), current, request)
            time.sleep(wait)
            waited += wait

    def _current(self, request: httpx.Request) -> httpx.Response | None:
        try:
            return super().send(Memory.look(request))
        except httpx.TransportError:
            return None
