"""Read, change, write, and again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx

from .._update import Format, Held, Options, Updated, json, update_steps
from ._drive import Driver

T = TypeVar("T")


async def update(
    url: str,
    change: Callable[[T], T | None | Awaitable[T | None]],
    *,
    initial: T | None = None,
    is_applied: Callable[[T], bool] | None = None,
    idempotency_key: str | None = None,
    lease: Held | None = None,
    attempts: int = 40,
    format: Format[T] = json,
    client: httpx.AsyncClient | None = None,
) -> Updated[T]:
    """The same as `ifmatch.update`; `change` may be asynchronous."""
    options = Options(initial, is_applied, idempotency_key, lease, attempts, format)
    return await Driver(client).run(update_steps(url, change, options))
