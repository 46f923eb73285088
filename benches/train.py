#!/usr/bin/env python3
"""The load by which `make dist` learns what ifmatch does often. It prints nothing, and fails if an answer is wrong.

Usage: IFMATCH=PROGRAM train.py      PROGRAM writes its profile when it ends

A compiler makes code small instead of fast if the profile shows that it never runs. So this load is broader than that of
`load.py`: it has leases and the store on disk too.
"""

import http.client
import sys
import tempfile
from pathlib import Path

import load
from rows import GROUPS, update

# How long a client repeats each kind of request.
SECONDS = 1
# How often the client in this program repeats what wrk cannot do. What takes less than a hundredth of the load counts as
# rare, and is not made fast.
LEASES = 10_000
# The proxies of load.py that are ifmatch, and the groups whose requests they get.
OF_IFMATCH = ("unguarded", "logged", "guarded", "telling", "counting", "unguarded_tls", "guarded_tls")
TRAINING = ("reads", "large", "304", "412", "writes", "telemetry", "tls", "http2")


def main():
    with tempfile.TemporaryDirectory(prefix="ifmatch-train-") as directory:
        servers = load.Servers(Path(directory))
        load.make_files(Path(directory) / "root")
        try:
            servers.start_backend()
            servers.start_ifmatch()
            for group in TRAINING:
                for row in GROUPS[group][1]:
                    if row.server in OF_IFMATCH:
                        load.measure(servers, row, SECONDS)
            keep_lease(servers.ports["leases"])
            restart(servers, disk(servers))
            for path in ("/version/w", "/shared/w"):
                load.measure(servers, update("on disk", "guarded", path), SECONDS)
        finally:
            servers.stop()


def keep_lease(port):
    """Takes, renews and releases a lease, again and again."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(method, fields, expected):
        connection.request(method, "/.leases/locks/a", headers=fields)
        response = connection.getresponse()
        response.read()
        if response.status != expected:
            sys.exit(f"{method} of a lease: {response.status} instead of {expected}")
        return response.headers

    for _ in range(LEASES):
        held = {"Lease-Id": ask("POST", {"Lease-Duration": "60"}, 201)["Lease-Id"]}
        ask("PUT", held, 200)
        ask("DELETE", held, 204)


def restart(servers, file):
    """Runs the guarded proxy with another file."""
    process = servers.processes["guarded"]
    process.terminate()
    process.wait(20)
    servers.spawn("guarded", [servers.program("ifmatch"), "run", file], RUST_LOG="warn")


def disk(servers):
    """The guarded routes, with their leases and tags on disk."""
    file = servers.directory / "disk.toml"
    store = f'\n[store]\nkind = "disk"\npath = "{servers.directory}/train.leases"\n'
    file.write_text(servers.file("guarded.toml").read_text() + store)
    return file


if __name__ == "__main__":
    main()
