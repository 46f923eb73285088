"""What the stores can do beside their engines, what a guarded request costs on each of them, and what it asks of them.

The engines are an etcd of one member, a PostgreSQL, and two Redis, started here with their data in the run's directory:
one Redis keeps everything in memory, the other has each change on the disk before it answers, as docs/stores.md advises.
"""

import re
import resource
import statistics
import subprocess
import sys
import urllib.request

import postgres
import wrk

KINDS = {
    "memory": "memory",
    "disk": "disk",
    "etcd": "etcd",
    "postgres": "PostgreSQL",
    "redis": "Redis in memory",
    "redis_aof": "Redis, `appendfsync always`",
}
ENGINES = ("etcd", "postgres", "redis", "redis_aof")
# Those that count their calls and bytes.
COUNTING = ("etcd", "redis", "redis_aof")
NAMES = ["etcd", "etcd_peers", "postgres", "redis_aof", *(f"stores_{kind}" for kind in KINDS)]
CLIENTS = (1, 16, 64)
# Of a pair of swaps to the engine's own, and of all that the store adds to a guarded write to such a pair.
GOALS = {"disk": 1.2}
GOAL, WRITE_GOAL = 1.5, 1.2
# Pairs that store_load makes before its time begins, one of each resource.
PREPARED = 1_024
# The database of Redis that its own benchmark works in, and how many keys are there for each that it deletes at random:
# so that most of them are still there. It takes numbers below 2^31, and all larger ones for no number: one key for all.
BENCHMARK_DATABASE, KEYS_PER_DELETION, MANY_KEYS = "1", 10, 2_000_000_000
# The part of its commands that must have changed something.
EFFECTIVE = 0.9
# About as long as the record of a write in flight.
RECORD = "x" * 250
# The loads on the proxies: a name, connections, and the requests.
READ, WRITE, WRITE_8, LEASE = "a read, 1 connection", "a write, 1 connection", "writes, 8 connections", "leases, 32 connections"
REQUESTS = (READ, WRITE, WRITE_8, LEASE)


def print_tables(servers, rounds, seconds):
    start(servers)
    print(f"\nThe tables of the stores are of {rounds} rounds of {seconds} s.")
    pairs = print_swaps(servers, rounds, seconds)
    times = print_requests(servers, rounds, seconds)
    print_writes(pairs, times)


def start(servers):
    """The engines that do not run yet, and a proxy for each kind of store."""
    at = {name: f"http://127.0.0.1:{servers.ports[name]}" for name in ("etcd", "etcd_peers")}
    for kind in COUNTING:
        (servers.directory / f"{kind}-data").mkdir()
    servers.spawn("etcd", [
        "etcd", "--data-dir", servers.directory / "etcd-data", "--log-level", "error",
        "--listen-client-urls", at["etcd"], "--advertise-client-urls", at["etcd"],
        "--listen-peer-urls", at["etcd_peers"], "--initial-advertise-peer-urls", at["etcd_peers"],
        "--initial-cluster", f"default={at['etcd_peers']}",
    ])
    servers.spawn("postgres", postgres.command(servers.directory, servers.ports["postgres"]))
    servers.spawn("redis_aof", [
        "redis-server", "--port", servers.ports["redis_aof"], "--bind", "127.0.0.1", "--save", "",
        "--dir", servers.directory / "redis_aof-data", "--appendonly", "yes", "--appendfsync", "always",
    ])
    for kind in KINDS:
        command = [servers.program("ifmatch"), "run", configuration(servers, kind, "proxy")]
        servers.spawn(f"stores_{kind}", command, RUST_LOG="warn")


