from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

import ifmatch
from ifmatch import (
    GaveUp, Lease, LeaseEnded, LeaseLost, OutcomeUnknown, PreconditionFailed, Refused, Unreachable, aio, update,
)

from .stage import Network, document, drawing, unreachable

Counter = dict[str, Any]

INITIAL: Counter = {"count": 0, "changes": []}


def add(mark: str) -> Callable[[Counter], None]:
    def change(counter: Counter) -> None:
        counter["count"] += 1
        counter["changes"].append(mark)

    return change


def has(mark: str) -> Callable[[Counter], bool]:
    return lambda counter: mark in counter["changes"]


def after_another(url: str, mark: str) -> Callable[[Counter], None]:
    """A change before whose first write another client writes."""
    calls: list[int] = []

    def change(counter: Counter) -> None:
        if not calls:
            calls.append(1)
            update(url, add("another"))
        add(mark)(counter)

    return change


def read(url: str) -> Counter:
    counter: Counter = httpx.get(url).json()
    return counter


def test_no_update_is_lost_among_writers_of_one_document() -> None:
    url = document()
    marks = [f"mark {number}" for number in range(8)]
    with ThreadPoolExecutor(len(marks)) as writers:
        list(writers.map(lambda mark: update(url, add(mark), initial=INITIAL), marks))
    counter = read(url)
    assert (counter["count"], sorted(counter["changes"])) == (len(marks), marks)
    assert INITIAL == {"count": 0, "changes": []}


def test_no_update_is_lost_among_asynchronous_writers() -> None:
    url = document()
    marks = [f"mark {number}" for number in range(8)]

    async def write() -> None:
        async with httpx.AsyncClient() as client:
            await asyncio.gather(*(aio.update(url, add(mark), initial=INITIAL, client=client) for mark in marks))

    asyncio.run(write())
    counter = read(url)
    assert (counter["count"], sorted(counter["changes"])) == (len(marks), marks)


def test_an_asynchronous_change_is_awaited() -> None:
    url = document()

    async def change(count: int) -> int:
        await asyncio.sleep(0)
        return count + 1

    assert asyncio.run(aio.update(url, change, initial=6)).document == 7


def test_the_result_is_the_document_and_its_tag() -> None:
    url = document()
    written = update(url, lambda document: {"count": 7}, initial={"count": 0})
    assert (written.document, written.etag) == ({"count": 7}, httpx.get(url).headers["ETag"])


def test_a_text_is_changed_as_a_text() -> None:
    url = document()
    update(url, lambda before: "one", initial="", format=ifmatch.text)
    assert update(url, lambda before: f"{before}, two", format=ifmatch.text).document == "one, two"
    assert httpx.get(url).text == "one, two"


def test_what_does_not_exist_is_an_error_without_an_initial_document() -> None:
    with pytest.raises(Refused) as refused:
        update(document(), add("a"))
    assert refused.value.status == 404


def test_a_path_without_a_route_is_not_an_absent_resource() -> None:
    url, way = str(httpx.URL(document()).copy_with(path="/elsewhere/1")), Network()
    with pytest.raises(Refused) as refused:
        update(url, add("a"), initial=INITIAL, client=way.client())
    assert refused.value.code == "no-route"
    assert way.requests == ["GET"]


def test_the_state_in_a_412_saves_a_read() -> None:
    url = document()
    update(url, add("first"), initial=INITIAL)
    way = Network()
    update(url, after_another(url, "mine"), client=way.client())
    assert way.requests == ["GET", "PUT", "PUT"]
    assert read(url)["changes"] == ["first", "another", "mine"]


def test_a_change_that_is_there_already_is_not_written() -> None:
    url, way = document(), Network()
    written = update(url, add("mine"), initial=INITIAL)
    assert update(url, add("mine"), is_applied=has("mine"), client=way.client()).etag == written.etag
    assert way.requests == ["GET"]


def test_a_write_that_is_lost_on_the_way_is_made_once() -> None:
    url = document()
    way = Network(lambda method, number: "is lost" if (method, number) == ("PUT", 0) else "arrives")
    update(url, add("mine"), initial=INITIAL, client=way.client())
    assert read(url)["count"] == 1


