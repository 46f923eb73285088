"""What the scripts beside this file have in common: one line for each check, and the end at the first that fails."""

import sys

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient


def service(**options):
    """The service at the URL of the first argument: anonymous, or with the credential of the second."""
    credential = sys.argv[2] if len(sys.argv) > 2 else None
    return BlobServiceClient(sys.argv[1], credential=credential, retry_total=0, **options)


def check(what, *values):
    """All these values are equal; one alone is true."""
    held = all(value == values[0] for value in values[1:]) if len(values) > 1 else bool(values[0])
    if not held:
        sys.exit(f"FAILED {what}: {', '.join(map(repr, values))}")
    print(f"ok {what}", flush=True)


def refused(what, status, code, call, *arguments, kind=HttpResponseError, **options):
    """The call ends in the exception that Azure's service leads to, which is returned."""
    try:
        answer = call(*arguments, **options)
    except HttpResponseError as error:
        # The SDK for tables leaves the name of some errors in the field.
        named = getattr(error, "error_code", error.response.headers.get("x-ms-error-code"))
        code_seen = named and str(getattr(named, "value", named))
        check(what, (error.status_code, code_seen), (status, code))
        if not isinstance(error, kind):
            sys.exit(f"FAILED {what}: {type(error).__name__} is no {kind.__name__}")
        return error
    else:
        sys.exit(f"FAILED {what}: it succeeds with {answer!r}")


def raises(what, kind, call, *arguments, **keywords):
    """The call ends in an exception of this kind."""
    try:
        call(*arguments, **keywords)
    except kind:
        check(what, True)
        return
    check(what, "no error", kind.__name__)
