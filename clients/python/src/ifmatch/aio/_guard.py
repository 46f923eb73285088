"""A client of httpx that sends the tag of the version that was read with each write."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from .._answers import unreachable
from .._guard import Conflict, Memory


class GuardedClient(httpx.AsyncClient):
    """The same as `ifmatch.GuardedClient`, as a `httpx.AsyncClient`."""

    def __init__(self, *, max_wait: float = 60, **options: Any) -> None:
        super().__init__(**options)
        self._memory = Memory(max_wait)

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        memory = self._memory
        memory.prepare(request)
        waited = 0.0
        while True:
            try:
                response = await super().send(request, **options)
            except httpx.TransportError as error:
                raise unreachable(f"{request.method} {request.url}", error) from error
            memory.note(request, response)
            refusal = memory.refusal(request, response)
            if refusal is None:
                return response
            wait = memory.wait(request, refusal, waited)
            if wait is None:
                current = memory.shown(request, response) or await self._current(request)
                raise Conflict(refusal, memory.read_of(request), current, request)
            await asyncio.sleep(wait)
            waited += wait

    async def _current(self, request: httpx.Request) -> httpx.Response | None:
        try:
            return await super().send(Memory.look(request))
        except httpx.TransportError:
            return None
