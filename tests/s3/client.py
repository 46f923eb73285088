"""What boto3 gets from an S3 server: the outcome of each step, as JSON.

An outcome is the status, and the code of the error if there is one.

    client.py ENDPOINT prepare          makes the bucket
    client.py ENDPOINT cycle            creates, reads, changes and deletes an object under conditions
    client.py ENDPOINT race             20 writers at once, with one tag
    client.py ENDPOINT ids              the ids of two refusals, by method
    client.py ENDPOINT lists            deletes objects by lists
    client.py ENDPOINT empty            creates empty and other objects from files, by turns, and creates them again
"""

import io
import json
import sys
import threading
from email.utils import parsedate_to_datetime

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

BUCKET = "bucket"
WRITERS = 20


def connect(endpoint, secret="S3RVER"):
    config = Config(
        s3={"addressing_style": "path"},
        retries={"total_max_attempts": 1},
        # An answer that the library misses is a failure, and not a minute of silence.
        read_timeout=20,
        # The server does not know checksums at the end of a body.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="S3RVER",
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=config,
    )


def outcome(call, **parameters):
    try:
        return [call(Bucket=BUCKET, **parameters)["ResponseMetadata"]["HTTPStatusCode"], None]
    except ClientError as error:
        return [error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]]


def tag(client, name):
    return client.head_object(Bucket=BUCKET, Key=name)["ETag"]


def not_modified(client, name, current):
    """The tag that a 304 carries."""
    try:
        client.get_object(Bucket=BUCKET, Key=name, IfNoneMatch=current)
    except ClientError as error:
        fields = error.response["ResponseMetadata"]["HTTPHeaders"]
        return [error.response["ResponseMetadata"]["HTTPStatusCode"], fields.get("etag") == current]
    return [200, None]


def dates(client, name):
    """How often an object that was written just now has a date that is no later than the write."""
    seen = 0
    for _ in range(5):
        written = client.put_object(Bucket=BUCKET, Key=name, Body=b"one", IfMatch=tag(client, name))
        read = client.head_object(Bucket=BUCKET, Key=name)
        seen += read["LastModified"] <= parsedate_to_datetime(written["ResponseMetadata"]["HTTPHeaders"]["date"])
    return seen


def multipart(client, name, **condition):
    upload = client.create_multipart_upload(Bucket=BUCKET, Key=name)["UploadId"]
    part = client.upload_part(Bucket=BUCKET, Key=name, UploadId=upload, PartNumber=1, Body=b"parts")["ETag"]
    parts = {"Parts": [{"ETag": part, "PartNumber": 1}]}
    return outcome(
        client.complete_multipart_upload, Key=name, UploadId=upload, MultipartUpload=parts, **condition
    )


def cycle(client, endpoint):
    name = "a folder/an object; with (odd) + characters"
    steps = {}

    def step(what, call, **parameters):
        steps[what] = outcome(call, Key=name, **parameters)

    step("create", client.put_object, Body=b"one", IfNoneMatch="*")
    steps["dates within the second of a write"] = dates(client, name)
    step("create again", client.put_object, Body=b"two", IfNoneMatch="*")
    first = tag(client, name)
    steps["read a current copy"] = not_modified(client, name, first)
    step("change", client.put_object, Body=b"two", IfMatch=first)
    step("change by a stale tag", client.put_object, Body=b"three", IfMatch=first)
    step("change by a bare tag", client.put_object, Body=b"three", IfMatch=tag(client, name).strip('"'))
    step("read by a stale tag", client.get_object, IfMatch=first)
    step("read by the tag", client.get_object, IfMatch=tag(client, name))
    stranger = connect(endpoint, secret="wrong")
    step("change with a wrong signature", stranger.put_object, Body=b"four", IfMatch=tag(client, name))
    step("delete by a stale tag", client.delete_object, IfMatch=first)
    others = {"Objects": [{"Key": "an other & more"}, {"Key": "none"}]}
    client.put_object(Bucket=BUCKET, Key=others["Objects"][0]["Key"], Body=b"one")
    steps["delete several"] = outcome(client.delete_objects, Delete=others)
    steps["complete an upload by a stale tag"] = multipart(client, name, IfMatch=first)
    steps["content"] = client.get_object(Bucket=BUCKET, Key=name)["Body"].read().decode()
    steps["complete an upload"] = multipart(client, name, IfMatch=tag(client, name))
    step("delete", client.delete_object, IfMatch=tag(client, name))
    step("read what is not there", client.get_object)
    step("look for what is not there", client.head_object)
    step("change what is not there", client.put_object, Body=b"five", IfMatch=first)
    step("delete what is not there", client.delete_object, IfMatch=first)
    return steps


