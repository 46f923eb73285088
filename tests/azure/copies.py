"""Copies of blobs, as the SDK makes them. Usage: copies.py URL"""

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import ContentSettings

from checks import check, refused, service

container = service().get_container_client("copies")
container.create_container()
source = container.get_blob_client("folder/ü ñ.txt")
target = container.get_blob_client("copy.txt")
settings = ContentSettings(content_type="text/x", content_language="de")
tag = source.upload_blob(b"one", metadata={"Owner": "alice"}, content_settings=settings)["etag"]

# A copy is made when it is answered.
made = target.start_copy_from_url(source.url)
check("it is made", made["copy_status"], "success")
properties = target.get_blob_properties()
check("its tag", properties.etag, made["etag"])
check("its metadata", properties.metadata, {"Owner": "alice"})
kinds = properties.content_settings
check("its properties", (kinds.content_type, kinds.content_language), ("text/x", "de"))
check("its content", target.download_blob().readall(), b"one")
check("at once too", target.start_copy_from_url(source.url, requires_sync=True)["copy_status"], "success")
check("with other metadata", target.start_copy_from_url(source.url, metadata={"Owner": "bob"})["copy_status"], "success")
check("these", target.get_blob_properties().metadata, {"Owner": "bob"})
refused("to end it", 409, "NoPendingCopyOperation", target.abort_copy, made["copy_id"], kind=ResourceExistsError)

# The conditions and leases of both sides.
second = source.upload_blob(b"two", overwrite=True)["etag"]
refused("a source that has changed", 412, "SourceConditionNotMet", target.start_copy_from_url, source.url,
        source_etag=tag, source_match_condition=MatchConditions.IfNotModified)
refused("a target that has changed", 412, "ConditionNotMet", target.start_copy_from_url, source.url,
        etag=made["etag"], match_condition=MatchConditions.IfNotModified, kind=ResourceModifiedError)
refused("a source that is missing", 404, "CannotVerifyCopySource", target.start_copy_from_url,
        container.get_blob_client("none").url, kind=ResourceNotFoundError)
lease = target.acquire_lease(lease_duration=15)
refused("a target that is leased", 412, "LeaseIdMissing", target.start_copy_from_url, source.url)
check("its holder copies", target.start_copy_from_url(
    source.url, destination_lease=lease, source_etag=second,
    source_match_condition=MatchConditions.IfNotModified)["copy_status"], "success")
check("the new content", target.download_blob().readall(), b"two")
print("finished")
