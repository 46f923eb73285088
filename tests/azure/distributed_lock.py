"""The requests of DistributedLock.Azure: a lease on a blob that the lock creates and removes. Usage: distributed_lock.py URL"""

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobLeaseClient

from checks import check, refused, service

# The mark of a blob that exists for its lock alone.
MARK = {"__distributedlock": "1"}

container = service().get_container_client("locks")
container.create_container()
blob = container.get_blob_client("nightly-report")

# The first holder finds no blob, creates it unless another one has by now (If-None-Match: *), and tries again.
refused("no blob yet", 404, "BlobNotFound", blob.acquire_lease, lease_duration=30, kind=ResourceNotFoundError)
blob.upload_blob(b"", metadata=MARK)
refused("created once", 409, "BlobAlreadyExists", blob.upload_blob, b"", metadata=MARK, kind=ResourceExistsError)
first = blob.acquire_lease(lease_duration=30)

# A second one waits.
refused("held", 409, "LeaseAlreadyPresent", blob.acquire_lease, lease_duration=30, kind=ResourceExistsError)
first.renew()

# The end: a blob with the mark is removed under the lease, and the next holder begins anew.
check("the mark", blob.get_blob_properties(lease=first).metadata, MARK)
refused("not by others", 412, "LeaseIdMissing", blob.delete_blob)
blob.delete_blob(lease=first)
refused("gone", 404, "BlobNotFound", blob.get_blob_properties, kind=ResourceNotFoundError)
blob.upload_blob(b"", metadata=MARK)
second = blob.acquire_lease(lease_duration=30)
check("another lease", second.id != first.id)

# A blob of somebody else has no mark, and stays.
report = container.get_blob_client("report")
report.upload_blob(b"content")
lease = report.acquire_lease(lease_duration=30)
check("no mark", report.get_blob_properties(lease=lease).metadata, {})
BlobLeaseClient(report, lease_id=lease.id).release()
check("it stays", report.download_blob().readall(), b"content")
print("finished")
