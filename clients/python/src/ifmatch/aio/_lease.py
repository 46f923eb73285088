"""A lease, for programs with asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from types import TracebackType

import httpx

from .._errors import GaveUp, IfmatchError, LeaseLost, Unreachable
from .._lease_steps import Broken, Granted, LeaseBase, Waiting
from ._drive import Driver


class Lease(LeaseBase):
    """The lease of the resource at `url`, from `acquire` to `release` or for an `async with` block. Read the resource
    under it: an earlier read may be old.

    If the lease is lost, the block is cancelled and raises `LeaseLost`. `on_lost` is called too, and `on_waiting` with the
    reason each time that the client has to wait.
    """

    def __init__(
        self,
        url: str,
        *,
        holder: str | None = None,
        seconds: float | None = None,
        max_wait: float | None = 60,
        on_waiting: Callable[[IfmatchError], None] | None = None,
        on_lost: Callable[[LeaseLost], None] | None = None,
        prefix: str = "/.leases",
        client: httpx.AsyncClient | None = None,
    ) -> None:
        super().__init__(url, holder, seconds, prefix)
        self._max_wait = max_wait
        self._on_waiting = on_waiting
        self._on_lost = on_lost
        self._client = client
        self._last: IfmatchError = Unreachable(f"POST {self._steps.url}", f"nothing within {max_wait} s")
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._block: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._is_cancelled = False

    async def __aenter__(self) -> Lease:
        await self.acquire()
        self._block = asyncio.current_task()
        self._cancelling = self._block.cancelling() if self._block else 0
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, self._block = self._block, None
        await self.release()
        if self._is_cancelled and block is not None and block.uncancel() <= self._cancelling:
            if kind is asyncio.CancelledError:
                raise self._loss_told() from error

    async def acquire(self) -> Lease:
        """Waits for the lease, for `max_wait` seconds at most."""
        self._granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(), name="ifmatch lease")
        try:
            async with asyncio.timeout(self._max_wait):
                await self._granted
        except TimeoutError:
            await self._give_up()
            raise GaveUp(f"on the lease of {self._steps.resource} after {self._max_wait} s", self._last) from None
        except IfmatchError:
            raise
        except BaseException:
            await self._give_up()
            raise
        return self

    async def release(self) -> None:
        """Gives the lease to the next client in line."""
        if self._lose(self._loss("released")):
            await self._give_back()

    async def _give_up(self) -> None:
        self._lose(self._loss("released", self._last))
        # A grant whose answer was lost is free for another client.
        await self._give_back()

    async def _give_back(self) -> None:
        driver = Driver(self._client)
        try:
            await driver.ask(self._steps.release())
        finally:
            await driver.close()

    async def _hold(self) -> None:
        try:
            async with aclosing(Driver(self._client).given(self._steps.take())) as given:
                async for told in given:
                    self._hear(told)
        except Exception as error:
            if not self._granted.done():
                self._granted.set_exception(error)
            else:
                self._lose(self._loss("unknown", error))

    def _hear(self, told: Granted | Waiting | Broken | LeaseLost) -> None:
        match told:
            case Waiting(reason):
                self._last = reason
                if self._on_waiting is not None:
                    self._on_waiting(reason)
            case Granted():
                self._disarm()
                self._arm(told.until, None)
                if self._grant is None and not self._granted.done():
                    self._grant = told
                    self._granted.set_result(None)
            case Broken(error, until):
                self._arm(until, error)
            case LeaseLost() if self._grant is None:
                self._granted.set_exception(told)
            case LeaseLost():
                self._lose(told)

    def _arm(self, until: float | None, last: IfmatchError | None) -> None:
        """The lease is lost at this time, unless another grant or an earlier end comes before it."""
        if until is None or self._timer is not None or self.lost is not None:
            return
        lost = self._loss("unknown", last)
        delay = max(0, until - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._lose, lost)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lose(self, lost: LeaseLost) -> bool:
        if self.lost is not None:
            return False
        self.lost = lost
        self._disarm()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        if self._block is not None and self._block is not asyncio.current_task():
            self._is_cancelled = True
            self._block.cancel()
        if self._on_lost is not None and self._grant is not None and lost.reason != "released":
            self._on_lost(lost)
        return True

    def _loss_told(self) -> LeaseLost:
        return self.lost or self._loss("unknown")
