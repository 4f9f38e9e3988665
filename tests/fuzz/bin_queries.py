"""Random queries whose groups are buckets, as dashboards spell them, and partitions that name each part."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType

from proxy.policy.model import Bounded, Listed
from proxy.sqltypes import Family, SqlType, Value
from tests.fuzz.expressions import Name
from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import World

_OF_NUMBERS = (
    "{0} / 2", "floor({0} / 2.0) * 2", "floor(({0} - 1) / 2.5) * 2.5 + 1", "floor({0} * 0.1)::int",
    "round({0}::numeric)", "({0})::int", "round(({0})::numeric, 1)::int", "trunc({0}::numeric, -1)", "ceil({0}) % 3",
    "{0}::text", "width_bucket({0}::float8, 0, 8, 4)", "least({0}, 3)", "greatest({0}, 3)", "sign({0} - 3)",
    "100 / ({0}::int + 200)", "{0} / nullif({0}, 0)", "nullif({0}, 3)", "coalesce({0}, 3)",
    "nullif(coalesce({0}, -77), -77)", "sqrt({0} + 100)::int", "ln({0} + 100)::int", "{0}::int % 7",
    "concat({0}::int, '-')", "({0} > 3)::int", "cast({0} as numeric(10, 0))", "power({0}, 2)::int",
    "mod({0}::int, 4)", "div({0}::int, 4)", "abs({0}) - {0}", "{0}::bigint::smallint",
)  # fmt: skip
_OF_TIMES = (
    "{0}::date", "cast({0} as timestamp)", "date_trunc('week', {0} + interval '1 day') - interval '1 day'",
    "extract(month from {0})::int", "date_part('dow', {0})", "floor(extract(epoch from {0}) / 604800) * 604800",
    "to_timestamp(floor(extract(epoch from {0}) / 86400) * 86400)", "{0}::timestamp at time zone 'UTC'",
    "date_trunc('month', {0})::date", "extract(year from {0})::int * 100 + extract(month from {0})::int",
    "make_date(extract(year from {0})::int, extract(month from {0})::int, 1)",
    "make_date(extract(year from {0})::int, extract(month from {0})::int, 30)", "to_char({0}, 'YYYY-MM')",
    "date_trunc('day', {0}) - extract(dow from {0}) * interval '1 day'", "({0}::date - date '2024-01-01') / 7",
    "date_trunc('quarter', {0} at time zone 'Europe/Berlin')", "date_trunc('month', {0})::text", "{0}::date + 7",
    "extract(year from age(timestamp '2025-01-01', {0}))", "extract(day from {0} - timestamp '2024-01-01')",
)  # fmt: skip
_OF_TEXTS = ("upper({0})", "left({0}, 1)", "nullif({0}, 'a')", "nullif({0}, '')", "coalesce({0}, '-')", "length({0})",
             "{0} || '!'", "concat({0}, 1)", "{0}::varchar(1)", "position('a' in {0})")  # fmt: skip
_USUAL: Mapping[Family, tuple[Value, Value]] = MappingProxyType({
    Family.NUMBER: (1, 3), Family.TEXT: ("a", "zz"), Family.BOOLEAN: (True, False),
})  # fmt: skip
_OF_TRUTHS = ("{0}", "not {0}", "({0})::int", "({0})::text", "{0} is true", "coalesce({0}, false)")


def make_bin_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return _BinWriter(world, rng).query()


class _BinWriter(Writer):
    def query(self) -> str:
        rng = self._rng
        keys = [self._bin() for _ in range(rng.choice((1, 1, 2)))]
        aggregates = [self._aggregate() for _ in range(rng.choice((1, 2)))]
        where = [*self._from.conditions, *(self._bool(1) for _ in range(rng.choice((0, 0, 0, 1))))]
        text = f"{self._from.prefix}select {', '.join([*keys, *aggregates])} from {self._from.text}"
        if where:
            text += " where " + " and ".join(f"({w})" for w in where)
        return f"{text} group by {', '.join(str(i + 1) for i in range(len(keys)))}"

    def _bin(self) -> str:
        """An expression of a column with a domain, where there is one."""
        known = [n for n in self._from.columns if isinstance(n.domain, (Bounded, Listed))]
        name = self._rng.choice(known or list(self._from.columns))
        shapes: tuple[Callable[[Name], str], ...] = (self._spelled, self._spelled, self._parted, self._nested)
        return self._rng.choice(shapes)(name)

    def _spelled(self, name: Name) -> str:
        forms: Sequence[str] = {
            Family.NUMBER: _OF_NUMBERS, Family.TIME: _OF_TIMES, Family.TEXT: _OF_TEXTS, Family.BOOLEAN: _OF_TRUTHS,
        }[name.type.family]  # fmt: skip
        return self._rng.choice(forms).format(name.text)

    def _parted(self, name: Name) -> str:
        """A CASE whose conditions leave nothing out, or nearly so."""
        rng, column = self._rng, name.text
        low, high = self._two(name)
        below, above = rng.choice((("<", ">="), ("<=", ">"), ("=", "<>"), ("<", ">"), ("<>", "=")))
        second = rng.choice((f"not ({column} {below} {low})", f"{column} {above} {low}", f"not {column} {below} {low}"))
        first, last = f"{column} {below} {low}", f"when not ({column} < {high}) then 3"
        ways = [
            f"case when {first} then 'a' when {second} then 'b' end",
            f"case when {second} then 'b' when {first} then 'a' else null end",
            f"case when {column} < {low} then 1 when {column} >= {low} and {column} < {high} then 2 {last} end",
            f"case when {column} between {low} and {high} then 1 when {column} not between {low} and {high} then 2 end",
            f"case when {column} in ({low}, {high}) then 1 when {column} not in ({low}, {high}) then 2 end",
            f"case when {first} and {self._bool(0)} then 'a' when {second} then 'b' end",
            f"case when {column} is null then '-' when {first} then 'a' when {second} then 'b' end",
            f"case {column} when {low} then 'a' when {high} then 'b' else 'c' end",
            f"coalesce(case when {first} then 'a' end, case when {second} then 'b' end)",
        ]
        if name.type is SqlType.BOOL:
            ways = [f"case when {column} then 1 when not {column} then 0 end", f"case {column} when true then 1 end"]
        return rng.choice(ways)

    def _nested(self, name: Name) -> str:
        """A partition of a bucket, or of two columns at once."""
        rng, inner = self._rng, self._spelled(name)
        if rng.random() < 0.5:
            return f"case when {inner} is null then 'none' when {name.text} is not null then 'some' end"
        other = rng.choice(self._from.columns)
        one, two = self._two(name)[0], self._two(other)[0]
        both = f"{name.text} < {one} and {other.text} < {two}"
        return f"case when {both} then 1 when not ({both}) then 2 end"

    def _two(self, name: Name) -> tuple[str, str]:
        match name.domain:
            case Bounded(lo, hi):
                values: tuple[Value, Value] = lo, hi
            case Listed(values=listed):
                values = listed[0], listed[-1]
            case _:
                values = _USUAL.get(name.type.family, ("2024-02-01", "2024-03-01"))
        first, last = map(self._constant, values)
        if name.type.family is Family.NUMBER:
            return f"({first} + {last}) / 2", last
        return self._rng.choice(((first, last), (last, first)))

    def _constant(self, value: Value) -> str:
        is_plain = isinstance(value, (bool, int, float, Decimal))
        return str(value) if is_plain else f"'{str(value).replace(chr(39), chr(39) * 2)}'"
