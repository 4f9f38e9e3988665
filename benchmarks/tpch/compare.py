"""Are noisy answers right on average, and how near is one of them?

Each answer is drawn anew several times. If its noise has mean 0, the mean of n answers is within `DEVIATIONS` times
s / sqrt(n) of the truth, s being the spread of the answers: Student's t with 19 degrees of freedom exceeds 10 with a
chance of 5e-9, and about 1,500 numbers are compared. What is clipped would stand out as a bias.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from benchmarks.tpch.data import Row

ANSWERS = 20
DEVIATIONS = 10.0
_ROUNDED, _LARGE = 0.5, 1000  # counts and large sums are shown as whole numbers


@dataclass(frozen=True, slots=True)
class Nearness:
    """How the answers to one query stand to the truth.

    error: mean distance of an answer from the truth, as a part of the mean truth, of the worst column. missing: true
    rows that some answer lacks. others: groups without rows. biased: what is not right on average.
    """

    error: float
    missing: int
    others: int
    biased: tuple[str, ...]


def nearness(answers: Sequence[Sequence[Row]], truth: Sequence[Row], keys: int) -> Nearness:
    """Compare answers to one query, row by row."""
    found = [{_key(row[:keys]): row[keys:] for row in rows} for rows in answers]
    true = {_key(row[:keys]): row[keys:] for row in truth}
    everywhere = [key for key in true if all(key in rows for rows in found)]
    columns = range(len(truth[0]) - keys)
    errors, biased = [0.0], []
    for column in columns:
        cells = [([_number(rows[key][column]) for rows in found], _number(true[key][column])) for key in everywhere]
        size = statistics.fmean([abs(t) for _, t in cells] or [1.0])
        errors.append(statistics.fmean([abs(v - t) for values, t in cells for v in values] or [0.0]) / size)
        biased += [f"{key}: {statistics.fmean(values):.6g}, not {t:.6g}"
                   for key, (values, t) in zip(everywhere, cells, strict=True) if _is_biased(values, t)]  # fmt: skip
    return Nearness(max(errors), len(true) - len(everywhere), len(found[0].keys() - true.keys()), tuple(biased))


def _is_biased(values: list[float], true: float) -> bool:
    spread = statistics.stdev(values) / math.sqrt(len(values))
    rounded = _ROUNDED if true == int(true) or abs(true) > _LARGE else 0.0
    return abs(statistics.fmean(values) - true) > DEVIATIONS * spread + rounded


def _key(values: Row) -> Row:
    return tuple(int(v) if isinstance(v, (Decimal, float)) and v == int(v) else v for v in values)


def _number(value: object) -> float:
    assert isinstance(value, (int, float, Decimal)), value
    return float(value)
