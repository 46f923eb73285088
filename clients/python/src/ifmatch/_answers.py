"""Errors from answers."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any

import httpx

from ._errors import CODES, IfmatchError, PreconditionFailed, PreconditionRequired, Refused, Unreachable

#: The classes of refusals by a backend that judges preconditions itself, and knows no codes.
_UNNAMED: Mapping[int, type[Refused]] = {412: PreconditionFailed, 428: PreconditionRequired}


def unreachable(request: str, error: httpx.TransportError) -> Unreachable:
    """The error where no whole answer came."""
    is_unsent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
    return Unreachable(request, error, was_sent=not is_unsent)


def refusal_of(request: str, answer: httpx.Response) -> Refused:
    """The error that an answer without success is."""
    told = _problem(answer)
    # With the current state in its body, a refusal has its code in this field alone.
    found = re.search(r'^ifmatch;.*details="([a-z-]+)"', answer.headers.get("Proxy-Status", ""))
    if found:
        told.setdefault("code", found[1])
    if "code" not in told:
        told.setdefault("detail", answer.text[:200])
    after = answer.headers.get("Retry-After", "")
    if after.isdecimal():
        told["retry_after"] = int(after)
    return refused(request, answer.status_code, told)


def shows_state(answer: httpx.Response) -> bool:
    """Whether a refusal has the current state in its body, as `Prefer: return=representation` asks."""
    return "ETag" in answer.headers and "return=representation" in answer.headers.get("Preference-Applied", "")


def refused(request: str, status: int, problem: Mapping[str, Any]) -> Refused:
    """The error for a refusal, of the class of its code."""
    of_status = _UNNAMED.get(status, Refused)
    return CODES.get(problem.get("code", ""), of_status)(request, status, problem)


def is_temporary(error: IfmatchError) -> bool:
    """Whether another attempt may succeed."""
    if isinstance(error, Refused):
        return error.retry_after is not None or error.status in (502, 503, 504)
    return isinstance(error, Unreachable)


def back_off(attempt: int, last: IfmatchError) -> float:
    """How long to wait: as the last answer has said, and a random time that grows with each attempt."""
    after = last.retry_after if isinstance(last, Refused) else None
    return (after or 0) + random.uniform(0, min(1, 0.02 * 2 ** min(attempt, 10)))


def _problem(answer: httpx.Response) -> dict[str, Any]:
    if not answer.headers.get("Content-Type", "").startswith("application/problem+json"):
        return {}
    try:
        told = json.loads(answer.content)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
