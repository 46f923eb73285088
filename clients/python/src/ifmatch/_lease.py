"""A lease, for programs with threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from types import TracebackType

import httpx

from ._drive import Driver
from ._errors import GaveUp, IfmatchError, LeaseLost, Unreachable
from ._lease_steps import Broken, Granted, LeaseBase, Waiting


class Lease(LeaseBase):
    """The lease of the resource at `url`, from `acquire` to `release` or for a `with` block. Read the resource under it:
    an earlier read may be old.

    A thread of its own holds it. `on_lost` is called there when the lease is lost, and `on_waiting` with the reason each
    time that the client has to wait. `client` must be one that threads may share, as `httpx.Client` is.
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
        client: httpx.Client | None = None,
    ) -> None:
        super().__init__(url, holder, seconds, prefix)
        self._max_wait = max_wait
        self._on_waiting = on_waiting
        self._on_lost = on_lost
        self._driver = Driver(client)
        self._releaser = client
        self._granted: Future[None] = Future()
        self._last: IfmatchError = Unreachable(f"POST {self._steps.url}", f"nothing within {max_wait} s")
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Lease:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> Lease:
        """Waits for the lease, for `max_wait` seconds at most."""
        threading.Thread(target=self._hold, name="ifmatch lease", daemon=True).start()
        try:
            self._granted.result(self._max_wait)
        except TimeoutError:
            self._give_up()
            raise GaveUp(f"on the lease of {self._steps.resource} after {self._max_wait} s", self._last) from None
        except IfmatchError:
            raise
        except BaseException:
            self._give_up()
            raise
        return self

    def release(self) -> None:
        """Gives the lease to the next client in line."""
        if self._lose(self._loss("released")):
            self._give_back()

    def _give_up(self) -> None:
        self._lose(self._loss("released", self._last))
        # A grant whose answer was lost is free for another client.
        self._give_back()

    def _give_back(self) -> None:
        with closing(Driver(self._releaser)) as driver:
            driver.ask(self._steps.release())

    def _hold(self) -> None:
        try:
            with closing(self._driver.given(self._steps.take())) as given:
                for told in given:
                    if self.lost is not None:
                        return
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
                self._arm(told.until, None, is_later=True)
                if self._grant is None:
                    self._grant = told
                    self._granted.set_result(None)
            case Broken(error, until):
                self._arm(until, error, is_later=False)
            case LeaseLost() if self._grant is None:
                self._granted.set_exception(told)
            case LeaseLost():
                self._lose(told)

    def _arm(self, until: float | None, last: IfmatchError | None, *, is_later: bool) -> None:
        """The lease is lost at this time, unless another grant comes before it."""
        with self._lock:
            if self._timer is not None and not is_later:
                return
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if until is None or self.lost is not None:
                return
            lost = self._loss("unknown", last)
            self._timer = threading.Timer(max(0, until - time.monotonic()), self._lose, [lost])
            self._timer.daemon = True
            self._timer.start()

    def _lose(self, lost: LeaseLost) -> bool:
        with self._lock:
            if self.lost is not None:
                return False
            self.lost = lost
            if self._timer is not None:
                self._timer.cancel()
        self._driver.stop()
        if self._on_lost is not None and self._grant is not None and lost.reason != "released":
            self._on_lost(lost)
        return True
