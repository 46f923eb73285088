"""Clients that count together, in a blob with tags and in one with leases: nothing is lost. Usage: counter.py URL"""

import random
import time
from concurrent.futures import ThreadPoolExecutor

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError

from checks import check, service

CLIENTS, INCREMENTS = 4, 5


def until_done(attempt):
    while not attempt():
        time.sleep(random.uniform(0.001, 0.02))


def with_tags(blob):
    download = blob.download_blob()
    number, tag = int(download.readall()), download.properties.etag
    try:
        blob.upload_blob(str(number + 1), overwrite=True, etag=tag, match_condition=MatchConditions.IfNotModified)
        return True
    except ResourceModifiedError:
        return False


def with_leases(blob):
    try:
        lease = blob.acquire_lease(lease_duration=15)
    except HttpResponseError as error:
        check("somebody else holds the lease", error.error_code, "LeaseAlreadyPresent")
        return False
    blob.upload_blob(str(int(blob.download_blob().readall()) + 1), overwrite=True, lease=lease)
    lease.release()
    return True


def count(name, increment):
    service().get_blob_client("concurrency", name).upload_blob(b"0", overwrite=True)

    def client(_):
        blob = service().get_blob_client("concurrency", name)
        for _ in range(INCREMENTS):
            until_done(lambda: increment(blob))

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(client, range(CLIENTS)))
    total = service().get_blob_client("concurrency", name).download_blob().readall()
    check(f"nothing is lost of {name}", int(total), CLIENTS * INCREMENTS)


count("with tags", with_tags)
count("with leases", with_leases)
print("finished")
