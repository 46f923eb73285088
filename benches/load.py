#!/usr/bin/env python3
"""What a request costs: CPU time of ifmatch beside that of a bare pingora proxy, nginx, HAProxy and Redis, in one run.

Usage: load.py [--rounds N] [--seconds S] [--page FILE] [GROUP...]    (`make bench` builds and installs what it needs first)

Each server runs with one worker, in front of the same nginx, under wrk on keep-alive connections. A measurement is the
CPU time (user and system) of the server's process over the number of requests it answered. The rows of a group take
turns, round after round, and a ratio is the median of the ratios within the rounds: that is what can be compared on a
machine that does other things too; a time cannot. Nothing fails because of a ratio. What fails is an answer with
another status than expected.
"""

import argparse
import contextlib
import datetime
import http.client
import io
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "load"))
sys.dont_write_bytecode = True
import first_byte  # noqa: E402, they lie beside the other parts of this program
import latency  # noqa: E402
import over_tls  # noqa: E402
import postgres  # noqa: E402
import sizes  # noqa: E402
import stores  # noqa: E402
import writers  # noqa: E402
import wrk  # noqa: E402
from rows import GROUPS, Row  # noqa: E402
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")) / "release"
# The program that is measured, if it is not the one of the build.
IFMATCH = Path(os.environ.get("IFMATCH") or RELEASE / "ifmatch")
TICKS = os.sysconf("SC_CLK_TCK")
CONNECTIONS = 32
WRITERS = 8
# In the page of results, everything after this line is of one run.
RESULTS = "## Results\n"
SMALL, LARGE = 1024, 64 * 1024


