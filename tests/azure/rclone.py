"""rclone as it is, with a shared access signature: a tree of files and their times go there and back. Usage: rclone.py URL"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import check, service

if not shutil.which("rclone"):
    sys.exit("rclone is missing: `make setup-test` installs it")
container = service().get_container_client("backup")
container.create_container()
directory = Path(tempfile.mkdtemp())
# rclone takes the first part of a path for an account, unless the host has a name: so it gets one, and reaches the
# server as its proxy. The signature is the backend's to check.
settings = directory / "rclone.conf"
settings.write_text("[azure]\ntype = azureblob\nsas_url = http://storage.test/?sv=2020-10-02&sig=YQ\n")
os.environ["http_proxy"] = sys.argv[1]


def rclone(*arguments):
    """What rclone prints. It tries nothing twice, so that no error is hidden."""
    command = ["rclone", "--config", settings, "--retries", "1", "--low-level-retries", "1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAILED rclone {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout + done.stderr


def listed():
    """The paths of the files in the container."""
    return sorted(rclone("lsf", "-R", "--files-only", "azure:backup").splitlines())


source = directory / "source"
(source / "sub").mkdir(parents=True)
(source / "a.txt").write_text("one")
(source / "sub" / "b c.txt").write_text("two")
# More than one block: rclone uploads in blocks of 4 MiB.
(source / "large.bin").write_bytes(os.urandom(10 * 1024 * 1024))
for path in source.rglob("*.*"):
    os.utime(path, (1_600_000_000, 1_600_000_000))

rclone("copy", source, "azure:backup")
rclone("check", "--download", source, "azure:backup")
check("three files", listed(), ["a.txt", "large.bin", "sub/b c.txt"])
check("the times are kept", rclone("lsl", "azure:backup").count("2020-09-13 12:26:40"), 3)
check("a second copy sends nothing", "There was nothing to transfer" in rclone("-v", "copy", source, "azure:backup"))

(source / "a.txt").write_text("three")
(source / "sub" / "b c.txt").unlink()
rclone("sync", source, "azure:backup")
rclone("check", "--download", source, "azure:backup")
check("two files", listed(), ["a.txt", "large.bin"])

rclone("touch", "--timestamp", "2020-01-01T00:00:00", "azure:backup/a.txt")
check("a time alone is changed", "2020-01-01 00:00:00" in rclone("lsl", "azure:backup/a.txt"))

rclone("copyto", "azure:backup/a.txt", "azure:backup/copied.txt")
check("a copy at the server", rclone("cat", "azure:backup/copied.txt"), "three")
rclone("moveto", "azure:backup/copied.txt", "azure:backup/moved.txt")
check("and a move", listed(), ["a.txt", "large.bin", "moved.txt"])
rclone("deletefile", "azure:backup/moved.txt")

back = directory / "back"
rclone("copy", "azure:backup", back)
check("all comes back", (back / "large.bin").read_bytes() == (source / "large.bin").read_bytes())
rclone("purge", "azure:backup")
check("nothing is left", container.exists(), False)
print("finished")
