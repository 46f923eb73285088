"""What a process weighs, what its connections and its resources weigh, and what a long file costs."""

import os
import re
import resource
import socket
import subprocess
import time
from pathlib import Path

ROUTES = 10_000
CONNECTIONS = 1_000


def many_routes():
    """Guarded routes of as many services, beside those of a file."""
    return "".join(f'[[routes]]\npath = "/service{number}/documents/{{id}}"\n' for number in range(ROUTES))


def print_check(directory, ifmatch):
    """The CPU time of a check of many routes, beside that of nginx for as many locations."""
    head = '[server]\nlisten = ["127.0.0.1:1"]\n[upstreams.backend]\nservers = ["127.0.0.1:2"]\n'
    toml, conf = directory / "check.toml", directory / "check.conf"
    toml.write_text(head + '[defaults]\nupstream = "backend"\npolicy = "optimistic"\n' + many_routes())
    locations = "".join(
        f"location ~ ^/service{number}/documents/[^/]+$ {{ proxy_pass http://127.0.0.1:2; }}\n" for number in range(ROUTES)
    )
    places = "".join(f"{name}_temp_path {directory};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf.write_text(f"pid {directory}/check.pid; events {{}} http {{ {places} server {{ listen 127.0.0.1:1; {locations} }} }}")
    times = {
        "`ifmatch check`": cpu_seconds(ifmatch, "check", toml),
        "`nginx -t`, as many locations": cpu_seconds("nginx", "-t", "-e", "stderr", "-c", conf),
    }
    print(f"\n### A file of {ROUTES:,} routes\n\n| | ms of CPU |\n|---|---|")
    for name, seconds in times.items():
        print(f"| {name} | {seconds * 1000:.0f} |")


def cpu_seconds(*command):
    """User and system time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(list(map(str, command)), capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_memory(servers, names):
    """The memory of idle processes, and what a thousand idle connections add to it."""
    print(f"\n### Idle: the process, and {CONNECTIONS:,} connections\n")
    print("| | resident, MB | its own, MB | a connection, KiB |\n|---|---|---|---|")
    for name, server in names.items():
        pids = servers.pids(server)
        resident, own = memory_bytes(pids)
        sockets = [request_once(servers.ports[server]) for _ in range(CONNECTIONS)]
        time.sleep(0.2)
        with_connections = memory_bytes(pids)[1]
        for each in sockets:
            each.close()
        a_connection = (with_connections - own) / CONNECTIONS / 1024
        print(f"| {name} | {resident / 1e6:.1f} | {own / 1e6:.1f} | {a_connection:.1f} |")


def silent_server():
    """A server whose connections the system accepts, and that answers nothing by itself."""
    return socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS)


def print_waiting(servers, silent, names):
    """What a thousand reads add that wait for their server, each with its two connections."""
    print(f"\n### {CONNECTIONS:,} reads in flight\n\n| | a read, KiB |\n|---|---|")
    for name, server in names.items():
        pids = servers.pids(server)
        before = memory_bytes(pids)[1]
        open_ends = []
        for number in range(CONNECTIONS):
            client = socket.create_connection(("127.0.0.1", servers.ports[server]))
            client.sendall(f"GET /version/{number} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            exchange = silent.accept()[0]
            head = b""
            while b"\r\n\r\n" not in head:
                head += exchange.recv(65536)
            open_ends += [client, exchange]
        a_read = (memory_bytes(pids)[1] - before) / CONNECTIONS / 1024
        for each in open_ends:
            each.close()
        print(f"| {name} | {a_read:.1f} |")


def print_resources(record_load):
    """What many resources weigh in the memory store, and what they do to a read and to a write."""
    count = int(os.environ.get("RESOURCES", "1000000"))
    output = subprocess.run([str(record_load), str(count)], stdout=subprocess.PIPE, text=True, check=True).stdout
    size, *nanoseconds = map(int, output.split())
    print(f"\n### {count:,} resources in the memory store: {size} bytes of memory each, with a key of 24 bytes\n")
    print("| among | a read, ns | a write, ns |\n|---|---|---|")
    print("| 1,000 | {} | {} |\n| {:,} | {} | {} |".format(*nanoseconds[:2], count, *nanoseconds[2:]))


def request_once(port):
    """A connection that has had one answer, and stays open."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"GET /version/small HTTP/1.1\r\nHost: x\r\n\r\n")
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    length = int(re.search(rb"(?i)content-length: (\d+)", received)[1])
    while len(received.partition(b"\r\n\r\n")[2]) < length:
        received += connection.recv(65536)
    return connection


def memory_bytes(pids):
    """Resident memory, and the part of it that no other process shares."""
    totals = {"Rss": 0, "Private_Clean": 0, "Private_Dirty": 0}
    for pid in pids:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        for key in totals:
            totals[key] += int(re.search(rf"{key}:\s*(\d+) kB", rollup)[1]) * 1024
    return totals["Rss"], totals["Private_Clean"] + totals["Private_Dirty"]
