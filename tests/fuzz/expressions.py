"""Random expressions over the columns of a FROM clause: everything the binder reads of numbers, texts, times, tests."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from proxy.policy.model import Domain, Unknown
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class Name:
    """A column as the query may write it."""

    text: str
    type: SqlType
    domain: Domain


@dataclass(frozen=True, slots=True)
class From:
    """A FROM clause with the conditions that join it, and what it offers."""

    text: str
    columns: tuple[Name, ...]
    unit: str
    conditions: tuple[str, ...] = ()
    prefix: str = ""


NUMBERS = (SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.NUMERIC, SqlType.FLOAT4, SqlType.FLOAT8)
TEXTS = (SqlType.TEXT, SqlType.VARCHAR, SqlType.BPCHAR)
WHOLE = (SqlType.INT4, SqlType.INT8)
TIMES = (SqlType.DATE, SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ)
FIELDS = ("year", "month", "day", "dow", "isodow", "doy", "quarter", "week", "hour", "minute", "second", "epoch",
          "isoyear")  # fmt: skip
PERIODS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


class Expressions:
    """Writes expressions of a depth. Those of a measure read only columns with known bounds."""

    _from: From

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._is_measuring = False

    def _column(self, types: tuple[SqlType, ...]) -> str:
        fitting = [c for c in self._from.columns if c.type in types]
        if self._is_measuring:
            fitting = [c for c in fitting if not isinstance(c.domain, Unknown)]
        if fitting:
            return self._rng.choice(fitting).text
        match types:
            case _ if types is TEXTS:
                return "'a'"
            case _ if types is TIMES:
                return "date '2024-02-29'"
            case _:
                return "2"

    def _any(self, depth: int) -> str:
        return self._rng.choice((self._number, self._text, self._time, self._bool))(depth)

    def _number(self, depth: int) -> str:
        return self._rng.choice((self._int, self._real))(depth)

    def _constant_int(self) -> str:
        return self._rng.choice(("0", "1", "2", "3", "5", "10", "-1", "2147483647", "9007199254740993", "1000"))

    def _constant_number(self) -> str:
        return self._rng.choice(("0", "1", "2", "5", "0.5", "2.5", "10.0", "0.1", "1e3", "-2.5",
                                 "0.10000000000000000001", "9007199254740993", "9007199254740992.0"))  # fmt: skip

    def _int(self, depth: int) -> str:
        rng = self._rng
        if depth <= 0:
            return self._column(WHOLE) if rng.random() < 0.7 else self._constant_int()
        inner = depth - 1
        choices: list[Callable[[], str]] = [
            lambda: self._int(0),
            lambda: f"({self._int(inner)} {rng.choice('+-*')} {self._int(inner)})",
            lambda: f"({self._int(inner)} / {self._int(inner)})",
            lambda: f"({self._int(inner)} % {self._int(inner)})",
            lambda: f"(- {self._int(inner)})",
            lambda: f"abs({self._int(inner)})",
            lambda: self._int(inner) if self._is_measuring else f"length({self._text(inner)})",
            lambda: f"({self._number(inner)})::{rng.choice(('integer', 'bigint', 'smallint'))}",
            lambda: self._int(inner) if self._is_measuring else f"({self._text(inner)})::integer",
            lambda: f"({self._bool(inner)})::int",
            lambda: f"width_bucket({self._number(inner)}, {rng.choice(('0', '-3', '0.5'))}, 7, {rng.choice((1, 4))})",
            lambda: self._int(inner) if self._is_measuring else f"position('a' in {self._text(inner)})",
            lambda: self._conditional(self._int, inner),
            lambda: self._int(inner) if self._is_measuring else f"({self._date(inner)} - {self._date(inner)})",
        ]
        return rng.choice(choices)()

    def _real(self, depth: int) -> str:
        rng = self._rng
        reals = (SqlType.FLOAT8, SqlType.FLOAT4, SqlType.NUMERIC)
        if depth <= 0:
            return self._column(reals) if rng.random() < 0.7 else self._constant_number()
        inner = depth - 1
        choices: list[Callable[[], str]] = [
            lambda: self._real(0),
            lambda: f"({self._number(inner)} {rng.choice('+-*/')} {self._real(inner)})",
            lambda: f"({self._number(inner)}::numeric % {self._constant_number()})",
            lambda: f"{rng.choice(('floor', 'ceil', 'round', 'trunc', 'abs', '-'))}({self._real(inner)})",
            lambda: f"round({self._real(inner)}::numeric, {rng.choice((0, 1, 2, -1))})",
            lambda: f"sqrt({self._number(inner)})",
            lambda: f"{rng.choice(('exp', 'ln', 'log', 'sign'))}({self._number(inner)})",
            lambda: f"power({self._number(inner)}, {rng.choice((2, 3, 0, -1, 0.5))})",
            lambda: f"({self._number(inner)})::{rng.choice(('float8', 'numeric'))}",
            lambda: f"extract({rng.choice(FIELDS)} from {self._time(inner)})",
            lambda: f"date_part('{rng.choice(FIELDS)}', {self._time(inner)})",
            lambda: self._conditional(self._number, inner),
        ]
        return rng.choice(choices)()

    def _text(self, depth: int) -> str:
        rng = self._rng
        if depth <= 0:
            return self._column(TEXTS) if rng.random() < 0.7 else self._constant_text()
        inner = depth - 1
        choices: list[Callable[[], str]] = [
            lambda: self._text(0),
            lambda: f"{rng.choice(('lower', 'upper'))}({self._text(inner)})",
            lambda: f"substring({self._text(inner)} from {rng.choice((-1, 0, 1, 2))} for {rng.choice((0, 1, 3))})",
            lambda: f"substr({self._text(inner)}, 2)",
            lambda: f"left({self._text(inner)}, {rng.choice((0, 1, 2))})",
            lambda: f"{rng.choice(('trim', 'btrim', 'ltrim', 'rtrim'))}({self._text(inner)})",
            lambda: f"trim(both 'a' from {self._text(inner)})",
            lambda: f"({self._text(inner)} || {self._text(inner)})",
            lambda: f"concat({self._text(inner)}, {self._text(inner)})",
            lambda: f"right({self._text(inner)}, {rng.choice((0, 1, 2))})",
            lambda: f"{rng.choice(('lpad', 'rpad'))}({self._text(inner)}, {rng.choice((0, 1, 4))}, 'xy')",
            lambda: f"replace({self._text(inner)}, {rng.choice(('', 'a', 'ar'))!r}, 'b')",
            lambda: f"({self._int(inner)})::text",
            lambda: f"({self._date(inner)})::text",
            lambda: f"({self._bool(inner)})::text",
            lambda: self._conditional(self._text, inner),
        ]
        return rng.choice(choices)()

    def _constant_text(self) -> str:
        return self._rng.choice(("'a'", "'zz'", "''", "'A'", "'o''hara'", "'{0}'", "'%a'", "'é'", "'a '", "'\\'"))

    def _date(self, depth: int) -> str:
        rng = self._rng
        if depth <= 0:
            return self._column((SqlType.DATE,)) if rng.random() < 0.6 else "date '2024-02-29'"
        inner = depth - 1
        choices: list[Callable[[], str]] = [
            lambda: self._date(0),
            lambda: f"({self._date(inner)} {rng.choice('+-')} {self._constant_int()})",
            lambda: f"({self._time(inner)})::date",
            lambda: self._conditional(self._date, inner),
        ]
        return rng.choice(choices)()

    def _time(self, depth: int) -> str:
        rng = self._rng
        if depth <= 0:
            return self._column(TIMES)
        inner = depth - 1
        span = rng.choice(("1 day", "1 month", "2 hours", "1 year 3 days", "900 years", "1000000 days"))
        choices: list[Callable[[], str]] = [
            lambda: self._time(0),
            lambda: self._date(inner),
            lambda: f"({self._time(inner)} {rng.choice('+-')} interval '{span}')",
            lambda: f"date_trunc('{rng.choice(PERIODS)}', {self._time(inner)})",
            lambda: f"({self._time(inner)})::{rng.choice(('timestamp', 'timestamptz', 'date'))}",
        ]
        return rng.choice(choices)()

    def _bool(self, depth: int) -> str:
        rng = self._rng
        inner = depth - 1
        operator = rng.choice(("=", "<>", "<", "<=", ">", ">="))
        if depth <= 0:
            return f"{self._column(NUMBERS)} {operator} {self._constant_number()}"
        choices: list[Callable[[], str]] = [
            lambda: f"{self._column(NUMBERS)} {operator} {self._constant_number()}",
            lambda: f"{self._number(inner)} {operator} {self._number(inner)}",
            lambda: f"{self._text(inner)} {operator} {self._text(inner)}",
            lambda: f"{self._time(inner)} {operator} {self._moment()}",
            lambda: f"{self._number(inner)} between {self._constant_number()} and {self._constant_number()}",
            lambda: f"{self._column(NUMBERS)} in (1, 2, 2.5)",
            lambda: f"{self._text(inner)} {rng.choice(('in', 'not in'))} ('a', 'A', 'zz')",
            lambda: f"{self._any(inner)} is {rng.choice(('', 'not '))}null",
            lambda: f"({self._bool(inner)} {rng.choice(('and', 'or'))} {self._bool(inner)})",
            lambda: f"(not {self._bool(inner)})",
            lambda: f"({self._bool(inner)}) is {rng.choice(('', 'not '))}{rng.choice(('true', 'false'))}",
            lambda: f"{self._number(inner)} is {rng.choice(('', 'not '))}distinct from {self._number(inner)}",
            lambda: f"{self._text(inner)} {rng.choice(('like', 'not like', 'ilike'))} {self._pattern()}",
            lambda: (
                f"{self._text(inner)} {rng.choice(('~', '~*', '!~'))} {rng.choice(('^a', 'a$', 'a.', '[a-c]b?'))!r}"
            ),
            lambda: f"{self._text(inner)} similar to {rng.choice(('(a|b)%', '_', '%a'))!r}",
            lambda: f"starts_with({self._text(inner)}, 'a')",
            lambda: f"({self._int(inner)}, {self._text(inner)}) = (1, 'a')",
            lambda: (
                self._column((SqlType.BOOL,)) if any(c.type is SqlType.BOOL for c in self._from.columns) else "true"
            ),
            lambda: f"{self._column(WHOLE)} = any(array[1, 2, 3])",
        ]
        return rng.choice(choices)()

    def _moment(self) -> str:
        return self._rng.choice(("'2024-02-29'", "'2024-01-01'", "now()", "current_date", "date '2024-03-01'",
                                 "timestamptz '2024-06-01 12:00+00'", "'9999-12-31'"))  # fmt: skip

    def _pattern(self) -> str:
        return self._rng.choice(("'a%'", "'%a'", "'_'", "'%\\%%'", "'o''%'", "''", "'%é%'", "'A%'", "'{1}%'"))

    def _conditional(self, make: Callable[[int], str], depth: int) -> str:
        rng = self._rng
        choices: list[Callable[[], str]] = [
            lambda: f"case when {self._bool(depth)} then {make(depth)} else {make(depth)} end",
            lambda: f"case when {self._bool(depth)} then {make(depth)} end",
            lambda: f"case {make(depth)} when {make(0)} then {make(depth)} else {make(depth)} end",
            lambda: f"coalesce({make(depth)}, {make(depth)})",
            lambda: f"nullif({make(depth)}, {make(0)})",
            lambda: f"{rng.choice(('greatest', 'least'))}({make(depth)}, {make(depth)})",
        ]
        return rng.choice(choices)()
