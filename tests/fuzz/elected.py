"""Random modes over random worlds: are their candidates public, their rows bounded and right, their draws paid for?"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from proxy.analysis.keys import NULL_KEY, PrivateKey, key_identity
from proxy.dp import samplers
from proxy.dp.accounting import of_pico_down
from proxy.dp.accuracy import Noisy
from proxy.dp.mechanisms import Distribution
from proxy.dp.modes import Poll
from proxy.dp.quantiles import ROW_WEIGHT, Draw, Weights
from proxy.plan.parts.modes import ModePart
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import Count
from proxy.policy.model import Neighbors, Unknown
from proxy.release import modes
from proxy.release.finish import Release, finish, vectors_of
from proxy.release.keys import read_key
from proxy.release.parts import publish_release
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.algebra.nodes import TRUE
from tests.fuzz.checks import Broken, Case, Raw
from tests.fuzz.checks import check as check_promises
from tests.fuzz.examine import NoNoise, Tally
from tests.fuzz.grammar import Writer
from tests.fuzz.ranked import IN_DUCKDB, Engine, Ranks, columns, run_quantiles
from tests.fuzz.worlds import World
from tests.oracle.bounded import Key
from tests.oracle.compare import key_value
from tests.oracle.elected import weights
from tests.oracle.values import Value
from tests.thresholds import lowered

QUERIES = 8  # of one world
Found = Mapping[Key, Mapping[Value, int]]


class _ModeWriter(Writer):
    """Writes queries of the grammar with modes."""

    def query(self) -> str:
        rng = self._rng
        keys = [self._key() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        unlisted = [c.text for c in self._from.columns if isinstance(c.domain, Unknown)]
        is_unlisted = bool(unlisted) and rng.random() < 0.4
        aggregates = [self._mode(rng.choice(unlisted if is_unlisted else [""]))]
        if rng.random() < (0.05 if is_unlisted else 0.35):
            aggregates.append(self._mode())
        if rng.random() < (0.05 if is_unlisted else 0.3):
            aggregates.append("count(*)")
        items = [*(f"{k} as k{i}" for i, k in enumerate(keys)), *(f"{a} as a{i}" for i, a in enumerate(aggregates))]
        where = [*self._from.conditions, *(self._bool(1) for _ in range(rng.choice((0, 0, 1))))]
        text = f"{self._from.prefix}select {', '.join(items)} from {self._from.text}"
        text += " where " + " and ".join(f"({w})" for w in where) if where else ""
        return text + (f" group by {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else "")

    def _mode(self, column: str = "") -> str:
        rng = self._rng
        of = column or (self._key() if rng.random() < 0.6 else self._public_key())
        call = f"mode() within group (order by {of}{rng.choice(('', '', ' desc'))})"
        return f"{call} filter (where {self._bool(1)})" if rng.random() < 0.25 else call


def make_mode(world: World, rng: random.Random) -> str:
    """One random query for modes."""
    return _ModeWriter(world, rng).query()


def run_modes(
    seeds: Sequence[int], check: Callable[[Ranks], None], queries: int = QUERIES, *, stop: bool = False,
    engine: Engine = IN_DUCKDB,
) -> Tally:  # fmt: skip
    """Examine random modes over some worlds. stop: at a failure."""
    return run_quantiles(seeds, check, queries, stop=stop, make=make_mode, engine=engine)


def _parts(of: Ranks) -> tuple[ModePart, ...]:
    return tuple(p for p in of.plan.parts if isinstance(p, ModePart))


def _rows(of: Ranks, part: ModePart, units: frozenset[int]) -> Raw:
    try:
        return of.databases.run(part.sql, units, columns(of.kept))
    except of.databases.errors as error:
        raise Broken(f"the engine raised {type(error).__name__}: {error}") from error


def _found(of: Ranks, part: ModePart, units: frozenset[int]) -> Found:
    """The engine's weights of these units, all of them of candidates."""
    found: dict[Key, Counter[Value]] = defaultdict(Counter)
    candidates = {key_identity(c) for c in part.candidates}
    for *key, value, weight in _rows(of, part, units):
        if not isinstance(weight, int) or weight < 0:
            raise Broken("a value weighs less than nothing")
        if value is None or key_identity(read_key(value)) not in candidates:
            raise Broken(f"a value is counted that is no candidate: {value!r}")
        found[tuple(key_value(k) for k in key)][key_value(value)] += weight
    return found


