"""Changes of resources and of their leases, as events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import httpx

from .._watch import WatchEvent, watch_steps, watch_url
from ._drive import Driver


def watch(
    urls: str | Sequence[str], *, prefix: str = "/.watch", client: httpx.AsyncClient | None = None
) -> AsyncGenerator[WatchEvent, None]:
    """The same as `ifmatch.watch`."""
    return Driver(client).given(watch_steps(watch_url(urls, prefix)))