def lock_file(client, endpoint):
    """The requests of Terraform's s3 backend with use_lockfile: a lock is an object that may not be there yet."""
    lock, state = "prod/network.tflock", "prod/network"

    def take(holder):
        return outcome(client.put_object, Key=lock, Body=holder, IfNoneMatch="*")

    return {
        "lock": take(b"ann"),
        "lock again": take(b"bob"),
        "holder": client.get_object(Bucket=BUCKET, Key=lock)["Body"].read().decode(),
        "state": outcome(client.put_object, Key=state, Body=b"{}"),
        "state again": outcome(client.put_object, Key=state, Body=b"{}"),
        "unlock": outcome(client.delete_object, Key=lock),
        "lock after that": take(b"bob"),
    }


def race(client, endpoint):
    """The outcomes of writers that all begin with one tag, and whose content is left in the end."""
    name = "race"
    client.put_object(Bucket=BUCKET, Key=name, Body=b"before")
    first = tag(client, name)
    start = threading.Barrier(WRITERS)
    outcomes = [None] * WRITERS

    # The library is not made for clients that are made at once.
    clients = [connect(endpoint) for _ in range(WRITERS)]

    def write(number):
        writer = clients[number]
        start.wait()
        outcomes[number] = outcome(writer.put_object, Key=name, Body=str(number).encode(), IfMatch=first)

    writers = [threading.Thread(target=write, args=[number]) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return {"outcomes": outcomes, "content": client.get_object(Bucket=BUCKET, Key=name)["Body"].read().decode()}


def ids(client, endpoint):
    """The id by which the library calls a refusal, whose answer has a body or none."""

    def refused(call, **parameters):
        try:
            call(Bucket=BUCKET, Key="object", IfMatch='"stale"', **parameters)
        except ClientError as error:
            return error.response["ResponseMetadata"]["RequestId"]

    return {"PUT": refused(client.put_object, Body=b"two"), "HEAD": refused(client.head_object)}


def empty(client, endpoint):
    """A file is announced by `Expect: 100-continue`, and all of them go over one connection."""
    contents = [b"", b"content", b"", b"content"]

    def create():
        return [
            outcome(client.put_object, Key=f"file {number}", Body=io.BytesIO(content), IfNoneMatch="*")
            for number, content in enumerate(contents)
        ]

    return {"created": create(), "created again": create()}


def lists(client, endpoint):
    """Objects that are deleted by lists, and what is left of them."""

    def put(names):
        return {name: client.put_object(Bucket=BUCKET, Key=name, Body=b"one")["ETag"] for name in names}

    def delete(tags):
        objects = [{"Key": name, **({"ETag": tag} if tag else {})} for name, tag in tags.items()]
        answer = client.delete_objects(Bucket=BUCKET, Delete={"Objects": objects})
        return {error["Key"]: error["Code"] for error in answer.get("Errors", [])}

    def left():
        return [found["Key"] for found in client.list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    tags = put(["a", "b"])
    steps = {"with a stale tag": delete({**tags, "a": '"stale"'}), "still there": left()}
    steps |= {"with the tags": delete(tags), "left": left()}
    put(f"object {number} & more" for number in range(30))
    bucket = boto3.Session("S3RVER", "S3RVER", region_name="us-east-1").resource(
        "s3", endpoint_url=endpoint, config=client.meta.config
    )
    deleted = bucket.Bucket(BUCKET).objects.delete()
    steps |= {"a whole bucket": sum(len(answer["Deleted"]) for answer in deleted), "empty": left()}
    return steps


def main():
    endpoint, what = sys.argv[1:]
    client = connect(endpoint)
    if what == "prepare":
        client.create_bucket(Bucket=BUCKET)
    else:
        steps = {"cycle": cycle, "race": race, "ids": ids, "empty": empty, "lock_file": lock_file, "lists": lists}
        print(json.dumps(steps[what](client, endpoint)))


main()
