"""`python -m benchmarks.accuracy.real`: how good are numbers about whole tables, beside other ways of spending as much?

Asks counts, sums and averages of each world, without a key and by keys of some and of many values, of all rows and of
a part; keeps what it found. Status 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.accuracy.asked import Answers, Question, Table
from benchmarks.accuracy.worlds import World, worlds
from proxy.dp.accounting import PICO, knob_pico
from proxy.policy.model import Privacy

RESULT = Path(__file__).resolve().parents[1] / "results" / "accuracy_real.json"
EPSILONS = (0.1, 0.5, 1.0, 4.0)
QUESTIONS = 50  # which the price of a profile is divided among
CONDITIONS = ("coin < 50", "coin < 10", "coin = 0", "face < 10", "face = 0")
MEDIAN = "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)"
_DRAWS, _FEW_DRAWS = 25, 3  # answers with each profile; of medians, which take long
_ABOVE_POLICY = {True: 1.2, False: 1.05}  # of its error, with several rows a unit or one
_ABOVE_ORACLE = {False: 1.5, True: 2.0}  # geometric mean, without a condition and with one
_HELD = {False: (0.93, 0.97), True: (0.88, 0.97)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Errors of one question relative to the truth, and how the product's intervals and answers fare.

    oracle, rows, groups: see `ways`; NaN for averages. policy: the product without a profile.
    shown: the share of rows in groups that have a number.
    """

    world: str
    question: str
    epsilon: float
    is_filtered: bool
    several: bool
    ours: float
    policy: float
    oracle: float
    rows: float
    groups: float
    held: float
    good: float
    shown: float


def lines(world: World, table: Table, epsilons: Sequence[float], profiles: int, part: str = "") -> Iterator[Line]:
    """Every question of one world, or those that have `part` in them."""
    for epsilon in epsilons:
        price = 0.5 if epsilon < 0.25 else 1.0
        found = table.profiled(price, profiles)
        whole = knob_pico(Privacy(unit="person"), epsilon)
        share = whole - knob_pico(Privacy(unit="person"), price) // QUESTIONS
        for groups, question in _questions(world, epsilon):
            if part not in question.name:
                continue
            draws = _FEW_DRAWS if question.aggregate == MEDIAN else _DRAWS
            ours = table.answers(question, share, found, draws)
            policy = table.answers(question, whole, [()], draws * profiles)
            yield _line(world, table, question, groups, epsilon, ours, policy)


def _questions(world: World, epsilon: float) -> Iterator[tuple[int, Question]]:
    """With how many groups each has."""
    for aggregate in ("count(*)", "sum(x)", "avg(x)"):
        yield 1, Question(aggregate)
        yield from ((groups, Question(aggregate, key)) for groups, key in world.keys)
        if world.open_key:
            yield world.open_groups, Question(aggregate, world.open_key)
    yield 1, Question(MEDIAN)
    yield world.keys[1][0], Question(MEDIAN, world.keys[1][1])
    if epsilon in (0.5, 1.0):
        for condition in CONDITIONS:
            for aggregate in ("count(*)", "sum(x)"):
                yield 1, Question(aggregate, "", condition)
                groups, key = world.keys[1]
                yield groups, Question(aggregate, key, condition)


def _line(
    world: World, table: Table, question: Question, groups: int, epsilon: float, ours: Answers, policy: Answers
) -> Line:  # fmt: skip
    others = dict.fromkeys(("oracle", "rows", "groups"), math.nan)
    if question.aggregate in ("count(*)", "sum(x)") and (not question.key or question.key != world.open_key):
        cells = table.cells(question, groups)
        rho = knob_pico(Privacy(unit="person"), epsilon) / PICO
        largest = 1.0 if question.aggregate == "count(*)" else world.most
        size = math.sqrt(float((cells.truth**2).mean()))
        most = world.per_group
        others = {
            "oracle": cells.oracle(rho) / size,
            "rows": cells.rows_kept(rho, world.rows, largest) / size,
            "groups": cells.groups_kept(rho, world.groups, most if groups > 1 else world.rows, largest) / size,
        }
    return Line(world=world.name, question=question.name, epsilon=epsilon, is_filtered=bool(question.where),
                several=world.has_several_rows, ours=ours.error, policy=policy.error, held=ours.held, good=ours.good,
                shown=ours.shown,
                **others)  # fmt: skip


