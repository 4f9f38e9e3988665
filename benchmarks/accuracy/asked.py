"""How far from the truth are the product's answers about a whole table, and how often do its intervals hold it?

Everything is the product's own: profile, planner, private SQL, finishing. Noise of the planned size is drawn here.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.accuracy.ours import Drawn
from benchmarks.accuracy.ways import Cells, Doubles
from benchmarks.accuracy.worlds import World, read
from proxy.app import profile
from proxy.config import ProfileConfig
from proxy.front.relations import RELATIONS
from proxy.pipeline.alone import read_alone
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.plans import Task, context_of, plan_statement
from proxy.pipeline.premises import Terms, as_declared
from proxy.pipeline.statements import Understood
from proxy.plan.profile.profile import TableProfile
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import Plan, plan_block
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import Count, Total
from proxy.policy.model import Policy
from proxy.release.raw import RawResult
from proxy.release.sets import finish_plan, publish_plan
from proxy.sql.algebra.constants import Constants
from proxy.sql.query.block import BoundBlock, Carries

Profiles = tuple[TableProfile, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """An aggregate, by a key or "", of the rows of a condition or ""."""

    aggregate: str
    key: str = ""
    where: str = ""

    @property
    def name(self) -> str:
        by = f" by {self.key}" if self.key else ""
        return f"{self.aggregate}{by}{f' where {self.where}' if self.where else ''}"

    @property
    def text(self) -> str:
        of, where = self.aggregate, f" WHERE {self.where}" if self.where else ""
        key = f"{self.key}, " if self.key else ""
        by = f" GROUP BY {self.key}" if self.key else ""
        return f"SELECT {key}{of}, hush.low({of}), hush.high({of}) FROM t{where}{by}"


@dataclass(frozen=True, slots=True)
class Answers:
    """Numbers of groups in many draws, a row each, the ends of their intervals, and the truth of each group.

    Not shown: NaN. weights: of groups in errors. rows: of each group.
    """

    numbers: Doubles
    low: Doubles
    high: Doubles
    truth: Doubles
    weights: Doubles
    rows: Doubles

    @property
    def error(self) -> float:
        """Root mean square over groups and draws, relative to that of the truth; averages by the size of groups."""
        seen = ~np.isnan(self.numbers)
        wrong = np.where(seen, self.weights * (self.numbers - self.truth) ** 2, 0.0).sum()
        return math.sqrt(wrong / max(np.where(seen, self.weights * self.truth**2, 0.0).sum(), 1e-300))

    @property
    def good(self) -> float:
        """The share of answers with less than a tenth of error."""
        return float((np.abs(self.numbers - self.truth) < 0.1 * np.abs(self.truth))[:, self.truth != 0].mean())

    @property
    def held(self) -> float:
        """The share of intervals that hold the truth."""
        held = (self.low <= self.truth) & (self.truth <= self.high)
        seen = ~np.isnan(self.numbers)
        return float(held[seen].mean()) if seen.any() else math.nan

    @property
    def shown(self) -> float:
        """The share of rows that are in groups with a number."""
        return float((~np.isnan(self.numbers) * self.rows).mean() / max(self.rows.mean(), 1e-300))


@dataclass(frozen=True, slots=True)
class Exact:
    """A count or sum of each group as bounds leave it, with the ends of its interval, and the truth.

    sd: of the noise of each.
    """

    numbers: Doubles
    low: Doubles
    high: Doubles
    truth: Doubles
    sd: float


@dataclass(slots=True)
class _Silent:
    """Noise of none."""

    def take(self, n: int) -> tuple[int, ...]:
        return (0,) * n


@dataclass(slots=True)
class Table:
    """A world that is asked. Exact results are computed once for each private statement."""

    world: World
    file: Path
    policy: Policy = field(init=False)
    database: duckdb.DuckDBPyConnection = field(init=False)
    _exact: dict[str, RawResult] = field(default_factory=dict)
    _true: dict[Question, tuple[dict[object, float], dict[object, int]]] = field(default_factory=dict)
    _cells: dict[Question, Cells] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.policy = read(self.file)
        self.database = duckdb.connect(str(self.file.with_suffix(".duckdb")), read_only=True)

    def profiled(self, epsilon: float, times: int) -> list[Profiles]:
        """What `hushql profile` finds at this price, each time with other noise."""
        found = []
        for _ in range(times):
            with tempfile.TemporaryDirectory() as state:
                told = profile(ProfileConfig(policy=self.file, state=Path(state), epsilon=epsilon))
                found.append(told.findings.profiles)
        return found

    def answers(
        self, question: Question, pico: int, profiles: Sequence[Profiles], draws: int, *, is_chosen: bool = True
    ) -> Answers:
        """Answers at this price, `draws` with each profile. is_chosen: whether each question chooses its bound.

        If not, the profile makes the policy's bounds narrower, as `learn-bounds` did.
        """
        planned = [self._planned(question, pico, of, is_chosen=is_chosen) for of in profiles]
        parts = [self._answered(*of, draws, number) for number, of in enumerate(planned)]
        truth, sizes = self._truth(question)
        keys = sorted(set(truth).union(*(p.keys() for p in parts)), key=str)
        nothing = np.full((draws, 3), np.nan)
        of = np.concatenate([np.stack([p.get(k, nothing) for k in keys], axis=1) for p in parts])
        is_mean = question.aggregate.startswith("avg")
        rows = np.array([float(sizes.get(k, 0)) for k in keys])
        weights = rows if is_mean else np.ones(len(keys))
        return Answers(
            of[:, :, 0], of[:, :, 1], of[:, :, 2], np.array([truth.get(k, 0.0) for k in keys]), weights, rows
        )

    def exact(self, question: Question, pico: int, profiles: Profiles, *, is_chosen: bool = True) -> Exact:
        """A count or sum by listed values at this price without noise, with the interval that noise of none gives."""
        plan, block = self._planned(question, pico, profiles, is_chosen=is_chosen)
        assert isinstance(plan, ReleasePlan), "it is one set"
        finish = plan.vector.finishes[0]
        assert isinstance(finish, (Count, Total)), "it is a count or a sum"
        form = finish.number if isinstance(finish, Count) else finish.value
        cells = publish_plan(plan, lambda stage, _: self._run(plan, stage), _Silent())
        shown = finish_plan(plan, cells, block.columns, is_consistent=True, nonnegative=False, time_zone="UTC")
        of = {c.column.carries: c.values for c in shown.columns}
        truth, _ = self._truth(question)
        numbers, low, high = (
            np.array([float(v or 0.0) for v in of[c]]) for c in (Carries.VALUE, Carries.LOW, Carries.HIGH)
        )
        keys = of.get(Carries.KEY, (None,))
        return Exact(numbers, low, high, np.array([truth.get(k, 0.0) for k in keys]), sd_of(form, plan.sds))

    def _answered(self, plan: Plan, block: BoundBlock, draws: int, seed: int) -> dict[object, Doubles]:
        """For each key that is shown its number and the ends of its interval, in each draw."""
        noise, found = Drawn(np.random.default_rng(seed)), dict[object, Doubles]()
        for draw in range(draws):
            cells = publish_plan(plan, lambda stage, _: self._run(plan, stage), noise)
            shown = finish_plan(plan, cells, block.columns, is_consistent=True, nonnegative=True, time_zone="UTC")
            of = {c.column.carries: c.values for c in shown.columns}
            for place, key in enumerate(of.get(Carries.KEY, [None] * shown.rows)):
                texts = (of[c][place] for c in (Carries.VALUE, Carries.LOW, Carries.HIGH))
                found.setdefault(key, np.full((draws, 3), np.nan))[draw] = [
                    math.nan if t is None else float(t) for t in texts
                ]
        return found

    def _planned(
        self, question: Question, pico: int, profiles: Profiles, *, is_chosen: bool
    ) -> tuple[Plan, BoundBlock]:
        task, cuts = self._task(question, pico, profiles)
        planned = plan_statement(cuts, task)
        (plan,), (block,) = planned.plans, planned.blocks
        if is_chosen or not profiles:
            return plan, block
        return plan_block(block.block, replace(context_of(task.premises, task.terms, pico), profiles=())), block

    def planning_ms(self, question: Question, pico: int, profiles: Profiles, times: int) -> tuple[float, float]:
        """The processor's time for a plan without a profile and with it: medians of so many."""
        tasks = [self._task(question, pico, of) for of in ((), profiles)]
        taken: list[list[float]] = [[], []]
        for _ in range(times):
            for place, (task, cuts) in enumerate(tasks):
                started = time.process_time()
                plan_statement(cuts, task)
                taken[place].append(1000.0 * (time.process_time() - started))
        without, with_it = map(statistics.median, taken)
        return without, with_it

    def _task(self, question: Question, pico: int, profiles: Profiles) -> tuple[Task, Cuts]:
        premises, cuts = as_declared(self.policy, RELATIONS, profiles), Cuts()
        handle = read_alone(cuts, question.text, premises).handle
        assert isinstance(handle, Understood), "it reads a private table"
        assert isinstance(handle.query, Outline), "it asks for an aggregate"
        constants = Constants({}, datetime(2026, 1, 1, tzinfo=UTC))
        terms = Terms(epsilon=0.0)
        return Task(query=handle.query, premises=premises, terms=terms, share=pico, constants=constants), cuts

    def _run(self, plan: Plan, stage: int) -> RawResult:
        sql = plan.stages[stage]
        if sql not in self._exact:
            rows = self.database.execute(sql).fetchall()
            self._exact[sql] = RawResult(len(rows[0]) if rows else 0, tuple(rows))
        return self._exact[sql]

    def _truth(self, question: Question) -> tuple[dict[object, float], dict[object, int]]:
        """The exact number of each group, and how many rows it has."""
        if question not in self._true:
            self._true[question] = self._counted(question)
        return self._true[question]

    def _counted(self, question: Question) -> tuple[dict[object, float], dict[object, int]]:
        key, where = question.key or "NULL", f"WHERE {question.where}" if question.where else ""
        sql = f"SELECT CAST({key} AS VARCHAR), {question.aggregate}, count(*) FROM t {where} GROUP BY 1"
        found = self.database.execute(sql).fetchall()
        return {k: float(v) for k, v, _ in found}, {k: n for k, _, n in found}

    def cells(self, question: Question, groups: int) -> Cells:
        """What units have in each group, for other ways to answer."""
        if question not in self._cells:
            self._cells[question] = self._held(question, groups)
        return self._cells[question]

    def _held(self, question: Question, groups: int) -> Cells:
        key, where = question.key or "0", f"WHERE {question.where}" if question.where else ""
        value = "count(*)" if question.aggregate == "count(*)" else "sum(x)"
        found = self.database.execute(
            f"SELECT dense_rank() OVER (ORDER BY unit) - 1, dense_rank() OVER (ORDER BY k) - 1, n, v FROM ("
            f"SELECT unit, {key} AS k, count(*) AS n, CAST({value} AS DOUBLE) AS v FROM t {where} GROUP BY ALL)"
        ).fetchnumpy()
        units, numbers, rows, values = found.values()
        return Cells(units.astype(np.int64), numbers.astype(np.int64), rows.astype(float), values, groups)
