"""The servers of the tests: a real ifmatch, which `tests/clients` of the project starts, and faults on the way to it."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx

_numbers = itertools.count()

#: The fate of the request of this method and number: "arrives", "finds no server", "is lost" or "is not answered".
Fate = Callable[[str, int], str]


def _variable(name: str) -> str:
    assert name in os.environ, f"{name} names no ifmatch: run `cargo test --test clients packages`"
    return os.environ[name]


def document() -> str:
    """The URL of a new resource that is changed by preconditions."""
    return f"{_variable('IFMATCH_URL')}/documents/python-{os.getpid()}-{next(_numbers)}"


def drawing() -> str:
    """The URL of a new resource that is changed under leases."""
    url = f"{_variable('IFMATCH_URL')}/drawings/python-{os.getpid()}-{next(_numbers)}"
    assert httpx.put(url, json={"lines": 0}, headers={"If-None-Match": "*"}).status_code == 201
    return url


def without_streams(url: str) -> str:
    """The same resource, at a server that keeps no streams."""
    return url.replace(_variable("IFMATCH_URL"), _variable("IFMATCH_WITHOUT_STREAMS_URL"))


#: A port that this process holds as long as it lives, and does not listen on.
_deaf = socket.socket()
_deaf.bind(("127.0.0.1", 0))


def unreachable() -> str:
    """A URL at which nothing listens."""
    return f"http://127.0.0.1:{_deaf.getsockname()[1]}/documents/1"


def lease_url(url: str) -> str:
    return str(httpx.URL(url).copy_with(path="/.leases" + httpx.URL(url).path))


def lease_state(url: str) -> str:
    return str(httpx.get(lease_url(url)).json()["state"])


def break_lease(url: str) -> None:
    assert httpx.delete(lease_url(url), headers={"Lease-Break-Period": "0"}).status_code == 202


class Network:
    """A network with faults."""

    def __init__(self, fate: Fate = lambda method, number: "arrives") -> None:
        self.requests: list[str] = []
        self._fate = fate
        self._connections: list[Any] = []

    def client(self) -> httpx.Client:
        return httpx.Client(transport=_Transport(self))

    def async_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=_AsyncTransport(self))

    def cut(self) -> None:
        for connection in self._connections:
            with suppress(OSError, AttributeError):
                connection.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def meet(self, request: httpx.Request) -> str:
        fate = self._fate(request.method, self.requests.count(request.method))
        self.requests.append(request.method)
        if fate == "finds no server":
            raise httpx.ConnectError("nobody listens")
        if fate == "is lost":
            raise httpx.WriteError("the cable is cut")
        return fate

    def carry(self, response: httpx.Response, fate: str) -> httpx.Response:
        if fate == "is not answered":
            raise httpx.ReadError("the cable is cut")
        self._connections.append(response.extensions["network_stream"])
        return response


class _Transport(httpx.HTTPTransport):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fate = self._network.meet(request)
        return self._network.carry(super().handle_request(request), fate)


class _AsyncTransport(httpx.AsyncHTTPTransport):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        fate = self._network.meet(request)
        return self._network.carry(await super().handle_async_request(request), fate)


def until(what: str, condition: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.01)
