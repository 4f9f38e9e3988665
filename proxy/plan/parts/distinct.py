"""How is COUNT(DISTINCT x) bounded, and which statement computes it?

A unit enters at most G groups and brings at most C different values into each, T in all, chosen by salted hash: which
ones depends on its own rows only, so its going moves the counts by a bound that is known. See docs/claims/distinct.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from proxy.analysis.analyse import Analysed, is_constant
from proxy.analysis.key_values import KeyValues
from proxy.dp.accounting import of_pico_down
from proxy.dp.mechanisms import Distribution, grid_scale, noise_sd
from proxy.plan.parts.part_requests import DistinctValues
from proxy.plan.parts.part_rows import part_rows
from proxy.plan.sql.moment_sql import MomentTerms, VectorStatement
from proxy.plan.sql.salting import salted
from proxy.policy.model import Bounded, Listed
from proxy.sql.functions.domains.intervals import number_range
from proxy.sqltypes import SqlType

_NO_BOUND = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctLimits:
    """How much of a unit counts: values in one group (C), groups (G) and values in all groups (T)."""

    values: int
    groups: int
    in_all: int

    def norm(self, distribution: Distribution) -> float:
        """Most that the counts of all groups move when a unit goes: as many full groups as T allows, and the rest."""
        full = min(self.groups, self.in_all // self.values)
        rest = min(self.values, self.in_all - full * self.values) if full < self.groups else 0
        if distribution is Distribution.GAUSSIAN:
            return math.sqrt(full * self.values**2 + rest**2)
        return float(full * self.values + rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctPart:
    """COUNT(DISTINCT x) for each cell. scale: grid units for each value. pico: its share of the charge."""

    asked: DistinctValues
    limits: DistinctLimits
    distribution: Distribution
    sensitivity: float
    scale: float
    pico: int
    sql: str = field(repr=False)

    @property
    def sd(self) -> float:
        return noise_sd(self.distribution, self.scale)


def plan_distinct(asked: DistinctValues, statement: VectorStatement, pico: int, factor: int) -> DistinctPart:
    """Bound, noise and SQL of one COUNT(DISTINCT x). factor: by how many units neighbours differ."""
    limits = _limits(asked, statement.analysed)
    sensitivity = limits.norm(statement.distribution) * factor
    scale = grid_scale(statement.distribution, of_pico_down(pico), sensitivity)
    return DistinctPart(
        asked=asked, limits=limits, distribution=statement.distribution, sensitivity=sensitivity, scale=scale,
        pico=pico, sql=_Writer(asked, statement, limits).write(math.floor(scale)),
    )  # fmt: skip


def _limits(asked: DistinctValues, analysed: Analysed) -> DistinctLimits:
    """The block's bounds, and no more values than there are. The SQL enforces them, whatever they rest on."""
    bounds = analysed.bounds
    most = 1 if is_constant(asked.of, analysed.owned) else _domain_size(asked, analysed)
    return DistinctLimits(values=min(bounds.rows_per_group, most), groups=bounds.groups, in_all=bounds.rows)


def _domain_size(asked: DistinctValues, analysed: Analysed) -> int:
    """How many values x can have, if that is known; else more than any bound."""
    sizes = [_NO_BOUND]
    domain = analysed.domains.of(asked.of, asked.where)
    match domain:
        case Listed(values):
            sizes.append(len(values))
        case Bounded() if asked.of.type.is_integer and (ends := number_range(domain)) is not None:
            sizes.append(math.floor(ends[1]) - math.ceil(ends[0]) + 1)
        case _:
            pass
    listed = KeyValues(analysed.domains, keeps_outside=True).of(asked.of)
    return max(1, min([*sizes, *([] if listed is None else [len(listed)])]))


