from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeVar

import httpx
import pytest

from ifmatch import Changed, Interrupted, Lease, LeaseChanged, Refused, State, Unreachable, WatchEvent, aio, update, watch

from .stage import Network, document, drawing, unreachable

E = TypeVar("E", bound=WatchEvent)


def following(events: Iterator[WatchEvent], kind: type[E]) -> E:
    """The next event of this kind."""
    return next(event for event in events if isinstance(event, kind))


def draw(drawing: dict[str, int]) -> None:
    drawing["lines"] += 1


def test_a_watcher_is_told_the_state_each_change_and_each_step_of_the_lease() -> None:
    url = drawing()
    events = watch(url)
    state = following(events, State)
    assert (state.path, state.etag) == (httpx.URL(url).path, httpx.get(url).headers["ETag"])
    assert state.lease is not None and state.lease.state == "available"
    with Lease(url, holder="Ann") as lease:
        step = following(events, LeaseChanged)
        assert (step.change, step.lease.holder) == ("acquired", "Ann")
        written = update(url, draw, lease=lease)
        assert following(events, Changed).etag == written.etag


def test_an_asynchronous_watcher_is_told_the_same() -> None:
    url = drawing()

    async def work() -> None:
        events = aio.watch(url)
        assert isinstance(await anext(events), State)
        async with aio.Lease(url, holder="Ann"):
            step = await anext(events)
            assert isinstance(step, LeaseChanged) and step.lease.holder == "Ann"
        await events.aclose()

    asyncio.run(work())


def test_a_watcher_comes_back_after_a_break_and_says_that_there_was_one() -> None:
    url, way = document(), Network()
    update(url, lambda before: 1, initial=0)
    events = watch(url, client=way.client())
    following(events, State)
    way.cut()
    assert isinstance(following(events, Interrupted).error, Unreachable)
    following(events, State)


def test_an_unreachable_proxy_interrupts_a_watch() -> None:
    assert "onnection refused" in str(following(watch(unreachable()), Interrupted).error)


def test_several_resources_are_watched_by_one_request() -> None:
    urls, way = [document(), document()], Network()
    for url in urls:
        update(url, lambda before: 1, initial=0)
    events = watch(urls, client=way.client())
    paths = {following(events, State).path, following(events, State).path}
    assert paths == {httpx.URL(url).path for url in urls}
    assert way.requests == ["GET"]


def test_what_the_backend_refuses_ends_the_watch() -> None:
    with pytest.raises(Refused) as refused:
        next(watch(document()))
    assert refused.value.status == 404
