"""One query over one world: everything that must hold of its plan, its result and what is published."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proxy.analysis.keys import PrivateKey
from proxy.errors import HushError
from proxy.plan.release_plan import PlanContext, ReleasePlan, Threshold, plan_release
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCells
from proxy.release.parts import publish_release
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.query.block import BoundBlock
from tests.fuzz.checks import Broken, Case, Raw, check
from tests.fuzz.duck import Databases
from tests.fuzz.grammar import make_query
from tests.fuzz.parts import Columns, Parts
from tests.fuzz.planning import SALT, bind, make_context
from tests.fuzz.worlds import World, make_world
from tests.oracle.bounded import Exact, Oracle
from tests.oracle.compare import differences, engine_exact
from tests.oracle.inferred import wrong_inferences
from tests.oracle.truth import wrong_answers
from tests.thresholds import lowered

QUERIES = 20  # of one world
_MANY_KEYS = 400  # more public keys than this are not published one by one here


@dataclass(frozen=True, slots=True)
class NoNoise:
    """Noise that is always zero: what is published is then the exact vector."""

    def take(self, n: int) -> tuple[int, ...]:
        return (0,) * n


@dataclass(frozen=True, slots=True)
class Failure:
    """A promise that did not hold."""

    seed: int
    number: int
    query: str
    message: str

    def __str__(self) -> str:
        return f"world {self.seed}, query {self.number}: {self.message}\n    {self.query}"


@dataclass(slots=True)
class Tally:
    """What happened to the queries of a run."""

    planned: int = 0
    refused: int = 0
    failures: list[Failure] = field(default_factory=list)


class Examiner:
    """Examines queries over one world. Use as a context manager."""

    def __init__(self, world: World, of: Callable[[World], Databases] = Databases) -> None:
        self.world = world
        self.databases = of(world)
        self._latest: tuple[str, PlanContext, tuple[ReleasePlan, BoundBlock]] | None = None
        self.tables = {
            name: [dict(zip([c.name for c in table.columns], row, strict=True)) for row in world.data[name].rows]
            for name, table in world.tables.items()
        }

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *_: object) -> None:
        self.databases.close()

    def sensitivity(self, query: str, context: PlanContext) -> None:
        """The promises about single units. Raises Broken, HushError when the query is refused."""
        self.check_plan(self._plan(query, context)[0])

    def meaning(self, query: str, context: PlanContext) -> None:
        """The engine's integers are the oracle's, and publishing them loses nothing. Raises as `sensitivity`."""
        plan, bound = self._plan(query, context)
        raw = self.check_meaning(plan)
        if len(plan.public_keys) <= _MANY_KEYS:
            parts = Parts(plan, self.databases, self.world)
            check_published(parts, bound, raw, self.world.privacy.time_zone)

    def check_plan(self, plan: ReleasePlan) -> None:
        """The promises about single units, of one plan. Raises Broken."""
        try:
            if plan.vector.moments:
                check(Case(self.world, plan, self.databases))
            Parts(plan, self.databases, self.world).check()
        except self.databases.errors as error:
            raise Broken(f"the engine raised {type(error).__name__}: {error}") from error

    def check_meaning(self, plan: ReleasePlan, expected: tuple[Exact, bool] | None = None) -> Raw:
        """The engine's integers, which are the oracle's. Raises Broken.

        expected: the oracle's, and whether they answer the query, if they are not those of the plan by itself.
        """
        try:
            raw = self.databases.run(plan.sql, self.databases.everybody()) if plan.vector.moments else []
        except self.databases.errors as error:
            raise Broken(f"the engine raised {type(error).__name__}: {error}") from error
        oracle = Oracle(plan, self.tables, self.world.privacy.time_zone, SALT)
        parts = Parts(plan, self.databases, self.world)
        parts.check_meaning(oracle, SALT)
        if unexpected := next(wrong_inferences(oracle, plan), ""):
            raise Broken(f"inferred wrongly: {unexpected}")
        if plan.vector.moments:
            _check_vector(oracle, plan, raw, expected or (oracle.exact(), oracle.changes_nothing()))
        return raw

    def _plan(self, query: str, context: PlanContext) -> tuple[ReleasePlan, BoundBlock]:
        """The plan of a query, which is made once for all that is asked of it."""
        if self._latest is None or self._latest[:2] != (query, context):
            self._latest = (query, context, self._plan_anew(query, context))
        return self._latest[2]

    def _plan_anew(self, query: str, context: PlanContext) -> tuple[ReleasePlan, BoundBlock]:
        try:
            bound = bind(self.world, query)
            return plan_release(bound.block, context), bound
        except HushError:
            raise
        except Exception as error:
            raise Broken(f"planning raised {type(error).__name__}: {error}") from error


def _check_vector(oracle: Oracle, plan: ReleasePlan, raw: Raw, expected: tuple[Exact, bool]) -> None:
    """The vector is the oracle's and answers the query."""
    exact, is_answer = expected
    are_public = not any(isinstance(k, PrivateKey) for k in plan.analysed.keys)
    if found := differences(engine_exact(plan, raw), exact, are_keys_public=are_public):
        raise Broken(f"the engine differs from the oracle: {found[0]}")
    if is_answer and (wrong := wrong_answers(oracle, plan, exact)):
        raise Broken(f"moments do not answer the query: {wrong[0]}")


