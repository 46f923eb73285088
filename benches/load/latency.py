"""How long a client waits: for a read at half of what the proxy can do, and for a write that nobody disturbs."""

import statistics

import over_tls
import wrk

CLIENTS = 16
SECONDS = 5
# Half of the rate that this load reaches is the rate of all loads.
BUSIEST = ("guarded", "/version/small")
READS = {
    "nginx": ("nginx", "/plain/small"),
    "ifmatch, unguarded": ("unguarded", "/plain/small"),
    "ifmatch, `version`, exclusive": BUSIEST,
    "ifmatch, `content`, shared": ("guarded", "/shared/small"),
}
WRITES = {
    "the backend alone": ("backend", "/plain/w", 0),
    "nginx": ("nginx", "/plain/w", 0),
    "ifmatch, `version`, exclusive": ("guarded", "/version/w", 0),
    "ifmatch, `content`, shared": ("guarded", "/shared/w", 2.1),
}


def print_tables(servers, rounds):
    print_reads(servers)
    print_writes(servers, rounds)


def print_reads(servers):
    """Each client sends at its own rate, so a late answer does not thin out the load."""
    server, path = BUSIEST
    answered, *_ = wrk.run(address(servers, server) + path, 2, 1, CLIENTS, ["GET"])
    rate = answered // 4 // CLIENTS
    print(f"\n### Reads of 1 KiB at {rate * CLIENTS:,} a second, half of what `version` can do\n")
    print("| | median, µs | 99th percentile, µs |\n|---|---|---|")
    for name, (server, path) in READS.items():
        log = servers.directory / f"latency-{server}.log"
        log.unlink(missing_ok=True)
        options = ["-c", CLIENTS, "-D", SECONDS, "--rps", rate, "--log-file", log]
        counts, output = over_tls.run(address(servers, server) + path, "HTTP/1.1", options)
        if not counts.get(2):
            raise SystemExit(f"{name}: answers that were not expected\n{output}")
        times = [int(line.split("\t")[2]) for line in log.read_text().splitlines()]
        print(f"| {name} | {statistics.median(times):.0f} | {statistics.quantiles(times, n=100)[98]:.0f} |")


def print_writes(servers, rounds):
    """One client writes one resource, each time with the tag of the answer before."""
    times = {name: [] for name in WRITES}
    for _ in range(rounds):
        for name, (server, path, _goal) in WRITES.items():
            answered, above_399, unexpected, broken, output = wrk.run(address(servers, server) + path, 1, 1, 1, ["update"])
            if not answered or above_399 or unexpected or broken:
                raise SystemExit(f"{name}: answers that were not expected\n{output}")
            times[name].append(1e6 / answered)
    print("\n### PUTs of 200 bytes, one client\n\n| | time of one, µs | ratio | goal | |\n|---|---|---|---|---|")
    base = times["the backend alone"]
    for name, (_server, _path, goal) in WRITES.items():
        ratio = statistics.median(own / other for own, other in zip(times[name], base))
        verdict = f"≤ {goal} | {'met' if ratio <= goal else 'missed'}" if goal else "|"
        print(f"| {name} | {statistics.median(times[name]):.0f} | {ratio:.2f} | {verdict} |")


def address(servers, server):
    return f"http://127.0.0.1:{servers.ports[server]}"
