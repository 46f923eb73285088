"""Properties and checksums of blobs, as the SDK sets, reads and lists them. Usage: properties.py URL"""

import hashlib
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import ContentSettings

from checks import check, refused, service

container = service(max_single_put_size=1 << 16, max_block_size=1 << 15).get_container_client("properties")
blob = container.get_blob_client("report.txt")
NAMES = ["content_type", "content_language", "content_encoding", "content_disposition", "cache_control"]
CHOSEN = ContentSettings("text/x", "x-none", "de", 'attachment; filename="a b"', "no-cache")


def kept(properties=None):
    return settings_of((properties or blob.get_blob_properties()).content_settings)


def settings_of(settings):
    return [getattr(settings, name) for name in NAMES]


def checksum_of(content):
    return bytearray(hashlib.md5(content).digest())


# With the content.
container.create_container()
refused("properties of what is not there", 404, "BlobNotFound",
        blob.set_http_headers, CHOSEN, kind=ResourceNotFoundError)
first = blob.upload_blob(b"one", content_settings=CHOSEN, metadata={"Owner": "alice"})["etag"]
check("those of the upload", kept(), settings_of(CHOSEN))
check("no checksum, because none was sent", blob.get_blob_properties().content_settings.content_md5, None)
download = blob.download_blob()
check("a download has them", (kept(download.properties), download.readall()), (settings_of(CHOSEN), b"one"))
blob.upload_blob(b"two", overwrite=True)
check("an upload without any has those of the server", kept(), ["text/plain", None, None, None, None])
blob.upload_blob(bytes(200_000), overwrite=True, content_settings=CHOSEN)
check("those of an upload in blocks", kept(), settings_of(CHOSEN))

# On their own.
blob.set_blob_metadata({"Owner": "bob"})
check("metadata leave them", kept(), settings_of(CHOSEN))
tag = blob.get_blob_properties().etag
changed = blob.set_http_headers(ContentSettings("text/y"), etag=tag, match_condition=MatchConditions.IfNotModified)
properties = blob.get_blob_properties()
check("they are replaced, all of them", kept(), ["text/y", None, None, None, None])
check("by a new state", properties.etag != tag and changed["etag"] == properties.etag)
check("which leaves metadata", properties.metadata, {"Owner": "bob"})
check("and the content", blob.download_blob().readall(), bytes(200_000))
refused("with a stale tag", 412, "ConditionNotMet", blob.set_http_headers, CHOSEN, kind=ResourceModifiedError,
        etag=tag, match_condition=MatchConditions.IfNotModified)
lease = blob.acquire_lease(lease_duration=15)
refused("without the lease", 412, "LeaseIdMissing", blob.set_http_headers, CHOSEN)
refused("with another", 412, "LeaseIdMismatchWithBlobOperation", blob.set_http_headers, CHOSEN, lease=str(uuid.uuid4()))
blob.set_http_headers(CHOSEN, lease=lease)
check("with the lease", kept(), settings_of(CHOSEN))
lease.release()

# The checksum.
blob.upload_blob(b"0123456789", overwrite=True, content_settings=CHOSEN, validate_content=True)
check("that of the upload", blob.get_blob_properties().content_settings.content_md5, checksum_of(b"0123456789"))
check("a download is validated", blob.download_blob(validate_content=True).readall(), b"0123456789")
check("and a part of it", blob.download_blob(offset=2, length=3, validate_content=True).readall(), b"234")
part = blob.download_blob(offset=2, length=3)
check("that of the blob, with a part", part.properties.content_settings.content_md5, checksum_of(b"0123456789"))
check("a part", part.readall(), b"234")
blob.set_blob_metadata({"Owner": "carol"})
check("metadata leave it", blob.get_blob_properties().content_settings.content_md5, checksum_of(b"0123456789"))
listed = {item.name: item for item in container.list_blobs(include=["metadata"])}["report.txt"]
check("a list has it", listed.content_settings.content_md5, checksum_of(b"0123456789"))
check("with the properties", (kept(listed), listed.metadata), (settings_of(CHOSEN), {"Owner": "carol"}))
blob.upload_blob(b"other", overwrite=True)
check("not that of another content", blob.get_blob_properties().content_settings.content_md5, None)
blob.set_http_headers(ContentSettings(content_md5=checksum_of(b"other")))
check("it is set on its own", blob.get_blob_properties().content_settings.content_md5, checksum_of(b"other"))
blob.set_http_headers()
check("and cleared", blob.get_blob_properties().content_settings.content_md5, None)

# The end of a blob.
blob.set_http_headers(CHOSEN)
blob.delete_blob()
blob.upload_blob(b"another")
check("another blob of the name has none", kept(), ["text/plain", None, None, None, None])
print("finished")
