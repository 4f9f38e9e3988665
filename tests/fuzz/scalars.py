"""Random client SQL as in `grammar`, with the functions that take formats, patterns, lengths and rows of values."""

from __future__ import annotations

import random
from collections.abc import Callable

from proxy.sqltypes import SqlType
from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import World

_NUMBERS = (SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.NUMERIC, SqlType.FLOAT8)
_FORMATS = ("YYYY-MM", "Day", "HH24:MI", 'IYYY-"W"IW', "Q D", "DD Mon YY", "W WW DDD", "AM", "FMMonth FMDD", "US")
_PATTERNS = ("a", "[a-c]+", "^.", "[^a]*$", "(.)a", "^.*a(.*)$")
_FOUND = ("a", "[a-c]+", "^.", "é")
_DATES = ("YYYY-MM-DD", "DD.MM.YYYY", "YYYYMMDD", "MM/YYYY")
_ZONES = ("UTC", "Europe/Zurich", "America/New_York", "Asia/Kolkata")
_STEPS = ("1 day", "5 minutes", "1 month 3 days", "-2 hours")
_FIELDS = ("epoch", "day", "hour", "minute", "second", "microseconds")
_UNITS = ("decade", "century", "millennium", "milliseconds", "microseconds")


def make_scalars(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return ScalarWriter(world, rng).query()


def keyed(expression: str) -> Callable[[World, random.Random], str]:
    """Queries that count rows by one expression. {text}, {time}: a column, or a constant where there is none."""

    def make(world: World, rng: random.Random) -> str:
        writer = ScalarWriter(world, rng)
        return writer.counted(expression.format(text=writer.text(), time=writer.time()))

    return make


class ScalarWriter(Writer):
    """Writes about one world."""

    def query(self) -> str:
        rng = self._rng
        if rng.random() < 0.4:
            return super().query()
        made = rng.choice((self._text, self._text, self._int, self._real, self._bool, self._time))
        return self.counted(made(rng.choice((1, 2))))

    def counted(self, key: str) -> str:
        """One key, and what is easily told of its rows."""
        where = " where " + " and ".join(f"({c})" for c in self._from.conditions) if self._from.conditions else ""
        more = self._rng.choice(("", f", sum({self._column(_NUMBERS)}) as a1"))
        return f"{self._from.prefix}select {key} as k0, count(*) as a0{more} from {self._from.text}{where} group by 1"

    def text(self) -> str:
        return self._text(0)

    def time(self) -> str:
        return self._time(0)

    def _text(self, depth: int) -> str:
        rng, inner = self._rng, depth - 1
        if depth <= 0 or rng.random() < 0.3:
            return super()._text(depth)
        format_, pattern, count = rng.choice(_FORMATS), rng.choice(_PATTERNS), rng.choice((-2, -1, 0, 1, 3))
        choices: list[Callable[[], str]] = [
            lambda: f"to_char({self._time(inner)}, '{format_}')",
            lambda: f"initcap({self._text(inner)})",
            lambda: f"extract({rng.choice(('year', 'week', 'dow'))} from {self._time(inner)})::text",
            lambda: f"(({self._time(inner)})::timestamp)::text",
            lambda: f"floor({self._int(0)} / 3)::text",
            lambda: f"upper({self._text(inner)} || 'ß')",
            lambda: f"{rng.choice(('left', 'right'))}({self._text(inner)}, {count})",
            lambda: f"split_part({self._text(inner)}, '{rng.choice(('a', '-', 'é'))}', {rng.choice((1, 2, -1, -2))})",
            lambda: f"substring({self._text(inner)} from '{pattern}')",
            lambda: f"(regexp_match({self._text(inner)}, '{pattern}'))[1]",
            lambda: f"regexp_replace({self._text(inner)}, '{pattern}', '<\\&>', '{rng.choice(('', 'g'))}')",
            lambda: f"translate({self._text(inner)}, 'ab', 'x')",
            lambda: f"concat({self._text(inner)}, {self._int(inner)})",
            lambda: f"concat_ws('-', {self._text(inner)}, {self._date(inner)}, {self._int(inner)})",
            lambda: f"({self._text(inner)} || {self._int(inner)})",
            lambda: f"({self._text(inner)})::varchar({rng.choice((0, 1, 5))})",
            lambda: f"substring({self._text(inner)}, position('a' in {self._text(inner)}) + {rng.choice((-1, 0, 1))})",
            lambda: f"substring({self._text(inner)}, {self._int(inner)}, {self._int(inner)})",
            lambda: f"{rng.choice(('left', 'right'))}({self._text(inner)}, {self._int(inner)})",
            lambda: f"reverse({self._text(inner)})",
            lambda: f"(string_to_array({self._text(inner)}, '{rng.choice(('a', '-', 'é'))}'))[{rng.choice((1, 2, 3))}]",
            lambda: f"overlay({self._text(inner)} placing {self._text(0)} from {rng.choice((1, 2))} for {abs(count)})",
            lambda: f"format('%s-%2$s%%', {self._any(inner)}, {self._text(0)})",
            lambda: f"repeat({self._text(inner)}, 2)",
        ]
        return rng.choice(choices)()

    def _int(self, depth: int) -> str:
        rng, inner = self._rng, depth - 1
        if depth <= 0 or rng.random() < 0.6:
            return super()._int(depth)
        choices: list[Callable[[], str]] = [
            lambda: f"{rng.choice(('octet_length', 'ascii', 'bit_length'))}({self._text(inner)})",
            lambda: f"regexp_count({self._text(inner)}, '{rng.choice(_FOUND)}')",
            lambda: f"regexp_instr({self._text(inner)}, '{rng.choice((*_FOUND, 'a|b', '(a|-)$'))}')",
            lambda: f"cardinality(string_to_array({self._text(inner)}, '{rng.choice(('a', '-', 'aa'))}'))",
            lambda: f"({self._int(inner)} {rng.choice('&|#')} {self._int(inner)})",
            lambda: f"({self._int(inner)} >> {rng.choice((0, 1, 7))})",
            lambda: f"(~ {self._int(inner)})",
            lambda: f"({self._text(inner)})::{rng.choice(('smallint', 'integer', 'bigint'))}",
            lambda: f"num_nulls({self._any(inner)}, {self._any(0)})",
            lambda: f"width_bucket({self._number(inner)}, array[-1, 2.5, 10])",
            lambda: f"to_char({self._time(inner)}, '{rng.choice(('MM', 'D', 'YYYY'))}')::integer",
        ]
        return rng.choice(choices)()

    def _real(self, depth: int) -> str:
        rng, inner = self._rng, depth - 1
        if depth <= 0 or rng.random() < 0.5:
            return super()._real(depth)
        choices: list[Callable[[], str]] = [
            lambda: f"extract({rng.choice(_UNITS)} from {self._time(inner)})",
            lambda: f"trunc({self._int(inner)}, {rng.choice((-1, 0, 2))})",
            lambda: f"div({self._int(inner)}, {self._int(inner)})",
            lambda: f"log(2, abs({self._int(inner)}))",
            lambda: f"cbrt({self._int(inner)})",
            lambda: f"{rng.choice(('sin', 'acos', 'atan', 'radians'))}({self._number(inner)})",
            lambda: f"({self._text(inner)})::float8",
            lambda: f"extract({rng.choice(_FIELDS)} from ({self._time(inner)})::timestamp - {self._time(inner)})",
            lambda: f"extract({rng.choice(('year', 'month'))} from age({self._time(inner)}, {self._time(inner)}))",
            lambda: f"({self._column((SqlType.NUMERIC, SqlType.INT4))})::numeric(6, 0)",
        ]
        return rng.choice(choices)()

    def _time(self, depth: int) -> str:
        rng, inner = self._rng, depth - 1
        if depth <= 0 or rng.random() < 0.5:
            return super()._time(depth)
        zone, date_form = rng.choice(_ZONES), rng.choice(_DATES)
        choices: list[Callable[[], str]] = [
            lambda: f"date_trunc('{rng.choice(_UNITS)}', {self._time(inner)})",
            lambda: f"({self._time(inner)}) at time zone '{zone}'",
            lambda: f"({self._time(inner)})::timestamp at time zone 'UTC' at time zone '{zone}'",
            lambda: f"date_trunc('day', ({self._time(inner)})::timestamptz, '{zone}')",
            lambda: f"({self._time(inner)} {rng.choice('+-')} {self._int(inner)} * interval '{rng.choice(_STEPS)}')",
            lambda: (
                f"date_bin('{rng.choice(('15 minutes', '10 days'))}', ({self._time(inner)})::timestamp, '2024-01-01')"
            ),
            lambda: f"to_date(to_char({self._time(inner)}, '{date_form}'), '{date_form}')",
            lambda: f"to_date({self._text(inner)}, '{date_form}')",
            lambda: f"make_date({self._int(inner)}, {self._int(inner)}, 29)",
            lambda: f"to_timestamp({self._number(inner)})",
        ]
        return rng.choice(choices)()

    def _bool(self, depth: int) -> str:
        rng, inner = self._rng, depth - 1
        if depth <= 0 or rng.random() < 0.5:
            return super()._bool(depth)
        operator, pattern = rng.choice(("<", "<=", ">", ">=", "=", "<>")), rng.choice(_PATTERNS)
        choices: list[Callable[[], str]] = [
            lambda: f"({self._int(inner)}, {self._text(inner)}) {operator} (2, 'a')",
            lambda: (
                f"(({self._time(inner)})::timestamp, ({self._time(0)})::timestamp) overlaps "
                f"(({self._time(0)})::timestamp, interval '{rng.choice(_STEPS)}')"
            ),
            lambda: f"isfinite({self._time(inner)})",
            lambda: f"({self._int(inner)} in (select unnest(array[1, 2, 5])))",
            lambda: f"({self._int(inner)} = any ('{{1,3}}') or {self._int(0)} <> all ('{{1,3}}'))",
            lambda: f"regexp_like({self._text(inner)}, '{pattern}', '{rng.choice('ci')}')",
            lambda: f"({self._int(inner)}, {self._text(inner)}) is {rng.choice(('', 'not '))}null",
            lambda: f"{self._number(inner)} {operator} {rng.choice(('any', 'all'))} (array[1, 2, 2.5])",
            lambda: (
                f"{self._text(inner)} {rng.choice(('', 'not '))}like {rng.choice(('any', 'all'))} ('{{a%,\"%b\"}}')"
            ),
            lambda: (
                f"{self._time(inner)} - ({self._time(inner)})::timestamp {operator} interval '{rng.choice(_STEPS)}'"
            ),
            lambda: f"{self._number(inner)} between symmetric {self._constant_number()} and {self._constant_number()}",
        ]
        return rng.choice(choices)()
