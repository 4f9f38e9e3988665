"""What does one aggregate call over private rows mean?

A closed table of names: whatever is not in it is refused, whichever node the parser made of it.
"""

from __future__ import annotations

from types import MappingProxyType

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.advice.instead_of_part import advice, written_name
from proxy.sql.algebra.nodes import (
    TRUE,
    Aggregate,
    AggregateKind,
    Case,
    ColumnRef,
    Literal,
    Null,
    Scalar,
    columns_of,
    conjunction,
    conjuncts,
)
from proxy.sql.binding.aggregates.intervals import measured
from proxy.sql.binding.aggregates.modes import bind_mode, is_mode
from proxy.sql.binding.aggregates.quantiles import Several, bind_end, bind_within, is_end
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.output_names import output_name
from proxy.sql.binding.rows import row_of, text_of_row
from proxy.sql.syntax.parse import position_of
from proxy.sql.syntax.refusal import only, refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import SqlType

_OF_ONE_NUMBER = MappingProxyType({
    "sum": AggregateKind.SUM, "avg": AggregateKind.AVG,
    "var_pop": AggregateKind.VAR_POP, "var_samp": AggregateKind.VAR_SAMP, "variance": AggregateKind.VAR_SAMP,
    "stddev_pop": AggregateKind.STDDEV_POP, "stddev_samp": AggregateKind.STDDEV_SAMP,
    "stddev": AggregateKind.STDDEV_SAMP,
})  # fmt: skip
_OF_TWO_NUMBERS = MappingProxyType({k.value: k for k in (
    AggregateKind.COVAR_POP, AggregateKind.COVAR_SAMP, AggregateKind.CORR, AggregateKind.REGR_SLOPE,
    AggregateKind.REGR_INTERCEPT, AggregateKind.REGR_R2, AggregateKind.REGR_COUNT, AggregateKind.REGR_AVGX,
    AggregateKind.REGR_AVGY, AggregateKind.REGR_SXX, AggregateKind.REGR_SYY, AggregateKind.REGR_SXY)})  # fmt: skip
_OF_ONE_CONDITION = MappingProxyType({"bool_and": AggregateKind.BOOL_AND, "every": AggregateKind.BOOL_AND,
                                      "bool_or": AggregateKind.BOOL_OR})  # fmt: skip
_ACCEPTED = (
    "Accepted: count(*), count(x), count(DISTINCT x), sum(x), avg(x), variance(x), stddev(x), covar_pop(y, x),"
    " corr(y, x), regr_slope(y, x) and the others of their families, bool_and(x), bool_or(x), min(x),"
    " max(x), percentile_cont(f) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x), each with FILTER."
)


def is_aggregate_call(node: object) -> bool:
    """Whether a node is a call of an aggregate function, FILTER and OVER aside."""
    return isinstance(node, (exp.AggFunc, exp.WithinGroup)) or (
        isinstance(node, exp.Anonymous) and str(node.this).lower() == "every"
    )


def bind_aggregate(node: exp.Expr, binder: Binder, source: str) -> Aggregate | Several:
    """The meaning of an aggregate call or of one with FILTER. source: the statement. Raises HushError."""
    where: Scalar = TRUE
    if isinstance(node, exp.Filter):
        only(node, "this", "expression")
        where = binder.condition(node.expression.this)
        node = node.this
    if isinstance(node, exp.Count):
        return _count(node, binder, where)
    assert isinstance(node, exp.Expression)
    name = output_name(node, source)
    if isinstance(node, exp.WithinGroup):
        return bind_mode(node, binder, where) if is_mode(node) else bind_within(node, binder, where, name)
    if is_end(name):
        return bind_end(node, binder, where, name)
    if name in _OF_ONE_NUMBER:
        return _one_number(node, binder, where, name)
    if name in _OF_TWO_NUMBERS:
        return _two_numbers(node, binder, where, name)
    if name in _OF_ONE_CONDITION:
        return _one_condition(node, binder, where, name)
    written = written_name(node, source)
    raise Unsupported(
        f"the aggregate {f'{written}()' if written else construct(node)} is not supported over private rows",
        hint=advice(node, source) or _ACCEPTED,
        position=position_of(node),
    )


