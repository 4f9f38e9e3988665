"""Random client SQL over a world: everything the binder reads, and a little that it must refuse."""

from __future__ import annotations

import random
from collections.abc import Callable

from proxy.policy.model import Accounting, Bounded, Column, UnitColumns, Unknown
from proxy.sqltypes import Family, SqlType
from tests.fuzz.expressions import FIELDS, NUMBERS, PERIODS, TEXTS, TIMES, WHOLE, Expressions, From, Name
from tests.fuzz.worlds import World


def make_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return Writer(world, rng).query()


_SPREADS = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev")
_RELATIONS = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx",
              "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy")  # fmt: skip
_VERDICTS = ("bool_and", "bool_or", "every")
ENDS = {
    Family.NUMBER: ("0", "1", "2", "5", "10", "100", "-2.5", "2.5", "0.1", "1e3", "-5", "9007199254740993",
                    "9007199254740993.0", "9007199254740992.5", "2.5::float8", "0.0"),
    Family.TEXT: ("'a'", "'A'", "'zz'", "'a '", "''", "'é'", "'b'"),
    Family.TIME: ("date '2024-01-01'", "'2024-02-29'", "date '2024-03-31'", "date '2023-12-31'",
                  "timestamp '2024-03-31 02:30'", "timestamptz '2024-02-29 23:59:59.999999+00'",
                  "timestamptz '2024-10-27 01:30+02'", "current_date"),
}  # fmt: skip


