from __future__ import annotations

import threading

import httpx
import pytest

from ifmatch import GaveUp, IfmatchError, Lease, LeaseHeld, LeaseLost, Refused, Unreachable

from .stage import Network, break_lease, document, drawing, lease_state, unreachable, until, without_streams


def put(url: str, lease: Lease) -> int:
    return httpx.put(url, json={}, headers=lease.headers).status_code


def lost(lease: Lease) -> LeaseLost:
    until("the lease to be lost", lambda: lease.lost is not None)
    assert lease.lost is not None
    return lease.lost


def gave_up(url: str, heard: str) -> GaveUp:
    """The error of a wait that is long enough for this machine to hear something."""
    max_wait = 0.3
    while True:
        with pytest.raises(GaveUp) as error:
            Lease(url, max_wait=max_wait).acquire()
        if heard in str(error.value) or max_wait > 30:
            return error.value
        max_wait *= 2


def test_a_lease_goes_from_one_holder_to_the_next() -> None:
    url = drawing()
    first = Lease(url, holder="Jörg 李").acquire()
    assert first.etag == httpx.get(url).headers["ETag"]
    assert put(url, first) == 204
    reasons: list[IfmatchError] = []
    second = Lease(url, holder="Ben", on_waiting=reasons.append)
    turn = threading.Thread(target=second.acquire)
    turn.start()
    until("Ben to wait", lambda: bool(reasons))
    assert isinstance(reasons[0], LeaseHeld)
    assert reasons[0].holder == "Jörg 李"
    first.release()
    turn.join()
    assert second.fence > first.fence
    assert (put(url, first), put(url, second)) == (412, 204)
    assert lost(first).reason == "released"
    second.release()
    assert lease_state(url) == "available"


@pytest.mark.parametrize("status", [200, 404, 405])
def test_an_answer_of_the_backend_is_no_lease(status: int) -> None:
    backend = httpx.MockTransport(lambda request: httpx.Response(status, html="<h1>The shop</h1>"))
    with pytest.raises(Refused, match="no lease here.*pessimistic") as refused:
        Lease("http://shop.example/notes/1", client=httpx.Client(transport=backend)).acquire()
    assert refused.value.status == status


def test_the_holder_is_told_at_once_that_its_lease_is_broken() -> None:
    url = drawing()
    told: list[LeaseLost] = []
    with Lease(url, on_lost=told.append) as lease:
        break_lease(url)
        until("it to be told", lambda: bool(told))
        with pytest.raises(LeaseLost, match="broken"):
            lease.raise_if_lost()
    assert [lost.reason for lost in told] == ["broken"]


def test_a_holder_comes_back_after_a_break_of_its_connection() -> None:
    url, way = drawing(), Network()
    with Lease(url, client=way.client()) as lease:
        way.cut()
        until("it to ask again", lambda: len(way.requests) > 1)
        assert put(url, lease) == 204
        assert lease.lost is None


def test_a_holder_that_comes_back_after_another_one_has_lost_its_lease() -> None:
    may_come_back = threading.Event()

    def fate(method: str, number: int) -> str:
        if number > 0:
            may_come_back.wait()
        return "arrives"

    url, way = drawing(), Network(fate)
    lease = Lease(url, client=way.client()).acquire()
    way.cut()
    break_lease(url)
    with Lease(url) as other:
        assert put(url, other) == 204
    may_come_back.set()
    assert lost(lease).reason == "expired"
    until("the lease that it got anew to be free", lambda: lease_state(url) == "available")


def test_a_holder_whose_connection_stays_broken_loses_its_lease_with_its_term_and_says_why() -> None:
    url = drawing()
    way = Network(lambda method, number: "arrives" if number == 0 else "is lost")
    lease = Lease(url, seconds=1, client=way.client()).acquire()
    way.cut()
    error = lost(lease)
    assert error.reason == "unknown"
    assert "the last error was: POST" in str(error) and "no answer" in str(error)


def test_who_waits_for_too_long_is_told_who_holds_the_lease() -> None:
    url = drawing()
    with Lease(url, holder="Ann"):
        error = gave_up(url, "held")
        assert isinstance(error.last, LeaseHeld)
        assert "lease-held (held by Ann)" in str(error)
    assert lease_state(url) == "available"


def test_an_unreachable_proxy_is_not_somebody_who_holds_the_lease() -> None:
    error = gave_up(unreachable(), "refused")
    assert isinstance(error.last, Unreachable)
    assert "no answer" in str(error) and "held" not in str(error)


def test_what_is_refused_for_good_is_not_asked_for_again() -> None:
    way = Network()
    with pytest.raises(Refused) as refused:
        Lease(document(), client=way.client()).acquire()
    assert refused.value.code == "no-route"
    assert way.requests == ["POST"]


def test_without_streams_a_lease_is_renewed() -> None:
    url, way = without_streams(drawing()), Network()
    lease = Lease(url, seconds=9, client=way.client()).acquire()
    until("two renewals", lambda: way.requests.count("PUT") >= 2)
    assert put(url, lease) == 204
    break_lease(url)
    assert "409 lease-" in str(lost(lease))


def test_a_gateway_that_lets_no_stream_through_costs_no_lease() -> None:
    def strip(request: httpx.Request) -> None:
        del request.headers["Accept"]

    url = drawing()
    with Lease(url, client=httpx.Client(event_hooks={"request": [strip]})) as lease:
        assert put(url, lease) == 204
    assert lease_state(url) == "available"
