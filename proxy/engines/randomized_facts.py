"""Can the stored values of a column have been randomized as the policy says?

One question per column counts its rows by declared value; the judgement is the same for both engines. It recognises
columns that were surely not randomized so, and cannot prove that others were: see docs/claims/local-model.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from proxy.policy.model import Bounded, Column, Listed, Policy, Table
from proxy.policy.response import GaussianNoise, KeptOrUniform, LaplaceNoise, NotRandomized, TwoCoins
from proxy.sql.render.dialect import quote, text_literal
from proxy.sqltypes import SqlType, Value

_SDS = 6.0  # with the rows below: less than one column in ten million is refused that was randomized so
_ROWS = 12.0  # what few rows are beyond so many standard deviations
_BEYOND = 1e-4  # the share of values that noise leads beyond the bounds of what is stored
_NULL, _OTHER = -1, -2

ValueCounts = Callable[[str], Mapping[int, int]]


def not_randomized_so(policy: Policy, relation_of: Callable[[Table], str], count: ValueCounts) -> Iterator[str]:
    """Columns whose values are surely not what was declared. count: the rows of a question, each a place and a number.

    Claim: where rows were randomized as declared, each by itself, a column is named with a chance of less than 1e-7 for
    each of its values.
    """
    for table in policy.tables.values():
        for column in table.columns:
            if not isinstance(column.randomized, NotRandomized):
                found = count(f"select {_place(column)} as place, count(*) from {relation_of(table)} group by 1")
                if words := _fault(column, found):
                    yield f"{table.name}.{column.name}: {words}"


def _place(column: Column) -> str:
    """The number of the row's value in the policy's list; of noised numbers 0 within their bounds and 1 beyond."""
    name = quote(column.name)
    match column.domain:
        case Listed(values):
            kind = "text" if column.type is SqlType.BPCHAR else column.type.pg_name
            cases = " ".join(
                f"when cast({name} as {kind}) = {_literal(v, kind)} then {i}" for i, v in enumerate(values)
            )
        case Bounded(lo, hi):
            number = f"cast({name} as double precision)"
            ends = ", ".join(f"cast('{word}' as double precision)" for word in ("NaN", "Infinity", "-Infinity"))
            low, high = (_literal(end, "double precision") for end in (lo, hi))
            cases = f"when {number} in ({ends}) then {_OTHER} when {number} < {low} or {number} > {high} then 1"
            cases = f"{cases} when {number} is not null then 0"
        case _:
            raise AssertionError("a randomized column without a domain")
    return f"case when {name} is null then {_NULL} {cases} else {_OTHER} end"


def _literal(value: Value, kind: str) -> str:
    words = str(value).lower() if isinstance(value, bool) else str(value)
    return f"cast({text_literal(words)} as {kind})"


def _fault(column: Column, found: Mapping[int, int]) -> str:
    """What is wrong, in words without a value; "" if nothing surely is."""
    if found.get(_OTHER, 0) or (found.get(_NULL, 0) and not column.nullable):
        return "'randomized' says which values are stored, and others are there"
    rows, is_so = sum(found.values()), False
    match column.randomized:
        case KeptOrUniform(_, choices) as response:
            q, p = float(response.q), float(response.p)
            places = [*range(choices - column.nullable), *([_NULL] if column.nullable else [])]
            is_so = all(_is_between(found.get(place, 0), rows, q, p) for place in places)
        case TwoCoins() as coins:
            yes = 1 if column.type is SqlType.BOOL else 0
            is_so = _is_between(found.get(yes, 0), rows, float(coins.q), float(coins.p))
        case LaplaceNoise() | GaussianNoise():
            is_so = _is_between(found.get(1, 0), rows, 0.0, _BEYOND)
        case NotRandomized():
            return ""
        case _ as never:
            assert_never(never)
    return "" if is_so else "'randomized' says how often values are stored, and they are not"


def _is_between(count: int, rows: int, least: float, most: float) -> bool:
    """Whether so many rows can be, where the chance of each lies between two."""
    low = rows * least - _SDS * math.sqrt(rows * least * (1.0 - least)) - _ROWS
    high = rows * most + _SDS * math.sqrt(rows * most * (1.0 - most)) + _ROWS
    return low <= count <= high
