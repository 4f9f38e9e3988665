"""Which releases was a login shown since the proxy started, so that other questions may be answered from them?

Kept for each login alone: what others ask changes nothing of what it is charged. What is forgotten here is asked anew,
or asked again for free; whether it is paid is for the ledger to say.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from proxy.plan.sets.sets import Plan

#: A login, and the digest of the policy and the version of the data that it asked.
ReleaseOwner = tuple[str, str, str]

_MOST_LOGINS = 500
_MOST_RELEASES = 64  # of a login
_MOST_SOURCES = 24
_MOST_CELLS = 2_000  # of a release that others are computed from


class SeenReleases:
    """Plans by owner, forgotten least recently used first. Safe to call from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logins: OrderedDict[ReleaseOwner, OrderedDict[str, Plan]] = OrderedDict()

    def has(self, owner: ReleaseOwner, fingerprint: str) -> bool:
        """Whether the login was shown this very release."""
        with self._lock:
            return fingerprint in self._logins.get(owner, ())

    def sources(self, owner: ReleaseOwner) -> tuple[Plan, ...]:
        """Releases with few public cells, the newest first."""
        with self._lock:
            plans = tuple(self._logins.get(owner, {}).values())
        return tuple(p for p in reversed(plans) if is_source(p))[:_MOST_SOURCES]

    def add(self, owner: ReleaseOwner, plans: Iterable[Plan]) -> None:
        """Remember what was shown."""
        with self._lock:
            known = self._logins.setdefault(owner, OrderedDict())
            self._logins.move_to_end(owner)
            for plan in plans:
                known[plan.fingerprint] = plan
                known.move_to_end(plan.fingerprint)
                if len(known) > _MOST_RELEASES:
                    known.popitem(last=False)
            if len(self._logins) > _MOST_LOGINS:
                self._logins.popitem(last=False)


def is_source(plan: Plan) -> bool:
    """Whether another question's answer may be looked for in the release, or in one of its grouping sets."""
    return sum(len(p.public_keys) for p in plan.plans) <= _MOST_CELLS