class Writer(Expressions):
    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(rng)
        self._world = world
        self._narrowed: list[str] = []
        self._from = self._relation()

    def query(self) -> str:
        rng = self._rng
        keys = [self._key() for _ in range(rng.choice((0, 0, 1, 1, 2, 2, 3)))]
        aggregates = [self._aggregate() for _ in range(rng.choice((1, 1, 2, 3, 5)))]
        if rng.random() < 0.2:
            keys = keys[: rng.choice((0, 0, 1))]
            aggregates = self._partition()
        elif rng.random() < 0.2:
            aggregates = self._together()
        elif rng.random() < 0.25:
            aggregates = self._narrowing(keys)
        items = [*(f"{k} as k{i}" for i, k in enumerate(keys)), *(f"{a} as a{i}" for i, a in enumerate(aggregates))]
        where = [*self._from.conditions, *(self._bool(2) for _ in range(rng.choice((0, 0, 1, 2))))]
        where += self._narrowed
        if rng.random() < 0.15:
            where.append(self._membership())
        text = f"{self._from.prefix}select {', '.join(items)} from {self._from.text}"
        if where:
            text += " where " + " and ".join(f"({w})" for w in where)
        if keys:
            numbers = [str(i + 1) for i in range(len(keys))]
            text += " group by " + ", ".join(numbers if rng.random() < 0.7 else keys)
        return text

    # --- relations --------------------------------------------------------------------------------------

    def _relation(self) -> From:
        shapes = (self._one, self._one, self._one, self._people_events, self._public, self._path, self._twice,
                  self._wrapped, self._named, self._kept, self._kept, self._kept_path)  # fmt: skip
        return self._rng.choice(shapes)()

    def _columns(self, table: str, alias: str) -> tuple[Name, ...]:
        unit = self._world.tables[table].ownership
        hidden = unit.columns if isinstance(unit, UnitColumns) else ()
        return tuple(self._name(c, alias) for c in self._world.tables[table].columns if c.name not in hidden)

    def _name(self, column: Column, alias: str) -> Name:
        return Name(f"{alias}.{column.name}", column.type, column.domain)

    def _unit(self, table: str, alias: str) -> str:
        ownership = self._world.tables[table].ownership
        return f"{alias}.{ownership.columns[0]}" if isinstance(ownership, UnitColumns) else ""

    def _one(self) -> From:
        table = self._rng.choice("ppeeeedw")
        return From(f"{table} t", self._columns(table, "t"), self._unit(table, "t"))

    def _same_unit(self, left: str, right: str) -> tuple[str, ...]:
        ownership = self._world.tables["e"].ownership
        assert isinstance(ownership, UnitColumns)
        return tuple(f"{left}.{c} = {right}.{c}" for c in ownership.columns)

    def _pair(self, left: str, right: str) -> From:
        conditions = self._same_unit("x", "y")
        columns = (*self._columns(left, "x"), *self._columns(right, "y"))
        if self._rng.random() < 0.5:
            return From(f"{left} x join {right} y on {' and '.join(conditions)}", columns, self._unit(left, "x"))
        return From(f"{left} x, {right} y", columns, self._unit(right, "y"), conditions)

    def _people_events(self) -> From:
        return self._pair("p", "e")

    def _twice(self) -> From:
        return self._pair(*self._rng.choice((("e", "e"), ("p", "p"))))

    def _public(self) -> From:
        table = self._rng.choice("pew")
        columns = (*self._columns(table, "t"), *self._columns("s", "s"))
        return From(f"{table} t join s on t.code = s.code", columns, self._unit(table, "t"))

    def _path(self) -> From:
        columns = (*self._columns("d", "d"), *self._columns("e", "e"))
        text, unit = "d join e on d.ref = e.id", self._unit("e", "e")
        if self._rng.random() < 0.4:
            conditions = " and ".join(self._same_unit("e", "p"))
            return From(f"{text} join p on {conditions}", (*columns, *self._columns("p", "p")), unit)
        return From(text, columns, unit)

    def _kept(self) -> From:
        """Rows that are kept whether or not they meet another."""
        rng = self._rng
        left = rng.choice("pew")
        right = rng.choice("s" if left == "w" else "pes")
        columns = (*self._columns(left, "x"), *self._columns(right, "y"))
        self._from = From("", columns, "")
        if rng.random() < 0.1:  # refused, but where its refusal is missing
            on = [f"x.code {rng.choice(('=', '<'))} y.code"]
        else:
            on = ["x.code = y.code"] if right == "s" else list(self._same_unit("x", "y"))
        using = rng.random() < 0.2
        if using:
            names = ["code"] if right == "s" else [c.removeprefix("x.").split(" ")[0] for c in on]
            condition = f"using ({', '.join(names)})"
        else:
            condition = f"on {' and '.join([*on, *(self._bool(1) for _ in range(rng.choice((0, 0, 1))))])}"
        inner = f"(select * from {right} q where {self._about('q', right)})" if rng.random() < 0.2 else right
        text = f"{left} x left join {inner} y {condition}" if rng.random() < 0.6 else (
            f"{inner} y right join {left} x {condition}")  # fmt: skip
        if left != "w" and rng.random() < 0.2:
            text += " left join s on x.code = s.code"
            columns = (*columns, *self._columns("s", "s"))
        unit = rng.choice((self._unit(left, "x"), self._unit(right, "y")))
        return From(text, columns, unit or self._unit(left, "x"))

    def _membership(self) -> str:
        """A condition that asks for rows of a sub-query, of the same unit or public."""
        rng, around = self._rng, self._from
        word = rng.choice(("", "not "))
        codes = [c.text for c in around.columns if c.text.endswith(".code")]
        if around.unit.endswith("u0") and rng.random() < 0.7:
            table = rng.choice("pee")
            where = f" where {self._about('m', table)}" if rng.random() < 0.6 else ""
            units = [around.unit[: -len("u0")] + c for c in self._units()]
            names = [f"m.{c}" for c in self._units()]
            if rng.random() < 0.5:
                return f"({', '.join(units)}) {word}in (select {', '.join(names)} from {table} m{where})"
            same = " and ".join(f"{a} = {b}" for a, b in zip(units, names, strict=True))
            if rng.random() < 0.2:  # refused, but where its refusal is missing
                same = rng.choice(("m.code = 1", "m.code is null"))
            more = " join d on d.ref = m.id" if table == "e" and rng.random() < 0.3 else ""
            if table == "e" and rng.random() < 0.2 and codes:
                other = f"{rng.choice(codes)} {word}in (select m.code from e m{more}"
                return f"{other}{where}{' and' if where else ' where'} {same})"
            return f"{word}exists (select 1 from {table} m{more}{where}{' and' if where else ' where'} {same})"
        if codes:
            where = rng.choice(("", " where m.region = 'north'", " where m.code is not null", " where m.code > 5"))
            return f"{rng.choice(codes)} {word}in (select m.code from s m{where})"
        return f"{word}exists (select 1 from s m where m.region = '{rng.choice(('north', 'west'))}')"

    def _units(self) -> tuple[str, ...]:
        ownership = self._world.tables["e"].ownership
        assert isinstance(ownership, UnitColumns)
        return ownership.columns

    def _about(self, alias: str, table: str) -> str:
        """A condition on one table."""
        kept, self._from = self._from, From("", self._columns(table, alias), "")
        condition = self._bool(1)
        self._from = kept
        return condition

    def _kept_path(self) -> From:
        columns = (*self._columns("d", "d"), *self._columns("e", "e"))
        text = self._rng.choice(("d left join e on d.ref = e.id", "e left join d on e.id = d.ref",
                                 "e right join d on d.ref = e.id"))  # fmt: skip
        if self._rng.random() < 0.3:
            text += " left join s on s.code = e.code"
            columns = (*columns, *self._columns("s", "s"))
        return From(text, columns, self._unit("e", "e"))

    def _wrapped(self) -> From:
        inner, names, unit = self._inner()
        return From(f"({inner}) q", names, unit)

    def _named(self) -> From:
        inner, names, unit = self._inner()
        return From("c q", names, unit, prefix=f"with c as ({inner}) ")

    def _inner(self) -> tuple[str, tuple[Name, ...], str]:
        """A row-level SELECT with computed columns."""
        table = self._rng.choice("ped")
        self._from = From(f"{table} t", self._columns(table, "t"), self._unit(table, "t"))
        names, items = [], []
        for number, column in enumerate(self._from.columns):
            items.append(f"{column.text} as c{number}")
            names.append(Name(f"q.c{number}", column.type, column.domain))
        for number in range(self._rng.choice((0, 1, 2))):
            items.append(f"{self._real(2)} as r{number}")
            names.append(Name(f"q.r{number}", SqlType.FLOAT8, Bounded(-100, 100)))
        if self._from.unit:
            items.append(f"{self._from.unit} as unit")
        where = f" where {self._bool(1)}" if self._rng.random() < 0.5 else ""
        unit = "q.unit" if self._from.unit else ""
        return f"select {', '.join(items)} from {self._from.text}{where}", tuple(names), unit

    # --- keys and aggregates ----------------------------------------------------------------------------

    def _key(self) -> str:
        rng = self._rng
        small = [c for c in self._from.columns if not isinstance(c.domain, Bounded) or c.type in WHOLE]
        if self._world.privacy.accounting is Accounting.PURE:
            small = [c for c in small if not isinstance(c.domain, Unknown)]
            if rng.random() < 0.9:
                return rng.choice(small).text if small and rng.random() < 0.5 else self._public_key()
        choices: list[Callable[[], str]] = [
            lambda: rng.choice(small or self._from.columns).text,
            lambda: rng.choice(small or self._from.columns).text,
            lambda: rng.choice(small or self._from.columns).text,
            lambda: self._bool(2),
            lambda: f"case when {self._bool(2)} then 'x' when {self._bool(1)} then 'y' else 'z' end",
            lambda: f"case when {self._bool(2)} then {self._int(1)} end",
            lambda: f"extract({rng.choice(FIELDS[:8])} from {self._time(1)})",
            lambda: f"date_trunc('{rng.choice(PERIODS[4:])}', {self._time(1)})",
            lambda: self._int(2),
            lambda: self._text(2),
            lambda: self._time(2),
            lambda: self._real(1),
            lambda: f"floor({self._real(1)} / 10.0) * 10.0",
            lambda: f"({self._int(1)})::text || '-' || {self._text(1)}",
        ]
        return rng.choice(choices)()

    def _public_key(self) -> str:
        rng = self._rng
        choices: list[Callable[[], str]] = [
            lambda: self._bool(2),
            lambda: f"case when {self._bool(2)} then 'x' when {self._bool(1)} then 'y' else 'z' end",
            lambda: f"case when {self._bool(2)} then 1 end",
            lambda: f"extract({rng.choice(FIELDS[1:5])} from {self._time(1)})",
        ]
        return rng.choice(choices)()

    def _aggregate(self) -> str:
        rng = self._rng
        choices: list[Callable[[], str]] = [
            lambda: "count(*)",
            lambda: f"count({self._any(2)})",
            lambda: f"sum({self._measure(2)})",
            lambda: f"sum({self._measure(0)})",
            lambda: f"avg({self._measure(0)})",
            lambda: f"avg({self._measure(2)})",
            lambda: f"count(distinct {self._from.unit})" if self._from.unit else "count(*)",
            lambda: f"{rng.choice(_SPREADS)}({self._measure(rng.choice((0, 0, 1, 2)))})",
            lambda: f"{rng.choice(_RELATIONS)}({self._measure(rng.choice((0, 0, 1)))}, {self._measure(0)})",
            lambda: f"{rng.choice(_VERDICTS)}({self._bool(rng.choice((0, 1, 2)))})",
        ]
        text = rng.choice(choices)()
        return f"{text} filter (where {self._bool(2)})" if rng.random() < 0.35 else text

    def _together(self) -> list[str]:
        """Aggregates of one or two measures that share moments, some under one condition."""
        rng = self._rng
        y, x = self._measure(rng.choice((0, 0, 1))), self._measure(0)
        if rng.random() < 0.5:  # so that rows have one of the two, both or neither
            y, x = f"nullif({y}, {self._column(NUMBERS)})", f"nullif({x}, {rng.choice((1, 2, y))})"
        shapes = ["count(*)", f"count({x})", f"sum({x})", f"avg({y})", f"{rng.choice(_SPREADS)}({x})",
                  f"{rng.choice(_SPREADS)}({y})", f"{rng.choice(_RELATIONS)}({y}, {x})",
                  f"{rng.choice(_RELATIONS)}({x}, {y})", f"{rng.choice(_RELATIONS)}({y}, {y})"]  # fmt: skip
        if rng.random() < 0.3:
            part = [f"{rng.choice(('avg', 'sum', 'count'))}({y}) filter (where {self._bool(0)})"]
            return ["count(*)", *rng.sample(shapes[-3:-1], rng.choice((1, 2))), *(part * rng.choice((0, 1)))]
        condition = f" filter (where {self._bool(1)})" if rng.random() < 0.3 else ""
        return [f"{s}{condition if rng.random() < 0.7 else ''}" for s in rng.sample(shapes, rng.choice((1, 2, 3, 5)))]

    def _measure(self, depth: int) -> str:
        """A number over columns with known bounds."""
        self._is_measuring = self._rng.random() < 0.97
        text = self._number(depth) if depth else self._column(NUMBERS)
        self._is_measuring = False
        return text

    def _partition(self) -> list[str]:
        """Aggregates under conditions on one column that exclude each other, or only seem to."""
        rng = self._rng
        column = self._measure(0) if rng.random() < 0.6 else self._column(NUMBERS)
        cuts = sorted({self._constant_number() for _ in range(rng.randint(1, 3))}, key=lambda c: (float(c), c))
        tests = [f"{column} < {cuts[0]}", f"{column} >= {cuts[-1]}", f"{column} is null", f"{column} = {cuts[0]}",
                 f"{column} <> {cuts[0]}", f"not ({column} < {cuts[0]})", f"{column} is not null"]  # fmt: skip
        rng.shuffle(tests)
        shapes = ["count(*)", f"count({column})", f"sum({column})", f"{rng.choice(_SPREADS)}({column})"]
        if self._from.unit and rng.random() < 0.3:
            shapes = [f"count(distinct {self._from.unit})"]
        found = [f"{rng.choice(shapes)} filter (where {t})" for t in tests[: rng.randint(1, 6)]]
        return found + [s for s in shapes if rng.random() < 0.4]

    def _narrowing(self, keys: list[str]) -> list[str]:
        """Aggregates and a key of one column that conditions give its bounds."""
        rng = self._rng
        column = self._from_types((*NUMBERS, *NUMBERS, *TIMES, *TEXTS))
        if column is None:
            return ["count(*)"]
        text, ends = column.text, ENDS[column.type.family]

        def test() -> str:
            sides = [f"{text} {rng.choice(('<', '<=', '>', '>=', '='))} {rng.choice(ends)}",
                     f"{rng.choice(ends)} {rng.choice(('<', '<=', '>', '>='))} {text}",
                     f"{text} between {rng.choice(ends)} and {rng.choice(ends)}",
                     f"{text} in ({rng.choice(ends)}, {rng.choice(ends)})"]  # fmt: skip
            found = rng.choice(sides)
            return f"not ({found} or {rng.choice(sides)})" if rng.random() < 0.3 else found

        value = rng.choice((text, text, f"case when {test()} then {text} when {test()} then {rng.choice(ends)} end",
                            f"case when {test()} then {rng.choice(ends)} else {text} end"))  # fmt: skip
        self._narrowed = [test() for _ in range(rng.choice((0, 1, 2, 2)))]
        if rng.random() < 0.6:
            keys[:] = [value]
        if column.type.family is not Family.NUMBER:
            return ["count(*)", f"count({value}) filter (where {test()})"]
        measure = rng.choice((value, value, f"least(greatest({value}, 0), 10)", f"({value}) * 2", f"- ({value})"))
        condition = " and ".join(test() for _ in range(rng.choice((1, 2, 2))))
        shapes = [f"sum({measure})", f"avg({measure})", f"sum({measure}) filter (where {condition})",
                  f"avg({measure}) filter (where {condition})"]  # fmt: skip
        return [rng.choice(shapes) for _ in range(rng.choice((1, 2)))]

    def _from_types(self, types: tuple[SqlType, ...]) -> Name | None:
        kind = self._rng.choice(types)
        fitting = [c for c in self._from.columns if c.type is kind] or [
            c for c in self._from.columns if c.type in types
        ]
        return self._rng.choice(fitting) if fitting else None
