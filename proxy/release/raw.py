"""What does a private engine hand over, before noise?

Defined here because imports point down; built by engines alone, read by engines and release alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RawResult:
    """Exact values of private rows: never shown, logged or compared with anything. Its repr has no rows."""

    columns: int
    rows: tuple[tuple[object, ...], ...] = field(repr=False)