def _sum(of: Iterable[Found]) -> Mapping[tuple[Key, Value], int]:
    total: Counter[tuple[Key, Value]] = Counter()
    for found in of:
        for key, values in found.items():
            for value, weight in values.items():
                total[key, value] += weight
    return {place: weight for place, weight in total.items() if weight}


# --- single units -------------------------------------------------------------------------------------------


def check_bounds(of: Ranks) -> None:
    """Weights are sums over units, each unit is within its bounds, and scores move as far and as alike as is paid.

    Where rows of each value are counted, that release keeps all promises that one with private keys makes.
    """
    everybody = of.databases.everybody()
    if of.plan.elects:
        check_promises(Case(of.world, of.plan, of.databases))
    for part in _parts(of):
        whole = _found(of, part, everybody)
        alone = {u: _found(of, part, frozenset((u,))) for u in sorted(everybody)}
        if _sum(alone.values()) != _sum([whole]):
            raise Broken("units are not independent of each other")
        for found in alone.values():
            _check_unit(of, part, found)
        for unit in sorted(everybody)[:2]:
            smaller = _found(of, part, everybody - {unit})
            for key in whole:
                _check_scores(part.poll, whole[key], smaller.get(key, {}), alone[unit].get(key, {}))
        _check_charge(of, part)


def _check_unit(of: Ranks, part: ModePart, found: Found) -> None:
    limit = Fraction(of.plan.analysed.bounds.rows_per_group * ROW_WEIGHT)
    shares = [sum(values.values()) / limit for values in found.values()]
    if max(shares, default=Fraction(0)) > 1:
        raise Broken("a unit weighs more than C rows in a group")
    is_pure = part.poll.distribution is Distribution.LAPLACE
    if sum((s if is_pure else s * s for s in shares), Fraction(0)) > part.poll.groups:
        raise Broken("a unit weighs more in all groups than is charged")


def _check_scores(poll: Poll, whole: Mapping[Value, int], less: Mapping[Value, int], unit: Mapping[Value, int]) -> None:
    """Without a unit every score falls or stays, by no more than the unit weighs."""
    weight = sum(unit.values())
    moved = [whole.get(v, 0) - less.get(v, 0) for v in {*whole, *less}]
    if min(moved, default=0) < 0:
        raise Broken("a score rises when somebody leaves")
    if max(moved, default=0) > min(weight, poll.draw.sensitivity):
        raise Broken("a score moves by more than its sensitivity")


def _check_charge(of: Ranks, part: ModePart) -> None:
    """What the library grants for all full groups is at most the part's share, for all that neighbours differ in."""
    poll, privacy, draw = part.poll, of.world.privacy, part.poll.draw
    replaces = privacy.neighbors is Neighbors.REPLACE_ONE
    if poll.candidates != len(part.candidates):
        raise Broken("there are other candidates than are drawn from")
    if draw.sensitivity < of.plan.analysed.bounds.rows_per_group * privacy.group_size * ROW_WEIGHT:
        raise Broken("the sensitivity is less than C times the number of units")
    if draw.is_monotone and replaces:
        raise Broken("scores do not all move one way where a unit is replaced")
    mechanism = samplers._noisy_max(draw.distribution, draw.scale, draw.is_monotone)
    granted = mechanism.map(draw.sensitivity)  # type: ignore[no-untyped-call]  # OpenDP's own annotation is missing
    if Fraction(granted) * poll.groups > Fraction(of_pico_down(part.pico)):
        raise Broken("the draws cost more than the part's share")


# --- meaning --------------------------------------------------------------------------------------------------


