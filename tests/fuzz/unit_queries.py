"""Random queries over rows that a sub-select makes of each unit's own rows."""

from __future__ import annotations

import random

from proxy.policy.model import Bounded, Unknown
from proxy.sqltypes import SqlType
from tests.fuzz.expressions import From, Name
from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import World

_TIMED = (SqlType.DATE, SqlType.TIMESTAMP, SqlType.TEXT, SqlType.VARCHAR)
_WHOLE = (SqlType.INT4, SqlType.INT8)
_REALS = (SqlType.FLOAT8, SqlType.NUMERIC)
_TEXTS = (SqlType.TEXT, SqlType.VARCHAR)
_TIMES = (SqlType.TIMESTAMPTZ, SqlType.DATE)


def make_unit_query(world: World, rng: random.Random) -> str:
    """One random aggregate query over rows of units."""
    return UnitWriter(world, rng).query()


class UnitWriter(Writer):
    def _relation(self) -> From:
        """Rows of units, alone or beside rows of a table."""
        rng = self._rng
        if rng.random() < 0.25:
            return self._around()
        rows = self._rows_of_units(rng.choice((0, 0, 1)))
        if rng.random() < 0.7:
            return From(f"({rows.text}) q", under("q", rows), "q.u0")
        table, how = rng.choice("pe"), rng.choice(("", "left "))
        on = " and ".join(f"x.{c} = q.{c}" for c in self._units())
        columns = (*under("q", rows), *self._columns(table, "x"))
        return From(f"{table} x {how}join ({rows.text}) q on {on}", columns, self._unit(table, "x"))

    def _around(self) -> From:
        """Rows of a table, with aggregates of other rows of their unit as columns."""
        rng, table = self._rng, self._rng.choice("pe")
        columns = self._columns(table, "x")
        if rng.random() < 0.6:
            items = [self._asked() if rng.random() < 0.3 else self._single() for _ in range(rng.choice((1, 2)))]
            return From(f"{table} x", (*columns, *(Name(f"({i.text})", i.type, i.domain) for i in items)),
                        self._unit(table, "x"))  # fmt: skip
        if rng.random() < 0.5:
            item = self._single()
            text = rng.choice((f"{table} x, lateral ({item.text}) q(v)",
                               f"{table} x cross join lateral ({item.text}) q(v)",
                               f"{table} x left join lateral ({item.text}) q(v) on true"))  # fmt: skip
            return From(text, (*columns, Name("q.v", item.type, item.domain)), self._unit(table, "x"))
        self._from = From("", (*columns, *self._columns("e", "y")), "")
        where = " and ".join([*self._same_unit("x", "y"), *(self._bool(1) for _ in range(rng.choice((0, 1))))])
        how = rng.choice((", lateral {}", " cross join lateral {}", " left join lateral {} on true"))
        inner = f"(select y.* from e y where {where}) y"
        return From(f"{table} x{how.format(inner)}", self._from.columns, self._unit(table, "x"))

    def _asked(self) -> Name:
        """Whether the unit of x has rows, as a value."""
        rng, below = self._rng, self._below(self._rng.choice((0, 0, 1)))
        self._from = below
        theirs, ours = self._unit_texts(), [f"x.{c}" for c in self._units()]
        where = [self._bool(1) for _ in range(rng.choice((0, 1)))]
        if rng.random() < 0.4:
            same = " and ".join([*(f"{t} = {o}" for t, o in zip(theirs, ours, strict=True)), *where])
            text = f"{rng.choice(('', 'not '))}exists (select 1 from {below.text} where {same})"
        else:
            left = ours[0] if len(ours) == 1 else f"({', '.join(ours)})"
            word = rng.choice(("in", "not in") if len(ours) > 1 else ("in", "not in", "= any", "<> all"))
            rows = f"select {', '.join(theirs)} from {below.text}{''.join(f' where {w}' for w in where)}"
            text = f"{left} {word} ({rows})"
        return Name(text, SqlType.BOOL, Unknown())

    def _single(self) -> Name:
        """A SELECT of one row and column over rows of the unit of x."""
        below = self._below(self._rng.choice((0, 0, 0, 1)))
        self._from = below
        text, kind = self._unit_value()
        same = [f"{t} = x.{c}" for t, c in zip(self._unit_texts(), self._units(), strict=True)]
        where = " and ".join([*same, *(self._bool(1) for _ in range(self._rng.choice((0, 0, 1))))])
        domain = Unknown() if text.startswith("sum") else Bounded(0, 10)
        return Name(f"select {text} from {below.text} where {where}", kind, domain)

    def _rows_of_units(self, depth: int) -> From:
        """A SELECT with the columns of the unit and others. depth: sub-selects below it."""
        if self._rng.random() < 0.3:
            return self._put_together(depth)
        shapes = (self._grouped, self._grouped, self._windowed)
        return self._rng.choice(shapes)(self._below(depth))

    def _put_together(self, depth: int) -> From:
        """Rows of several SELECTs; columns of one type in each, stored or computed."""
        rng = self._rng
        parts = [self._below(rng.choice((0, 0, depth))) for _ in range(rng.choice((2, 2, 3)))]
        if rng.random() < 0.4:
            parts[1] = parts[0]
        kinds = rng.choices(
            (_WHOLE, _REALS, _TEXTS, (SqlType.DATE, SqlType.TIMESTAMP), _TIMES), k=rng.choice((1, 2, 3))
        )
        texts, names = [], []
        for number, part in enumerate(parts):
            self._from = part
            items = [f"{t} as {c}" for t, c in zip(self._unit_texts(), self._units(), strict=True)]
            items += [f"{self._of_kind(kinds[i])} as c{i}" for i in range(len(kinds))]
            items.append(
                rng.choice(("1 as tag", "true as tag", "'x' as tag")) if rng.random() < 0.02 else f"{number} as tag"
            )
            where = f" where {self._bool(1)}" if rng.random() < 0.3 else ""
            texts.append(f"select {', '.join(items)} from {part.text}{where}")
        names = [Name(f"c{i}", k[0], Bounded(0, 10)) for i, k in enumerate(kinds)]
        return From(" union all ".join(texts), (*names, Name("tag", SqlType.INT4, Bounded(0, 2))), "")

    def _of_kind(self, kind: tuple[SqlType, ...]) -> str:
        fitting = [c for c in self._from.columns if c.type in kind]
        if fitting and self._rng.random() < 0.7:
            return self._rng.choice(fitting).text
        if kind is _TEXTS:
            return self._text(1)
        return self._date(1) if SqlType.DATE in kind else self._int(1) if kind is _WHOLE else self._real(1)

    def _below(self, depth: int) -> From:
        if depth > 0:
            rows = self._rows_of_units(depth - 1)
            return From(f"({rows.text}) i", under("i", rows), "i.u0")
        table = self._rng.choice("peee")
        if table == "e" and self._rng.random() < 0.2:
            columns = (*self._columns("e", "e"), *self._columns("d", "d"))
            return From("e join d on d.ref = e.id", columns, self._unit("e", "e"))
        return From(f"{table} t", self._columns(table, "t"), self._unit(table, "t"))

    def _unit_texts(self) -> list[str]:
        return [self._from.unit[: -len("u0")] + c for c in self._units()]

    def _grouped(self, below: From) -> From:
        rng, self._from = self._rng, below
        units, items, names = self._unit_texts(), [], []
        keys = [self._inner_key() for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
        for number, key in enumerate(keys):
            items.append(f"{key.text} as g{number}")
            names.append(Name(f"g{number}", key.type, key.domain))
        for number in range(rng.choice((1, 1, 2, 3))):
            text, kind = self._unit_value()
            items.append(f"{text} as v{number}")
            names.append(Name(f"v{number}", kind, Unknown() if text.startswith("sum") else Bounded(0, 10)))
        where = f" where {self._bool(1)}" if rng.random() < 0.3 else ""
        having = f" having {self._unit_value()[0]} is not null" if rng.random() < 0.1 else ""
        having = having or (f" having count(*) >= {rng.choice((1, 2, 3))}" if rng.random() < 0.3 else "")
        chosen = ", ".join([*(f"{t} as {c}" for t, c in zip(units, self._units(), strict=True)), *items])
        grouped = [*units, *(k.text for k in keys)]
        rng.shuffle(grouped)
        text = f"select {chosen} from {below.text}{where} group by {', '.join(grouped)}{having}"
        return From(text, tuple(names), "")

    def _windowed(self, below: From) -> From:
        """Rows with window functions over those of their unit."""
        rng, self._from = self._rng, below
        units, items, names = self._unit_texts(), [], []
        for number, column in enumerate(below.columns):
            items.append(f"{column.text} as c{number}")
            names.append(Name(f"c{number}", column.type, column.domain))
        for number in range(rng.choice((1, 1, 2))):
            parted = [*units, *(self._inner_key().text for _ in range(rng.choice((0, 0, 0, 1))))]
            order = [f"{self._inner_key().text}{rng.choice(('', ' desc', ' nulls first', ' desc nulls last'))}"
                     for _ in range(rng.choice((0, 1, 1, 2)))]  # fmt: skip
            ordered = f" order by {', '.join(order)}" if order else ""
            text, kind = self._window_call()
            items.append(f"{text} over (partition by {', '.join(parted)}{ordered}) as w{number}")
            names.append(Name(f"w{number}", kind, Unknown() if text.startswith("sum") else Bounded(0, 10)))
        where = f" where {self._bool(1)}" if rng.random() < 0.3 else ""
        chosen = ", ".join([*(f"{t} as {c}" for t, c in zip(units, self._units(), strict=True)), *items])
        return From(f"select {chosen} from {below.text}{where}", tuple(names), "")

    def _window_call(self) -> tuple[str, SqlType]:
        rng = self._rng
        if rng.random() < 0.4 or not self._from.columns:
            return f"{rng.choice(('row_number', 'row_number', 'rank', 'dense_rank'))}()", SqlType.INT8
        if rng.random() < 0.6:
            key = self._inner_key()
            call = rng.choice(
                (f"lag({key.text})", f"lead({key.text})", f"lag({key.text}, 2)", f"first_value({key.text})")
            )
            return call, key.type
        measure = self._measure(rng.choice((0, 1)))
        call = f"{rng.choice(('sum', 'avg', 'min', 'max', 'count'))}({measure})"
        return (f"{call} filter (where {self._bool(1)})" if rng.random() < 0.2 else call), SqlType.FLOAT8

    def _inner_key(self) -> Name:
        rng = self._rng
        if rng.random() < 0.7 and self._from.columns:
            return rng.choice(self._from.columns)
        text, kind = rng.choice((
            (self._int(1), SqlType.INT8), (self._bool(0), SqlType.BOOL), (self._text(1), SqlType.TEXT),
            (f"date_trunc('month', {self._date(1)})", SqlType.TIMESTAMP), (self._real(1), SqlType.FLOAT8)))  # fmt: skip
        return Name(text, kind, Unknown())

    def _unit_value(self) -> tuple[str, SqlType]:
        rng = self._rng
        if not self._from.columns:
            return "count(*)", SqlType.INT8
        column = rng.choice(self._from.columns)
        measure = self._measure(rng.choice((0, 0, 1)))
        number = rng.choice((f"sum({measure})", f"avg({measure})", f"min({measure})", f"max({measure})"))
        shapes: list[tuple[str, SqlType]] = [
            ("count(*)", SqlType.INT8), (f"count({column.text})", SqlType.INT8), (number, SqlType.FLOAT8),
            (number, SqlType.FLOAT8), (f"count(distinct {column.text})", SqlType.INT8)]  # fmt: skip
        if column.type in _TIMED:
            shapes.append((f"{rng.choice(('min', 'max'))}({column.text})", column.type))
        text, kind = rng.choice(shapes)
        return (f"{text} filter (where {self._bool(1)})" if rng.random() < 0.2 else text), kind


def under(alias: str, rows: From) -> tuple[Name, ...]:
    return tuple(Name(f"{alias}.{c.text}", c.type, c.domain) for c in rows.columns)
