"""`python -m benchmarks.accuracy.real`: how good are numbers about whole tables, beside other ways of spending as much?

Asks counts, sums and averages of each world, without a key and by keys of some and of many values, of all rows and of
a part; keeps what it found. Status 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.accuracy.asked import Answers, Question, Table
from benchmarks.accuracy.worlds import World, worlds
from proxy.dp.accounting import PICO, knob_pico
from proxy.policy.model import Privacy

RESULT = Path(__file__).resolve().parents[1] / "results" / "accuracy_real.json"
PLANNING = RESULT.with_name("accuracy_planning.json")
EPSILONS = (0.1, 0.5, 1.0, 4.0)
QUESTIONS = 50  # which the price of a profile is divided among
CONDITIONS = ("coin < 50", "coin < 10", "coin = 0", "face < 10", "face = 0")
OPEN = " by dest"
MEDIAN = "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)"
_DRAWS, _FEW_DRAWS = 25, 3  # answers with each profile; of medians, which take long
_ABOVE_POLICY = {True: 1.2, False: 1.05}  # of its error, with several rows a unit or one
_ABOVE_ORACLE = {False: 1.5, True: 2.0}  # geometric mean, without a condition and with one
_SINCE: dict[str, Any] = dict.fromkeys(("learned", "oracle_good"), math.nan)
_OF_ORACLE_GOOD = 0.95  # of its share of answers within a tenth of the truth
_MORE_MS = 1.0  # for a plan with a profile
_HELD = {False: (0.93, 0.97), True: (0.88, 0.97)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Errors of one question relative to the truth, and how the product's intervals and answers fare.

    oracle, rows, groups: see `ways`; NaN for averages. policy: the product without a profile. learned: with a profile
    that makes the policy's bounds narrower, as it was before questions chose theirs. good, oracle_good: the share of
    answers within a tenth of the truth. shown: the share of rows in groups that have a number.
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
    learned: float
    oracle_good: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """The processor's time for a plan of one statement of a world, median over its questions."""

    world: str
    without_ms: float
    with_ms: float


def lines(world: World, table: Table, epsilons: Sequence[float], profiles: int, part: str = "") -> Iterator[Line]:
    """Every question of one world, or those that have `part` in them."""
    for epsilon in epsilons:
        price = price_of(world, epsilon)
        found = table.profiled(price, profiles)
        whole = knob_pico(Privacy(unit="person"), epsilon)
        share = whole - knob_pico(Privacy(unit="person"), price) // QUESTIONS
        for groups, question in questions(world, epsilon):
            if part not in question.name:
                continue
            draws = _FEW_DRAWS if question.aggregate == MEDIAN else _DRAWS
            ours = table.answers(question, share, found, draws)
            learned = table.answers(question, share, found, draws, is_chosen=False)
            policy = table.answers(question, whole, [()], draws * profiles)
            yield _line(world, table, question, groups, epsilon, ours, (policy, learned))


def price_of(world: World, epsilon: float) -> float:
    """Of a profile, for 50 questions of this epsilon: no more than one of them where units have one row each.

    The least that `hushql profile` offers where less than a quarter is asked for.
    """
    if not world.has_several_rows:
        return min(1.0, epsilon)
    return 0.25 if epsilon < 0.25 else 1.0


def planning(world: World, table: Table, times: int = 15) -> Planning:
    """How much longer a plan takes where a profile chooses its bound."""
    (found,), pico = table.profiled(1.0, 1), knob_pico(Privacy(unit="person"), 0.5)
    taken = [table.planning_ms(question, pico, found, times) for _, question in questions(world, 0.5)]
    without, beyond = (statistics.median(t) for t in zip(*((a, b - a) for a, b in taken), strict=True))
    return Planning(world=world.name, without_ms=without, with_ms=without + beyond)