def check_meaning(of: Ranks) -> None:
    """Weights are the oracle's; without noise most rows have the answer; answers come of the choice alone."""
    everybody = of.databases.everybody()
    if of.plan.elects:
        _check_foremost(of, everybody)
        return
    size = sum(isinstance(k, PrivateKey) for k in of.plan.analysed.keys)
    kept = {tuple(key_value(k) for k in key) for key in zip(*of.kept.columns, strict=True)} if size else set()
    for part in _parts(of):
        expected = weights(of.oracle, of.plan, part, kept)
        if _sum([_found(of, part, everybody)]) != _sum([expected]):
            raise Broken("the engine's weights are not the oracle's")
    _check_published(of, everybody, kept)


def _check_foremost(of: Ranks, everybody: frozenset[int]) -> None:
    """Rows that count pass FILTER; without noise, no value of a group has more than what is given."""
    plan, (aggregate,) = lowered(of.plan, -1.0), of.bound.block.aggregates
    for row in of.oracle.rows():
        if aggregate.where != TRUE and not of.oracle.evaluator.passes(aggregate.where, row):
            raise Broken("a row is counted that does not pass")
    raw = RawResult(0, tuple(of.databases.run(plan.sql, everybody)))
    cells = publish_release(plan, lambda *_: raw, NoNoise())
    (recipe,) = plan.vector.finishes
    assert isinstance(recipe, Count)
    numbers: dict[Key, dict[Value, float]] = defaultdict(dict)
    for key, moments in of.oracle.exact().cells.items():
        values = numbers[key[:-1]]
        if key[-1] is not None:  # as of a time that no engine holds
            values[key[-1]] = sum(c * moments[i] * plan.units_per_grid[i] for i, c in recipe.number.terms)
    sd = sd_of(recipe.number, plan.sds)
    vectors = vectors_of(plan, cells)
    noisy = [Noisy(sum(c * v[i] for i, c in recipe.number.terms), sd) for v in vectors]
    found = modes.foremost(plan, cells, noisy)
    shown = {tuple(key_value(None if k is NULL_KEY else k) for k in key): value for key, value in found}
    if not {*numbers} <= {*shown}:
        raise Broken("a group with a value is missing")
    for key, value in shown.items():
        most = max(numbers[key].values(), default=0.0)
        is_there = most >= max(1.0, 2 * sd)
        if (value is NULL_KEY) == is_there:
            raise Broken("a value is missing, or is given although too few rows have it")
        if is_there and numbers[key][key_value(value)] != most:
            raise Broken("more rows have another value")


def _check_published(of: Ranks, everybody: frozenset[int], kept: set[Key]) -> None:
    plan = lowered(of.plan, -1.0)
    vector = of.databases.run(plan.sql, everybody)
    shown = [_published(of, plan, vector, units, _middle) for units in (everybody, everybody - {0})]
    if shown[0] != shown[1]:
        raise Broken("an answer depends on more than which candidate was chosen")
    cells, _ = _published(of, plan, vector, everybody, _best)
    for number, part in enumerate(of.plan.parts):
        if isinstance(part, ModePart):
            expected = weights(of.oracle, of.plan, part, kept)
            for key, results in cells:
                found = expected.get(tuple(key_value(None if k is NULL_KEY else k) for k in key), {})
                value = part.candidates[results[number][0]]
                told = None if value is NULL_KEY else key_value(value)
                if found and found.get(told, 0) != max(found.values()):
                    raise Broken("the best candidate is not the one that most rows have")


def _published(
    of: Ranks, plan: ReleasePlan, vector: Raw, units: frozenset[int], choose: Callable[[Weights, Draw], int]
) -> tuple[list[tuple[tuple[object, ...], tuple[tuple[int, ...], ...]]], Release]:
    """What is drawn and shown with this choice. vector: its rows, of whatever data."""

    def run(stage: int, kept: KeptKeys) -> RawResult:
        rows = vector if stage == 0 else of.databases.run(plan.stages[stage], units, columns(kept))
        return RawResult(0, tuple(rows))

    cells = publish_release(plan, run, NoNoise(), choose=choose)
    release = finish(plan, cells, of.bound.columns, nonnegative=True, time_zone=of.world.privacy.time_zone)
    return [(c.key, c.parts) for c in cells.cells], release


def _middle(given: Weights, _: Draw) -> int:
    return len(given) // 2


def _best(given: Weights, _: Draw) -> int:
    return int(np.argmax(given))
