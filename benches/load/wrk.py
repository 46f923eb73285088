"""One run of wrk with requests.lua."""

import re
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "requests.lua"


def run(url, seconds, threads, connections, arguments):
    """How many requests were answered, above 399, not as expected, and cut off; and what wrk said."""
    command = ["wrk", "-t", threads, "-c", connections, "-d", f"{seconds}s", "-s", SCRIPT, url, "--", *arguments]
    output = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False).stdout
    counts = re.search(r"^(\d+) (\d+) (\d+) (\d+)$", output, re.MULTILINE)
    return (*(map(int, counts.groups()) if counts else (0, 0, 0, 0)), output)
