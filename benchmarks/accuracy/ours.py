"""What does the product answer? Its own plans, SQL and finish; noise of the planned size, drawn here for speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

import duckdb
import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.data import Bounds, Rows, table_of
from proxy.analysis.analyse import Lowered
from proxy.analysis.units import UniqueKeys
from proxy.plan.profile.learned import usable
from proxy.plan.profile.profile import Sizes, TableProfile
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.sets.sets import Plan, plan_block
from proxy.policy.model import Budgets, DuckDBFile, NoLimit, Policy, Privacy, Table
from proxy.release.raw import RawResult
from proxy.release.sets import finish_plan, publish_plan
from proxy.session.learning.profile_answers import sizes_of
from proxy.session.learning.profile_questions import sizings, text_of
from proxy.sql.algebra.constants import Constants
from proxy.sql.query.block import BoundBlock, Carries, bind_block
from proxy.sql.query.split import split
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements

PRIVACY = Privacy(unit="customer")
Values = NDArray[np.float64]  # a row for each answer, a column for each number of it


@dataclass(slots=True)
class Drawn:
    """Noise of standard deviation 2^40, from a stream that is the same for all ways of answering."""

    rng: np.random.Generator

    def take(self, n: int) -> tuple[int, ...]:
        return tuple(int(x) for x in np.rint(self.rng.standard_normal(n) * 2.0**40))


@dataclass(slots=True)
class Product:
    """Answers over one table under one policy. Exact results are computed once for each plan."""

    rows: Rows
    bounds: Bounds
    database: duckdb.DuckDBPyConnection = field(init=False)
    _exact: dict[str, list[tuple[object, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.database = self.rows.loaded()

    @property
    def table(self) -> Table:
        return table_of(self.bounds)

    def plan(self, text: str, pico: int, profiles: Sequence[TableProfile] = ()) -> tuple[Plan, BoundBlock]:
        tables = MappingProxyType({"orders": self.table})
        (cut,) = split(split_statements(text)[0], Catalog(tables), frozenset()).blocks
        block = bind_block(cut, Catalog(tables), Constants({}, datetime(2026, 1, 1, tzinfo=UTC)), text)
        context = PlanContext(
            tables=tables, unique=UniqueKeys(frozenset()), privacy=PRIVACY,
            lowered=Lowered(learned=usable(profiles, PRIVACY, pico)), pico=pico, atto_for_keys=0, salt="",
            profiles=tuple(profiles),
        )  # fmt: skip
        return plan_block(block.block, context), block

    def run(self, plan: Plan, stage: int) -> RawResult:
        sql = plan.stages[stage]
        if sql not in self._exact:
            self._exact[sql] = self.database.execute(sql).fetchall()
        found = self._exact[sql]
        return RawResult(len(found[0]) if found else 0, tuple(found))

    def answers(
        self, plan: Plan, block: BoundBlock, seeds: Sequence[int], *, nonnegative: bool = True, consistent: bool = True
    ) -> Values:
        """The numbers of an answer, for each stream of noise."""
        found = []
        for seed in seeds:
            noise = Drawn(np.random.default_rng(seed))
            cells = publish_plan(plan, lambda stage, _: self.run(plan, stage), noise)
            release = finish_plan(plan, cells, block.columns, is_consistent=consistent, nonnegative=nonnegative,
                                  time_zone="UTC")  # fmt: skip
            values = [c.values for c in release.columns if c.column.carries is Carries.VALUE]
            found.append([float(v or 0.0) for column in values for v in column])
        return np.array(found)

    def truth(self, text: str) -> Values:
        """The exact numbers, in the order of an answer."""
        shown = self.database.execute(text).fetchall()
        return np.array([float(x) for column in zip(*shown, strict=True) for x in column if not isinstance(x, str)])

    def profiled(self, pico: int, times: int) -> list[TableProfile]:
        """What `hushql profile` finds at this price for rows and sums together, again and again."""
        policy = Policy(
            dataset="shop", source=DuckDBFile(""), data_version="1", privacy=PRIVACY,
            budgets=Budgets(dataset=NoLimit(), user=NoLimit(), session=NoLimit()),
            tables=MappingProxyType({"orders": self.table}), digest="", users_file="",
        )  # fmt: skip
        asked = sizings(self.table, ["amount"], [])
        found: list[list[Sizes]] = []
        for of in asked:
            plan, _ = self.plan(text_of(of, policy), pico // len(asked))
            assert isinstance(plan, ReleasePlan)
            drawn = (Drawn(np.random.default_rng(n)) for n in range(times))
            found.append(
                [sizes_of(of, plan, publish_plan(plan, lambda s, _, p=plan: self.run(p, s), d)) for d in drawn]
            )  # type: ignore[misc]
        return [
            TableProfile(table="orders", allowed=self.bounds.rows, rows=rows, data_version="1",
                         sums=(("amount", self.bounds.amount, sums),))
            for rows, sums in zip(*found, strict=True)
        ]  # fmt: skip


__all__ = ["PRIVACY", "Product", "Values"]
