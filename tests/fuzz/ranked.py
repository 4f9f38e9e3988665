"""Random quantiles over random worlds: are their histograms bounded, right, and read by the choice alone?"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from proxy.analysis.keys import PrivateKey
from proxy.dp.accounting import of_pico_down
from proxy.dp.brackets import draw_of_end, end_scores, reach_of
from proxy.dp.mechanisms import Distribution
from proxy.dp.quantiles import ROW_WEIGHT, Draw, Ladder, Weights, draw_of, scores, select
from proxy.errors import HushError, Unsupported
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.release_plan import PlanContext, ReleasePlan, plan_release
from proxy.policy.model import Neighbors
from proxy.release.finish import Release, finish
from proxy.release.parts import publish_release
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.algebra.nodes import Aggregate
from proxy.sql.query.block import BoundBlock
from proxy.sql.render.dialect import Dialect
from proxy.sql.render.duckdb.dialect import DUCKDB
from tests.fuzz.checks import Broken, Raw
from tests.fuzz.duck import Databases
from tests.fuzz.examine import Failure, Make, NoNoise, Tally
from tests.fuzz.expressions import TIMES
from tests.fuzz.grammar import Writer
from tests.fuzz.planning import SALT, bind, make_context
from tests.fuzz.worlds import World, make_world
from tests.oracle.bounded import Key, Oracle
from tests.oracle.compare import key_value
from tests.oracle.ranked import held_cells, histograms
from tests.thresholds import lowered

QUERIES = 8  # of one world
_MANY_CELLS = 3_000_000  # of all groups: more are not published here
Found = Mapping[Key, Mapping[int, int]]


class _QuantileWriter(Writer):
    """Writes queries of the grammar with other aggregates."""

    def query(self) -> str:
        rng = self._rng
        keys = [self._key() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        measures = [self._ordered() for _ in range(rng.choice((1, 1, 2)))]
        aggregates = [self._quantile(rng.choice(measures)) for _ in range(rng.choice((1, 1, 2, 3)))]
        if rng.random() < 0.3:
            aggregates.append("count(*)")
        items = [*(f"{k} as k{i}" for i, k in enumerate(keys)), *(f"{a} as a{i}" for i, a in enumerate(aggregates))]
        items += _ends_of(aggregates)
        where = [*self._from.conditions, *(self._bool(1) for _ in range(rng.choice((0, 0, 1))))]
        text = f"{self._from.prefix}select {', '.join(items)} from {self._from.text}"
        text += " where " + " and ".join(f"({w})" for w in where) if where else ""
        return text + (f" group by {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else "")

    def _ordered(self) -> str:
        shape = self._rng.random()
        if shape < 0.5:
            return self._measure(0)
        return self._column(TIMES) if shape < 0.7 else self._measure(1)

    def _quantile(self, of: str) -> str:
        rng = self._rng
        fraction = rng.choice(("0.5", "0.25", "0.9", "0", "1", "0.001", "0.333333333", "array[0.25, 0.5, 0.75]"))
        order = rng.choice(("", "", " desc"))
        call = rng.choice((
            f"min({of})", f"max({of})",
            f"percentile_disc({fraction}) within group (order by {of}{order})",
            f"percentile_disc({fraction}) within group (order by {of}{order})",
        ))  # fmt: skip
        return f"{call} filter (where {self._bool(1)})" if rng.random() < 0.25 else call


def _ends_of(aggregates: list[str]) -> list[str]:
    """The ends of some of the intervals, from random numbers of their own."""
    rng = random.Random(f"ends {aggregates}")
    wanted = [a for a in aggregates if "array" not in a and rng.random() < 0.4]
    return [f"hush.{rng.choice(('low', 'high'))}({a}) as e{i}" for i, a in enumerate(wanted)]


def make_quantiles(world: World, rng: random.Random) -> str:
    """One random query for quantiles."""
    return _QuantileWriter(world, rng).query()


@dataclass(frozen=True, slots=True)
class Ranks:
    """A plan with quantiles over one world, and the keys that it shows there."""

    world: World
    plan: ReleasePlan
    bound: BoundBlock
    databases: Databases
    oracle: Oracle
    kept: KeptKeys

    @property
    def parts(self) -> tuple[QuantilePart, ...]:
        return tuple(p for p in self.plan.parts if isinstance(p, QuantilePart))

    def rows(self, part: QuantilePart, units: frozenset[int]) -> Raw:
        try:
            return self.databases.run(part.sql, units, columns(self.kept))
        except self.databases.errors as error:
            raise Broken(f"the engine raised {type(error).__name__}: {error}") from error

    def found(self, part: QuantilePart, units: frozenset[int]) -> Found:
        """The engine's histograms of these units."""
        of: dict[Key, dict[int, int]] = defaultdict(dict)
        for *key, cell, weight in self.rows(part, units):
            if not (isinstance(cell, int) and isinstance(weight, int) and 0 <= cell < part.grid.cells and weight >= 0):
                raise Broken("a row is in no cell, or weighs less than nothing")
            histogram = of[tuple(key_value(k) for k in key)]
            if cell in histogram:
                raise Broken("two result rows for one cell")
            histogram[cell] = weight
        return of


