"""What is asked of a private engine, whichever it is?

An engine runs SQL that was reserved, or that reads nothing that is promised, read-only, and hands over exact integers.
It knows nothing of plans or noise.
Nothing that an engine says about a failure is repeated: its words may quote a private row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from proxy.errors import EngineFailed, Failure, QueryCanceled
from proxy.plan.charge import Reserved, Unpromised
from proxy.policy.model import Policy, Table
from proxy.release.raw import KeptKeys, RawResult

_AWAY = "the private data cannot be reached"
_WORDS = {
    Failure.UNREACHABLE: (_AWAY, "Ask again when the administrator has their server back."),
    Failure.LOST: (_AWAY, "Ask again when the administrator has their server back."),
    Failure.CHANGED: (
        "the private data have changed since the policy was loaded",
        "An administrator has to correct them, or to load the policy again.",
    ),
    Failure.LIMITS: ("the private engine came to its limits", ""),
    Failure.OTHER: (
        "the private engine could not compute this statement",
        "The log of the proxy says of which kind it is.",
    ),
}


class EngineStopped(EngineFailed):
    """The engine cannot be asked, or a statement failed in it.

    exception_name, code: the class of the engine's exception and its SQLSTATE if it has one, for our logs.
    """

    def __init__(self, exception_name: str, failure: Failure = Failure.OTHER, code: str = "") -> None:
        message, hint = _WORDS[failure]
        super().__init__(message, detail="What was reserved for it stays charged.", hint=hint)
        self.exception_name = exception_name
        self.failure = failure
        self.code = code


class Cancellation:
    """A request to stop one statement, from any thread, before or while it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_requested = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        return self._is_requested

    def request(self) -> None:
        """Ask to stop. Asking twice, or after the end, does nothing."""
        with self._lock:
            self._is_requested = True
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def check(self) -> None:
        """Raise QueryCanceled if stopping was requested."""
        if self._is_requested:
            raise QueryCanceled("canceling statement due to user request")

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` when stopping is requested; at once if it was."""
        with self._lock:
            self._listeners.append(listener)
            is_late = self._is_requested
        if is_late:
            listener()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineColumn:
    """A column of the policy and the engine's own name for its type.

    limited_digits: each of its numbers but NaN has a double, as the type's precision says.
    """

    table: str
    column: str
    engine_type: str
    limited_digits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinFact:
    """Whether every row of `table` meets at most one row of public `ref_table` over a declared join."""

    table: str
    column: str
    ref_table: str
    ref_column: str
    is_unique: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was found true of this version of the data; all facts that privacy rests on hold, or there are no Facts."""

    columns: tuple[EngineColumn, ...]
    joins: tuple[JoinFact, ...]

    def with_limited_digits(self, tables: Mapping[str, Table]) -> dict[str, Table]:
        """The tables, by name, that have a column of limited digits, with these marked."""
        limited = {(c.table, c.column) for c in self.columns if c.limited_digits}
        return {
            name: replace(tables[name], columns=tuple(
                replace(c, limited_digits=True) if (name, c.name) in limited else c for c in tables[name].columns
            ))
            for name in {table for table, _ in limited}
        }  # fmt: skip


class Stages(Protocol):
    """The statements of one charge, all over the same version of the data."""

    def rows(self, stage: int, kept: KeptKeys) -> RawResult:
        """Run the statement of that number, 0 being the first, for keys that an earlier one released.

        Raises EngineStopped, or QueryCanceled as `Engine.session` says.
        """
        ...


class EngineSession(Protocol):
    """A session with an engine that was there a moment ago."""

    def stages(self, reserved: Reserved | Unpromised) -> AbstractContextManager[Stages]:
        """Let the SQL of a charge that is durable, or that needs none, be run, stage by stage.

        Raises as `Engine.session` does.
        """
        ...


class Engine(Protocol):
    """The private data, read-only. Safe to call from any thread; calls wait for the engine."""

    def session(
        self, looked_at: Sequence[str], *, timeout_s: float, cancellation: Cancellation
    ) -> AbstractContextManager[EngineSession]:
        """Look whether the engine is there, with what some statements name, and keep it for one that is charged then.

        Claim (docs/claims/retry.md): nothing is run until it is reserved, and whether the look succeeds does not
        depend on private rows. looked_at: SQL that is about to be reserved; only the names in it are used.

        Raises EngineStopped, or QueryCanceled when cancellation is requested or `timeout_s` seconds have passed.
        """
        ...

    def check_facts(self, policy: Policy) -> Facts:
        """Check what the policy declares against the data: columns, types, one row per unit, unique parent keys.

        Claim (docs/claims/facts.md): a policy whose dataset starts has facts that its data keep. Raises ConfigError,
        naming every table and column at fault and no value.
        """
        ...

    def public_rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        """All rows of a table that shows them, its columns in the policy's order without hidden ones.

        Never those of a private table.
        """
        ...

    def close(self) -> None:
        """Stop what runs and let go of the data."""
        ...
