"""A thousand writers of one resource, beside one writer that never waits."""

import resource
import statistics

import wrk

WRITERS = 1_000


def print_table(servers, rounds, seconds):
    """The writes a second of a queue, beside those of one client through bare pingora."""
    # Each writer has a connection.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * WRITERS), hard))
    alone, queued = [], []
    for _ in range(rounds):
        alone.append(rate(servers, "bare", "/plain/contended", 1, seconds))
        queued.append(rate(servers, "guarded", "/queued/contended", WRITERS, seconds))
    ratio = statistics.median(many / one for one, many in zip(alone, queued))
    print(f"\n### {WRITERS:,} writers of one resource\n\n| | writes a second | ratio | goal | |\n|---|---|---|---|---|")
    print(f"| bare pingora, 1 writer | {statistics.median(alone):.0f} | 1 | | |")
    verdict = "met" if ratio >= 0.8 else "missed"
    print(f"| ifmatch, {WRITERS:,} writers | {statistics.median(queued):.0f} | {ratio:.2f} | ≥ 0.80 | {verdict} |")


def rate(servers, server, path, connections, seconds):
    """The writes a second, all of them applied."""
    url = f"http://127.0.0.1:{servers.ports[server]}{path}"
    requests, above_399, unexpected, broken, output = wrk.run(url, seconds, 1, connections, ["PUT", "If-Match", "*"])
    if requests == 0 or above_399 or unexpected or broken:
        raise SystemExit(f"{path}: answers that were not expected\n{output}")
    return requests / seconds