class _Writer:
    def __init__(self, asked: DistinctValues, statement: VectorStatement, limits: DistinctLimits) -> None:
        self._asked = asked
        self._statement = statement
        self._terms = MomentTerms(statement)
        self._limits = limits

    def write(self, each: int) -> str:
        """The keys and, as an integer on the grid, the number of values of each group."""
        keys = self._terms.keys
        group = f"\nGROUP BY {', '.join(keys)}" if keys else ""
        huge = self._terms.dialect.huge
        counted = f"SELECT {', '.join([*keys, f'count(DISTINCT x) * {each}::{huge} AS d'])}"
        spell = self._terms.renderer
        rows = part_rows(self._terms, spell.condition(self._asked.where), spell.told_apart(self._asked.of))
        if self._statement.analysed.owned.is_one_row_per_unit:
            return f"{counted}\nFROM (\n{rows}) AS brought{group}"
        return f"WITH {self._brought(rows)}\n{counted}\nFROM brought{group}"

    def _brought(self, rows: str) -> str:
        """What counts of each unit: all it has or, above a bound, as much as the bounds allow, by salted hash."""
        units, keys, limits = self._terms.units, self._terms.keys, self._limits
        unit, group, chosen = ", ".join(units), ", ".join([*units, *keys]), ", ".join([*keys, "x"])
        above, in_all, within = f"count(*) > {limits.groups} OR max(n) > {limits.values}", "", ""
        if limits.values * limits.groups > limits.in_all:
            above += f" OR sum(n) > {limits.in_all}"
            in_all = f", row_number() OVER (PARTITION BY {unit} ORDER BY {', '.join(['h', 'x', *keys])}) AS t"
            within = f" WHERE t <= {limits.in_all}"
        values = [*self._named_keys(), ("x", self._asked.of.type)]
        hashed = f"SELECT *, {salted(self._statement, self._terms, values)} AS h FROM {self._entered()}"
        placed = (
            f"SELECT *, row_number() OVER (PARTITION BY {group} ORDER BY h, x) AS c FROM (\n    {hashed}) AS hashed"
        )
        whole = f"SELECT {chosen} FROM {self._terms.dialect.matched('held', 'many', units, is_there=False)}"
        once = self._terms.dialect.once
        return ",\n".join((
            once("held", f"SELECT DISTINCT {group}, x FROM (\n{rows}) AS present WHERE x IS NOT NULL"),
            once("groups", f"SELECT {group}, count(*) AS n FROM held GROUP BY {group}"),
            once("many", f"SELECT {unit} FROM groups GROUP BY {unit} HAVING {above}"),
            f"cut AS (SELECT *{in_all} FROM ({placed}) AS placed\n  WHERE c <= {limits.values})",
            f"brought AS ({whole}\n  UNION ALL SELECT {chosen} FROM cut{within})",
        ))  # fmt: skip

    def _entered(self) -> str:
        """What units above a bound have in the groups that they enter."""
        units, keys = self._terms.units, self._terms.keys
        unit = ", ".join(units)
        dialect = self._terms.dialect
        if not keys:
            return dialect.matched("held", "many", units, is_there=True)
        order = ", ".join([salted(self._statement, self._terms, self._named_keys()), *keys])
        place = f"row_number() OVER (PARTITION BY {unit} ORDER BY {order})"
        alike = [f"held.{k} IS NOT DISTINCT FROM entered.{k}" for k in keys]
        same = " AND ".join([*(f"held.{u} = entered.{u}" for u in units), *alike])
        placed = f"SELECT groups.*, {place} AS g FROM {dialect.matched('groups', 'many', units, is_there=True)}"
        entered = f"SELECT * FROM ({placed}) AS placed WHERE g <= {self._limits.groups}"
        return f"held {dialect.half_join(f'({entered}) AS entered', same)}"

    def _named_keys(self) -> list[tuple[str, SqlType]]:
        keys = self._statement.analysed.keys
        return [(name, k.scalar.type) for name, k in zip(self._terms.keys, keys, strict=True)]
