#!/usr/bin/env python3
"""How long a PROPFIND of depth 1 over 1,000 files takes, at a server of WebDAV and through ifmatch in front of it.

Usage: webdav.py IFMATCH WSGIDAV, both paths of programs. The requests go to each in turn, over one connection each.
"""

import http.client
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

FILES = 1000
ROUNDS = int(os.environ.get("ROUNDS", "30"))
QUESTION = (
    '<?xml version="1.0"?><D:propfind xmlns:D="DAV:"><D:prop><D:resourcetype/><D:getcontentlength/><D:getetag/>'
    "<D:getlastmodified/><D:lockdiscovery/></D:prop></D:propfind>"
)
ROUTE = """[server]
listen = ["127.0.0.1:{port}"]
[upstreams.files]
servers = ["127.0.0.1:{backend}"]
[[routes]]
path = "/{{*rest}}"
upstream = "files"
policy = "pessimistic"
dialect = "webdav"
etag = "upstream"
require = "never"
"""
SERVER = """host: 127.0.0.1
port: {port}
provider_mapping: {{'/': '{root}'}}
lock_storage: false
property_manager: false
simple_dc: {{user_mapping: {{'*': true}}}}
verbose: 0
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def accepts(port):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nothing listens on port {port}")


def milliseconds(connection):
    begun = time.perf_counter()
    connection.request("PROPFIND", "/", QUESTION, {"Depth": "1", "Content-Type": "application/xml"})
    answer = connection.getresponse()
    content = answer.read()
    took = (time.perf_counter() - begun) * 1000
    if answer.status != 207 or content.count(b"getcontentlength") < FILES:
        sys.exit(f"not the list: {answer.status} {content[:300]}")
    return took


def cpu_milliseconds(process):
    """The processor time that a process has used."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def measure(directory, ifmatch, wsgidav):
    root = os.path.join(directory, "root")
    os.mkdir(root)
    for number in range(FILES):
        with open(os.path.join(root, f"file {number}.txt"), "w", encoding="ascii") as file:
            file.write(str(number))
    ports = {"backend": free_port(), "proxy": free_port()}
    settings = {"backend.yaml": SERVER.format(port=ports["backend"], root=root),
                "proxy.toml": ROUTE.format(port=ports["proxy"], backend=ports["backend"])}
    for name, text in settings.items():
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write(text)
    commands = {"backend": [wsgidav, "--config", os.path.join(directory, "backend.yaml")],
                "proxy": [ifmatch, "run", os.path.join(directory, "proxy.toml")]}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = {name: subprocess.Popen(command, **quiet) for name, command in commands.items()}
    try:
        for port in ports.values():
            accepts(port)
        connections = {name: http.client.HTTPConnection("127.0.0.1", port) for name, port in ports.items()}
        took = {name: [] for name in ports}
        for connection in connections.values():
            milliseconds(connection)
        before = {name: cpu_milliseconds(process) for name, process in running.items()}
        for _ in range(ROUNDS):
            for name, connection in connections.items():
                took[name].append(milliseconds(connection))
        used = {name: cpu_milliseconds(process) - before[name] for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
    alone, through = (statistics.median(took[name]) for name in ("backend", "proxy"))
    # The server has answered twice as many requests.
    own, added = used["backend"] / (2 * ROUNDS), used["proxy"] / ROUNDS
    print(f"the server alone: {alone:.1f} ms, through ifmatch: {through:.1f} ms, {through / alone:.2f} times as long")
    print(f"processor time: {own:.1f} ms of the server, and {added:.1f} ms of ifmatch, {(own + added) / own:.2f} times as much")


with tempfile.TemporaryDirectory() as place:
    measure(place, *sys.argv[1:3])
