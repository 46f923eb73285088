"""Watchers of one running ifmatch: the memory of an idle one, and how long a change takes to reach all of them.

    make bench-watchers

It starts a backend and ifmatch on free ports, opens 2,000 streams of events on 100 resources, and reads the memory of
the process before and after. Then it opens 1,000 streams on one more resource and writes to that, 20 times. Each time
counts from the answer to the write until the last of the thousand has its event. The answer comes after the settle, so
an event may be there before it.
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import tempfile
import time

CONFIGURATION = """
[server]
listen = ["127.0.0.1:{port}"]
max_connections = 40_000
max_connections_per_client = 20_000
max_watches = 20_000
max_watches_per_client = 20_000

[upstreams.backend]
servers = ["127.0.0.1:{backend}"]

[[routes]]
name = "documents"
path = "/{{*rest}}"
upstream = "backend"
policy = "pessimistic"
etag = "version"
other_writers = false
collections = "none"
watch = true
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def serve(reader, writer):
    """Answers each request as a server that keeps nothing."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()
            return
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        await reader.readexactly(length)
        is_write = head.startswith(b"PUT")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n" if is_write else b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")


def memory_kib(process):
    with open(f"/proc/{process}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1])


async def watch(port, target):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
    writer.write(f"GET /.watch{target} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n".encode())
    await event(reader, b"event: state")
    return reader, writer


async def event(reader, name):
    while True:
        line = await reader.readline()
        assert line, "the stream has ended"
        if line.startswith(name):
            return time.perf_counter()


async def open_all(port, targets):
    opened, places = [], asyncio.Semaphore(64)

    async def one(target):
        async with places:
            opened.append(await watch(port, target))

    await asyncio.gather(*(one(target) for target in targets))
    return opened


async def change(port, watchers):
    waiting = [asyncio.create_task(event(reader, b"event: changed")) for reader, _ in watchers]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"PUT /shared HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n2")
    await reader.readline()
    answered = time.perf_counter()
    times = await asyncio.gather(*waiting)
    writer.close()
    return (max(times) - answered) * 1_000


async def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--idle", type=int, default=2_000)
    arguments.add_argument("--told", type=int, default=1_000)
    arguments.add_argument("--changes", type=int, default=20)
    chosen = arguments.parse_args()
    backend = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1_024)
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "ifmatch.toml")
        with open(file, "w") as configuration:
            configuration.write(CONFIGURATION.format(port=port, backend=backend.sockets[0].getsockname()[1]))
        process = subprocess.Popen([chosen.program, "run", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)):
                await asyncio.sleep(0.05)
            await open_all(port, ["/warm"] * 64)
            await asyncio.sleep(2)
            before = memory_kib(process.pid)
            idle = await open_all(port, [f"/doc/{number % 100}" for number in range(chosen.idle)])
            await asyncio.sleep(2)
            each = (memory_kib(process.pid) - before) / len(idle)
            print(f"{len(idle)} idle watchers: {each:.1f} KiB each")
            told = await open_all(port, ["/shared"] * chosen.told)
            times = sorted([await change(port, told) for _ in range(chosen.changes)])
            print(f"a change reaches {len(told)} watchers in {statistics.median(times):.0f} ms, at most {times[-1]:.0f} ms")
        finally:
            process.kill()


asyncio.run(main())
