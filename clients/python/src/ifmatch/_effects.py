"""The effects that the functions of this package request. Each is written once, as a generator that yields these; one
driver performs them by a `httpx.Client`, another by a `httpx.AsyncClient`."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from ._errors import Unreachable

T = TypeVar("T")

#: ifmatch itself may wait 30 s for its turn, and 30 s for the backend.
PATIENCE = 90.0

#: ifmatch sends a comment each 15 seconds, so a stream that is silent for this time is dead.
SILENCE_MAX = 40.0


@dataclass(frozen=True)
class Ask:
    """Sends a request once. The result is the whole answer, or `Unreachable`."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    patience: float = PATIENCE


@dataclass(frozen=True)
class Listen:
    """Sends a request for server-sent events. Their results come by `Hear`."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hear:
    """Waits for what the request of the last `Listen` brings: `Event`s, then one `Answered` or `Ended`."""


@dataclass(frozen=True)
class Event:
    name: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Answered:
    """The answer is no stream."""

    answer: httpx.Response


@dataclass(frozen=True)
class Ended:
    """The connection has broken, or ifmatch has ended the stream."""

    error: Unreachable
    #: When to come back, in seconds.
    retry: float


Heard = Event | Answered | Ended


@dataclass(frozen=True)
class Pause:
    """Waits."""

    seconds: float


@dataclass(frozen=True)
class Call:
    """Calls a function of the user. The result is what it returns."""

    function: Callable[[Any], Any]
    argument: Any


@dataclass(frozen=True)
class Give:
    """Gives something to whom the driver works for."""

    value: Any


Effect = Ask | Listen | Hear | Pause | Call | Give
Steps = Generator[Effect, Any, T]


class EventParser:
    """Reads server-sent events."""

    def __init__(self) -> None:
        self.retry = 1.0
        self._unread = ""

    def feed(self, text: str) -> Iterator[Event]:
        *blocks, self._unread = (self._unread + text).split("\n\n")
        for block in blocks:
            lines = dict(line.partition(":")[::2] for line in block.split("\n"))
            if "retry" in lines:
                self.retry = int(lines["retry"]) / 1000
            if "event" in lines:
                yield Event(lines["event"].strip(), json.loads(lines.get("data", "{}")))


def is_stream(response: httpx.Response) -> bool:
    return response.is_success and response.headers.get("Content-Type", "").startswith("text/event-stream")