# --- goals ---------------------------------------------------------------------------------------------


def missed(found: Sequence[Line]) -> Iterator[str]:
    """In words, each goal that is not reached."""
    for is_filtered, words in ((False, "all rows"), (True, "a condition")):
        of = [o for o in found if o.is_filtered == is_filtered and o.oracle > 0]
        ratios = [o.ours / o.oracle for o in of if o.several]
        if ratios and (mean := _mean(ratios)) > (most := _ABOVE_ORACLE[is_filtered]):
            yield f"{words}: {mean:.2f} times the oracle's error, not {most:g}"
        least, largest = _HELD[is_filtered]
        if of and not least <= (held := sum(o.held for o in of) / len(of)) <= largest:
            yield f"{words}: {held:.1%} of intervals hold the truth, not {least:.0%} to {largest:.0%}"
    for one in found:
        if one.policy > 0 and one.ours > (most := _ABOVE_POLICY[one.several]) * one.policy:
            times = f"{one.ours / one.policy:.2f} times the policy's error, not {most:g}"
            yield f"{one.world}, {one.question}, epsilon {one.epsilon:g}: {times}"


def _mean(ratios: Sequence[float]) -> float:
    """Geometric."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summary(found: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    """For each world, with and without conditions: how many times the oracle's errors others have."""
    kinds: tuple[tuple[str, Callable[[Line], float]], ...] = (
        ("ours", lambda o: o.ours), ("policy", lambda o: o.policy), ("rows", lambda o: o.rows),
        ("groups", lambda o: o.groups),
    )  # fmt: skip
    for world in dict.fromkeys(o.world for o in found):
        for is_filtered in (False, True):
            of = [o for o in found if o.world == world and o.is_filtered == is_filtered and o.oracle > 0]
            if of:
                ratios = (f"{_mean([pick(o) / o.oracle for o in of]):.2f}" for _, pick in kinds)
                held = f"{sum(o.held for o in of) / len(of):.3f}"
                yield world, "condition" if is_filtered else "all rows", *ratios, held
        means = [o for o in found if o.world == world and math.isnan(o.oracle) and o.ours > 0 < o.policy]
        if means:
            yield world, "averages, ours to policy", f"{_mean([o.ours / o.policy for o in means]):.2f}", "", "", "", ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path, help="folder of the downloaded data sets")
    parser.add_argument("--world", action="append", help="ask these alone")
    parser.add_argument("--epsilon", type=float, action="append", help="at these alone")
    parser.add_argument("--question", default="", help="ask those alone that have this in them")
    parser.add_argument("--profiles", type=int, default=4, help="draws of profiles")
    options = parser.parse_args()
    console, found = Console(width=170), list[Line]()
    with tempfile.TemporaryDirectory() as folder:
        for world in worlds(options.sources):
            if options.world and world.name not in options.world:
                continue
            table = Table(world, world.made(options.sources, Path(folder)))
            for line in lines(world, table, options.epsilon or EPSILONS, options.profiles, options.question):
                found.append(line)
                console.print(
                    f"{line.world:8} {line.question:34} eps {line.epsilon:<4g} ours {line.ours:9.4f} policy"
                    f" {line.policy:9.4f} oracle {line.oracle:9.4f} rows {line.rows:9.4f} groups {line.groups:9.4f}"
                    f" held {line.held:.2f} good {line.good:.2f} shown {line.shown:.2f}"
                )
    for row in summary(found):
        console.print("  ".join(f"{c:26}" for c in row))
    if not (options.world or options.epsilon or options.question):
        RESULT.write_text(json.dumps([asdict(o) for o in found], indent=1) + "\n", encoding="utf-8")
    goals = [*missed(found)]
    console.print("\n".join(f"missed: {g}" for g in goals))
    return int(bool(goals))


if __name__ == "__main__":
    raise SystemExit(main())
