from __future__ import annotations

import asyncio

import httpx
import pytest

from ifmatch import GaveUp, IfmatchError, LeaseHeld, LeaseLost, Unreachable
from ifmatch.aio import Lease

from .stage import Network, break_lease, drawing, lease_state, unreachable, without_streams


async def put(url: str, lease: Lease) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.put(url, json={}, headers=lease.headers)).status_code


async def until_lost(lease: Lease) -> LeaseLost:
    while lease.lost is None:
        await asyncio.sleep(0.01)
    return lease.lost


def test_a_lease_goes_from_one_holder_to_the_next() -> None:
    url = drawing()

    async def work() -> None:
        reasons: list[IfmatchError] = []
        async with Lease(url, holder="Ann") as first:
            assert await put(url, first) == 204
            turn = asyncio.create_task(Lease(url, on_waiting=reasons.append).acquire())
            while not reasons:
                await asyncio.sleep(0.01)
        second = await turn
        assert isinstance(reasons[0], LeaseHeld) and reasons[0].holder == "Ann"
        assert second.fence > first.fence
        assert (await put(url, first), await put(url, second)) == (412, 204)
        await second.release()

    asyncio.run(work())
    assert lease_state(url) == "available"


def test_a_block_whose_lease_is_lost_is_cancelled() -> None:
    url = drawing()

    async def work() -> None:
        async with Lease(url):
            await asyncio.to_thread(break_lease, url)
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="broken"):
        asyncio.run(work())


def test_a_cancelled_block_releases_its_lease() -> None:
    url = drawing()

    async def work() -> None:
        holds = asyncio.Event()

        async def hold() -> None:
            async with Lease(url):
                holds.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hold())
        await holds.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert lease_state(url) == "available"


def test_a_holder_whose_connection_stays_broken_loses_its_lease_with_its_term_and_says_why() -> None:
    url = drawing()
    way = Network(lambda method, number: "arrives" if number == 0 else "is lost")

    async def work() -> None:
        lease = await Lease(url, seconds=1, client=way.async_client()).acquire()
        way.cut()
        error = await until_lost(lease)
        assert error.reason == "unknown"
        assert "the last error was: POST" in str(error)

    asyncio.run(work())


def test_a_wait_ends_with_the_last_error() -> None:
    url = drawing()

    async def work() -> None:
        async with Lease(url, holder="Ann"):
            with pytest.raises(GaveUp, match=r"lease-held \(held by Ann\)"):
                await Lease(url, max_wait=5).acquire()
        with pytest.raises(GaveUp, match="no answer") as gave_up:
            await Lease(unreachable(), max_wait=3).acquire()
        assert isinstance(gave_up.value.last, Unreachable)

    asyncio.run(work())
    assert lease_state(url) == "available"


def test_without_streams_a_lease_is_renewed() -> None:
    url, way = without_streams(drawing()), Network()

    async def work() -> None:
        lease = await Lease(url, seconds=9, client=way.async_client()).acquire()
        while way.requests.count("PUT") < 2:
            await asyncio.sleep(0.01)
        assert await put(url, lease) == 204
        await asyncio.to_thread(break_lease, url)
        assert "409 lease-" in str(await until_lost(lease))

    asyncio.run(work())
