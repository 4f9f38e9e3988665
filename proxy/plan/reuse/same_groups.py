"""Which answers are among those of a release with the same groups: some of its private groups, some of its parts?

Nothing is added up here. Which private groups a release shows was decided by their noisy numbers of units; another
question shows the same ones, without those that its own conditions name. See docs/claims/reuse.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from proxy.analysis.keys import NULL_KEY, KeyValue, PrivateKey, key_identity
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.parts import Part
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.plan.vector.moments import UnitCount, UnitTotal, condition_of
from proxy.plan.vector.recipes import Apart, Finish, Ranked
from proxy.sql.algebra.nodes import Call, Literal, Member, Scalar, columns_of
from proxy.sqltypes import SqlType

_CONFIDENCE = 0.95
# types that engines compare as Python does, whatever the values are
_COMPARED = frozenset((SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.TEXT, SqlType.VARCHAR, SqlType.DATE))


@dataclass(frozen=True, slots=True)
class Chosen:
    """Private groups of a release that another question shows.

    places: of its keys among the release's. without: places of the release's keys, with values that are left out.
    """

    places: tuple[int, ...]
    without: tuple[tuple[int, frozenset[object]], ...]

    def key(self, cell: tuple[KeyValue, ...]) -> tuple[KeyValue, ...] | None:
        """The key of a cell as the question has it; None if it does not show the cell."""
        if any(key_identity(cell[place]) in values for place, values in self.without):
            return None
        return tuple(cell[place] for place in self.places)


def chosen(wanted: ReleasePlan, source: ReleasePlan) -> Chosen | None:
    """The private groups of the source that `wanted` shows; None if it may show others, or those of other rows."""
    if not isinstance(wanted.selection, Threshold) or not isinstance(source.selection, Threshold):
        return None
    ours, theirs = wanted.analysed.owned.block, source.analysed.owned.block
    is_same = (ours.scans, ours.joins) == (theirs.scans, theirs.joins) and set(theirs.where) <= set(ours.where)
    keys = source.analysed.keys
    if not is_same or len(keys) != len(wanted.analysed.keys) or set(keys) != set(wanted.analysed.keys):
        return None
    left_out = tuple(_left_out(c, source) for c in ours.where if c not in theirs.where)
    without = tuple(found for found in left_out if found is not None)
    if len(without) < len(left_out) or not (source.analysed.owned.is_one_row_per_unit or _is_alike(wanted, source)):
        return None
    return Chosen(tuple(keys.index(k) for k in wanted.analysed.keys), without)


def _left_out(condition: Scalar, source: ReleasePlan) -> tuple[int, frozenset[object]] | None:
    """A private key, and the values of it that a condition leaves out; None if the condition says anything else."""
    match condition:
        case Call("<>", (scalar, Literal() as value)):
            items: tuple[Literal, ...] = (value,)
        case Call("not", (Member(scalar, items),)):
            pass
        case Call("not", (Call("is null", (scalar,)),)):
            items = ()
        case _:
            return None
    keys = source.analysed.keys
    place = next((n for n, k in enumerate(keys) if isinstance(k, PrivateKey) and k.scalar == scalar), None)
    is_plain = scalar.type in _COMPARED and all(
        i.type.family is scalar.type.family and not isinstance(i.value, float) for i in items
    )
    is_blind = any(source.analysed.domains.column(c).case_blind for c in columns_of(scalar))
    if place is None or not is_plain or is_blind:
        return None
    return place, frozenset((NULL_KEY, *(key_identity(i.value) for i in items)))


def _is_alike(wanted: ReleasePlan, source: ReleasePlan) -> bool:
    """Whether a unit with several rows is in the same groups, with all that a new release would count."""
    ours, theirs = wanted.analysed, source.analysed
    if ours.owned.block.where != theirs.owned.block.where or ours.keys != theirs.keys:
        return False
    if any(isinstance(m, UnitTotal) for m in source.vector.moments):
        return False
    bounds, needed = theirs.bounds, ours.bounds
    is_as_wide = bounds.rows >= needed.rows and bounds.rows_per_group >= needed.rows_per_group
    has_same_groups = bounds.keys == needed.keys and bounds.groups >= bounds.rows
    return is_as_wide and has_same_groups and moment_conditions(source) <= moment_conditions(wanted)


def moment_conditions(plan: ReleasePlan) -> set[Scalar]:
    """Which rows count for some moment."""
    return {condition_of(m) for m in plan.vector.moments if not isinstance(m, (UnitCount, UnitTotal))}


def threshold_ratio(wanted: ReleasePlan, source: ReleasePlan) -> float:
    """How many times as many units a private group needs to be shown; 0 of public groups."""
    if not isinstance(wanted.selection, Threshold) or not isinstance(source.selection, Threshold):
        return 0.0
    return source.selection.tau / wanted.selection.tau


# --- parts ------------------------------------------------------------------------------------------------


def carried(wanted: ReleasePlan, source: ReleasePlan) -> tuple[int, ...] | None:
    """For each part of `wanted` the number of the source's part that has its results; None if some are not there."""
    found = tuple(
        next((n for n, part in enumerate(source.parts) if _gives(part, one, wanted, source)), None)
        for one in wanted.parts
    )
    there = tuple(n for n in found if n is not None)
    return there if len(there) == len(found) else None


