"""The driver by a `httpx.Client`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import httpx

from ._answers import unreachable
from ._effects import (
    SILENCE_MAX, Answered, Ask, Call, Effect, Ended, EventParser, Give, Hear, Heard, Listen, Pause, Steps, is_stream,
)
from ._errors import Unreachable

T = TypeVar("T")


class Driver:
    """Performs effects. Another thread may stop it."""

    def __init__(self, client: httpx.Client | None) -> None:
        self._client = client or httpx.Client()
        self._is_own = client is None
        self._heard: Iterator[Heard] = iter(())
        self._response: httpx.Response | None = None
        self.stopped = threading.Event()

    def run(self, steps: Steps[T]) -> T:
        """Takes all steps. Returns their result."""
        value = None
        try:
            while True:
                value = self._perform(steps.send(value))
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            self.close()

    def given(self, steps: Steps[Any]) -> Generator[Any, None, None]:
        """Takes all steps. Yields what they give."""
        value = None
        try:
            while not self.stopped.is_set():
                effect = steps.send(value)
                value = None
                if isinstance(effect, Give):
                    yield effect.value
                else:
                    value = self._perform(effect)
        except StopIteration:
            return
        finally:
            self.close()

    def ask(self, effect: Ask) -> httpx.Response | Unreachable:
        try:
            return self._client.request(
                effect.method, effect.url, headers=dict(effect.headers), content=effect.content, timeout=effect.patience
            )
        except httpx.TransportError as error:
            return unreachable(f"{effect.method} {effect.url}", error)

    def stop(self) -> None:
        """Ends waiting and listening, from another thread."""
        self.stopped.set()
        response = self._response
        if response is not None and "network_stream" in response.extensions:
            connection = response.extensions["network_stream"].get_extra_info("socket")
            # A reader wakes up by nothing else. The connection may have gone meanwhile.
            with suppress(OSError, AttributeError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._stop_listening()
        if self._is_own:
            self._client.close()

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Ask():
                return self.ask(effect)
            case Listen():
                self._stop_listening()
                self._heard = self._listen(effect)
            case Hear():
                return next(self._heard)
            case Pause(seconds):
                self.stopped.wait(seconds)
            case Call(function, argument):
                return function(argument)

    def _listen(self, effect: Listen) -> Iterator[Heard]:
        parser = EventParser()
        cause: Exception | str = "the stream has ended"
        headers = {**effect.headers, "Accept": "text/event-stream"}
        try:
            with self._client.stream(effect.method, effect.url, headers=headers, timeout=SILENCE_MAX) as response:
                self._response = response
                if not is_stream(response):
                    response.read()
                    yield Answered(response)
                    return
                for text in response.iter_text():
                    yield from parser.feed(text)
        except httpx.TransportError as error:
            cause = error
        finally:
            self._response = None
        yield Ended(Unreachable(f"{effect.method} {effect.url}", cause), parser.retry)

    def _stop_listening(self) -> None:
        close = getattr(self._heard, "close", None)
        if close is not None:
            close()
