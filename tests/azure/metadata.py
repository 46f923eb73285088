"""Metadata of blobs, as the SDK sets, reads and lists them. Usage: metadata.py URL"""

import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError

from checks import check, refused, service

container = service(max_single_put_size=1 << 16, max_block_size=1 << 15).get_container_client("documents")
blob = container.get_blob_client("folder/report.txt")


def unchanged(tag):
    return {"etag": tag, "match_condition": MatchConditions.IfNotModified}


def kept():
    return blob.get_blob_properties().metadata


# With the content.
container.create_container()
refused("metadata of what is not there", 404, "BlobNotFound",
        blob.set_blob_metadata, {"a": "1"}, kind=ResourceNotFoundError)
first = blob.upload_blob(b"one", metadata={"owner": "alice", "note": "a, b; \"c\" = d"})["etag"]
properties = blob.get_blob_properties()
check("those of the upload", properties.metadata, {"owner": "alice", "note": "a, b; \"c\" = d"})
check("its tag", properties.etag, first)
download = blob.download_blob()
check("a download has them", (download.properties.metadata, download.readall()), (properties.metadata, b"one"))
second = blob.upload_blob(b"two", overwrite=True)["etag"]
check("an upload without any removes them", kept(), {})
blob.upload_blob(bytes(200_000), overwrite=True, metadata={"parts": "7"})
check("those of an upload in blocks", kept(), {"parts": "7"})

# On their own.
tag = blob.get_blob_properties().etag
set_once = blob.set_blob_metadata({"owner": "bob"}, **unchanged(tag))
properties = blob.get_blob_properties()
check("they are replaced, all of them", properties.metadata, {"owner": "bob"})
check("by a new state", properties.etag != tag and set_once["etag"] == properties.etag)
check("with its date", properties.last_modified >= set_once["last_modified"])
check("the content stays", blob.download_blob().readall(), bytes(200_000))
refused("with a stale tag", 412, "ConditionNotMet",
        blob.set_blob_metadata, {"owner": "carol"}, kind=ResourceModifiedError, **unchanged(tag))
refused("an upload with a stale tag", 412, "ConditionNotMet", blob.upload_blob, b"x", overwrite=True,
        metadata={"owner": "carol"}, kind=ResourceModifiedError, **unchanged(tag))
refused("only where there is no blob", 409, "BlobAlreadyExists",
        blob.set_blob_metadata, {"owner": "carol"}, if_none_match="*", kind=ResourceExistsError)
refused("with a date before the change", 412, "ConditionNotMet", blob.set_blob_metadata, {"owner": "carol"},
        if_unmodified_since=set_once["last_modified"].replace(year=2000), kind=ResourceModifiedError)
check("nothing has changed", (kept(), blob.get_blob_properties().etag), ({"owner": "bob"}, properties.etag))
for what, metadata, code in [
    ("a name that is no identifier", {"a-b": "1"}, "InvalidMetadata"),
    ("too much", {"a": "x" * 5000, "b": "y" * 5000}, "MetadataTooLarge"),
]:
    refused(what, 400, code, blob.set_blob_metadata, metadata)
    refused(f"{what}, in an upload", 400, code, blob.upload_blob, b"x", overwrite=True, metadata=metadata)
check("a name keeps its letter case", (blob.set_blob_metadata({"OwnerOf_x": "dave"}) and kept()), {"OwnerOf_x": "dave"})
check("in a download", blob.download_blob().properties.metadata, {"OwnerOf_x": "dave"})
blob.upload_blob(b"three", overwrite=True, metadata={"FROM": "upload"})
check("and in an upload", kept(), {"FROM": "upload"})
blob.set_blob_metadata({})
check("they are removed", kept(), {})

# With a lease.
lease = blob.acquire_lease(lease_duration=15)
refused("without the lease", 412, "LeaseIdMissing", blob.set_blob_metadata, {"a": "1"})
refused("with another", 412, "LeaseIdMismatchWithBlobOperation",
        blob.set_blob_metadata, {"a": "1"}, lease=str(uuid.uuid4()))
blob.set_blob_metadata({"a": "1"}, lease=lease)
check("with the lease", (kept(), blob.get_blob_properties().lease.state), ({"a": "1"}, "leased"))
lease.release()

# The end of a blob.
blob.delete_blob()
refused("they are gone with the blob", 404, "BlobNotFound", blob.get_blob_properties, kind=ResourceNotFoundError)
blob.upload_blob(b"another")
check("another blob of the name has none", kept(), {})

# Lists.
blob.set_blob_metadata({"In": "list"})
for number in range(120):
    container.get_blob_client(f"many/{number:03}").upload_blob(b"x", metadata={"number": str(number)} if number else None)
listed = {item.name: item for item in container.list_blobs(include=["metadata"])}
check("all blobs, and nothing else", len(listed), 121)
check("each with its metadata", listed["folder/report.txt"].metadata, {"In": "list"})
check("over several pages", listed["many/119"].metadata, {"number": "119"})
check("or without any", not listed["many/000"].metadata)
properties = blob.get_blob_properties()
check("and its tag", listed["folder/report.txt"].etag, properties.etag.strip('"'))
check("which a write can name", blob.set_blob_metadata({}, **unchanged(listed["folder/report.txt"].etag))["etag"])
pages = [len(list(page)) for page in container.list_blobs(include=["metadata"]).by_page()]
check("a page has at most 100", pages, [100, 21])
plain = [item.name for item in container.list_blobs()]
check("a list without metadata shows the same blobs", plain, list(listed))
refused("another part in a list", 400, "UnsupportedQueryParameter",
        lambda: list(container.list_blobs(include=["metadata", "tags"])))
for name in ["a.metadata.json", "a.METADATA.json/b"]:
    refused(f"{name} is no name of a blob", 400, "InvalidResourceName", container.get_blob_client(name).upload_blob, b"x")
    refused(f"{name} is not read", 400, "InvalidResourceName", container.get_blob_client(name).get_blob_properties)
print("finished")