@dataclass(frozen=True, slots=True)
class Engine:
    """Where the rows are. rehoused: the world as it can hold it. is_asked: whether a query is for it."""

    databases: Callable[[World], Databases] = Databases
    dialect: Dialect = DUCKDB
    rehoused: Callable[[World], World] = lambda world: world
    is_asked: Callable[[str], bool] = lambda _: True


IN_DUCKDB = Engine()


def ranks_of(world: World, databases: Databases, query: str, context: PlanContext) -> Ranks:
    """Plan a query and keep all its private keys. Raises HushError."""
    bound = bind(world, query)
    plan = plan_release(bound.block, context)
    tables = {
        name: [dict(zip([c.name for c in t.columns], row, strict=True)) for row in world.data[name].rows]
        for name, t in world.tables.items()
    }
    oracle = Oracle(plan, tables, world.privacy.time_zone, SALT)
    return Ranks(world, plan, bound, databases, oracle, all_keys(plan, databases))


def columns(kept: KeptKeys) -> list[list[object]]:
    """Kept keys as parameters of a statement."""
    return [list(column) for column in kept.columns]


def all_keys(plan: ReleasePlan, databases: Databases) -> KeptKeys:
    """The private parts of all keys that anybody holds."""
    is_private = [isinstance(k, PrivateKey) for k in plan.analysed.keys]
    if not any(is_private):
        return KeptKeys()
    rows = databases.run(plan.sql, databases.everybody())
    parts = {tuple(k for k, p in zip(row[1 : 1 + len(is_private)], is_private, strict=True) if p): None for row in rows}
    if not parts:
        return KeptKeys(((),) * sum(is_private))
    return KeptKeys(tuple(zip(*parts, strict=True)))


# --- single units -------------------------------------------------------------------------------------------


def check_bounds(of: Ranks) -> None:
    """Histograms are sums over units, each unit is within its bounds, and scores move by no more than is charged."""
    everybody = of.databases.everybody()
    for part in of.parts:
        whole = of.found(part, everybody)
        alone = {u: of.found(part, frozenset((u,))) for u in sorted(everybody)}
        if _sum(alone.values()) != _sum([whole]):
            raise Broken("units are not independent of each other")
        for histogram in alone.values():
            _check_unit(of, part, histogram)
        for unit in sorted(everybody)[:2]:
            smaller = of.found(part, everybody - {unit})
            if _sum([smaller, alone[unit]]) != _sum([whole]):
                raise Broken("somebody's cells move when somebody else leaves")
            for key in whole:
                _check_scores(part, whole[key], smaller.get(key, {}), alone[unit].get(key, {}))
        _check_charge(of, part)


