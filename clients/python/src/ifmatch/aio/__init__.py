"""The functions of `ifmatch` for asyncio. Errors and events are the same."""

from ._guard import GuardedClient
from ._lease import Lease
from ._update import update
from ._watch import watch

__all__ = ["GuardedClient", "Lease", "update", "watch"]