def questions(world: World, epsilon: float) -> Iterator[tuple[int, Question]]:
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
    world: World, table: Table, question: Question, groups: int, epsilon: float, ours: Answers,
    otherwise: tuple[Answers, Answers],
) -> Line:  # fmt: skip
    """otherwise: with the policy's bounds, and with these made narrower by a profile."""
    policy, learned = otherwise
    others = dict.fromkeys(("oracle", "rows", "groups", "oracle_good"), math.nan)
    if question.aggregate in ("count(*)", "sum(x)") and (not question.key or question.key != world.open_key):
        cells = table.cells(question, groups)
        rho = knob_pico(Privacy(unit="person"), epsilon) / PICO
        largest = 1.0 if question.aggregate == "count(*)" else world.most
        size = math.sqrt(float((cells.truth**2).mean()))
        most, best = world.per_group, cells.oracle(rho)
        others = {
            "oracle": best.error / size,
            "oracle_good": best.good,
            "rows": cells.rows_kept(rho, world.rows, largest) / size,
            "groups": cells.groups_kept(rho, world.groups, most if groups > 1 else world.rows, largest) / size,
        }
    return Line(world=world.name, question=question.name, epsilon=epsilon, is_filtered=bool(question.where),
                several=world.has_several_rows, ours=ours.error, policy=policy.error, held=ours.held, good=ours.good,
                shown=ours.shown, learned=learned.error,
                **others)  # fmt: skip


# --- goals ---------------------------------------------------------------------------------------------


def missed(found: Sequence[Line]) -> Iterator[str]:
    """In words, each goal that is not reached."""
    for is_filtered, words in ((False, "all rows"), (True, "a condition")):
        of = [o for o in found if o.is_filtered == is_filtered and o.oracle > 0]
        ratios = [o.ours / o.oracle for o in of if o.several]
        if ratios and (mean := _mean(ratios)) > (most := _ABOVE_ORACLE[is_filtered]):
            yield f"{words}: {mean:.2f} times the oracle's error, not {most:g}"
        told = [o for o in of if not math.isnan(o.oracle_good)]
        ours, best = sum(o.good for o in told), sum(o.oracle_good for o in told)
        if told and ours < _OF_ORACLE_GOOD * best:
            share = f"{ours / best:.2f} of the oracle's, not {_OF_ORACLE_GOOD:g}"
            yield f"{words}: answers within a tenth of the truth are {share}"
        least, largest = _HELD[is_filtered]
        if of and not least <= (held := sum(o.held for o in of) / len(of)) <= largest:
            yield f"{words}: {held:.1%} of intervals hold the truth, not {least:.0%} to {largest:.0%}"
    for one in found:
        if one.policy > 0 and one.ours > (most := _ABOVE_POLICY[one.several]) * one.policy:
            times = f"{one.ours / one.policy:.2f} times the policy's error, not {most:g}"
            yield f"{one.world}, {one.question}, epsilon {one.epsilon:g}: {times}"


def too_slow(found: Sequence[Planning]) -> Iterator[str]:
    """In words, each world whose plans take too much longer with a profile."""
    for one in found:
        if (more := one.with_ms - one.without_ms) > _MORE_MS:
            yield f"{one.world}: a plan with a profile takes {more:.2f} ms more, not {_MORE_MS:g}"


