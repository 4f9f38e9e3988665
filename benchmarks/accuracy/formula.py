"""`python -m benchmarks.accuracy.formula`: how good are counts and sums of whole tables, by formula?

What bounds leave of each group is computed once for each plan, without noise; errors, intervals that hold and answers
near the truth then follow from the noise of the plan. Minutes instead of hours, and no error of few draws; what
is done to noisy numbers afterwards (counts below 0 are brought to 0) is not in it. Status 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.accuracy.asked import Exact, Question, Table
from benchmarks.accuracy.real import (
    EPSILONS,
    QUESTIONS,
    Line,
    kept,
    missed,
    price_of,
    questions,
    said,
    summary,
    written,
)
from benchmarks.accuracy.ways import Doubles
from benchmarks.accuracy.worlds import World, worlds
from proxy.dp.accounting import PICO, knob_pico
from proxy.policy.model import Privacy

RESULT = Path(__file__).resolve().parents[1] / "results" / "accuracy_formula.json"
_PRIVACY = Privacy(unit="person")


def lines(world: World, table: Table, epsilons: Sequence[float], profiles: int) -> Iterator[Line]:
    """Every count and sum by listed values."""
    for epsilon in epsilons:
        price, whole = price_of(world, epsilon), knob_pico(_PRIVACY, epsilon)
        share = whole - knob_pico(_PRIVACY, price) // QUESTIONS
        found = table.profiled(price, profiles)
        for groups, question in questions(world, epsilon):
            if question.aggregate in ("count(*)", "sum(x)") and (not question.key or question.key != world.open_key):
                ours = [table.exact(question, share, of) for of in found]
                yield _line(world, table, question, groups, epsilon, (ours, [table.exact(question, whole, ())]))


def _line(
    world: World, table: Table, question: Question, groups: int, epsilon: float,
    ways: tuple[Sequence[Exact], Sequence[Exact]],
) -> Line:  # fmt: skip
    """ways: the product, and the policy's bounds."""
    cells, rho = table.cells(question, groups), knob_pico(_PRIVACY, epsilon) / PICO
    largest = 1.0 if question.aggregate == "count(*)" else world.most
    most = world.per_group if groups > 1 else world.rows
    size, best, (ours, policy) = math.sqrt(float((cells.truth**2).mean())), cells.oracle(rho), ways
    return Line(
        world=world.name, question=question.name, epsilon=epsilon, is_filtered=bool(question.where),
        several=world.has_several_rows, ours=_error(ours), learned=math.nan, policy=_error(policy),
        oracle=best.error / size, oracle_good=best.good, rows=cells.rows_kept(rho, world.rows, largest) / size,
        groups=cells.groups_kept(rho, world.groups, most, largest) / size, shown=1.0,
        held=float(np.mean([_held(one) for one in ours])), good=float(np.mean([_good(one) for one in ours])),
    )  # fmt: skip


def _error(of: Sequence[Exact]) -> float:
    """Root mean square over groups and profiles, relative to the truth."""
    squares = [np.mean((one.numbers - one.truth) ** 2) + one.sd**2 for one in of]
    return math.sqrt(float(np.mean(squares) / np.mean(of[0].truth ** 2)))


def _held(of: Exact) -> float:
    """The share of intervals that hold the truth; the high end is never below 0."""
    lacks = np.where(of.truth > 0, _below((of.truth - of.high) / of.sd), 0.0)
    return float(np.mean(_below((of.truth - of.low) / of.sd) - lacks))


def _good(of: Exact) -> float:
    """The share of answers with less than a tenth of error."""
    missing, within = of.truth - of.numbers, 0.1 * of.truth
    near = _below((missing + within) / of.sd) - _below((missing - within) / of.sd)
    return float(np.mean(near[of.truth > 0]))


def _below(places: Doubles) -> Doubles:
    """The chance of standard normal noise below each."""
    return np.array([math.erfc(-p / math.sqrt(2.0)) / 2.0 for p in places])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path, help="folder of the downloaded data sets")
    parser.add_argument("--world", action="append", help="ask these alone")
    parser.add_argument("--epsilon", type=float, action="append", help="at these alone; nothing is kept then")
    parser.add_argument("--profiles", type=int, default=4, help="draws of profiles")
    options = parser.parse_args()
    console, found = Console(width=190), list[Line]()
    with tempfile.TemporaryDirectory() as folder:
        for world in worlds(options.sources):
            if options.world and world.name not in options.world:
                continue
            table = Table(world, world.made(options.sources, Path(folder)))
            for line in lines(world, table, options.epsilon or EPSILONS, options.profiles):
                found.append(line)
                console.print(said(line))
            if not options.epsilon:
                others = [o for o in kept(RESULT) if o.world != world.name] if RESULT.exists() else []
                RESULT.write_text(written([*others, *(o for o in found if o.world == world.name)]), encoding="utf-8")
    for row in summary(found):
        console.print("  ".join(f"{c:26}" for c in row))
    goals = [*missed(found)]
    console.print("\n".join(f"missed: {g}" for g in goals))
    return int(bool(goals))


if __name__ == "__main__":
    raise SystemExit(main())