def _sum(histograms: Iterable[Found]) -> Mapping[tuple[Key, int], int]:
    total: Counter[tuple[Key, int]] = Counter()
    for found in histograms:
        for key, cells in found.items():
            for cell, weight in cells.items():
                total[key, cell] += weight
    return {place: weight for place, weight in total.items() if weight}


def _check_unit(of: Ranks, part: QuantilePart, histogram: Found) -> None:
    limit = Fraction(of.plan.analysed.bounds.rows_per_group * ROW_WEIGHT)
    shares = [sum(cells.values()) / limit for cells in histogram.values()]
    if max(shares, default=Fraction(0)) > 1:
        raise Broken("a unit weighs more than C rows in a group")
    is_pure = part.ladder.distribution is Distribution.LAPLACE
    if sum((s if is_pure else s * s for s in shares), Fraction(0)) > part.ladder.groups:
        raise Broken("a unit weighs more in all groups than is charged")


def _check_scores(
    part: QuantilePart, whole: Mapping[int, int], less: Mapping[int, int], unit: Mapping[int, int]
) -> None:
    """Scores move by at most their sensitivity, in the measure in which the unit fills its bound."""
    ladder = part.ladder
    share = Fraction(sum(unit.values()), ladder.move * ROW_WEIGHT)
    ours, theirs = (np.repeat(_dense(part, cells), ladder.fineness) for cells in (whole, less))
    for fraction in (*ladder.fractions, Fraction(1, 2), Fraction(2, 3)):
        if fraction not in ladder.fractions and len(ladder.fractions) == 1:
            continue
        moved = np.abs(scores(ladder, ours, fraction) - scores(ladder, theirs, fraction)).max()
        if int(moved) > draw_of(ladder, fraction).sensitivity * share:
            raise Broken("a score moves by more than its sensitivity")
    for fraction in ladder.bracketed:
        reach = reach_of(ladder, fraction)
        for away in (-reach, reach):
            pair = [end_scores(_dense(part, cells), fraction, away) for cells in (whole, less)]
            if int(np.abs(pair[0] - pair[1]).max()) > draw_of_end(ladder, fraction).sensitivity * share:
                raise Broken("the score of an end moves by more than its sensitivity")


def _dense(part: QuantilePart, cells: Mapping[int, int]) -> Weights:
    weights = np.zeros(part.grid.cells, dtype=np.int64)
    weights[list(cells)] = list(cells.values())
    return weights


def _check_charge(of: Ranks, part: QuantilePart) -> None:
    """All draws together cost the part's share, for as many units as neighbours differ in."""
    ladder, privacy = part.ladder, of.world.privacy
    factor = privacy.group_size * (2 if privacy.neighbors is Neighbors.REPLACE_ONE else 1)
    if ladder.move != of.plan.analysed.bounds.rows_per_group * factor:
        raise Broken("the move of neighbours is not C times their number")
    wanted = [a.fraction for a in of.plan.analysed.owned.block.aggregates if _is_bracketed(a, part)]
    ends = sum((f > 0) + (f < 1) for f in set(wanted))
    draws = math.ceil(math.log2(len(part.asked.fractions) + 1)) + ends
    if ladder.draws != draws or Fraction(ladder.charge) * draws * ladder.groups > Fraction(of_pico_down(part.pico)):
        raise Broken("the draws cost more than the part's share")
    cost = ladder.epsilon if ladder.distribution is Distribution.LAPLACE else ladder.epsilon**2 / 8
    for draw in (draw_of(ladder, Fraction(1, 2)), draw_of_end(ladder, Fraction(1, 2))):
        if not cost <= ladder.charge or not 2 * draw.sensitivity / draw.scale <= ladder.epsilon:
            raise Broken("a draw costs more than its charge")


def _is_bracketed(aggregate: Aggregate, part: QuantilePart) -> bool:
    rows = (aggregate.where, aggregate.argument)
    return aggregate.kind.is_quantile and aggregate.is_bracketed and rows == (part.asked.where, part.asked.of)


