"""Was a person asked who wants to be, before an answer is charged that is expected to say nothing?"""

from __future__ import annotations

from collections.abc import Callable

from proxy.errors import NotConfirmed
from proxy.pipeline.plans import Planned
from proxy.plan.words.lost import lost_in
from proxy.policy.model import Privacy

_WITHIN_S = 60.0
_MOST = 1_000  # statements that are remembered


class Confirmations:
    """What was refused lately in one session. now: seconds of any clock that only rises."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._refused: dict[tuple[str, ...], float] = {}

    def check(self, planned: Planned, privacy: Privacy, *, is_first: bool) -> None:
        """Raises NotConfirmed for what is expected to say nothing, unless it was refused within the last minute.

        is_first: nothing of the statement has been charged yet.
        Claim: whether it raises, and its words, are a function of the profiles, the price, the policy, the session's
        texts and the time.
        """
        found = lost_in(planned.plans, privacy)
        if not found:
            return
        asked, now = tuple(p.fingerprint for p in planned.plans), self._now()
        if now - self._refused.pop(asked, -_WITHIN_S) < _WITHIN_S:
            return
        while len(self._refused) >= _MOST:
            self._refused.pop(next(iter(self._refused)))
        self._refused[asked] = now
        charged = "Nothing was charged." if is_first else "Its sub-queries were charged, and are free from now on."
        raise NotConfirmed(
            found[0].what,
            detail=" ".join((charged, *(f"{e.what}." for e in found[1:]))),
            hint=f"{found[0].instead} Sent again within a minute it is answered; SET hush.confirm = off asks nothing.",
        )
