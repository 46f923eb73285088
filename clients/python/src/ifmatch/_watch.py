"""Changes of resources and of their leases, as events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx

from ._answers import back_off, is_temporary, refusal_of
from ._drive import Driver
from ._effects import Answered, Ended, Event, Give, Hear, Listen, Pause, Steps
from ._errors import IfmatchError


@dataclass(frozen=True)
class LeaseState:
    """The lease of a resource, as every client may see it."""

    state: str
    duration: str | None = None
    remaining: float | None = None
    holder: str | None = None
    fence: int | None = None
    shared_by: int | None = None


@dataclass(frozen=True)
class State:
    """The state of a resource: the first event of each connection."""

    path: str
    etag: str | None
    lease: LeaseState | None


@dataclass(frozen=True)
class Changed:
    """The resource has changed."""

    path: str
    etag: str | None
    deleted: bool


@dataclass(frozen=True)
class LeaseChanged:
    """A step of the lease: acquired, renewed, breaking, released, expired or broken."""

    path: str
    change: str
    lease: LeaseState


@dataclass(frozen=True)
class Denied:
    """The backend refuses this one of several resources."""

    path: str
    status: int


@dataclass(frozen=True)
class Interrupted:
    """Nothing is known until the next `State`."""

    error: IfmatchError


WatchEvent = State | Changed | LeaseChanged | Denied | Interrupted


def watch(
    urls: str | Sequence[str], *, prefix: str = "/.watch", client: httpx.Client | None = None
) -> Iterator[WatchEvent]:
    """Yields the changes of one resource or of several, beginning with their state. Comes back after each break of the
    connection. Raises what the backend or ifmatch refuses for good."""
    return Driver(client).given(watch_steps(watch_url(urls, prefix)))


def watch_steps(url: str) -> Steps[None]:
    attempt = 1
    while True:
        yield Listen("GET", url)
        error: IfmatchError | None = None
        after = 0.0
        while error is None:
            heard = yield Hear()
            match heard:
                case Event(name, data):
                    attempt = 1
                    event = _event(name, data)
                    if event is not None:
                        yield Give(event)
                case Ended(error, after):
                    pass
                case Answered(answer):
                    error = refusal_of(f"GET {url}", answer)
                    if not is_temporary(error):
                        raise error
        yield Give(Interrupted(error))
        yield Pause(after + back_off(attempt, error))
        attempt += 1


def watch_url(urls: str | Sequence[str], prefix: str) -> str:
    if isinstance(urls, str):
        url = httpx.URL(urls)
        return str(url.copy_with(raw_path=prefix.encode() + url.raw_path))
    first, *others = (httpx.URL(url) for url in urls)
    if any((url.scheme, url.netloc) != (first.scheme, first.netloc) for url in others):
        raise ValueError("one watch is for one server")
    query = urlencode([("path", url.raw_path.decode()) for url in (first, *others)])
    return str(first.copy_with(raw_path=f"{prefix}?{query}".encode()))


def _event(name: str, data: dict[str, Any]) -> WatchEvent | None:
    path = data["path"]
    match name:
        case "state":
            return State(path, data.get("etag"), _lease(data["lease"]) if "lease" in data else None)
        case "changed":
            return Changed(path, data.get("etag"), data.get("deleted", False))
        case "lease":
            return LeaseChanged(path, data["change"], _lease(data))
        case "denied":
            return Denied(path, data["status"])
    return None


def _lease(data: dict[str, Any]) -> LeaseState:
    return LeaseState(**{name: data[name] for name in LeaseState.__dataclass_fields__ if name in data})