def configuration(servers, kind, user):
    """The file for a store of this kind, whose records are those of this user."""
    url = f"127.0.0.1:{servers.ports['redis' if kind == 'redis' else 'redis_aof']}"
    lines = {
        "memory": [],
        "disk": ['kind = "disk"', f'path = "{servers.directory / user}.leases"'],
        "etcd": ['kind = "etcd"', f'endpoints = ["http://127.0.0.1:{servers.ports["etcd"]}"]', f'prefix = "{user}"'],
        "postgres": ['kind = "postgres"', f'url = "{postgres.url(servers.ports["postgres"])}"', f'schema = "{user}"'],
    }.get(kind, ['kind = "redis"', f'url = "redis://{url}"', f'prefix = "{user}"'])
    text = (wrk.SCRIPT.parent / "stores.toml").read_text().replace("@STORE@", "\n".join(lines))
    text = text.replace("@PORT@", str(servers.ports[f"stores_{kind}"]))
    path = servers.directory / f"{user}-{kind}.toml"
    path.write_text(text.replace("@BACKEND@", str(servers.ports["backend"])))
    return path


def print_swaps(servers, rounds, seconds):
    """At the store alone: pairs of swaps a second, and the engine's own."""
    work = {kind: ("leases" if kind == "disk" else "marks", configuration(servers, kind, "swaps")) for kind in KINDS}
    floors = {
        "etcd": ("etcd", f"http://127.0.0.1:{servers.ports['etcd']}"),
        "postgres": ("postgres", postgres.url(servers.ports["postgres"])),
        "disk": ("file", servers.directory / "file"),
    }
    pipelined = {kind: ("redis", f"redis://127.0.0.1:{servers.ports[kind]}") for kind in ("redis", "redis_aof")}
    pairs, cpu = {}, {}
    for round_number in range(rounds):
        print(f"stores: round {round_number + 1} of {rounds}", file=sys.stderr)
        for clients in CLIENTS:
            for kind in KINDS:
                for side, what in (("store", work[kind]), ("floor", floors.get(kind)), ("pipelined", pipelined.get(kind))):
                    if what:
                        rate, used = run_pairs(servers, kind, [*what, clients, seconds], side, seconds)
                    elif side == "floor" and kind in pipelined:
                        rate, used = redis_benchmark(servers, kind, clients, seconds)
                    else:
                        continue
                    pairs.setdefault((kind, clients, side), []).append(rate)
                    cpu.setdefault((kind, clients, side), []).append(used)
    print_pairs(pairs, cpu)
    print("\n### Redis beside what its client does without scripts, all clients on one connection\n")
    print("| store | clients | pairs a second | of `SET NX PX` and `DEL` | ratio | spread | CPU of the latter |")
    print("|---|---|---|---|---|---|---|")
    for kind in pipelined:
        for clients in CLIENTS:
            own, other = pairs[kind, clients, "store"], pairs[kind, clients, "pipelined"]
            ratio, spread = compared(other, own)
            line = f"| {KINDS[kind]} | {clients} | {statistics.median(own):,.0f} | {statistics.median(other):,.0f} "
            print(line + f"| {ratio:.2f} | {spread} | {both(cpu[kind, clients, 'pipelined'])} |")
    sys.stdout.flush()
    return pairs