def _mean(ratios: Sequence[float]) -> float:
    """Geometric."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summary(found: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    """For each table and kind of question: errors relative to the oracle's, or to the policy's where there is none.

    Columns: table, kind, questions asked, errors of the product, of its profile without a choice, of the policy, `rows`
    and `groups`, answers within a tenth of the truth of the product and of the oracle, intervals that hold.
    """
    for world in dict.fromkeys(o.world for o in found):
        for name, of in _kinds([o for o in found if o.world == world]):
            if of and of[0].oracle > 0:
                ways = [[getattr(o, way) for o in of] for way in ("ours", "learned", "policy", "rows", "groups")]
                errors = [_times([e / o.oracle for e, o in zip(way, of, strict=True)]) for way in ways]
            else:
                ways = [[o.ours for o in of], [o.learned for o in of]]
                errors = [
                    _times([e / o.policy for e, o in zip(way, of, strict=True)], " of the policy's") for way in ways
                ]
                errors += ["1", "", ""]
            if of:
                good = f"{_percent([o.good for o in of])} / {_percent([o.oracle_good for o in of])}"
                yield world, name, str(len(of)), *errors, good, _percent([o.held for o in of])


def _times(ratios: Sequence[float], of: str = "") -> str:
    """Their mean; nothing where one is not known."""
    return "-" if not ratios or any(map(math.isnan, ratios)) else f"{_mean(ratios):.2f}{of}"


def _percent(shares: Sequence[float]) -> str:
    """The mean; nothing where none is known."""
    known = [s for s in shares if not math.isnan(s)]
    return f"{100 * sum(known) / len(known):.0f} %" if known else "-"


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


def kept(place: Path = RESULT) -> list[Line]:
    """The figures that were kept; what is asked for only since then is not known of earlier ones."""
    found = json.loads(place.read_text(encoding="utf-8"))
    return [Line(**(_SINCE | {n: math.nan if v is None else v for n, v in one.items()})) for one in found]


def kept_planning() -> list[Planning]:
    """How long plans took; of no world before it was measured."""
    if not PLANNING.exists():
        return []
    return [Planning(**one) for one in json.loads(PLANNING.read_text(encoding="utf-8"))]


def written(found: Sequence[Line] | Sequence[Planning]) -> str:
    """As JSON, with four digits; what is no number as null."""
    every = [{n: float(f"{v:.4g}") if isinstance(v, float) else v for n, v in asdict(o).items()} for o in found]
    plain = [{n: None if isinstance(v, float) and math.isnan(v) else v for n, v in one.items()} for one in every]
    return "[\n" + ",\n".join(json.dumps(one) for one in plain) + "\n]\n"


def _keep(found: Sequence[Line], plans: Planning) -> None:
    """What was found of one world, in the place of what was known of it."""
    others = [o for o in kept() if o.world != plans.world] if RESULT.exists() else []
    RESULT.write_text(written([*others, *found]), encoding="utf-8")
    earlier = [p for p in kept_planning() if p.world != plans.world]
    PLANNING.write_text(written([*earlier, plans]), encoding="utf-8")


def said(line: Line) -> str:
    ways = ((way, getattr(line, way)) for way in ("ours", "learned", "policy", "oracle", "rows", "groups"))
    errors = " ".join(f"{way} {error:9.4f}" for way, error in ways)
    good = f"good {line.good:.2f} / {line.oracle_good:.2f}"
    of = f"{line.world:8} {line.question:34} eps {line.epsilon:<4g}"
    return f"{of} {errors} held {line.held:.2f} {good} shown {line.shown:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path, help="folder of the downloaded data sets")
    parser.add_argument("--world", action="append", help="ask these alone")
    parser.add_argument("--epsilon", type=float, action="append", help="at these alone")
    parser.add_argument("--question", default="", help="ask those alone that have this in them")
    parser.add_argument("--profiles", type=int, default=4, help="draws of profiles")
    options = parser.parse_args()
    console, found, plans = Console(width=190), list[Line](), list[Planning]()
    is_kept = not (options.epsilon or options.question)
    with tempfile.TemporaryDirectory() as folder:
        for world in worlds(options.sources):
            if options.world and world.name not in options.world:
                continue
            table = Table(world, world.made(options.sources, Path(folder)))
            plans.append(planning(world, table))
            console.print(
                f"{world.name}: a plan takes {plans[-1].without_ms:.2f} ms, with a profile {plans[-1].with_ms:.2f}"
            )
            for line in lines(world, table, options.epsilon or EPSILONS, options.profiles, options.question):
                found.append(line)
                console.print(said(line))
            if is_kept:
                _keep([line for line in found if line.world == world.name], plans[-1])
    for row in summary(found):
        console.print("  ".join(f"{c:26}" for c in row))
    goals = [*missed(found), *too_slow(plans)]
    console.print("\n".join(f"missed: {g}" for g in goals))
    return int(bool(goals))


if __name__ == "__main__":
    raise SystemExit(main())