class Servers:
    """All servers, each on a port of its own, until the end of the run."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = {}
        names = ["backend", "bare", "bare_304", "bare_412", "unguarded", "logged", "guarded", "telling", "counting", "many", "unguarded_tls", "guarded_tls", "nginx_tls", "leases", "redis", "nginx"]
        names += ["lua", "haproxy", "bare_streams", "streams", "waiting_bare", "waiting_unguarded", "waiting_guarded", *stores.NAMES]
        self.ports = dict(zip(names, free_ports(len(names))))

    def start_backend(self):
        """What the stores need too."""
        self.spawn("backend", ["nginx", "-p", "/usr/share/nginx", "-e", "stderr", "-c", self.file("backend.conf")])
        self.spawn("redis", ["redis-server", "--port", self.ports["redis"], "--bind", "127.0.0.1", "--save", ""])

    def start_proxies(self):
        self.start_ifmatch()
        backend = f"127.0.0.1:{self.ports['backend']}"
        bare = lambda name, mode: [RELEASE / "examples/bare_pingora", f"127.0.0.1:{self.ports[name]}", backend, mode]
        nginx = lambda name: ["nginx", "-p", "/usr/share/nginx", "-e", "stderr", "-c", self.file(f"{name}.conf")]
        self.spawn("bare", bare("bare", "pass"))
        self.spawn("bare_304", bare("bare_304", "304"))
        self.spawn("bare_412", bare("bare_412", "412"))
        many = self.file("guarded.toml", guarded=self.ports["many"])
        many.write_text(many.read_text() + sizes.many_routes())
        self.spawn("many", [IFMATCH, "run", many], RUST_LOG="warn")
        self.spawn("nginx", nginx("nginx"))
        encrypted = over_tls.of_nginx(self.file("nginx.conf", nginx=self.ports["nginx_tls"]), self.directory)
        self.spawn("nginx_tls", ["nginx", "-p", "/usr/share/nginx", "-e", "stderr", "-c", encrypted])
        self.spawn("lua", nginx("lua"))
        self.spawn("haproxy", ["haproxy", "-db", "-f", self.file("haproxy.cfg")])

    def start_ifmatch(self):
        """A proxy of this build for each way of use that is measured."""
        ifmatch = lambda file, **ports: [IFMATCH, "run", self.file(file, **ports)]
        self.spawn("unguarded", ifmatch("unguarded.toml"), RUST_LOG="warn")
        self.spawn("logged", ifmatch("unguarded.toml", unguarded=self.ports["logged"]))
        self.spawn("guarded", ifmatch("guarded.toml"), RUST_LOG="warn")
        self.spawn("telling", [IFMATCH, "run", self.telling("telling")])
        self.spawn("counting", [IFMATCH, "run", self.telling("counting")], RUST_LOG="warn")
        self.spawn("leases", ifmatch("leases.toml"), RUST_LOG="warn")
        for name in ("unguarded", "guarded"):
            file = self.file(f"{name}.toml", **{name: self.ports[f"{name}_tls"]})
            encrypted = file.rename(self.directory / f"{name}-tls.toml")
            self.spawn(f"{name}_tls", [IFMATCH, "run", over_tls.of_ifmatch(encrypted, self.directory)], RUST_LOG="warn")

    def start_waiting(self):
        """Those that stand in front of a server that answers nothing. Returns that server."""
        silent = sizes.silent_server()
        port = silent.getsockname()[1]
        bare = [RELEASE / "examples/bare_pingora", f"127.0.0.1:{self.ports['waiting_bare']}", f"127.0.0.1:{port}", "pass"]
        self.spawn("waiting_bare", bare)
        for name in ("unguarded", "guarded"):
            file = self.file(f"{name}.toml", **{name: self.ports[f"waiting_{name}"]}, backend=port)
            self.spawn(f"waiting_{name}", [IFMATCH, "run", file], RUST_LOG="warn")
        return silent

    def start_streams(self):
        """The two that stand in front of a backend of streams."""
        backend = first_byte.backend()
        bare = [RELEASE / "examples/bare_pingora", f"127.0.0.1:{self.ports['bare_streams']}", f"127.0.0.1:{backend}"]
        self.spawn("bare_streams", [*bare, "pass"])
        file = self.file("guarded.toml", guarded=self.ports["streams"], backend=backend)
        self.spawn("streams", [IFMATCH, "run", file], RUST_LOG="warn")

    def file(self, template, **ports):
        """A configuration from its template."""
        text = (HERE / "load" / template).read_text().replace("@DIRECTORY@", str(self.directory))
        for name, port in {**self.ports, **ports}.items():
            text = text.replace(f"@{name.upper()}@", str(port))
        path = self.directory / f"{'other-' if ports else ''}{template}"
        path.write_text(text)
        return path

    def telling(self, name):
        """A guarded proxy whose metrics could be read, and whose traces go to a collector that is not there."""
        traces = 'sampling = 0.01\notlp = { endpoint = "http://127.0.0.1:1", signals = ["traces"] }\n'
        text = self.file("guarded.toml", guarded=self.ports[name]).read_text()
        text += f'\n[admin]\nlisten = "unix:{self.directory}/{name}.sock"\n'
        path = self.directory / f"{name}.toml"
        path.write_text(text + "\n[telemetry]\n" + (traces if name == "telling" else ""))
        return path

    def spawn(self, name, command, **environment):
        log = open(self.directory / f"{name}.log", "wb")
        environment = {key: value for key, value in os.environ.items() if key != "RUST_LOG"} | environment
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, env=environment)
        self.processes[name] = process
        end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            try:
                return socket.create_connection(("127.0.0.1", self.ports[name])).close()
            except OSError:
                time.sleep(0.02)
        sys.exit(f"{name} does not listen:\n" + Path(log.name).read_text(errors="replace")[-2000:])

    def stop(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def cpu_seconds(self, name):
        """User and system time of a server: all its threads and processes, ended ones too."""
        return ticks_of(self.processes[name].pid) / TICKS

    def resident_bytes(self, name):
        """Memory of a server that is really there."""
        status = Path(f"/proc/{self.processes[name].pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+) kB", status)[1]) * 1024

    def pids(self, name):
        """A server's processes."""
        pid = self.processes[name].pid
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        return [pid, *(int(child) for file in tasks for child in file.read_text().split())]

    def program(self, name):
        """A program of this build."""
        return IFMATCH if name == "ifmatch" else RELEASE / name

    def lease_load(self, name, *arguments):
        """What the client for leases prints."""
        command = [RELEASE / "examples/lease_load", f"127.0.0.1:{self.ports[name]}", *arguments]
        output = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout
        return list(map(int, output.split()))

    def ask(self, row, method, fields, body=b"x" * 200):
        """One request outside the measurement: its status and tag."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[row.server], timeout=10)
        connection.request(method, row.path, body if method == "PUT" else None, fields)
        response = connection.getresponse()
        response.read()
        return response.status, response.headers.get("ETag")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def make_files(root):
    for directory in ("plain", "version", "content", "shared", "upstream", "queued"):
        (root / directory).mkdir(parents=True)
        (root / directory / "small").write_bytes(b"s" * SMALL)
        (root / directory / "large").write_bytes(b"l" * LARGE)
        (root / directory / "contended").write_bytes(b"0")
        for writer in range(1, WRITERS + 1):
            (root / directory / f"w{writer}").write_bytes(b"0")


def measure(servers, row, seconds):
    """CPU microseconds a request, or a pair. Ends the program where an answer is not what it should be."""
    if row.method == "PAIRS":
        before = servers.cpu_seconds(row.server)
        [done] = servers.lease_load(row.server, "pairs", row.path, CONNECTIONS, seconds)
        return (servers.cpu_seconds(row.server) - before) * 1e6 / done
    if row.over:
        return over_tls.measure(servers, row, seconds)
    url = f"http://127.0.0.1:{servers.ports[row.server]}{row.path}"
    if row.method == "UPDATE":
        clients, arguments = WRITERS, ["update"]
    else:
        # A read first: it teaches what a local answer needs.
        _, tag = servers.ask(row, "GET", {})
        fields = {name: tag if value == "current" else value for name, value in row.fields.items()}
        check(servers, row, fields)
        clients = CONNECTIONS
        arguments = [row.method] + [text for pair in fields.items() for text in pair]
    threads = WRITERS if row.method == "UPDATE" else 1
    before = servers.cpu_seconds(row.server)
    requests, above_399, unexpected, broken, output = wrk.run(url, seconds, threads, clients, arguments)
    used = servers.cpu_seconds(row.server) - before
    expected_above = requests if row.status > 399 else 0
    if requests == 0 or above_399 != expected_above or unexpected or broken:
        sys.exit(f"{row.name}: answers that were not expected\n{output}")
    if row.method != "UPDATE":
        check(servers, row, fields)
    return used * 1e6 / requests


def check(servers, row, fields):
    status, _ = servers.ask(row, row.method, fields)
    if status != row.status:
        sys.exit(f"{row.name}: {status} instead of {row.status}")


def lost_updates(servers, server, path, rounds=20, writers=32):
    """Lets writers race with one tag: how many rounds had more than one winner, and the most winners of a round."""
    row = Row("race", server, path)
    wins = []
    for number in range(rounds):
        _, tag = servers.ask(row, "GET", {})
        barrier, statuses = threading.Barrier(writers), []

        def write(text):
            barrier.wait()
            statuses.append(servers.ask(row, "PUT", {"If-Match": tag}, text)[0])

        # Contents that differ, or a content tag would rightly stay what it was.
        texts = [f"round {number}, writer {writer}".encode() for writer in range(writers)]
        threads = [threading.Thread(target=write, args=[text]) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wins.append(sum(200 <= status < 300 for status in statuses))
    return sum(count > 1 for count in wins), max(wins)


def print_held_leases(servers, count=100_000, more=20_000):
    """What many leases weigh, and what they do to the next one."""
    servers.lease_load("leases", "one-more", more)
    none = servers.lease_load("leases", "one-more", more)
    before = servers.resident_bytes("leases")
    [held] = servers.lease_load("leases", "hold", CONNECTIONS, count)
    bytes_a_lease = (servers.resident_bytes("leases") - before) / held
    many = servers.lease_load("leases", "one-more", more)
    print(f"\n### {held:,} leases held at once: {bytes_a_lease:.0f} bytes of memory each\n")
    print("| acquire one more, on one connection | median, µs | 99th percentile, µs |\n|---|---|---|")
    for name, (median, late) in [("none held", none), (f"{held:,} held", many)]:
        print(f"| {name} | {median} | {late} |")


def print_group(title, rows, times):
    """A table in Markdown. The spread is that of the middle half of the rounds."""
    print(f"\n### {title}\n\n| | µs of CPU | ratio | spread | goal | |\n|---|---|---|---|---|---|")
    for row in rows:
        line = f"| {row.name} | {statistics.median(times[row.name]):.1f} "
        if not row.base:
            print(line + "| 1 | | | |")
            continue
        ratios = [own / base for own, base in zip(times[row.name], times[row.base])]
        quarters = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        ratio = statistics.median(ratios)
        goal = f"≤ {row.goal:.2f} | {'met' if ratio <= row.goal else 'missed'}" if row.goal else "|"
        of = "" if row.base == rows[0].name else f" of {row.base.removeprefix('ifmatch, ')}"
        print(line + f"| {ratio:.2f}{of} | {quarters[0]:.2f} to {quarters[2]:.2f} | {goal} |")
    sys.stdout.flush()


def ticks_of(pid):
    """User and system time of a process and of all that it started."""
    try:
        children = [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        # It has ended meanwhile: its time is that of its parent's ended children.
        return 0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) + sum(map(ticks_of, children))


def machine():
    def version(*command):
        output = subprocess.run(command, capture_output=True, text=True, check=False)
        return (re.search(r"\d+\.\d+(\.\d+)?", output.stdout + output.stderr) or ["?"])[0]

    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}. "
        f"Beside it: nginx {version('nginx', '-v')}, HAProxy {version('haproxy', '-v')}, "
        f"Redis {version('redis-server', '-v')}, etcd {version('etcd', '--version')}, "
        f"PostgreSQL {version(postgres.program('postgres'), '--version')}, wrk {version('wrk', '-v')}. "
        f"Load average at the start: {os.getloadavg()[0]:.1f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=1, help="of each measurement")
    parser.add_argument("--page", type=Path, help="the page whose results are replaced by those of this run")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}, held, sizes, resources, first-byte, latency, race, writers, stores; default all")
    options = parser.parse_args()
    wanted = options.groups or [*GROUPS, "held", "sizes", "resources", "first-byte", "latency", "race", "writers", "stores"]
    missing = [program for program in ("wrk", "h2load", "nginx", "haproxy", "redis-server", "etcd") if not shutil.which(program)]
    if missing:
        sys.exit(f"missing: {' '.join(missing)}; `make setup-bench` installs them")
    printed = Printed(sys.stdout)
    with tempfile.TemporaryDirectory(prefix="ifmatch-bench-") as directory, contextlib.redirect_stdout(printed):
        servers = Servers(Path(directory))
        make_files(Path(directory) / "root")
        try:
            servers.start_backend()
            if wanted != ["stores"]:
                servers.start_proxies()
            print(f"{machine()}; {options.rounds} rounds of {options.seconds} s")
            for name in (name for name in GROUPS if name in wanted):
                title, rows = GROUPS[name]
                times = {row.name: [] for row in rows}
                for round_number in range(options.rounds):
                    print(f"{name}: round {round_number + 1} of {options.rounds}", file=sys.stderr)
                    for row in rows:
                        times[row.name].append(measure(servers, row, options.seconds))
                print_group(title, rows, times)
            if "held" in wanted:
                print_held_leases(servers)
            if "sizes" in wanted:
                sizes.print_check(Path(directory), servers.program("ifmatch"))
                names = {"bare pingora": "bare", "ifmatch, unguarded": "unguarded", "ifmatch, guarded": "guarded"}
                sizes.print_memory(servers, names | {"nginx": "nginx"})
                waiting = {name: f"waiting_{server}" for name, server in names.items()}
                sizes.print_waiting(servers, servers.start_waiting(), waiting)
            if "resources" in wanted:
                sizes.print_resources(servers.program("examples/record_load"))
            if "first-byte" in wanted:
                servers.start_streams()
                first_byte.print_table(servers.ports["bare_streams"], servers.ports["streams"])
            if "latency" in wanted:
                latency.print_tables(servers, options.rounds)
            if "race" in wanted:
                print("\n### 32 writers with one tag, 20 rounds\n\n| | rounds with more than one winner | most winners |")
                print("|---|---|---|")
                for name, server, path in [
                    ("ifmatch, `version`, exclusive", "guarded", "/version/contended"),
                    ("ifmatch, `content`, shared", "guarded", "/shared/contended"),
                    ("nginx with the Lua check", "lua", "/plain/contended"),
                ]:
                    rounds, most = lost_updates(servers, server, path)
                    print(f"| {name} | {rounds} of 20 | {most} |")
            if "writers" in wanted:
                writers.print_table(servers, options.rounds, options.seconds)
            if "stores" in wanted:
                stores.print_tables(servers, min(options.rounds, 5), options.seconds)
        finally:
            servers.stop()
    if options.page:
        before, _, _ = options.page.read_text().partition(RESULTS)
        today = datetime.date.today().strftime("%-d %B %Y")
        program = "the program that `make dist` packages" if os.environ.get("IFMATCH") else "a plain release build"
        options.page.write_text(f"{before}{RESULTS}\n{today}, {program}. {printed.getvalue()}")


class Printed(io.StringIO):
    """What is printed, kept as well."""

    def __init__(self, output):
        super().__init__()
        self.output = output

    def write(self, text):
        self.output.write(text)
        return super().write(text)

    def flush(self):
        self.output.flush()


if __name__ == "__main__":
    main()
