"""What load.py measures: requests of one kind to one server, in groups that are compared."""

from dataclasses import dataclass, field, replace

import sizes

STALE = '"0000000000000000-0-00000000"'


@dataclass
class Row:
    """One line of the table: requests of one kind to one server."""

    name: str
    server: str
    path: str
    method: str = "GET"  # or UPDATE: PUTs in turn, each with the tag of the answer before; or PAIRS (load/lease_load.rs)
    status: int = 200
    fields: dict = field(default_factory=dict)
    base: str = ""
    # For the program of the packages; that of a plain build costs about a fifth more.
    goal: float = 0.0
    # The protocol, if it is not HTTP/1.1 without TLS.
    over: str = ""


def get(name, server, path, base="", goal=0.0):
    return Row(name, server, path, base=base, goal=goal)


def not_modified(name, server, path, base="", goal=0.0):
    return Row(name, server, path, "GET", 304, {"If-None-Match": "current"}, base, goal)


def stale(name, server, path, base="", goal=0.0):
    return Row(name, server, path, "PUT", 412, {"If-Match": STALE}, base, goal)


def update(name, server, path, base="", goal=0.0):
    return Row(name, server, path, "UPDATE", 204, {}, base, goal)


def pairs(name, server, kind, base="", goal=0.0):
    return Row(name, server, kind, "PAIRS", base=base, goal=goal)


def of_nginx(over=""):
    """What nginx does as well, over one protocol."""
    end = "_tls" if over else ""
    small, large, local = (f"nginx, {what}" for what in ("GET of 1 KiB", "GET of 64 KiB", "`return 412`"))
    goals = {"": (1.15, 1.35, 1.40), "HTTP/1.1": (0.95, 1.10, 1.00), "HTTP/2": (1.10, 1.15, 1.10)}[over]
    large_goals = (0.90, 1.00) if over else (0, 0)
    rows = [
        get(small, "nginx" + end, "/plain/small"),
        get("ifmatch, unguarded, GET of 1 KiB", "unguarded" + end, "/plain/small", small, goals[0]),
        get("ifmatch, `version`, GET of 1 KiB", "guarded" + end, "/version/small", small, goals[1]),
        stale(local, "nginx" + end, "/refused/"),
        stale("ifmatch, `version`, 412", "guarded" + end, "/version/small", local, goals[2]),
        get(large, "nginx" + end, "/plain/large"),
        get("ifmatch, unguarded, GET of 64 KiB", "unguarded" + end, "/plain/large", large, large_goals[0]),
        get("ifmatch, `version`, GET of 64 KiB", "guarded" + end, "/version/large", large, large_goals[1]),
    ]
    return [replace(row, over=over) for row in rows]


