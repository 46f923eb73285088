"""The servers of load.py over TLS, and requests to them over HTTP/1.1 and HTTP/2 by h2load."""

import re
import subprocess

# Connections, and requests at a time on each of them: as many in all as wrk has without TLS.
CONNECTIONS = {"HTTP/1.1": (32, 1), "HTTP/2": (4, 8)}


def certificate(directory):
    """Makes a certificate of a server, and returns the files of its chain and its key."""
    chain, key = directory / "tls.pem", directory / "tls.key"
    if not chain.exists():
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-subj", "/CN=localhost", "-keyout", key, "-out", chain]
        subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
    return chain, key


def of_ifmatch(file, directory):
    """The configuration of a proxy whose listener speaks TLS."""
    chain, key = certificate(directory)
    text = file.read_text().replace('listen = ["', 'listen = ["tls:')
    file.write_text(text + f'\n[[server.tls.certificates]]\ncert = "{chain}"\nkey = "{key}"\n')
    return file


def of_nginx(file, directory):
    """The same for nginx."""
    chain, key = certificate(directory)
    listener = re.search(r"listen ([^;]+);", file.read_text())
    encrypted = f"listen {listener[1]} ssl http2; ssl_certificate {chain}; ssl_certificate_key {key};"
    file.write_text(file.read_text().replace(listener[0], encrypted).replace("nginx.pid", "nginx-tls.pid"))
    return file


def measure(servers, row, seconds):
    """CPU microseconds a request. Ends the program if an answer is not what it should be."""
    connections, at_once = CONNECTIONS[row.over]
    fields = {":method": row.method, **row.fields}
    before = servers.cpu_seconds(row.server)
    counts, output = run(f"https://127.0.0.1:{servers.ports[row.server]}{row.path}", row.over, [
        "-c", connections, "-m", at_once, "-D", seconds, *(text for pair in fields.items() for text in ("-H", ": ".join(pair))),
    ])
    used = servers.cpu_seconds(row.server) - before
    expected = {2: 0, 3: 0, 4: 0, 5: 0} | {row.status // 100: sum(counts.values())}
    if counts != expected or not sum(counts.values()):
        raise SystemExit(f"{row.name}: answers that were not expected\n{output}")
    return used * 1e6 / sum(counts.values())


def run(url, protocol, options):
    """How many answers had a status of each class, and what h2load said."""
    command = ["h2load", *(["--h1"] if protocol == "HTTP/1.1" else []), *options, url]
    output = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False).stdout
    lost = sum(map(int, re.findall(r"(\d+) (?:errored|timeout)", output)))
    found = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output)
    counts = dict(zip((2, 3, 4, 5), map(int, found.groups()))) if found and not lost else {}
    return counts, output
