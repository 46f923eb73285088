"""Uploads in blocks: all that the SDK does above its limit for one request, and for streams. Usage: blocks.py URL [MB]"""

import hashlib
import io
import sys
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError
from azure.storage.blob import BlobBlock, BlockState, ContentSettings

from checks import check, refused, service

MEGABYTE = 1 << 20
SIZE = int(sys.argv.pop(2)) * MEGABYTE if len(sys.argv) > 2 else 40 * MEGABYTE

in_blocks = {"max_single_put_size": MEGABYTE, "max_block_size": 4 * MEGABYTE}
container = service(**in_blocks).get_container_client("documents")
blob = container.get_blob_client("large.bin")


def content(first):
    """Bytes of which no two blocks are equal, beginning with this one."""
    line = bytes(range(256))
    return b"".join(bytes([first]) + number.to_bytes(7, "big") + line[8:] for number in range(SIZE // 256))


class Stream(io.RawIOBase):
    """A stream without a length, and without a position to return to."""

    def __init__(self, content):
        self.rest = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, room):
        return self.rest.readinto(room)


def unchanged(tag):
    return {"etag": tag, "match_condition": MatchConditions.IfNotModified}


container.create_container()
first = content(1)
tag = blob.upload_blob(first, max_concurrency=4)["etag"]
check("an upload in blocks is read back", blob.download_blob().readall() == first)
check("its tag is that of the blob", blob.get_blob_properties().etag, tag)
check("no block is left", blob.get_block_list("all"), ([], []))

refused("to create what is there", 409, "BlobAlreadyExists", blob.upload_blob, first, kind=ResourceExistsError)
second = content(2)
tag = blob.upload_blob(Stream(second), overwrite=True)["etag"]
check("a stream is read back", blob.download_blob().readall() == second)

blob.upload_blob(b"of another client", overwrite=True)
stale = {"overwrite": True, **unchanged(tag)}
refused("a stale write", 412, "ConditionNotMet", blob.upload_blob, first, kind=ResourceModifiedError, **stale)
check("nothing was written", blob.download_blob().readall(), b"of another client")
current = unchanged(blob.get_blob_properties().etag)
blob.upload_blob(first, overwrite=True, validate_content=True, **current)
check("a write with the current tag and checksums", blob.download_blob().readall() == first)

# A lease guards each block and the list.
lease = blob.acquire_lease(lease_duration=60)
refused("blocks without the lease", 412, "LeaseIdMissing", blob.upload_blob, second, overwrite=True)
other = str(uuid.uuid4())
refused("blocks with another lease", 412, "LeaseIdMismatchWithBlobOperation",
        blob.upload_blob, second, overwrite=True, lease=other)
blob.upload_blob(second, overwrite=True, lease=lease)
check("an upload of the holder", blob.download_blob().readall() == second)
blob.stage_block("a", b"staged under the lease", lease=lease)
lease.release()

# Block by block.
blob.stage_block("b", b"second ")
blob.stage_block("c", b"third")
blob.stage_block("a", b"first ")
names = [block.id for block in blob.get_block_list("uncommitted")[1]]
check("blocks wait for their list", names, ["a", "b", "c"])
md5 = hashlib.md5(b"first second third").digest()
settings = ContentSettings(content_type="text/plain", content_md5=md5)
wrong = ContentSettings(content_md5=hashlib.md5(b"other").digest())
blocks = [BlobBlock(name) for name in names]
refused("a checksum of something else", 400, "Md5Mismatch", blob.commit_block_list, blocks, content_settings=wrong)
blob.commit_block_list(blocks, content_settings=settings)
check("they are joined", blob.download_blob().readall(), b"first second third")
refused("to join them again", 400, "InvalidBlockList", blob.commit_block_list, blocks)
blob.stage_block("a", b"more")
kept = [BlobBlock("b", BlockState.COMMITTED), BlobBlock("a")]
refused("to keep a block of the blob", 400, "InvalidBlockList", blob.commit_block_list, kept)
refused("an id of another length", 400, "InvalidBlobOrBlock", blob.stage_block, "bb", b"more")
check("the blob is what it was", blob.download_blob().readall(), b"first second third")
fresh = container.get_blob_client("fresh")
fresh.stage_block("a", b"1")
check("a blob to be has blocks", [block.size for block in fresh.get_block_list("all")[1]], [1])
check("but is no blob", fresh.exists(), False)
fresh.commit_block_list([])
check("an empty list makes an empty blob", fresh.download_blob().readall(), b"")
print("finished")
