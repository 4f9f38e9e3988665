"""Which conditions equate two columns, and may join rows by them?"""

from __future__ import annotations

from proxy.sql.algebra.nodes import Call, ColumnRef, Scalar
from proxy.sqltypes import SqlType

_EXACT_NUMBERS = frozenset((SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.NUMERIC))
_TEXTS = frozenset((SqlType.TEXT, SqlType.VARCHAR))


def link(scalar: Scalar) -> tuple[ColumnRef, ColumnRef] | None:
    """The two columns of `column = column` between two scans, if their types compare without loss.

    Only such an equality can join rows: double precision, for one, calls neighbouring large integers equal.
    """
    pair = equality(scalar)
    if pair is None or pair[0].scan == pair[1].scan:
        return None
    types = {c.type for c in pair}
    return pair if len(types) == 1 or types <= _EXACT_NUMBERS or types <= _TEXTS else None


def equality(scalar: Scalar) -> tuple[ColumnRef, ColumnRef] | None:
    """The two columns of `column = column`, else None."""
    if isinstance(scalar, Call) and scalar.function == "=" and scalar.type is SqlType.BOOL:
        left, right = scalar.args
        if isinstance(left, ColumnRef) and isinstance(right, ColumnRef):
            return left, right
    return None
