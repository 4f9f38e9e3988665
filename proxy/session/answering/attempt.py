"""How is one attempt made at the releases of a statement, and what is known of it when it fails?

The engine is looked at, then all is reserved, then computed, made noisy and stored. An attempt that the way to the
engine has ended before any noise was drawn is written down as such, when its session is over and before its client is
told: then what was paid is there for the same statement asked again. See docs/claims/retry.md.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from proxy.dp.samplers import Noise
from proxy.engines.base import Cancellation, EngineSession, EngineStopped
from proxy.errors import Failure, HushError, TooMuch
from proxy.events import LoggedEvent, tell
from proxy.ledger.attempts import MOST_ATTEMPTS
from proxy.ledger.base import Ending, Ledger
from proxy.ledger.chain import Reason
from proxy.plan.charge import Reserved
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import Plan
from proxy.plan.unpromised import ticket_of
from proxy.policy.model import PostgresSource, SparkSource
from proxy.release.noisy import NoisyCells
from proxy.release.raw import telling
from proxy.release.sets import publish_plan
from proxy.release.store import NotStored, StoredRelease
from proxy.release.unpromised import publish_unpromised
from proxy.session.dataset import Version

_ENGINES = {PostgresSource: "PostgreSQL", SparkSource: "Spark"}
_REASONS = {Failure.UNREACHABLE: Reason.UNREACHABLE, Failure.LOST: Reason.LOST}


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One attempt at the releases of a stage. timeout_s: for all of them together. count: told of each failure."""

    version: Version
    ledger: Ledger
    cancellation: Cancellation
    timeout_s: float
    is_fresh: bool
    count: Callable[[Failure], None] = lambda _: None
    _held: tuple[Reserved, ...] = ()
    _after: tuple[int, ...] = ()
    _is_reserved: bool = False
    _opened: set[int] = field(default_factory=set)  # numbers of releases of which a result came: noise may follow
    _new: list[tuple[Reserved, bytes]] = field(default_factory=list)
    _sessions: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _session: list[EngineSession] = field(default_factory=list)

    def look(self, plans: Sequence[Plan], is_shown: Callable[[], bool]) -> None:
        """Whether the engine is there, before anything is reserved. Raises EngineStopped, QueryCanceled.

        is_shown: whether the asker was shown all of it before, so that it is not needed.
        """
        try:
            self._open(plans)
        except EngineStopped:
            if not is_shown():
                raise

    def hold(
        self, items: Sequence[Reserved | StoredRelease], tickets: Sequence[Reserved] = (), after: tuple[int, ...] = ()
    ) -> None:
        """What was reserved for it. tickets: for later stages. after: numbers of what earlier ones were shown.

        A later stage, or a ticket for one, of a statement whose stages are drawn anew each time is of no use again.
        """
        held = () if self.is_fresh and after else (*items, *(() if self.is_fresh else tickets))
        self._held = tuple(item for item in held if isinstance(item, Reserved))
        self._after, self._is_reserved = after, bool(items or tickets or after)

    def cells(self, plan: Plan, item: Reserved | StoredRelease, noise: Noise) -> NoisyCells:
        """What was stored, or a new release. A ticket may turn out to have paid for what is stored: that is copied.

        Claim (docs/claims/retry.md): a release of which a result came is never attempted again.
        """
        if isinstance(item, StoredRelease):
            return NoisyCells.of_payload(item.payload)
        found = NotStored() if self.is_fresh else self.ledger.store.get(item.key)
        if isinstance(found, StoredRelease):
            self._new.append((item, found.payload))
            return NoisyCells.of_payload(found.payload)
        with self._open([plan]).stages(item) as stages:
            rows = telling(stages.rows, lambda: self._opened.add(item.release_id))
            cells = publish_plan(plan, rows, noise, self.cancellation.check)
        self._new.append((item, cells.payload()))
        return cells

    def unpromised(self, plan: ReleasePlan) -> NoisyCells:
        """What is computed of a local table: neither charged nor stored, and the same whenever it is asked."""
        with self._open([plan]).stages(ticket_of(plan)) as stages:
            return publish_unpromised(plan, stages.rows, self.cancellation.check)

    def store(self) -> None:
        """Keep what is new, also of a statement that has failed afterwards. Raises LedgerFailed."""
        for item, payload in self._new:
            self.ledger.store.put(item, payload)

    def _open(self, plans: Sequence[Plan]) -> EngineSession:
        if not self._session:
            looked_at = tuple(sql for plan in plans for sql in plan.stages)
            opening = self.version.engine.session(
                looked_at, timeout_s=self.timeout_s, cancellation=self.cancellation
            )  # fmt: skip
            self._session.append(self._sessions.enter_context(opening))
        return self._session[0]

    # --- the end ------------------------------------------------------------------------------------------

    def asking(self) -> contextlib.ExitStack:
        """The engine's session, from the look until this is left."""
        return self._sessions

    def told(self, error: EngineStopped) -> HushError:
        """What the client is told of a failure, once that is written down. To be called when its session is over."""
        self.count(error.failure)
        policy = self.version.policy
        source = _ENGINES.get(type(policy.source), "DuckDB")
        why = f"{error.failure.value}, SQLSTATE {error.code or 'none'} ({error.exception_name})"
        tell(
            LoggedEvent.ENGINE, f"{policy.dataset}: private {source} failed: {why}",
            {"dataset": policy.dataset, "kind": error.failure.value, "code": error.code}, logging.WARNING,
        )  # fmt: skip
        shown = TooMuch() if error.failure is Failure.LIMITS else error
        if not self._is_reserved:
            shown.detail = "Nothing was charged."
        elif self._is_written_down(error.failure):
            shown.detail = "What was reserved for it stays charged, and pays for the same statement asked again."
        return shown

    def _is_written_down(self, failure: Failure) -> bool:
        """Write that the attempts have ended that may be made again; whether these are all that have failed."""
        stored = {item.release_id for item, _ in self._new}
        failed = tuple(r for r in self._held if r.release_id not in stored)
        ended = tuple(r for r in failed if r.release_id not in self._opened and r.attempt < MOST_ATTEMPTS)
        if failure not in _REASONS or not ended or self.cancellation.is_requested:
            return False
        ending = Ending(
            reserved=ended, reason=_REASONS[failure], is_fresh=self.is_fresh, after=self._after, at=datetime.now(UTC)
        )
        try:
            self.ledger.end(ending)
        except HushError:
            return False
        return ended == failed


@contextlib.contextmanager
def attempting(attempt: Attempt) -> Iterator[Attempt]:
    """Close the engine's session, and say how the attempt has ended if the engine failed. Raises HushError."""
    try:
        with attempt.asking():
            yield attempt
    except EngineStopped as error:
        failed = error
    else:
        return
    raise attempt.told(failed)  # outside the handler: nothing but our own words goes on
