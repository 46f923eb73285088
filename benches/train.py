#!/usr/bin/env python3
"""The load by which `make dist` learns what ifmatch does often. It prints nothing, and fails if an answer is wrong.

Usage: IFMATCH=PROGRAM train.py      PROGRAM writes its profile when it ends

A compiler makes code small instead of fast if the profile shows that it never runs. So this load is broader than that of
`load.py`: it has leases, TLS, HTTP/2, and the store on disk.
"""

import http.client
import subprocess
import sys
import tempfile
from pathlib import Path

import load

# How long wrk repeats each kind of request.
SECONDS = 1
# How often a client in this program repeats something that wrk cannot do.
REPEATS = 1_000
# The same for leases. What takes less than a hundredth of the load counts as rare, and is not made fast.
LEASES = 10_000
# The proxies of load.py that are ifmatch, and the groups whose requests they get.
OF_IFMATCH = ("unguarded", "logged", "guarded", "telling", "counting")
GROUPS = ("reads", "large", "304", "412", "writes", "telemetry")


def main():
    with tempfile.TemporaryDirectory(prefix="ifmatch-train-") as directory:
        servers = load.Servers(Path(directory))
        load.make_files(Path(directory) / "root")
        try:
            servers.start_backend()
            servers.start_ifmatch()
            for group in GROUPS:
                for row in load.GROUPS[group][1]:
                    if row.server in OF_IFMATCH:
                        load.measure(servers, row, SECONDS)
            keep_lease(servers.ports["leases"])
            restart(servers, disk(servers))
            for path in ("/version/w", "/shared/w"):
                load.measure(servers, load.update("on disk", "guarded", path), SECONDS)
            restart(servers, encrypted(servers))
            read_over_tls(servers.ports["guarded"])
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


def read_over_tls(port):
    """Reads a resource again and again, over HTTP/2 and over HTTP/1.1."""
    for version in ("--http2", "--http1.1"):
        command = ["curl", "--silent", "--show-error", "--fail", "--insecure", version, "--output", "/dev/null"]
        subprocess.run([*command, f"https://127.0.0.1:{port}/version/small?[1-{REPEATS}]"], check=True)


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


def encrypted(servers):
    """The guarded routes, over TLS."""
    name, key = servers.directory / "tls.pem", servers.directory / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=localhost", "-keyout", key, "-out", name]
    subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
    file = servers.file("guarded.toml")
    text = file.read_text().replace('listen = ["', 'listen = ["tls:')
    file.write_text(text + f'\n[[server.tls.certificates]]\ncert = "{name}"\nkey = "{key}"\n')
    return file


if __name__ == "__main__":
    main()
