"""What is an expression in all rows of a cell of a release, as far as the cell's keys tell?

An expression with two possible values in a cell has none here. See docs/claims/reuse.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.analysis.evaluate import MISSING, NOTHING, Choice, choices
from proxy.analysis.grain import FIELDS, UNITS, grain
from proxy.analysis.keys import KeyValue, NullKey, PublicKey
from proxy.plan.release_plan import ReleasePlan
from proxy.sql.algebra.nodes import Call, ColumnRef, Literal, Null, Scalar, columns_of, with_parts
from proxy.sqltypes import SqlType

CellKey = tuple[KeyValue, ...]

# types of keys that engines compare, and compute with, as Python does
_PLAIN = frozenset(
    (SqlType.BOOL, SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.TEXT, SqlType.VARCHAR, SqlType.DATE)
)


@dataclass(frozen=True, slots=True)
class _Time:
    """A key that is the start of the unit in which a column's time lies. place: among the keys. unit: among UNITS."""

    place: int
    column: ColumnRef
    unit: int


class CellReader:
    """What expressions are in the cells of a release with public keys."""

    def __init__(self, source: ReleasePlan) -> None:
        keys = tuple(k.scalar for k in source.analysed.keys if isinstance(k, PublicKey))
        blind = [any(source.analysed.domains.column(c).case_blind for c in columns_of(k)) for k in keys]
        self.keys = keys
        self._plain = frozenset(i for i, k in enumerate(keys) if not blind[i] and _is_plain(k))
        self._times = _times(keys)
        self._found: dict[Scalar, dict[CellKey, Choice | None]] = {}
        self._places: dict[Scalar, tuple[int, ...] | None] = {}

    def may_read(self, scalar: Scalar) -> bool:
        """Whether the keys decide about a scalar, at least in some cells."""
        return self._read(scalar) is not None

    def places(self, scalar: Scalar) -> tuple[int, ...]:
        """The keys that a scalar is computed from."""
        return self._read(scalar) or ()

    def of(self, scalar: Scalar) -> Callable[[CellKey], Choice | None]:
        """What the scalar is in all rows of a cell; None if that is unknown."""
        if scalar in self.keys:
            own = self.keys.index(scalar)
            return lambda cell: _choice(cell[own])
        places, known = self.places(scalar), self._found.setdefault(scalar, {})

        def value(cell: CellKey) -> Choice | None:
            """Computed once for equal keys."""
            at = tuple(cell[place] for place in places)
            if at not in known:
                found = choices(self._filled(scalar, cell), NOTHING)
                known[at] = found[0] if len(found) == 1 else None
            return known[at]

        return value

    def _read(self, scalar: Scalar) -> tuple[int, ...] | None:
        """The keys that a scalar is computed from; None where it reads something that no key gives."""
        if scalar not in self._places:
            self._places[scalar] = self._looked_up(scalar)
        return self._places[scalar]

    def _looked_up(self, scalar: Scalar) -> tuple[int, ...] | None:
        if scalar in self.keys:
            return (self.keys.index(scalar),)
        read: set[int] = set()

        def note(part: Scalar) -> Scalar | None:
            place = self._place_of(part, scalar)
            if place is None:
                return None
            read.add(place)
            return Null(part.type)

        rest = with_parts(scalar, note)
        return None if columns_of(rest) and not read else tuple(sorted(read))

    def _filled(self, scalar: Scalar, cell: CellKey) -> Scalar:
        """An expression with constants in the place of keys."""

        def fill(part: Scalar) -> Scalar | None:
            place = self._place_of(part, scalar)
            if place is None:
                return None
            value = cell[place]
            return Null(part.type) if isinstance(value, NullKey) else Literal(value, part.type)

        return with_parts(scalar, fill)

    def _place_of(self, part: Scalar, whole: Scalar) -> int | None:
        """The key that gives a part of an expression, if one does."""
        if part in self.keys and self.keys.index(part) in self._plain:
            return self.keys.index(part)
        if isinstance(part, ColumnRef):
            read = grain(whole, part)
            return next(
                (t.place for t in self._times if t.column == part and read in UNITS and UNITS.index(read) >= t.unit),
                None,
            )
        return None


def _choice(value: KeyValue) -> Choice:
    return MISSING if isinstance(value, NullKey) else value


def _is_plain(key: Scalar) -> bool:
    """Whether expressions may be computed from a key: the start of a unit or a whole field of a time, or as it is."""
    if isinstance(key, Call):
        name, _, word = key.function.partition(" ")
        if name == "date_trunc":
            return True
        if name == "extract":
            return word in FIELDS
    return key.type in _PLAIN


def _times(keys: Sequence[Scalar]) -> tuple[_Time, ...]:
    """Keys that tell in which minute, day, month or year a column's time lies, the coarsest last."""
    found = [
        _Time(place, column, UNITS.index(unit))
        for place, key in enumerate(keys)
        if isinstance(key, Call) and (unit := _start(key)) in UNITS
        for column in columns_of(key)
        if grain(key, column) == unit
    ]
    return tuple(sorted(found, key=lambda t: t.unit))


def _start(key: Call) -> str:
    """The unit whose start a key is, "" if it is none."""
    name, _, word = key.function.partition(" ")
    if name == "date_trunc":
        return word
    return "day" if key.function == "cast time to date" else ""