@pytest.mark.parametrize("options", [{"is_applied": has("mine")}, {"idempotency_key": "p" * 20}], ids=["mark", "key"])
def test_a_write_whose_answer_is_lost_is_made_once_with(options: Any) -> None:
    url = document()
    update(url, add("first"), initial=INITIAL)
    way = Network(lambda method, number: "is not answered" if method == "PUT" and number < 2 else "arrives")
    update(url, add("mine"), client=way.client(), **options)
    assert read(url) == {"count": 2, "changes": ["first", "mine"]}


def test_a_write_with_a_key_after_another_one_has_a_key_of_its_own() -> None:
    url = document()
    update(url, add("first"), initial=INITIAL)
    keys: list[str | None] = []
    client = httpx.Client(event_hooks={"request": [lambda request: keys.append(request.headers.get("Idempotency-Key"))]})
    update(url, after_another(url, "mine"), idempotency_key="q" * 20, client=client)
    assert keys == [None, "q" * 20, "q" * 20 + "-2"]
    assert read(url)["changes"] == ["first", "another", "mine"]


def test_a_write_whose_answer_is_lost_is_reported_without_a_mark_and_a_key() -> None:
    url = document()
    update(url, add("first"), initial=INITIAL)
    way = Network(lambda method, number: "is not answered" if (method, number) == ("PUT", 0) else "arrives")
    with pytest.raises(OutcomeUnknown, match="not known whether the change was made.*the cable is cut"):
        update(url, add("mine"), client=way.client())
    assert read(url)["count"] == 2


def test_writes_that_are_never_answered_end_as_unknown() -> None:
    url = document()
    update(url, add("first"), initial=INITIAL)
    way = Network(lambda method, number: "is lost" if method == "PUT" else "arrives")
    with pytest.raises(OutcomeUnknown) as unknown:
        update(url, add("mine"), client=way.client(), attempts=3)
    assert isinstance(unknown.value.last, Unreachable)
    assert way.requests == ["GET", "PUT", "PUT", "PUT"]


def test_a_write_that_was_never_sent_leaves_nothing_unknown() -> None:
    url = document()
    update(url, add("first"), initial=INITIAL)
    way = Network(lambda method, number: "finds no server" if (method, number) == ("PUT", 0) else "arrives")
    update(url, after_another(url, "mine"), client=way.client())
    assert read(url)["changes"] == ["first", "another", "mine"]
    way = Network(lambda method, number: "finds no server" if method == "PUT" else "arrives")
    with pytest.raises(GaveUp, match="nobody listens") as gave_up:
        update(url, add("mine"), client=way.client(), attempts=2)
    assert isinstance(gave_up.value.last, Unreachable) and not gave_up.value.last.was_sent


def test_an_unreachable_proxy_is_reported_as_such() -> None:
    with pytest.raises(GaveUp, match="after 2 attempts.*no answer.*[Cc]onnection refused") as gave_up:
        update(unreachable(), add("mine"), initial=INITIAL, attempts=2)
    assert isinstance(gave_up.value.last, Unreachable)


def test_who_always_comes_too_late_gives_up_and_says_why() -> None:
    url = document()
    update(url, add("first"), initial=INITIAL)

    def change(counter: Counter) -> None:
        update(url, add("another"))
        add("mine")(counter)

    with pytest.raises(GaveUp, match="412 precondition-failed") as gave_up:
        update(url, change, attempts=2)
    assert isinstance(gave_up.value.last, PreconditionFailed)


def test_a_change_is_written_under_a_lease_and_not_without_one() -> None:
    url = drawing()

    def draw(drawing: dict[str, int]) -> None:
        drawing["lines"] += 1

    with Lease(url, holder="Ann") as lease:
        with pytest.raises(GaveUp, match=re.escape("412 lease-id-missing")):
            update(url, draw, attempts=1)
        assert update(url, draw, lease=lease).document == {"lines": 1}
    with pytest.raises(LeaseLost):
        update(url, draw, lease=lease)


def test_a_refusal_of_the_id_ends_the_lease() -> None:
    url = drawing()
    told: list[Refused] = []

    class Ended:
        id = "11111111-1111-4111-8111-111111111111"

        def raise_if_lost(self) -> None:
            pass

        def lose(self, refusal: Refused) -> LeaseLost:
            told.append(refusal)
            return LeaseLost(url, str(refusal.code), refusal)

    with pytest.raises(LeaseLost, match="lease-"):
        update(url, lambda drawing: {"lines": 1}, lease=Ended())
    assert isinstance(told[0], LeaseEnded)
