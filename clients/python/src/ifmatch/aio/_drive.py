"""The driver by a `httpx.AsyncClient`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import httpx

from .._answers import unreachable
from .._effects import (
    SILENCE_MAX, Answered, Ask, Call, Effect, Ended, EventParser, Give, Hear, Heard, Listen, Pause, Steps, is_stream,
)
from .._errors import Unreachable

T = TypeVar("T")


class Driver:
    """Performs effects."""

    def __init__(self, client: httpx.AsyncClient | None) -> None:
        self._client = client or httpx.AsyncClient()
        self._is_own = client is None
        self._heard: AsyncGenerator[Heard, None] | None = None

    async def run(self, steps: Steps[T]) -> T:
        """Takes all steps. Returns their result."""
        value = None
        try:
            while True:
                value = await self._perform(steps.send(value))
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            await self.close()

    async def given(self, steps: Steps[Any]) -> AsyncGenerator[Any, None]:
        """Takes all steps. Yields what they give."""
        value = None
        try:
            while True:
                try:
                    effect = steps.send(value)
                except StopIteration:
                    return
                value = None
                if isinstance(effect, Give):
                    yield effect.value
                else:
                    value = await self._perform(effect)
        finally:
            await self.close()

    async def ask(self, effect: Ask) -> httpx.Response | Unreachable:
        try:
            return await self._client.request(
                effect.method, effect.url, headers=dict(effect.headers), content=effect.content, timeout=effect.patience
            )
        except httpx.TransportError as error:
            return unreachable(f"{effect.method} {effect.url}", error)

    async def close(self) -> None:
        await self._stop_listening()
        if self._is_own:
            await self._client.aclose()

    async def _perform(self, effect: Effect) -> Any:
        match effect:
            case Ask():
                return await self.ask(effect)
            case Listen():
                await self._stop_listening()
                self._heard = self._listen(effect)
            case Hear() if self._heard is not None:
                return await anext(self._heard)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Call(function, argument):
                result = function(argument)
                return await result if inspect.isawaitable(result) else result

    async def _listen(self, effect: Listen) -> AsyncGenerator[Heard, None]:
        parser = EventParser()
        cause: Exception | str = "the stream has ended"
        headers = {**effect.headers, "Accept": "text/event-stream"}
        try:
            async with self._client.stream(effect.method, effect.url, headers=headers, timeout=SILENCE_MAX) as response:
                if not is_stream(response):
                    await response.aread()
                    yield Answered(response)
                    return
                async for text in response.aiter_text():
                    for event in parser.feed(text):
                        yield event
        except httpx.TransportError as error:
            cause = error
        yield Ended(Unreachable(f"{effect.method} {effect.url}", cause), parser.retry)

    async def _stop_listening(self) -> None:
        if self._heard is not None:
            await self._heard.aclose()
            self._heard = None
