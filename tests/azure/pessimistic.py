"""Azure's documentation, "pessimistic concurrency for blobs", step by step. Usage: pessimistic.py URL"""

from azure.core.exceptions import HttpResponseError

from checks import check, refused, service

blob = service().get_blob_client("concurrency", "pessimistic.txt")
blob.upload_blob(b"first", overwrite=True)

lease = blob.acquire_lease(lease_duration=15)
check("a lease of 15 seconds", lease.id)
check("the write with the lease", blob.upload_blob(b"of the holder", overwrite=True, lease=lease)["etag"])
refused("the write without it", 412, "LeaseIdMissing", blob.upload_blob, b"of another", overwrite=True)
check("the holder's write is still there", blob.download_blob().readall(), b"of the holder")

lease.release()
check("the write after the release", blob.upload_blob(b"of another", overwrite=True)["etag"])
check("it is there", blob.download_blob().readall(), b"of another")
print("finished")
