"""Copies, moves and deletions as programs for S3 make them. Usage: programs.py boto3|minio|s3fs|aws|rclone URL [AWS]"""

import io
import os
import subprocess
import sys
import tempfile

KEY = SECRET = "S3RVER"
BUCKET = "bucket"
LARGE = 9 * 1024 * 1024
STALE = '"stale"'
NAME = "folder/a b+c & d.txt"


def check(what, *values):
    """All these values are equal; one alone is true."""
    held = all(value == values[0] for value in values[1:]) if len(values) > 1 else bool(values[0])
    if not held:
        sys.exit(f"FAILED {what}: {', '.join(map(repr, values))}")
    print(f"ok {what}", flush=True)


def of_boto3():
    import boto3
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config
    from botocore.exceptions import ClientError

    settings = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=20)
    client = boto3.client("s3", endpoint_url=URL, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
                          region_name="us-east-1", config=settings)

    def refused(what, code, call, **parameters):
        try:
            call(Bucket=BUCKET, **parameters)
        except ClientError as error:
            return check(what, error.response["Error"]["Code"], code)
        sys.exit(f"FAILED {what}: it succeeds")

    def content(name):
        return client.get_object(Bucket=BUCKET, Key=name)["Body"].read()

    source = {"Bucket": BUCKET, "Key": NAME}
    tag = client.put_object(Bucket=BUCKET, Key=NAME, Body=b"one")["ETag"]
    client.copy_object(Bucket=BUCKET, Key="copy", CopySource=source, CopySourceIfMatch=tag)
    check("a copy", content("copy"), b"one")
    refused("of a source that has changed", "PreconditionFailed", client.copy_object, Key="copy", CopySource=source,
            CopySourceIfMatch=STALE)
    refused("onto a target that has changed", "PreconditionFailed", client.copy_object, Key="copy", CopySource=source,
            IfMatch=STALE)
    refused("onto a target that is there", "PreconditionFailed", client.copy_object, Key="copy", CopySource=source,
            IfNoneMatch="*")
    client.put_object(Bucket=BUCKET, Key="large", Body=b"x" * LARGE)
    parts = TransferConfig(multipart_threshold=5 * 1024 * 1024, multipart_chunksize=5 * 1024 * 1024)
    client.copy({"Bucket": BUCKET, "Key": "large"}, BUCKET, "of parts", Config=parts)
    check("a copy in parts", len(content("of parts")), LARGE)


def of_minio():
    from minio import Minio
    from minio.commonconfig import CopySource
    from minio.deleteobjects import DeleteObject
    from minio.error import S3Error

    client = Minio(URL.removeprefix("http://"), access_key=KEY, secret_key=SECRET, secure=False, region="us-east-1")
    tag = client.put_object(BUCKET, NAME, io.BytesIO(b"one"), 3).etag
    client.copy_object(BUCKET, "copy", CopySource(BUCKET, NAME, match_etag=tag))
    check("a copy", client.get_object(BUCKET, "copy").read(), b"one")
    try:
        client.copy_object(BUCKET, "copy", CopySource(BUCKET, NAME, match_etag="stale"))
        sys.exit("FAILED a copy of a source that has changed")
    except S3Error as error:
        check("of a source that has changed", error.code, "PreconditionFailed")
    errors = list(client.remove_objects(BUCKET, [DeleteObject(name) for name in (NAME, "copy", "none")]))
    check("a list is removed", errors, [])
    check("nothing is left", [found.object_name for found in client.list_objects(BUCKET, recursive=True)], [])