def print_pairs(pairs, cpu):
    """The stores beside the floors that they are measured against."""
    print("\n### Pairs of swaps a second, and pairs of the engine's own\n")
    print("CPU is that of the client and of the engine, in µs a pair.\n")
    print("| store | clients | pairs a second | the engine's own | ratio | spread | goal | | CPU | the engine's own |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for kind, name in KINDS.items():
        for clients in CLIENTS:
            own, floor = (pairs.get((kind, clients, side)) for side in ("store", "floor"))
            own_cpu, floor_cpu = (both(cpu.get((kind, clients, side))) for side in ("store", "floor"))
            line = f"| {name} | {clients} | {statistics.median(own):,.0f} "
            if not floor:
                print(line + f"| | | | | | {own_cpu} | |")
                continue
            ratio, spread = compared(floor, own)
            goal = verdict(ratio, GOALS.get(kind, GOAL))
            print(line + f"| {statistics.median(floor):,.0f} | {ratio:.2f} | {spread} | {goal} | {own_cpu} | {floor_cpu} |")


def run_pairs(servers, kind, arguments, side, seconds):
    """The pairs a second, and the CPU seconds of a pair: of the client, and of the engine."""
    client, engine = children_seconds(), servers.cpu_seconds(kind) if kind in ENGINES else 0
    command = [servers.program("examples/store_load"), *arguments]
    output = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout
    done = int(output) * seconds + (PREPARED if side == "store" else 0)
    engine = servers.cpu_seconds(kind) - engine if kind in ENGINES else 0
    return int(output), ((children_seconds() - client) / done, engine / done)


def redis_benchmark(servers, kind, clients, seconds):
    """The pairs a second that Redis's own benchmark makes of `SET NX PX` and `DEL`, each client on a connection of its
    own, and the CPU seconds of a pair. Each SET finds no key, and nearly each DEL one: what changes nothing costs less.
    """
    port = str(servers.ports[kind])
    redis = ["redis-cli", "-p", port, "-n", BENCHMARK_DATABASE]
    fill = "for number = 0, ARGV[1] - 1 do redis.call('SET', string.format('key:%012d', number), ARGV[2]) end"
    set_command = ["SET", "key:__rand_int__", RECORD, "NX", "PX", "3600000"]
    count, elapsed, used = 200 * clients, {}, {}
    for attempt in ("to see how many", "to measure"):
        for name, command, keys in ("SET", set_command, MANY_KEYS), ("DEL", ["DEL", "key:__rand_int__"], count * KEYS_PER_DELETION):
            run(redis + ["FLUSHDB"])
            if name == "DEL":
                run(redis + ["EVAL", fill, "0", str(keys), RECORD])
            options = ["-c", str(clients), "-n", str(count), "-r", str(keys), "--dbnum", BENCHMARK_DATABASE, "--csv"]
            client, engine = children_seconds(), servers.cpu_seconds(kind)
            output = run(["redis-benchmark", "-p", port, *options, *command])
            used[name] = ((children_seconds() - client) / count, (servers.cpu_seconds(kind) - engine) / count)
            elapsed[name] = 1 / float(output.splitlines()[-1].split('","')[1])
            left = int(run(redis + ["DBSIZE"]))
            changed = left if name == "SET" else keys - left
            assert changed >= EFFECTIVE * count, f"{name}: {changed} of {count} changed something"
        count = max(count, int(seconds / 2 / max(elapsed.values())))
    run(redis + ["FLUSHDB"])
    return 1 / (elapsed["SET"] + elapsed["DEL"]), tuple(map(sum, zip(*used.values())))


def run(command):
    """What a program prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def children_seconds():
    """CPU seconds of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def both(used):
    """The medians of the two times of a pair."""
    return " + ".join(f"{statistics.median(column) * 1e6:.1f}" for column in zip(*used or []) if any(column))


def print_requests(servers, rounds, seconds):
    """At a proxy: the time and the CPU of a guarded request, and what it is to the engine."""
    times, cpu, asked = {}, {}, {}
    for round_number in range(rounds):
        print(f"requests on stores: round {round_number + 1} of {rounds}", file=sys.stderr)
        for request in REQUESTS:
            for kind in KINDS:
                counted, used = counters(servers, kind), servers.cpu_seconds(f"stores_{kind}")
                done, connections = ask(servers, f"stores_{kind}", request, seconds)
                times.setdefault((request, kind), []).append(connections * seconds * 1e6 / done)
                cpu.setdefault((request, kind), []).append(
                    (servers.cpu_seconds(f"stores_{kind}") - used) * 1e6 / done)
                after = counters(servers, kind)
                asked.setdefault((request, kind), []).append([(new - old) / done for new, old in zip(after, counted)])
    print("\n### A guarded request on each store\n")
    print("| | store | requests a second | time of one, µs | ratio | spread | CPU of the proxy, µs | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for request in REQUESTS:
        connections = int(re.search(r"\d+", request)[0])
        for kind, name in KINDS.items():
            time, own_cpu = statistics.median(times[request, kind]), statistics.median(cpu[request, kind])
            line = f"| {request} | {name} | {connections * 1e6 / time:,.0f} | {time:,.0f} "
            if kind == "memory":
                print(line + f"| 1 | | {own_cpu:.1f} | 1 |")
                continue
            ratio, spread = compared(times[request, kind], times[request, "memory"])
            cpu_ratio, _ = compared(cpu[request, kind], cpu[request, "memory"])
            print(line + f"| {ratio:.2f} | {spread} | {own_cpu:.1f} | {cpu_ratio:.2f} |")
    print("\n### The requests of one of them to the engine, as the engine counts them\n")
    print("| | engine | calls | bytes to it | bytes from it | syncs of its log |\n|---|---|---|---|---|---|")
    for request in REQUESTS:
        for kind in COUNTING:
            numbers = [statistics.median(column) for column in zip(*asked[request, kind])]
            syncs = f"{numbers[3]:.2f}" if kind == "etcd" else ""
            print(f"| {request} | {KINDS[kind]} | {numbers[0]:.2f} | {numbers[1]:,.0f} | {numbers[2]:,.0f} | {syncs} |")
    return times


def print_writes(pairs, times):
    """What a store adds to a guarded write, beside the engine's own two swaps in sequence."""
    print("\n### What a store adds to a guarded write, 1 client, beside the engine's own pair\n")
    print("| store | added, µs | the engine's own pair, µs | ratio | goal | |\n|---|---|---|---|---|---|")
    for kind in ENGINES:
        added = [own - memory for own, memory in zip(times[WRITE, kind], times[WRITE, "memory"])]
        floor = [1e6 / rate for rate in pairs[kind, 1, "floor"]]
        ratio, _ = compared(added, floor)
        line = f"| {KINDS[kind]} | {statistics.median(added):,.0f} | {statistics.median(floor):,.0f} | {ratio:.2f} "
        print(line + f"| {verdict(ratio, WRITE_GOAL)} |")


def verdict(ratio, goal):
    return f"≤ {goal:.1f} | {'met' if ratio <= goal else 'missed'}"


def ask(servers, server, request, seconds):
    """How many requests (or pairs of them, for leases) were answered, on how many connections."""
    url = f"http://127.0.0.1:{servers.ports[server]}/version/"
    if request == LEASE:
        [done] = servers.lease_load(server, "pairs", "leases", 32, seconds)
        return done, 32
    connections = 8 if request == WRITE_8 else 1
    url, arguments = (url + "small", ["GET"]) if request == READ else (url + "w", ["update"])
    done, above_399, unexpected, broken, output = wrk.run(url, seconds, connections, connections, arguments)
    if not done or above_399 or unexpected or broken:
        sys.exit(f"{request}, {server}: answers that were not expected\n{output}")
    return done, connections


def counters(servers, kind):
    """Calls, bytes in, bytes out, and syncs, from an engine's start on."""
    if kind == "etcd":
        url = f"http://127.0.0.1:{servers.ports['etcd']}/metrics"
        text = urllib.request.urlopen(url, timeout=10).read().decode()
        number = lambda pattern: sum(float(found) for found in re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE))
        return [
            number(r'grpc_server_handled_total\{[^}]*grpc_method="Txn"[^}]*\}'),
            number("etcd_network_client_grpc_received_bytes_total"),
            number("etcd_network_client_grpc_sent_bytes_total"),
            number("etcd_disk_wal_fsync_duration_seconds_count"),
        ]
    if kind.startswith("redis"):
        command = ["redis-cli", "-p", str(servers.ports[kind]), "info", "everything"]
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        number = lambda pattern: int((re.search(pattern, text) or [0, 0])[1])
        calls = number(r"cmdstat_evalsha:calls=(\d+)")
        return [calls, number(r"total_net_input_bytes:(\d+)"), number(r"total_net_output_bytes:(\d+)"), 0]
    return [0, 0, 0, 0]


def compared(these, to_those):
    """The median of the ratios within the rounds, and the spread of their middle half."""
    ratios = [one / other for one, other in zip(these, to_those)]
    quarters = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return statistics.median(ratios), f"{quarters[0]:.2f} to {quarters[2]:.2f}"
