"""How many units have rows that bounds leave out: what does counting them cost, and how is it spelled?

Two coordinates of the statement, not of a group: each unit is in one of them. They are not multiplied by its factor.
See docs/claims/cut-units.md.
"""

from __future__ import annotations

import math
from typing import assert_never

from proxy.dp.mechanisms import Distribution
from proxy.plan.sql.moment_sql import MomentTerms, VectorStatement
from proxy.plan.vector.moments import UnitTotal

CUT, WHOLE = 2, 3  # the first column of their two rows, among those of the cells
COUNTED = "counted"  # the relation that they are read from: its columns are cut_units and units
CLIPPED = "clipped"  # the column of a cell that tells whether a total of it is not whole
_NEARLY_ALL = 1.0 - 2.0**-21  # a factor above it is that of a unit at its bound, whose norm was rounded up
_PARTS = 50  # of the charge, one of which they take


def weight_beside(unit_norm: float, distribution: Distribution) -> float:
    """w such that the pair takes a fiftieth of the charge from a vector of length B: B/7, or B/49 in the 1-norm."""
    match distribution:
        case Distribution.GAUSSIAN:
            return unit_norm / math.sqrt(_PARTS - 1)
        case Distribution.LAPLACE:
            return unit_norm / (_PARTS - 1)
        case _ as never:
            assert_never(never)


def norm_up(unit_norm: float, weight: float, distribution: Distribution) -> float:
    """How long a unit's vector is with the pair, at most; B without it.

    Claim: a vector of length B and one number of size w beside it are at most sqrt(B^2 + w^2) long together (B + w in
    the 1-norm), whatever the unit's rows are.
    """
    if not weight:
        return unit_norm
    match distribution:
        case Distribution.GAUSSIAN:
            return math.nextafter(math.hypot(unit_norm, weight), math.inf)
        case Distribution.LAPLACE:
            return math.nextafter(unit_norm + weight, math.inf)
        case _ as never:
            assert_never(never)


def growth(weight: float, unit_norm: float, distribution: Distribution) -> float:
    """How much larger the noise of everything else is."""
    return norm_up(unit_norm, weight, distribution) / unit_norm - 1.0


# --- SQL ------------------------------------------------------------------------------------------------


def has_clipped(statement: VectorStatement) -> bool:
    """Whether cells tell of totals that are not whole."""
    return bool(statement.cut_weight) and any(isinstance(m, UnitTotal) for m in statement.moments)


def is_cut(statement: VectorStatement) -> str:
    """Whether a cell has rows that do not count in full: those above C, or of a total that is clipped."""
    above = f"n > {statement.analysed.bounds.rows_per_group}"
    return f"({above} OR {CLIPPED})" if has_clipped(statement) else above


def pair_rows(statement: VectorStatement, terms: MomentTerms) -> str:
    """The two rows behind those of the cells, from `COUNTED`; keys and other moments are NULL."""
    each, huge = math.floor(statement.cut_weight * statement.scale), terms.dialect.huge
    keys = [f"NULL AS {k}" for k in terms.keys]
    rest = [f"NULL AS m{i}" for i in range(1, len(statement.moments))]
    found = []
    for row, number in ((CUT, "cut_units"), (WHOLE, "units - cut_units")):
        value = f"coalesce({number}, 0) * {each}::{huge} AS m0"
        found.append(f"\nUNION ALL\nSELECT {', '.join([f'{row} AS is_part', *keys, value, *rest])}\nFROM {COUNTED}")
    return "".join(found)


def counted_by_cells(statement: VectorStatement, terms: MomentTerms, scored: str) -> str:
    """`COUNTED` of the cells of units that need no factor."""
    units = ", ".join(terms.units)
    each_unit = f"SELECT bool_or({is_cut(statement)}) AS is_cut FROM {scored} GROUP BY {units}"
    counted = "SELECT count(*) FILTER (WHERE is_cut) AS cut_units, count(*) AS units\n"
    return terms.dialect.once(COUNTED, f"{counted}  FROM ({each_unit}) AS each_unit")


def counted_by_units(
    statement: VectorStatement, terms: MomentTerms, cells: str, heavy: str, many: str = "", *, present: str = ""
) -> str:
    """`COUNTED` of the names of three relations. heavy: of units with their factor. many: of those that lose keys.

    present: of all units, once each, where not all have cells.
    """
    units = ", ".join(terms.units)
    present = present or f"(SELECT DISTINCT {units} FROM {cells}) AS present"
    every = [
        f"SELECT {units} FROM {cells} WHERE {is_cut(statement)}",
        f"SELECT {units} FROM {heavy} WHERE f < {terms.dialect.double(_NEARLY_ALL)}",
        *([f"SELECT {units} FROM {many}"] if many else []),
    ]
    return terms.dialect.once(
        COUNTED,
        f"SELECT\n  (SELECT count(*) FROM ({' UNION '.join(every)}) AS cut) AS cut_units,\n"
        f"  (SELECT count(*) FROM {present}) AS units",
    )