def of_s3fs():
    from s3fs import S3FileSystem

    files = S3FileSystem(key=KEY, secret=SECRET, use_listings_cache=False,
                         client_kwargs={"endpoint_url": URL, "region_name": "us-east-1"},
                         config_kwargs={"s3": {"addressing_style": "path"}, "retries": {"total_max_attempts": 1}})
    for name in ("a", "b/c", "b/d e"):
        files.pipe(f"{BUCKET}/tree/{name}", name.encode())
    files.cp(f"{BUCKET}/tree/b/d e", f"{BUCKET}/tree/copy")
    files.mv(f"{BUCKET}/tree/a", f"{BUCKET}/tree/moved")
    check("a copy and a move", files.cat(f"{BUCKET}/tree/copy"), b"b/d e")
    check("what is there", files.find(f"{BUCKET}/tree"), [f"{BUCKET}/tree/{name}" for name in
                                                          ("b/c", "b/d e", "copy", "moved")])
    files.rm(f"{BUCKET}/tree", recursive=True)
    check("nothing is left", files.find(f"{BUCKET}/tree"), [])


def run(command, **variables):
    """What a program prints; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    if done.returncode:
        sys.exit(f"FAILED {' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def with_files(program, cat, listed, copy, move, remove):
    """The same steps for programs with a command line. Three names are in the bucket."""
    program(*copy(NAME, "tree/copy"))
    check("a copy", program(*cat("tree/copy")), "one")
    program(*move("tree/copy", "tree/moved"))
    check("a move", "tree/moved" in program(*listed()) and "tree/copy" not in program(*listed()))
    program(*remove())
    check("nothing is left", program(*listed()), "")


def put_one(program, *command):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "file")
        with open(path, "w", encoding="utf-8") as file:
            file.write("one")
        program(*[path if part == "FILE" else part for part in command])


def of_aws():
    variables = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1",
                 "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull, "AWS_MAX_ATTEMPTS": "1"}

    def aws(*arguments):
        return run([sys.argv[3], "s3", "--endpoint-url", URL, *arguments], **variables)

    def url(name):
        return f"s3://{BUCKET}/{name}"

    put_one(aws, "cp", "FILE", url(NAME))
    with_files(
        aws,
        cat=lambda name: ["cp", url(name), "-"],
        # It fails if it lists nothing, unless the bucket alone is named.
        listed=lambda: ["ls", "--recursive", f"s3://{BUCKET}"],
        copy=lambda source, target: ["cp", url(source), url(target)],
        move=lambda source, target: ["mv", url(source), url(target)],
        remove=lambda: ["rm", "--recursive", f"s3://{BUCKET}"],
    )


def of_rclone():
    variables = {"RCLONE_S3_PROVIDER": "Other", "RCLONE_S3_ACCESS_KEY_ID": KEY, "RCLONE_S3_SECRET_ACCESS_KEY": SECRET,
                 "RCLONE_S3_ENDPOINT": URL, "RCLONE_S3_REGION": "us-east-1", "RCLONE_S3_FORCE_PATH_STYLE": "true",
                 "RCLONE_S3_NO_CHECK_BUCKET": "true", "RCLONE_S3_COPY_CUTOFF": "5Mi", "RCLONE_S3_CHUNK_SIZE": "5Mi",
                 # It cannot load certificates that the machine has for all clients of AWS.
                 "AWS_CA_BUNDLE": ""}

    def rclone(*arguments):
        options = ["--config", os.devnull, "--retries", "1", "--low-level-retries", "1"]
        return run(["rclone", *options, *arguments], **variables)

    def path(name):
        return f":s3:{BUCKET}/{name}"

    put_one(rclone, "copyto", "FILE", path(NAME))
    with tempfile.TemporaryDirectory() as directory:
        large = os.path.join(directory, "large")
        with open(large, "wb") as file:
            file.write(b"x" * LARGE)
        rclone("copyto", large, path("large"))
        rclone("copyto", path("large"), path("of parts"))
        check("a copy in parts", str(LARGE) in rclone("lsl", path("of parts")))
    with_files(
        rclone,
        cat=lambda name: ["cat", path(name)],
        listed=lambda: ["lsf", "-R", "--files-only", path("")],
        copy=lambda source, target: ["copyto", path(source), path(target)],
        move=lambda source, target: ["moveto", path(source), path(target)],
        remove=lambda: ["delete", path("")],
    )


URL = sys.argv[2]
{"boto3": of_boto3, "minio": of_minio, "s3fs": of_s3fs, "aws": of_aws, "rclone": of_rclone}[sys.argv[1]]()
print("finished")