def _count(node: exp.Count, binder: Binder, where: Scalar) -> Aggregate:
    only(node, "this", "big_int")
    if node.this is None:
        raise refuse(node, "count() is not supported over private rows", "Write count(*).")
    if isinstance(node.this, exp.Star):
        return Aggregate(AggregateKind.COUNT_ROWS, TRUE, where, SqlType.INT8)
    if isinstance(node.this, exp.Distinct):
        only(node.this, "expressions")
        if len(node.this.expressions) != 1:
            raise refuse(node, "COUNT(DISTINCT ...) takes one expression")
        row = row_of(node.this.expressions[0])
        if row is not None:
            return _count_distinct(node, text_of_row(binder, node, row), where)
        return _count_distinct(node, *_chosen(binder.scalar(node.this.expressions[0]), where))
    argument, where = _chosen(measured(binder, node.this)[0], where)
    if isinstance(argument, Literal):
        return Aggregate(AggregateKind.COUNT_ROWS, TRUE, where, SqlType.INT8)
    if not columns_of(argument):
        raise refuse(node, "COUNT of a constant that may be NULL is not supported", "Write count(*).")
    return Aggregate(AggregateKind.COUNT, argument, where, SqlType.INT8)


def _chosen(argument: Scalar, where: Scalar) -> tuple[Scalar, Scalar]:
    """count(CASE WHEN c THEN x END) of a column is count(x) FILTER (WHERE c)."""
    match argument:
        case Case(((condition, ColumnRef() as column),), Null()):
            return column, conjunction((*conjuncts(where), *conjuncts(condition)))
        case _:
            return argument, where


def _count_distinct(node: exp.Count, argument: Scalar, where: Scalar) -> Aggregate:
    if not columns_of(argument):
        raise refuse(node, "COUNT(DISTINCT ...) of a constant is not supported", "Count the values of a column.")
    if argument.type is SqlType.INTERVAL:  # 1 month and 30 days are one value in two spellings
        raise refuse(node, "COUNT(DISTINCT interval) is not supported", "Count numbers of days, or texts.")
    return Aggregate(AggregateKind.COUNT_DISTINCT, argument, where, SqlType.INT8)


def _one_number(node: exp.Expression, binder: Binder, where: Scalar, name: str) -> Aggregate:
    only(node, "this")
    _check_plain(node, f"{name}(x)")
    kind = _OF_ONE_NUMBER[name]
    is_wait = False
    if kind in (AggregateKind.SUM, AggregateKind.AVG):
        argument, is_wait = measured(binder, node.this)
    else:
        argument = binder.scalar(node.this)
    if not argument.type.is_number:
        raise refuse(node, f"{name}({argument.type.pg_name}) is not supported", "Aggregate a number.")
    return Aggregate(kind, argument, where, SqlType.INTERVAL if is_wait else _result_type(kind, argument.type))


def _two_numbers(node: exp.Expression, binder: Binder, where: Scalar, name: str) -> Aggregate:
    only(node, "this", "expression")
    _check_plain(node, f"{name}(y, x)")
    if node.args.get("expression") is None:
        raise refuse(node, f"{name} takes two numbers", f"Write {name}(y, x).")
    y, x = binder.scalar(node.this), binder.scalar(node.expression)
    for argument in (y, x):
        if not argument.type.is_number:
            types = f"{y.type.pg_name}, {x.type.pg_name}"
            raise refuse(node, f"{name}({types}) is not supported", "Aggregate two numbers.")
    kind = _OF_TWO_NUMBERS[name]
    return Aggregate(kind, y, where, SqlType.INT8 if kind is AggregateKind.REGR_COUNT else SqlType.FLOAT8, x)


def _one_condition(node: exp.Expression, binder: Binder, where: Scalar, name: str) -> Aggregate:
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
    only(node, "this", "expressions")
    if len(arguments) != 1:
        raise refuse(node, f"{name} takes one condition", f"Write {name}(x).")
    if isinstance(arguments[0], exp.Distinct):  # the same for rows that are alike
        raise refuse(node, f"{name}(DISTINCT x) is not supported over private rows", f"Write {name}(x).")
    return Aggregate(_OF_ONE_CONDITION[name], binder.condition(arguments[0]), where, SqlType.BOOL)


def _check_plain(node: exp.Expression, accepted: str) -> None:
    """DISTINCT values are counted in how many rows hold them, which no bound of one person's rows limits."""
    if isinstance(node.this, exp.Distinct):
        what = accepted.replace("(", "(DISTINCT ")
        raise refuse(node, f"{what} is not supported over private rows", f"Write {accepted}, or group by x first.")


def _result_type(kind: AggregateKind, argument: SqlType) -> SqlType:
    """PostgreSQL's result type of an aggregate of one number."""
    if argument in (SqlType.FLOAT4, SqlType.FLOAT8):
        return argument if kind is AggregateKind.SUM else SqlType.FLOAT8
    if kind is AggregateKind.SUM and argument in (SqlType.INT2, SqlType.INT4):
        return SqlType.INT8
    return SqlType.NUMERIC
