"""The id by which the SDK calls a refusal, in the line before the last. Usage: ids.py URL"""

from checks import check, refused, service

blob = service().get_blob_client("concurrency", "ids.txt")
blob.upload_blob(b"first", overwrite=True)
lease = blob.acquire_lease(lease_duration=15)
error = refused("a write without the lease", 412, "LeaseIdMissing", blob.upload_blob, b"of another", overwrite=True)
request_id = error.response.headers["x-ms-request-id"]
check("its message names the id", f"\nRequestId:{request_id}\n" in error.message)
lease.release()
print(request_id)
print("finished")