# --- meaning --------------------------------------------------------------------------------------------------


def check_meaning(of: Ranks) -> None:
    """Histograms are the oracle's; without noise the chosen cell holds the wanted rank; answers come of cells alone."""
    everybody = of.databases.everybody()
    size = sum(isinstance(k, PrivateKey) for k in of.plan.analysed.keys)
    kept = {tuple(key_value(k) for k in key) for key in zip(*of.kept.columns, strict=True)} if size else set()
    for part in of.parts:
        expected = histograms(of.oracle, of.plan, part, kept)
        if _sum([of.found(part, everybody)]) != _sum([expected]):
            raise Broken("the engine's histogram is not the oracle's")
        held = held_cells(of.oracle, of.plan, part, kept)
        for key, cells in expected.items():
            _check_rank(part.ladder, _dense(part, cells), sum(h.get(key, Counter()).total() for h in held.values()))
    _check_published(of, everybody)


def _check_rank(ladder: Ladder, weights: Weights, rows: int) -> None:
    """Of one fraction, the best cell is where the wanted rank is, ends aside, which are kept away from it."""
    fraction = Fraction(1, 2)
    exact = replace(ladder, fractions=(fraction,), bracketed=(), amount=1e12)
    (cell,) = select(exact, weights, lambda given, _: int(given.argmax()))
    below, within = int(weights[:cell].sum()), int(weights[cell])
    if not below <= fraction * int(weights.sum()) <= below + within:
        raise Broken("the best cell is not where the wanted rank is")
    if rows and not int(weights.sum()) <= rows * ROW_WEIGHT:
        raise Broken("rows weigh more than they do")


def _check_published(of: Ranks, everybody: frozenset[int]) -> None:
    """Choices that are the same give the same answers, whatever the histograms hold."""
    if sum(p.grid.cells for p in of.parts) * max(1, len(of.plan.public_keys)) > _MANY_CELLS:
        return
    plan = lowered(of.plan, -1.0)
    vector = of.databases.run(plan.sql, everybody)
    shown = [_published(of, plan, vector, units) for units in (everybody, everybody - {0})]
    if shown[0] != shown[1]:
        raise Broken("an answer depends on more than which cell was chosen")


def _published(of: Ranks, plan: ReleasePlan, vector: Raw, units: frozenset[int]) -> tuple[bytes, Release]:
    """What is stored and shown if always the same is chosen. vector: its rows, of whatever data."""

    def run(stage: int, kept: KeptKeys) -> RawResult:
        rows = vector if stage == 0 else of.databases.run(plan.stages[stage], units, columns(kept))
        return RawResult(0, tuple(rows))

    cells = publish_release(plan, run, NoNoise(), choose=_third)
    release = finish(plan, cells, of.bound.columns, nonnegative=True, time_zone=of.world.privacy.time_zone)
    return cells.payload(), release


def _third(given: Weights, _: Draw) -> int:
    return len(given) // 3


def run_quantiles(
    seeds: Sequence[int], check: Callable[[Ranks], None], queries: int = QUERIES, *, stop: bool = False,
    make: Make = make_quantiles, engine: Engine = IN_DUCKDB,
) -> Tally:  # fmt: skip
    """Examine random quantiles over some worlds. stop: at a failure."""
    tally = Tally()
    for seed in seeds:
        world = engine.rehoused(make_world(seed))
        databases = engine.databases(world)
        for number in range(queries):
            rng = random.Random(f"quantiles {seed} {number}")
            query = make(world, rng)
            try:
                if not engine.is_asked(query):
                    raise Unsupported("the engine means other things")
                check(ranks_of(world, databases, query, replace(make_context(world, rng), dialect=engine.dialect)))
            except HushError:
                tally.refused += 1
                continue
            except Broken as error:
                tally.failures.append(Failure(seed, number, query, str(error)))
            tally.planned += 1
            if stop and tally.failures:
                break
        databases.close()
    return tally
