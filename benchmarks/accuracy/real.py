"""`python -m benchmarks.accuracy.real`: how good are numbers about whole tables, beside other ways of spending as much?

Asks counts, sums and averages of each world, without a key and by keys of some and of many values, of all rows and of
a part; keeps what it found. Status 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
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
OPEN = " by dest"
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
    """For each table and kind of question: errors relative to the oracle's, or to the policy's where there is none.

    Columns: table, kind, questions asked, errors of the product, the policy, `rows` and `groups`, intervals that hold.
    """
    for world in dict.fromkeys(o.world for o in found):
        for name, of in _kinds([o for o in found if o.world == world]):
            if of and of[0].oracle > 0:
                ways = ([o.ours for o in of], [o.policy for o in of], [o.rows for o in of], [o.groups for o in of])
                errors = [f"{_mean([e / o.oracle for e, o in zip(way, of, strict=True)]):.2f}" for way in ways]
            else:
                errors = [f"{_mean([o.ours / o.policy for o in of]):.2f} of the policy's", "1", "", ""] if of else []
            if errors:
                yield world, name, str(len(of)), *errors, f"{100 * sum(o.held for o in of) / len(of):.0f} %"


def _kinds(found: Sequence[Line]) -> Iterator[tuple[str, list[Line]]]:
    """Questions that are alike."""
    known = [o for o in found if o.oracle > 0]
    yield "counts and sums", [o for o in known if not o.is_filtered]
    yield "counts and sums under WHERE", [o for o in known if o.is_filtered]
    others = [o for o in found if math.isnan(o.oracle) and o.ours > 0 < o.policy]
    listed = [o for o in others if not o.question.endswith(OPEN)]
    yield "averages", [o for o in listed if o.question.startswith("avg")]
    yield "medians", [o for o in listed if o.question.startswith("percentile")]
    yield "by unlisted values", [o for o in others if o.question.endswith(OPEN)]


def kept() -> list[Line]:
    """The figures that were kept."""
    found = json.loads(RESULT.read_text(encoding="utf-8"))
    return [Line(**{name: math.nan if value is None else value for name, value in one.items()}) for one in found]


def _written(found: Sequence[Line]) -> str:
    """As JSON, with four digits; what is no number as null."""
    every = [{n: float(f"{v:.4g}") if isinstance(v, float) else v for n, v in asdict(o).items()} for o in found]
    plain = [{n: None if isinstance(v, float) and math.isnan(v) else v for n, v in one.items()} for one in every]
    return "[\n" + ",\n".join(json.dumps(one) for one in plain) + "\n]\n"


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
    if not (options.epsilon or options.question):
        asked = {o.world for o in found}
        others = [o for o in kept() if o.world not in asked] if RESULT.exists() else []
        RESULT.write_text(_written([*others, *found]), encoding="utf-8")
    goals = [*missed(found)]
    console.print("\n".join(f"missed: {g}" for g in goals))
    return int(bool(goals))


if __name__ == "__main__":
    raise SystemExit(main())