PASS, LARGE_PASS, WRITE_PASS = "bare pingora", "bare pingora, 64 KiB", "bare pingora, PUT"
BARE_304, BARE_412, BARE_PAIR = "bare pingora, local 304", "bare pingora, local 412", "bare pingora, two local 304"
SILENT_412, SILENT_GET = "ifmatch, 412, silent", "ifmatch, GET, silent"
FEW_ROUTES = "ifmatch, 412, 5 routes"
GROUPS = {
    "nginx": ("Beside nginx: HTTP/1.1", of_nginx()),
    "tls": ("Beside nginx: TLS, HTTP/1.1", of_nginx("HTTP/1.1")),
    "http2": ("Beside nginx: TLS, HTTP/2, 8 streams on each of 4 connections", of_nginx("HTTP/2")),
    "reads": ("Reads of 1 KiB", [
        get(PASS, "bare", "/plain/small"),
        get("ifmatch, unguarded", "unguarded", "/plain/small", PASS),
        get("ifmatch, unguarded, with its access log", "logged", "/plain/small", "ifmatch, unguarded"),
        get("ifmatch, `version`, exclusive", "guarded", "/version/small", PASS),
        get("ifmatch, `content`, exclusive", "guarded", "/content/small", PASS),
        get("ifmatch, `content`, shared", "guarded", "/shared/small", PASS),
        get("ifmatch, `upstream`, shared", "guarded", "/upstream/small", PASS),
        get("nginx", "nginx", "/plain/small", PASS),
        get("nginx with the Lua check", "lua", "/plain/small", PASS),
        get("HAProxy", "haproxy", "/plain/small", PASS),
    ]),
    "large": ("Reads of 64 KiB", [
        get(LARGE_PASS, "bare", "/plain/large"),
        get("ifmatch, unguarded, 64 KiB", "unguarded", "/plain/large", LARGE_PASS),
        get("ifmatch, `version`, exclusive, 64 KiB", "guarded", "/version/large", LARGE_PASS),
        get("ifmatch, `content`, exclusive, 64 KiB", "guarded", "/content/large", LARGE_PASS),
        get("ifmatch, `content`, shared, 64 KiB", "guarded", "/shared/large", LARGE_PASS),
        get("nginx, 64 KiB", "nginx", "/plain/large", LARGE_PASS),
        get("HAProxy, 64 KiB", "haproxy", "/plain/large", LARGE_PASS),
    ]),
    "304": ("Answers of its own: 304", [
        Row(BARE_304, "bare_304", "/version/small", "GET", 304, {"If-None-Match": STALE}),
        not_modified("ifmatch, `version`, exclusive, 304", "guarded", "/version/small", BARE_304),
        not_modified("ifmatch, `content`, exclusive, 304", "guarded", "/content/small", BARE_304),
        not_modified("nginx with the Lua check, 304", "lua", "/plain/small", BARE_304),
    ]),
    "412": ("Answers of its own: 412 and 428", [
        stale(BARE_412, "bare_412", "/version/small"),
        stale("ifmatch, `version`, exclusive, 412", "guarded", "/version/small", BARE_412),
        stale("ifmatch, `content`, exclusive, 412", "guarded", "/content/small", BARE_412),
        Row("ifmatch, no precondition, 428", "guarded", "/shared/small", "PUT", 428, base=BARE_412),
        stale("nginx, `return 412`", "nginx", "/refused/", BARE_412),
        stale("nginx with the Lua check, 412", "lua", "/plain/small", BARE_412),
        stale("HAProxy, `http-request return`", "haproxy", "/refused/", BARE_412),
    ]),
    "writes": ("PUTs of 200 bytes, each with the tag of the answer before", [
        update(WRITE_PASS, "bare", "/plain/w"),
        update("ifmatch, unguarded, PUT", "unguarded", "/plain/w", WRITE_PASS),
        update("ifmatch, `version`, exclusive, PUT", "guarded", "/version/w", WRITE_PASS),
        update("ifmatch, `content`, exclusive, PUT (and a read after it)", "guarded", "/content/w", WRITE_PASS),
        update("ifmatch, `content`, shared, PUT (a read before and after it)", "guarded", "/shared/w", WRITE_PASS),
        update("ifmatch, `upstream`, shared, PUT (a HEAD before it, and one after it to learn the tag)", "guarded", "/upstream/w", WRITE_PASS),
        update("nginx, PUT", "nginx", "/plain/w", WRITE_PASS),
        update("nginx with the Lua check, PUT", "lua", "/plain/w", WRITE_PASS),
        update("HAProxy, PUT", "haproxy", "/plain/w", WRITE_PASS),
    ]),
    "telemetry": ("Metrics, access log and 1 % of traces", [
        stale(SILENT_412, "guarded", "/version/small"),
        stale("ifmatch, 412, with all of them", "telling", "/version/small", SILENT_412, 1.08),
        stale("ifmatch, 412, with metrics alone", "counting", "/version/small", SILENT_412),
        get(SILENT_GET, "guarded", "/version/small"),
        get("ifmatch, GET, with all of them", "telling", "/version/small", SILENT_GET, 1.05),
        get("ifmatch, GET, with metrics alone", "counting", "/version/small", SILENT_GET),
    ]),
    "routes": (f"A 412 among {sizes.ROUTES:,} routes", [
        stale(FEW_ROUTES, "guarded", "/version/small"),
        stale(f"ifmatch, 412, {sizes.ROUTES:,} routes", "many", "/version/small", FEW_ROUTES, 1.05),
    ]),
    "leases": ("A lease: acquired and released, a pair of requests", [
        pairs(BARE_PAIR, "bare_304", "/version/small"),
        pairs("ifmatch, `version`, exclusive, two local 304", "guarded", "/version/small", BARE_PAIR),
        pairs("ifmatch, acquire and release", "leases", "leases", BARE_PAIR, 1.15),
        pairs("Redis, `SET NX PX` and `DEL`", "redis", "redis", BARE_PAIR),
    ]),
}
