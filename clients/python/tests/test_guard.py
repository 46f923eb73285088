from __future__ import annotations

import asyncio

import pytest

from ifmatch import Conflict, GuardedClient, Unreachable, aio

from .stage import document, unreachable


def test_a_write_has_the_tag_of_the_last_read_and_a_conflict_all_versions() -> None:
    url = document()
    with GuardedClient() as ann, GuardedClient() as ben:
        with pytest.raises(ValueError, match="no ETag"):
            ann.put(url, content="unread")
        assert ann.put(url, content="one", headers={"If-None-Match": "*"}).status_code == 201
        assert ben.get(url).text == "one"
        assert ann.put(url, content="by Ann").status_code == 204
        with pytest.raises(Conflict) as refused:
            ben.put(url, content="by Ben")
        conflict = refused.value
        assert conflict.code == "precondition-failed"
        assert conflict.read is not None and conflict.current is not None
        assert (conflict.read.text, conflict.current.text, conflict.written.content) == ("one", "by Ann", b"by Ben")
        seen = {"If-Match": conflict.current.headers["ETag"]}
        assert ben.put(url, content="by both", headers=seen).status_code == 204
        assert ben.delete(url).status_code == 204


def test_a_refusal_that_has_the_current_state_spares_the_read_after_it() -> None:
    url = document()
    requests: list[str] = []
    hooks = {"request": [lambda request: requests.append(request.method)]}
    with GuardedClient() as ann, GuardedClient(event_hooks=hooks) as ben:
        ann.put(url, content="one", headers={"If-None-Match": "*"})
        ben.get(url)
        ann.put(url, content="by Ann")
        with pytest.raises(Conflict) as refused:
            ben.put(url, content="by Ben")
        assert requests == ["GET", "PUT"]
        current = refused.value.current
        assert current is not None and (current.status_code, current.text) == (200, "by Ann")
        # A preference of the program is left alone, and the client reads.
        with pytest.raises(Conflict) as refused:
            ben.put(url, content="by Ben", headers={"Prefer": "return=minimal"})
        assert requests == ["GET", "PUT", "PUT", "GET"]
        current = refused.value.current
        assert current is not None and current.text == "by Ann"


def test_an_asynchronous_client_does_the_same() -> None:
    url = document()

    async def work() -> None:
        async with aio.GuardedClient() as ann, aio.GuardedClient() as ben:
            assert (await ann.put(url, content="one", headers={"If-None-Match": "*"})).status_code == 201
            await ben.get(url)
            assert (await ann.put(url, content="by Ann")).status_code == 204
            with pytest.raises(Conflict) as conflict:
                await ben.put(url, content="by Ben")
            assert conflict.value.current is not None and conflict.value.current.text == "by Ann"

    asyncio.run(work())


def test_a_lost_connection_is_an_error_of_its_own() -> None:
    with GuardedClient() as client, pytest.raises(Unreachable, match="GET http.*onnection refused"):
        client.get(unreachable())
