"""What does a join of private rows with rows of constants mean: VALUES, a series, an array, SELECTs without FROM?

The constants are public. Where no row may meet two of them, their columns are CASEs over the join's condition, with
each of the rows in the place of the relation's names, and nothing else has to know of such relations. Else the private
rows are put together once for each row of constants: see `thresholds`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from itertools import pairwise

from sqlglot import exp

from proxy.sql.algebra.comparisons import with_constant
from proxy.sql.algebra.nodes import Call, Case, Null, Scalar, conjunction, conjuncts
from proxy.sql.algebra.rows import Joined, Named, Rows
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.subqueries import whole_numbers
from proxy.sql.conditions.decided import NEVER, decided
from proxy.sql.conditions.factored import requirements
from proxy.sql.functions.signatures import common_type
from proxy.sql.relations import joins, kept
from proxy.sql.relations.thresholds import for_each
from proxy.sql.syntax.names import identifier
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType, Value

_MOST_ROWS = 100
_HINT = (
    "Write JOIN in place of LEFT JOIN, join them ON x = v.c with different values, or ON x BETWEEN v.low AND v.high"
    " with ranges that do not overlap."
)
_MISSING = object()  # what is to be NULL equals nothing
_USED = frozenset(("=", "<", "<=", ">", ">="))


@dataclass(frozen=True, slots=True)
class ConstantRows:
    """Rows of constants, and the names of their columns."""

    names: tuple[str, ...]
    rows: tuple[tuple[exp.Expression, ...], ...]


def constants_of(query: exp.Expression, name_of: Callable[[exp.Expression], str]) -> ConstantRows | None:
    """The rows that a relation consists of, if it is written out. name_of: of a select item. Raises Unsupported."""
    match query:
        case exp.Subquery():
            return constants_of(query.this, name_of)
        case exp.Values():
            only(query, "expressions", "alias")
            rows = tuple(tuple(row.expressions) for row in query.expressions)
            return _even(query, ConstantRows(tuple(f"column{i + 1}" for i in range(len(rows[0]))), rows))
        case exp.Unnest() if len(query.expressions) == 1 and isinstance(query.expressions[0], exp.Array):
            only(query, "expressions", "alias")
            return ConstantRows(("unnest",), tuple((item,) for item in query.expressions[0].expressions))
        case exp.Table(this=exp.ExplodingGenerateSeries() as series):
            numbers = whole_numbers(series)
            only(query, "this", "alias")
            return ConstantRows(("generate_series",), tuple((_number(n),) for n in numbers)) if numbers else None
        case exp.Select() if query.args.get("from_") is None and not query.args.get("with_"):
            only(query, "expressions", "kind")
            return ConstantRows(
                tuple(map(name_of, query.expressions)), (tuple(i.unalias() for i in query.expressions),)
            )
        case exp.Select() if len(query.expressions) == 1 and type(query.expressions[0]) is exp.Star:
            return _passed_on(query, name_of)
        case exp.Union() if not query.args.get("distinct") and not query.args.get("with_"):
            only(query, "this", "expression", "distinct")
            sides = [constants_of(side, name_of) for side in (query.this, query.expression)]
            first, second = sides
            if first is None or second is None:
                return None
            return _even(query, ConstantRows(first.names, (*first.rows, *second.rows)))
        case _:
            return None


def _number(value: int) -> exp.Expression:
    number = exp.Literal.number(abs(value))
    return number if value >= 0 else exp.Neg(this=number)


def _passed_on(query: exp.Select, name_of: Callable[[exp.Expression], str]) -> ConstantRows | None:
    """All of one relation of constants under the names that it is given, SELECT * FROM (VALUES ...) AS v(c)."""
    source = query.args["from_"].this
    found = constants_of(source, name_of) if isinstance(source, (exp.Values, exp.Subquery)) else None
    if found is None:
        return None
    only(query, "expressions", "from_", "kind")
    only(query.expressions[0])
    given = source.args.get("alias")
    names = tuple(identifier(c) for c in given.args.get("columns") or ()) if given is not None else ()
    return ConstantRows((*names, *found.names[len(names) :]), found.rows)


def _even(query: exp.Expression, found: ConstantRows) -> ConstantRows:
    if any(len(row) != len(found.names) for row in found.rows):
        raise refuse(query, "rows of constants must all be the same length")
    return found


def meet(left: Joined, rows: Sequence[Named], node: exp.Join, making: joins.Making) -> Joined:
    """`left` joined with rows of constants, each of them a relation of its own. Raises Unsupported."""
    side = joins.side_of(node)
    if side in ("RIGHT", "FULL"):
        raise refuse(node, "an outer join that keeps rows of constants is not supported with private rows",
                     joins.AGGREGATE_FIRST)  # fmt: skip
    kept.plain(left.rows, node)
    met = [joins.join(left, row, _inner(node), making) for row in rows]
    before, binder = len(left.rows.where), making.binder(left)
    conditions = tuple(decided(conjunction(m.rows.where[before:])) for m in met)
    if not _are_apart([c for c in conditions if c != NEVER]):
        if side == "LEFT":
            raise refuse(node, "private rows that are kept may meet one row of constants alone", _HINT)
        return for_each(left, [(r, c) for r, c in zip(rows, conditions, strict=True) if c != NEVER], node, making)
    columns = [
        (name, _chosen(node, conditions, [r.rows.columns[i][1] for r in rows], is_kept=side == "LEFT"))
        for i, (name, _) in enumerate(rows[0].rows.columns)
    ]
    some = decided(reduce(lambda a, b: binder.call(node, "or", a, b), conditions))
    where = () if side == "LEFT" else requirements(some)
    relation = Named(rows[0].alias, Rows(scans=(), columns=tuple(columns)))
    both = joins.with_columns(left, relation, node)
    return replace(both, rows=replace(both.rows, where=(*left.rows.where, *where)))


def _inner(node: exp.Join) -> exp.Join:
    """The same join without LEFT: which rows meet is the same."""
    found = node.copy()
    found.set("side", None)
    found.parent = node.parent
    return found


def _chosen(node: exp.Join, conditions: Sequence[Scalar], values: Sequence[Scalar], *, is_kept: bool) -> Scalar:
    """The value of the one row that is met; where no row needs to be met, NULL otherwise."""
    kinds = tuple(v.type for v in values if not isinstance(v, Null)) or (SqlType.TEXT,)
    wanted = common_type(kinds)
    if wanted is None:
        raise refuse(node, f"VALUES types {' and '.join(k.pg_name for k in kinds)} cannot be matched")
    branches = tuple((c, v) for c, v in zip(conditions, values, strict=True) if c != NEVER)
    if is_kept or not branches:
        return Case(branches, Null(wanted), wanted) if branches else Null(wanted)
    *others, (_, last) = branches
    return Case(tuple(others), last, wanted) if others else last


# --- no row meets two -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Range:
    """Between two constants, which may be excluded."""

    low: Decimal
    is_above: bool
    high: Decimal
    is_below: bool

    def ends_before(self, other: _Range) -> bool:
        return self.high < other.low or (self.high == other.low and (self.is_below or other.is_above))


def _are_apart(conditions: Sequence[Scalar]) -> bool:
    """Whether no row passes two of the conditions: they want different values of one expression, or other ranges."""
    if len(conditions) < 2:
        return True
    values, ranges = [_values(c) for c in conditions], [_ranges(c) for c in conditions]
    return any(len({one.get(x) for one in values} - {None}) == len(values) for x in values[0]) or any(
        _are_disjoint([one[x] for one in ranges if x in one], len(ranges)) for x in ranges[0]
    )


def _are_disjoint(ranges: Sequence[_Range], count: int) -> bool:
    ordered = sorted(ranges, key=lambda r: (r.low, r.high))
    return len(ranges) == count and all(a.ends_before(b) for a, b in pairwise(ordered))


def _values(condition: Scalar) -> dict[Scalar, object]:
    """What expressions are to equal. Blanks at the end of a text make no difference to some types."""
    missing = {x.args[0]: _MISSING for x in conjuncts(condition) if isinstance(x, Call) and x.function == "is null"}
    return missing | {
        x: v.rstrip(" ") if isinstance(v, str) else v for x, op, v in _comparisons(condition) if op == "="
    }


def _ranges(condition: Scalar) -> dict[Scalar, _Range]:
    """Where expressions are to be that have both ends."""
    found = [(x, op, end) for x, op, v in _comparisons(condition) if (end := _ordered(v)) is not None]
    low = {x: (end, op == ">") for x, op, end in found if op in (">", ">=")}
    high = {x: (end, op == "<") for x, op, end in found if op in ("<", "<=")}
    return {x: _Range(*low[x], *high[x]) for x in low if x in high}


def _comparisons(condition: Scalar) -> list[tuple[Scalar, str, Value]]:
    """(expression, operator, constant) of what AND combines."""
    compared = filter(None, map(with_constant, conjuncts(condition)))
    return [(c.part, c.operator, c.value) for c in compared if c.operator in _USED]


def _ordered(value: Value) -> Decimal | None:
    """Numbers and times by their order; texts and truth values have one of their own."""
    match value:
        case bool() | str():
            return None
        case datetime():
            return Decimal((value - datetime(1, 1, 1)) // timedelta(microseconds=1))
        case date():
            return Decimal(value.toordinal())
        case int() | float() | Decimal():
            return Decimal(value)
        case _:
            return None


def bound_rows(found: ConstantRows, node: exp.Expression, binder: Binder) -> list[Rows]:
    """The rows, each by itself. binder: knows no names. Raises Unsupported."""
    if len(found.rows) > _MOST_ROWS:
        raise refuse(node, f"more than {_MOST_ROWS} rows of constants are not supported with private rows",
                     "Put them into a public table.")  # fmt: skip
    columns = [binder.together(node, *(row[i] for row in found.rows)) for i in range(len(found.names))]
    return [Rows(scans=(), columns=tuple(zip(found.names, row, strict=True))) for row in zip(*columns, strict=True)]
