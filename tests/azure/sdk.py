"""All that the SDK does with blobs in front of a plain server. Usage: sdk.py URL"""

import hashlib
import time
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError

from azure.storage.blob import BlobLeaseClient

from checks import check, refused, service

container = service().get_container_client("documents")
blob = container.get_blob_client("folder/report.txt")


def write(body, **options):
    return blob.upload_blob(body, overwrite=True, **options)["etag"]


def unchanged(tag):
    return {"etag": tag, "match_condition": MatchConditions.IfNotModified}


# Contents.
container.create_container()
refused("to read what is not there", 404, "BlobNotFound", blob.download_blob, kind=ResourceNotFoundError)
uploaded = blob.upload_blob(b"0123456789")
first = uploaded["etag"]
check("the MD5 of the upload", bytes(uploaded["content_md5"]), hashlib.md5(b"0123456789").digest())
refused("to create what is there", 409, "BlobAlreadyExists", blob.upload_blob, b"other", kind=ResourceExistsError)
properties = blob.get_blob_properties()
check("the tag of the upload is that of the properties", first, properties.etag)
check("the date of the upload", properties.last_modified)
check("the length of the upload", properties.size, 10)
download = blob.download_blob()
check("all of it is downloaded", download.readall(), b"0123456789")
check("with the same tag", download.properties.etag, first)
check("a range is downloaded", blob.download_blob(offset=2, length=3).readall(), b"234")
check("an open range is downloaded", blob.download_blob(offset=7).readall(), b"789")
empty = container.get_blob_client("empty")
check("an empty blob is uploaded", empty.upload_blob(b"", overwrite=True)["etag"])
check("and downloaded", empty.download_blob().readall(), b"")
large = container.get_blob_client("large")
content = bytes(range(256)) * 4096 * 3
check("3 MiB are uploaded", large.upload_blob(content, overwrite=True)["etag"])
check("and downloaded", large.download_blob().readall() == content)
pieces = {"max_single_get_size": 1 << 20, "max_chunk_get_size": 1 << 20}
download = service(**pieces).get_blob_client("documents", "large").download_blob()
check("in pieces too", download.readall() == content)
download = service(**pieces).get_blob_client("documents", "large").download_blob()
large.upload_blob(content[::-1], overwrite=True)
refused("pieces of two states", 412, "ConditionNotMet", download.readall, kind=ResourceModifiedError)

# Preconditions.
second = write(b"second", **unchanged(first))
check("a write with the current tag changes it", second != first)
refused("a stale write", 412, "ConditionNotMet", write, b"stale", kind=ResourceModifiedError, **unchanged(first))
refused("a stale deletion", 412, "ConditionNotMet", blob.delete_blob, kind=ResourceModifiedError, **unchanged(first))
refused("a read of a certain state", 412, "ConditionNotMet",
        blob.download_blob, kind=ResourceModifiedError, **unchanged(first))
refused("a read of what is known", 304, "ConditionNotMet", blob.get_blob_properties, kind=ResourceModifiedError,
        etag=second, match_condition=MatchConditions.IfModified)
check("nothing else was written", blob.download_blob().readall(), b"second")

# A lease.
lease = blob.acquire_lease(lease_duration=15)
properties = blob.get_blob_properties()
shown = properties.lease
check("it is shown", (shown.state, shown.status, shown.duration), ("leased", "locked", "fixed"))
check("it changes no tag", (properties.etag, lease.etag), (second, second))
refused("a write without it", 412, "LeaseIdMissing", write, b"none")
refused("a write with another", 412, "LeaseIdMismatchWithBlobOperation", write, b"wrong", lease=str(uuid.uuid4()))
third = write(b"third", lease=lease)
check("a write with it", third != second)
refused("a stale write with it", 412, "ConditionNotMet",
        write, b"stale", lease=lease, kind=ResourceModifiedError, **unchanged(second))
check("a read without it", blob.download_blob().readall(), b"third")
check("a read with it", blob.download_blob(lease=lease).readall(), b"third")
refused("a second one", 409, "LeaseAlreadyPresent", blob.acquire_lease, lease_duration=15, kind=ResourceExistsError)
again = blob.acquire_lease(lease_duration=15, lease_id=lease.id)
check("the same once more", again.id, lease.id)
lease.renew()
check("it is renewed", blob.get_blob_properties().lease.state, "leased")
old, new = lease.id, str(uuid.uuid4())
lease.change(proposed_lease_id=new)
check("it is changed", lease.id, new)
refused("a write with its old id", 412, "LeaseIdMismatchWithBlobOperation", write, b"old", lease=old)
check("a write with its new id", write(b"fourth", lease=new))

