"""A PostgreSQL of its own for a run, with the settings that it has after its installation."""

import os
import pwd
import subprocess
from pathlib import Path

# The user that ifmatch logs in as if its configuration names none.
USER, DATABASE = "ifmatch", "postgres"


def command(directory, port):
    """The command that starts it, after its data are made in this directory."""
    data = directory / "postgres-data"
    data.mkdir()
    prefix = as_other_user(directory, data)
    initdb = [*prefix, program("initdb"), "--username", USER, "--auth=trust", "--no-sync", "--pgdata", data]
    subprocess.run(initdb, stdout=subprocess.DEVNULL, check=True)
    return [*prefix, program("postgres"), "-D", data, "-h", "127.0.0.1", "-p", port, "-k", data]


def as_other_user(directory, data):
    """What a command begins with: the programs refuse to run as root."""
    if os.geteuid():
        return []
    user = pwd.getpwnam("postgres")
    os.chown(data, user.pw_uid, user.pw_gid)
    directory.chmod(0o711)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def program(name):
    """One of its programs, which are not on the path."""
    return max(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))


def url(port):
    return f"postgres://127.0.0.1:{port}/{DATABASE}"
