"""One mistake, as a patch of the sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seeded:
    """A mistake. module: below proxy/. old: stands there once, and becomes new. caught_by: tests of one file."""

    area: str
    name: str
    module: str
    old: str
    new: str
    caught_by: str
