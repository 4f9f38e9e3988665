"""What is the exact COUNT(DISTINCT x) of a release, by definition?

Plain Python: the different values of each unit in each group, of kept keys alone; the cuts to G groups, C values in a
group and T in all, in the order of docs/claims/distinct.md; and how many there are of all units together.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.plan.parts.distinct import DistinctLimits, DistinctPart
from proxy.plan.release_plan import ReleasePlan
from proxy.sql.algebra.nodes import TRUE, ColumnRef, Scalar
from proxy.sqltypes import SqlType
from tests.oracle.bounded import Key, Oracle, canonical
from tests.oracle.rows import Unit
from tests.oracle.scalars import Reading, Row
from tests.oracle.values import Value

Held = set[tuple[Key, Value]]
Keeps = Callable[[Key], bool]


@dataclass(frozen=True, slots=True)
class DistinctOracle:
    """Computes one part of a plan. keeps: whether a key is one that is emitted."""

    oracle: Oracle
    plan: ReleasePlan
    part: DistinctPart
    salt: str
    keeps: Keeps

    def counts(self) -> dict[Key, int]:
        """The number of values of each group, zeros aside."""
        brought = set().union(*(self._brought(unit, held) for unit, held in self._held().items()))
        return dict(Counter(key for key, _ in brought))

    def changes_nothing(self) -> bool:
        """Whether no unit is over a bound."""
        return all(self._brought(unit, held) == held for unit, held in self._held().items())

    def _held(self) -> dict[Unit, Held]:
        found: dict[Unit, Held] = defaultdict(set)
        where = self.part.asked.where
        for number, row in enumerate(self.oracle.rows()):
            key = self.oracle.key(row)
            value = self._value(self.part.asked.of, row)
            if value is not None and self.keeps(key) and (where == TRUE or self.oracle.evaluator.passes(where, row)):
                found[self.oracle.unit_of(row) or (number,)].add((key, value))
        return found

    def _value(self, scalar: Scalar, row: Row) -> Value:
        value = self.oracle.evaluator.value(scalar, row, Reading.TEST)
        if isinstance(value, str) and isinstance(scalar, ColumnRef):
            is_blind = self.plan.analysed.domains.column(scalar).case_blind
            return "".join(c.lower() if len(c.lower()) == 1 else c for c in value) if is_blind else value
        if scalar.type in (SqlType.FLOAT4, SqlType.FLOAT8, SqlType.NUMERIC) and value is not None:
            assert isinstance(value, (int, float))
            return "NaN" if math.isnan(value) else value + 0.0
        return value

    def _brought(self, unit: Unit, held: Held) -> Held:
        limits: DistinctLimits = self.part.limits
        entered = sorted({key for key, _ in held}, key=lambda key: self._hash(unit, key))[: limits.groups]
        chosen: list[tuple[Key, Value]] = []
        for group in entered:
            own = [(key, value) for key, value in held if key == group]
            chosen += sorted(own, key=lambda pair: self._hash(unit, *pair))[: limits.values]
        return set(sorted(chosen, key=lambda pair: self._hash(unit, *pair))[: limits.in_all])

    def _hash(self, unit: Unit, key: Key, *value: Value) -> str:
        types = [*(k.scalar.type for k in self.plan.analysed.keys), self.part.asked.of.type]
        texts = [*(canonical(u, SqlType.TEXT) for u in unit),
                 *(canonical(v, t) for v, t in zip((*key, *value), types, strict=False))]  # fmt: skip
        spelled = "".join("-" if t is None else f"{len(t)}:{t}" for t in texts)
        return hashlib.md5((self.salt + spelled).encode(), usedforsecurity=False).hexdigest()


def part_counts(
    part: DistinctPart, rows: Sequence[tuple[object, ...]], key_of: Callable[[object], Value]
) -> dict[Key, int]:
    """An engine's rows in the oracle's form."""
    each, found = math.floor(part.scale), {}
    for row in rows:
        count = row[-1]
        assert isinstance(count, int)
        assert count % each == 0
        if count:
            found[tuple(key_of(k) for k in row[:-1])] = count // each
    return found