# The end of a lease.
check("it is broken in a while", lease.break_lease(lease_break_period=5) <= 5)
check("it is breaking", blob.get_blob_properties().lease.state, "breaking")
refused("another while it breaks", 409, "LeaseAlreadyPresent", blob.acquire_lease, lease_duration=15)
refused("to renew it while it breaks", 409, "LeaseIsBrokenAndCannotBeRenewed", lease.renew)
end = time.monotonic() + 60
while blob.get_blob_properties().lease.state == "breaking" and time.monotonic() < end:
    time.sleep(0.1)
check("it is broken", blob.get_blob_properties().lease.state, "broken")
refused("to renew it when it is broken", 409, "LeaseIsBrokenAndCannotBeRenewed", lease.renew)
refused("a write with it", 412, "LeaseLost", write, b"late", lease=lease)
lease = blob.acquire_lease(lease_duration=15)
BlobLeaseClient(blob, lease_id=lease.id).release()
check("it is released", blob.get_blob_properties().lease.state, "available")
refused("to release it again", 409, "LeaseIdMismatchWithLeaseOperation", lease.release)
refused("to renew it then", 409, "LeaseIdMismatchWithLeaseOperation", lease.renew)
refused("a write with what was released", 412, "LeaseNotPresentWithBlobOperation", write, b"late", lease=lease)
check("a write without any", write(b"fifth"))
lease = blob.acquire_lease()
check("one without an end", blob.get_blob_properties().lease.duration, "infinite")
check("breaks at once", lease.break_lease(), 0)
refused("a duration that is too short", 400, "InvalidHeaderValue", blob.acquire_lease, lease_duration=14)
refused("a lease of nothing", 404, "BlobNotFound",
        container.get_blob_client("none").acquire_lease, kind=ResourceNotFoundError)

# The end of a blob.
tag = write(b"sixth")
lease = blob.acquire_lease(lease_duration=15, etag=tag, match_condition=MatchConditions.IfNotModified)
refused("to delete it without its lease", 412, "LeaseIdMissing", blob.delete_blob)
blob.delete_blob(lease=lease)
refused("it is gone", 404, "BlobNotFound", blob.get_blob_properties, kind=ResourceNotFoundError)
refused("it cannot be deleted twice", 404, "BlobNotFound", blob.delete_blob, kind=ResourceNotFoundError)
check("it is created anew without a lease", blob.upload_blob(b"new")["etag"])

# Names.
for name in ["ü ñ/日本.txt", "a+b&c=d'e(f).txt", "100%.txt", "a#b?c", "x:y@z!$*,~;"]:
    named = container.get_blob_client(name)
    tag = named.upload_blob(name.encode())["etag"]
    check(f"{name} is kept", (named.download_blob().readall(), named.get_blob_properties().etag), (name.encode(), tag))
    check(f"{name} is leased", named.acquire_lease(lease_duration=15).break_lease(lease_break_period=0), 0)
refused("a name that could be two blobs", 400, "InvalidUri", container.get_blob_client("a\\b").upload_blob, b"")

# An operation without a counterpart in the plain server is refused, and the blob stays unchanged.
for what, code, call in [
    ("appending", "NotImplemented", lambda: write(b"more", blob_type="AppendBlob")),
    ("pages", "UnsupportedHeader", lambda: blob.create_page_blob(512)),
    ("a copy of a URL", "UnsupportedHeader", lambda: blob.upload_blob_from_url(empty.url, overwrite=True)),
    ("a snapshot", "NotImplemented", blob.create_snapshot),
    ("a tier", "NotImplemented", lambda: blob.set_standard_blob_tier("Cool")),
    ("tags", "NotImplemented", lambda: blob.set_blob_tags({"name": "value"})),
    ("an access policy", "NotImplemented", container.get_container_access_policy),
    ("tags in a list", "UnsupportedQueryParameter", lambda: list(container.list_blobs(include=["tags"]))),
]:
    refused(f"not served: {what}", 501 if code == "NotImplemented" else 400, code, call)
check("the blob is what it was", blob.download_blob().readall(), b"new")

# The container.
refused("to create it again", 409, "ContainerAlreadyExists", container.create_container, kind=ResourceExistsError)
lease = container.acquire_lease(lease_duration=15)
check("its lease is shown", container.get_container_properties().lease.state, "leased")
check("it keeps nobody from its blobs", write(b"of anybody"))
refused("to delete it without its lease", 412, "LeaseIdMissing", container.delete_container)
container.delete_container(lease=lease)
check("it is gone", container.exists(), False)
print("finished")
