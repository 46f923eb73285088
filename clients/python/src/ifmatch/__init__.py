"""Change resources behind ifmatch without losing an update. `ifmatch.aio` has the same for asyncio."""

from ._errors import (
    CODES, BadRequest, Busy, GaveUp, IfmatchError, KeyRefused, LeaseEnded, LeaseHeld, LeaseLost, OutcomeUnknown,
    PreconditionFailed, PreconditionRequired, Refused, Unavailable, Unreachable, UpstreamFailed,
)
from ._guard import Conflict, GuardedClient
from ._lease import Lease
from ._update import Format, Updated, json, text, update
from ._watch import Changed, Denied, Interrupted, LeaseChanged, LeaseState, State, WatchEvent, watch

__all__ = [
    "CODES", "BadRequest", "Busy", "Changed", "Conflict", "Denied", "Format", "GaveUp", "GuardedClient", "IfmatchError",
    "Interrupted", "KeyRefused", "Lease", "LeaseChanged", "LeaseEnded", "LeaseHeld", "LeaseLost", "LeaseState",
    "OutcomeUnknown", "PreconditionFailed", "PreconditionRequired", "Refused", "State", "Unavailable", "Unreachable",
    "Updated", "UpstreamFailed", "WatchEvent", "json", "text", "update", "watch",
]