def _gives(part: Part, wanted: Part, asking: ReleasePlan, source: ReleasePlan) -> bool:
    """Whether a part has the results of another one, a unit being bounded alike."""
    is_free = source.analysed.owned.is_one_row_per_unit
    is_same = asking.analysed.owned.block.where == source.analysed.owned.block.where
    match part, wanted:
        case DistinctPart(), DistinctPart():
            return part.asked == wanted.asked and (is_free or (is_same and part.limits == wanted.limits))
        case QuantilePart(), QuantilePart():
            ours, theirs = wanted.asked, part.asked
            is_there = set(ours.fractions) <= set(theirs.fractions) and set(ours.bracketed) <= set(theirs.bracketed)
            is_bounded = (part.ladder.move, part.ladder.groups) == (wanted.ladder.move, wanted.ladder.groups)
            is_alike = (ours.where, ours.of, wanted.grid) == (theirs.where, theirs.of, part.grid)
            return is_alike and is_there and (is_free or (is_same and is_bounded))
        case ModePart(), ModePart():
            is_bounded = (part.poll.move, part.poll.groups) == (wanted.poll.move, wanted.poll.groups)
            is_alike = (part.asked, part.candidates) == (wanted.asked, wanted.candidates)
            return is_alike and (is_free or (is_bounded and is_same))
        case _:
            return False


def placed(finish: Finish, wanted: ReleasePlan, source: ReleasePlan, parts: Sequence[int]) -> Finish:
    """A recipe that reads a part of `wanted` as one that reads the source's."""
    match finish:
        case Apart(part, place):
            return Apart(parts[part], place)
        case Ranked(part, place, number):
            ours, theirs = wanted.parts[part], source.parts[parts[part]]
            if isinstance(ours, ModePart):
                return Ranked(parts[part], place, number)
            assert isinstance(ours, QuantilePart)
            assert isinstance(theirs, QuantilePart)
            return Ranked(parts[part], theirs.asked.fractions.index(ours.asked.fractions[place]), number)
        case _:
            return finish


def error_ratios(wanted: ReleasePlan, source: ReleasePlan, parts: Iterable[int]) -> Iterator[float]:
    """How many times the error of a new answer each result of the parts has."""
    for ours, theirs in zip(wanted.parts, (source.parts[n] for n in parts), strict=True):
        if isinstance(ours, DistinctPart):
            assert isinstance(theirs, DistinctPart)
            yield theirs.sd / ours.sd
        elif isinstance(ours, ModePart):
            assert isinstance(theirs, ModePart)
            yield ours.poll.steepness / theirs.poll.steepness
        else:
            assert isinstance(theirs, QuantilePart)
            for fraction in ours.asked.fractions:
                error = theirs.ladder.rank_error_up(fraction, _CONFIDENCE)
                yield error / ours.ladder.rank_error_up(fraction, _CONFIDENCE)
