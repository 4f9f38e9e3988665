"""What does a private engine hand over before noise, and for which released keys?

Defined here because imports point down; built by engines alone, read by engines and release alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.sqltypes import Value


@dataclass(frozen=True, slots=True)
class RawResult:
    """Exact values of private rows: never shown, logged or compared with anything. Its repr has no rows."""

    columns: int
    rows: tuple[tuple[object, ...], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeptKeys:
    """Private keys that an earlier stage released, column by column, None for NULL: parameters of a later stage."""

    columns: tuple[tuple[Value | None, ...], ...] = ()


def telling(
    run: Callable[[int, KeptKeys], RawResult], came: Callable[[], object]
) -> Callable[[int, KeptKeys], RawResult]:
    """The same rows. came: called before they are handed over, and not if there are none to hand over."""

    def rows(stage: int, kept: KeptKeys) -> RawResult:
        found = run(stage, kept)
        came()
        return found

    return rows
