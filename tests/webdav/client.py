"""webdavclient3, while another client edits the same file. Usage: client.py URL"""

import sys
from io import BytesIO

from webdav3.client import Client
from webdav3.exceptions import ResourceLocked, ResponseErrorCode

FILE = "plan & notes.txt"


def connect():
    # Its look at the folder would send the token of the file, which is no condition that the folder meets.
    return Client({"webdav_hostname": sys.argv[1], "disable_check": True})


def read(client):
    content = BytesIO()
    client.download_from(content, FILE)
    return content.getvalue()


def refused(call, *arguments):
    try:
        call(*arguments)
    except ResourceLocked:
        return
    except ResponseErrorCode as error:
        if error.code == 423:
            return
        raise
    sys.exit(f"FAILED {call.__name__}: it succeeds")


client, other = connect(), connect()
client.upload_to(BytesIO(b"one"), FILE)
other.upload_to(BytesIO(b"of another"), "other.txt")
with client.lock(FILE, timeout=60) as holder:
    refused(other.lock, FILE)
    refused(other.upload_to, BytesIO(b"of another"), FILE)
    refused(other.clean, FILE)
    refused(other.move, FILE, "elsewhere.txt", True)
    refused(other.copy, "other.txt", FILE)
    holder.upload_to(BytesIO(b"two"), FILE)
assert read(client) == b"two", read(client)
other.copy("other.txt", FILE)
assert read(client) == b"of another", read(client)
assert sorted(client.list()) == sorted([FILE, "other.txt"]), client.list()
print("finished")
