"""How do grouped questions fare on rows that are spread unevenly over persons and groups, in time and in memory?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine import Overhead, compared, private_sqls
from benchmarks.skewed.data import Size, made
from benchmarks.skewed.memory import Held, held
from benchmarks.skewed.questions import POLICY, QUESTIONS
from proxy.admin.files import read_policy
from proxy.policy.model import Policy


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory of one question at one size."""

    name: str
    rows: int
    held: Held

    @property
    def is_within(self) -> bool:
        return self.held.is_within


def skewed_overheads(folder: Path, sizes: tuple[Size, ...], runs: int) -> Iterator[Overhead]:
    """The time of each question at each size."""
    for size in sizes:
        data = made(folder, size)
        yield from compared(_policy(data), data, "events", QUESTIONS, runs)


def footprints(folder: Path, sizes: tuple[Size, ...]) -> Iterator[Footprint]:
    """The memory of each question at each size."""
    for size in sizes:
        data = made(folder, size)
        for question in QUESTIONS:
            statements = private_sqls(_policy(data), question.sql)
            yield Footprint(question.name, size.rows, held(data, question.sql, statements))


def _policy(data: Path) -> Policy:
    return read_policy(POLICY, {**os.environ, "SKEWED_DUCKDB": str(data)})
