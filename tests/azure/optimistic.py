"""Azure's documentation, "optimistic concurrency for blobs", step by step. Usage: optimistic.py URL"""

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError

from checks import check, refused, service

blob = service().get_blob_client("concurrency", "optimistic.txt")
blob.upload_blob(b"first", overwrite=True)
tag = blob.get_blob_properties().etag
check("the blob has a tag", tag)

blob.upload_blob(b"of another client", overwrite=True)
check("the tag is another one after another write", blob.get_blob_properties().etag != tag)

only_if_unchanged = {"overwrite": True, "etag": tag, "match_condition": MatchConditions.IfNotModified}
refused("the stale write", 412, "ConditionNotMet",
        blob.upload_blob, b"second", kind=ResourceModifiedError, **only_if_unchanged)
check("the other client's write is still there", blob.download_blob().readall(), b"of another client")

only_if_unchanged["etag"] = blob.get_blob_properties().etag
check("the write with the current tag", blob.upload_blob(b"second", **only_if_unchanged)["etag"])
check("it is there", blob.download_blob().readall(), b"second")
print("finished")