def check_published(parts: Parts, bound: BoundBlock, raw: Raw, time_zone: str) -> None:
    """Without noise and threshold, publishing gives each key its exact integers, whatever the rows' order."""
    plan = lowered(parts.plan, -1.0)
    width = 1 + len(plan.analysed.keys) + len(plan.vector.moments)
    first = 1 if plan.vector.moments else 0

    def rows(stage: int, kept: KeptKeys) -> Raw:
        columns: Columns = [list(column) for column in kept.columns]
        return raw if stage < first else parts.rows(stage - first, parts.databases.everybody(), columns)

    cells = publish_release(plan, lambda s, k: RawResult(width, tuple(rows(s, k))), NoNoise())
    again = publish_release(plan, lambda s, k: RawResult(width, tuple(reversed(rows(s, k)))), NoNoise())
    if cells.payload() != again.payload():
        raise Broken("what is published depends on the order of the engine's rows")
    if NoisyCells.of_payload(cells.payload()).payload() != cells.payload():
        raise Broken("a stored release does not read back")
    _check_totals(plan, raw, cells)
    release = finish(plan, cells, bound.columns, nonnegative=True, time_zone=time_zone)
    if any(len(column.values) != release.rows for column in release.columns):
        raise Broken("columns of a release differ in length")


def _check_totals(plan: ReleasePlan, raw: Raw, cells: NoisyCells) -> None:
    """Each moment's total over all emitted keys is the engine's; the selecting count's is that of the parts."""
    if not isinstance(plan.selection, Threshold) and len(cells.cells) != len(plan.public_keys):
        raise Broken("a public key is missing or stands twice")
    selecting = plan.selection.moment if isinstance(plan.selection, Threshold) else -1
    first = 1 + len(plan.analysed.keys)
    for index in range(len(plan.vector.moments)):
        if index == selecting:
            continue
        engine = sum(v for row in raw if row[0] == 0 and isinstance(v := row[first + index], int))
        if engine != sum(c.moments[index] for c in cells.cells):
            raise Broken(f"publishing changes the total of moment {index}")


Make = Callable[[World, random.Random], str]


def run_worlds(
    seeds: Sequence[int], how: str, queries: int = QUERIES, *, stop: bool = False, make: Make = make_query,
    of: type[Examiner] = Examiner,
) -> Tally:  # fmt: skip
    """Examine the random queries of some worlds. how: "sensitivity", "meaning" or "both". stop: at a failure."""
    tally = Tally()
    for seed in seeds:
        with of(make_world(seed)) as examiner:
            for number in range(queries):
                rng = random.Random(f"query {seed} {number}")
                query = make(examiner.world, rng)
                examine_one(examiner, query, make_context(examiner.world, rng), how, tally, seed, number)
                if stop and tally.failures:
                    return tally
    return tally


def examine_one(
    examiner: Examiner, query: str, context: PlanContext, how: str, tally: Tally, seed: int, number: int
) -> None:
    """Examine a query, which is that number of its world, and count what came of it."""
    try:
        if how in ("meaning", "both"):
            examiner.meaning(query, context)
        if how in ("sensitivity", "both"):
            examiner.sensitivity(query, context)
    except HushError:
        tally.refused += 1
        return
    except Broken as error:
        tally.failures.append(Failure(seed, number, query, str(error)))
    tally.planned += 1


def report(tally: Tally) -> str:
    """The first failures, readable."""
    return "\n".join(str(f) for f in tally.failures[:5])
