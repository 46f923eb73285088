"""How long the first byte of a streaming response takes, through ifmatch and through a bare pingora proxy.

The backend sends the head and a first piece at once, holds the rest back until the client has had its time, and then
ends. Each time is that from the request to the first piece at the client; the servers take turns, request after request.
"""

import socket
import statistics
import threading
import time

HELD_BACK_SECONDS = 0.003
SLOW_SECONDS = 0.1
FIRST, LAST = b"6\r\nfirst\n\r\n", b"5\r\nlast\n\r\n0\r\n\r\n"
EVENTS, SLOW = "events", "slow"


def backend():
    """A server of streams, in threads of this process; its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read = b""
        while True:
            while b"\r\n\r\n" not in read:
                piece = connection.recv(65536)
                if not piece:
                    return connection.close()
                read += piece
            head, _, read = read.partition(b"\r\n\r\n")
            slow = SLOW.encode() in head.split(b" ", 2)[1]
            kind = b"text/plain" if slow else b"text/event-stream"
            fields = b'Content-Type: %s\r\nETag: "one"\r\nTransfer-Encoding: chunked' % kind
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\n" + FIRST)
            time.sleep(SLOW_SECONDS if slow else HELD_BACK_SECONDS)
            try:
                connection.sendall(LAST)
            except OSError:
                return connection.close()

    def accept():
        while True:
            threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


class Client:
    """One keep-alive connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def first_byte_seconds(self, path):
        """The time to the first piece. The response is read to its end."""
        start = time.perf_counter()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        read, first = b"", None
        while not read.endswith(b"\r\n0\r\n\r\n"):
            piece = self.socket.recv(65536)
            if not piece:
                raise SystemExit(f"{path}: the connection ended after {read!r}")
            read += piece
            if first is None and FIRST in read:
                first = time.perf_counter() - start
        if not read.startswith(b"HTTP/1.1 200") or first is None:
            raise SystemExit(f"{path}: {read!r}")
        return first


def print_table(bare, guarded, requests=500):
    """The table, given the ports of a bare proxy and of ifmatch in front of the backend."""
    rows = [
        ("bare pingora", bare, f"/plain/{EVENTS}", requests),
        ("ifmatch, `upstream`, shared", guarded, f"/upstream/{EVENTS}", requests),
        ("ifmatch, `version`, exclusive", guarded, f"/version/{EVENTS}", requests),
        ("ifmatch, `content`, exclusive", guarded, f"/content/{EVENTS}", requests),
        ("ifmatch, `content`, text that is slower than hash_wait (50 ms)", guarded, f"/content/{SLOW}", 20),
    ]
    clients = [Client(port) for _, port, _, _ in rows]
    times = [[] for _ in rows]
    for number in range(requests):
        for place, (_, _, path, most) in enumerate(rows):
            if number < most:
                times[place].append(clients[place].first_byte_seconds(path) * 1e6)
    print("\n### The first byte of a stream of events\n")
    print("| | median, µs | later than bare pingora, µs | 99th percentile, µs |\n|---|---|---|---|")
    floor = statistics.median(times[0])
    for (name, *_), own in zip(rows, times):
        median, late = statistics.median(own), statistics.quantiles(own, n=100)[98]
        print(f"| {name} | {median:.0f} | {median - floor:.0f} | {late:.0f} |")
