"""Which scalar functions does the guide list, and is its page what the code does?

Writes the tables between two markers of the guide. What stands in them is found out, not written down: each spelling
is bound for every type of argument, and its result is asked for its domain. A row of the function table that no
spelling here reaches is an error, so a new function cannot be forgotten.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import product

from proxy.analysis.domains import Domains
from proxy.analysis.key_values import KeyValues
from proxy.errors import HushError
from proxy.policy.model import Bounded, Column, Domain, Listed, RowUnit, Table, Unknown
from proxy.sql.algebra.constants import Unread
from proxy.sql.algebra.nodes import Block, Call, ColumnRef, Scalar, Scan, children
from proxy.sql.binding.rules import Constants, make_binder
from proxy.sql.functions.domains.intervals import number_range
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.syntax.parse import parse
from proxy.sqltypes import Family, SqlType
from tools.sources import ROOT

PAGE = ROOT / "docs" / "guide" / "sql.md"
BEGIN = "<!-- functions: begin; written by `python -m tools.function_page` -->"
END = "<!-- functions: end -->"

BOOLEAN, NUMBER, TEXT, TIME = Family.BOOLEAN, Family.NUMBER, Family.TEXT, Family.TIME


@dataclass(frozen=True, slots=True)
class Form:
    """One line of a table. shown: what a person writes. spellings: the same with {0}, {1} for the arguments.

    only: families that the arguments of this line are of, where the spelling has other meanings too.
    """

    shown: str
    spellings: tuple[str, ...]
    note: str = ""
    only: tuple[Family, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """One spelling bound to columns of these types: with declared domains, and without."""

    types: tuple[SqlType, ...]
    declared: Scalar
    plain: Scalar


def _fields(*names: str) -> tuple[str, ...]:
    return tuple(f"extract({name} FROM {{0}})" for name in names)


_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_MEMBERS = ("1, 2", "'a', 'b'", "'2024-12-31'", "true", "'00000000-0000-0000-0000-000000000000'")
_UNITS = ("millennium", "century", "decade", "year", "quarter", "month", "week", "day", "hour", "minute", "second")

SECTIONS: tuple[tuple[str, tuple[Form, ...]], ...] = (
    (
        "Conditions",
        (
            Form("`x = y`, `<>`, `<`, `<=`, `>`, `>=`", tuple(f"{{0}} {op} {{1}}" for op in _COMPARISONS)),
            Form("`x BETWEEN y AND z`", ("{0} BETWEEN {1} AND {1}", "{0} BETWEEN SYMMETRIC {1} AND {1}"),
                 "also `SYMMETRIC`"),
            Form("`x > ANY('{1,2}')`, `x <= ALL(ARRAY[1, 2])`, `x LIKE ANY ('{a%,b%}')`",
                 ("{0} > ANY(ARRAY[1, 2])", "{0} <= ALL(ARRAY[1, 2])"), "constants only, at most 100; `SOME` is `ANY`"),
            Form("`x IN (1, 2)`, `x = ANY(ARRAY[1, 2])`, `x <> ALL($1)`",
                 (*(f"{{0}} IN ({m})" for m in _MEMBERS), "{0} = ANY(ARRAY[1, 2])"),
                 "constants only, also as `VALUES (1), (2)`; none of them NULL, at most 100,000"),
            Form("`a AND b`, `a OR b`", ("{0} AND {1}", "{0} OR {1}")),
            Form("`NOT a`", ("NOT {0}",)),
            Form("`x IS NULL`, `x IS NOT NULL`", ("{0} IS NULL", "{0} IS NOT NULL")),
            Form("`a IS TRUE`, `a IS NOT FALSE`, ...", ("{0} IS TRUE", "{0} IS NOT FALSE")),
            Form("`x IS DISTINCT FROM y`", ("{0} IS DISTINCT FROM {1}", "{0} IS NOT DISTINCT FROM {1}")),
            Form("`x LIKE 'a%'`, `x ILIKE 'a%'`", ("{0} LIKE 'a%'", "{0} ILIKE 'a%'"),
                 "the pattern is a constant, also put together with `||`; `ESCAPE` too"),
            Form("`x ~ '^a.*[0-9]{2}$'`, `x ~* 'a'`, `x SIMILAR TO 'a(b)?%'`",
                 ("{0} ~ 'a'", "{0} ~* 'a'", "{0} SIMILAR TO 'a%'"),
                 "constant patterns of characters, `.`, brackets, groups, repetitions, `^` and `$`"),
            Form("`starts_with(x, 'a')`", ("starts_with({0}, 'a')",), "the start is a constant"),
            Form("`(x, y) = (1, 2)`, `(x, y) < (1, 2)`, `(x, y) IN ((1, 2), (3, 4))`",
                 ("({0}, {0}) = ({0}, {0})", "({0}, {0}) < ({0}, {0})"), "`(x, y) IS DISTINCT FROM (1, 2)` too"),
            Form("`regexp_match(x, 'a') IS NULL`, `IS NOT NULL`",
                 ("regexp_match({0}, 'a') IS NULL", "regexp_match({0}, 'a') IS NOT NULL"),
                 "patterns as beside `~`"),
            Form("`regexp_like(x, 'a')`", ("regexp_like({0}, 'a')", "regexp_like({0}, 'a', 'i')"),
                 "the same; flags `i` and `c`"),
            Form("`x IN (SELECT unnest(ARRAY[1, 2]))`, `x IN (SELECT generate_series(1, 5))`",
                 ("{0} IN (SELECT unnest(ARRAY[1, 2]))",), "constants only"),
            Form("`(x, y) OVERLAPS (DATE '2024-01-01', DATE '2024-02-01')`",
                 ("({0}, {1}) OVERLAPS (DATE '2024-01-01', DATE '2024-02-01')",),
                 "the second of each pair may be an interval", (TIME, TIME)),
            Form("`isfinite(x)`", ("isfinite({0})",)),
            Form("`num_nulls(x, y, ...)`, `num_nonnulls(x, y, ...)`", ("num_nulls({0})", "num_nonnulls({0})")),
        ),
    ),
    (
        "Choices",
        (
            Form("`CASE WHEN a THEN x ELSE y END`", ("CASE WHEN {0} IS NULL THEN {0} ELSE {1} END",),
                 "public groups too where x and y are constants"),
            Form("`coalesce(x, y, ...)`", ("coalesce({0}, {1})",)),
            Form("`nullif(x, y)`", ("nullif({0}, {1})",), "NULL where the two are equal"),
            Form("`greatest(x, y, ...)`, `least(x, y, ...)`", ("greatest({0}, {1})", "least({0}, {1})"),
                 "NULL arguments are passed over"),
        ),
    ),
    (
        "Numbers",
        (
            Form("`x + y`, `x - y`, `x * y`", ("{0} + {1}", "{0} - {1}", "{0} * {1}"),
                 "NULL where integers leave the range of bigint", (NUMBER, NUMBER)),
            Form("`x / y`", ("{0} / {1}",), "NULL where y is 0; integers give an integer", (NUMBER, NUMBER)),
            Form("`x % y`, `mod(x, y)`", ("{0} % {1}", "mod({0}, {1})"), "NULL where y is 0", (NUMBER, NUMBER)),
            Form("`-x`, `abs(x)`", ("-{0}", "abs({0})"), "NULL where integers leave the range of bigint"),
            Form("`x & 4`, `x | y`, `x # y`", ("{0} & {1}", "{0} | {1}", "{0} # {1}"),
                 "bits; bounds where neither is negative", (NUMBER, NUMBER)),
            Form("`x >> 3`", ("{0} >> 3",), "the shift is a constant; write `x * 8` for `x << 3`"),
            Form("`~x`", ("~{0}",)),
            Form("`floor(x)`, `ceil(x)`", ("floor({0})", "ceil({0})")),
            Form("`round(x)`, `trunc(x)`", ("round({0})", "trunc({0})")),
            Form("`round(x, 2)`", ("round({0}, 2)",), "at most 20 digits, a constant"),
            Form("`trunc(x, 2)`", ("trunc({0}, 2)",), "at most 20 digits, a constant"),
            Form("`round(x, -2)`", ("round({0}, -2)",), "to tens, hundreds, ..., 20 digits at most, a constant"),
            Form("`trunc(x, -2)`", ("trunc({0}, -2)",), "the same, towards zero"),
            Form("`div(x, y)`", ("div({0}, {1})",), "the whole part of the quotient; NULL where y is 0",
                 (NUMBER, NUMBER)),
            Form("`sqrt(x)`", ("sqrt({0})",), "NULL where x is negative"),
            Form("`power(x, 2)`, `x ^ 2`", ("power({0}, 2)", "{0} ^ 2"), "the exponent is a constant"),
            Form("`exp(x)`, `ln(x)`, `log(x)`", ("exp({0})", "ln({0})", "log({0})"),
                 "`log` is to base 10; NULL where there is no answer"),
            Form("`log(2, x)`", ("log(2, {0})",), "the base is a constant; NULL where there is no answer"),
            Form("`cbrt(x)`", ("cbrt({0})",)),
            Form("`sign(x)`", ("sign({0})",)),
            Form("`sin(x)`, `cos(x)`", ("sin({0})", "cos({0})"), "NULL of infinities"),
            Form("`tan(x)`", ("tan({0})",), "the same"),
            Form("`asin(x)`, `acos(x)`", ("asin({0})", "acos({0})"), "NULL beyond -1 and 1"),
            Form("`atan(x)`", ("atan({0})",), "`pi()` is a constant"),
            Form("`atan2(y, x)`", ("atan2({0}, {1})",), "", (NUMBER, NUMBER)),
            Form("`degrees(x)`, `radians(x)`", ("degrees({0})", "radians({0})")),
            Form("`width_bucket(x, 0, 100, 10)`", ("width_bucket({0}, 0, 100, 10)",), "bounds and count are constants"),
            Form("`width_bucket(x, ARRAY[1, 5, 10])`", ("width_bucket({0}, ARRAY[1, 5, 10])",),
                 "at most 100 bounds, constants, ascending; also `'{1,5,10}'`"),
        ),
    ),
    (
        "Texts",
        (
            Form("`lower(x)`, `upper(x)`", ("lower({0})", "upper({0})")),
            Form("`initcap(x)`", ("initcap({0})",), "words are made of letters and digits"),
            Form("`length(x)`", ("length({0})",), "in characters"),
            Form("`octet_length(x)`", ("octet_length({0})",), "in bytes of UTF-8"),
            Form("`bit_length(x)`", ("bit_length({0})",), "in bits"),
            Form("`reverse(x)`", ("reverse({0})",)),
            Form("`ascii(x)`", ("ascii({0})",), "the number of the first character; `chr(10)` is a constant"),
            Form("`overlay(x PLACING 'ab' FROM 2 FOR 1)`, `repeat(x, 3)`",
                 ("overlay({0} PLACING 'ab' FROM 2 FOR 1)", "repeat({0}, 3)"),
                 "places and numbers are constants, repetitions at most 10"),
            Form("`substring(x, 2)`, `substring(x, 2, 3)`, `left(x, 3)`",
                 ("substring({0}, 2)", "substring({0}, 2, 3)", "left({0}, 3)")),
            Form("`substring(x, position('-' IN x) + 1)`", ("substring({0}, position('-' IN {0}) + 1)",),
                 "places may be computed"),
            Form("`left(x, length(x) - 1)`, `right(x, y)`",
                 ("left({0}, length({0}) - 1)", "right({0}, length({0}) - 1)"), "the same"),
            Form("`trim(x)`, `ltrim(x)`, `rtrim(x)`", ("trim({0})", "ltrim({0})", "rtrim({0})"),
                 "also `trim(LEADING 'ab' FROM x)`; the characters are a constant"),
            Form("`right(x, 3)`, `left(x, -1)`", ("right({0}, 3)", "right({0}, -1)", "left({0}, -1)"),
                 "below zero it is left out at the other end"),
            Form("`split_part(x, '-', 1)`", ("split_part({0}, '-', 1)", "split_part({0}, '-', -1)"),
                 "delimiter and number are constants, from 1 to 100 or -1 to -100"),
            Form("`(string_to_array(x, ','))[2]`", ("(string_to_array({0}, ','))[2]",),
                 "delimiter and number are constants; NULL where there are fewer parts"),
            Form("`array_length(string_to_array(x, ','), 1)`, `cardinality(...)`",
                 ("array_length(string_to_array({0}, ','), 1)", "cardinality(string_to_array({0}, ','))"),
                 "how many parts the first 10,000 characters have"),
            Form("`regexp_count(x, '[0-9]+')`", ("regexp_count({0}, '[0-9]+')",),
                 "in the first 10,000 characters; [patterns](#patterns)"),
            Form("`regexp_instr(x, 'a|b')`", ("regexp_instr({0}, 'a|b')",),
                 "in the first 10,000 characters; patterns as beside `~`"),
            Form("`substring(x FROM '[0-9]+')`, `(regexp_match(x, '-(.*)$'))[1]`, `regexp_substr(x, 'a.')`",
                 ("substring({0} FROM '[0-9]+')", "(regexp_match({0}, '-(.*)$'))[1]", "regexp_substr({0}, 'a.')"),
                 "NULL without a match; [patterns](#patterns)"),
            Form("`regexp_replace(x, '[0-9]+', '#')`",
                 ("regexp_replace({0}, 'a', 'b')", "regexp_replace({0}, 'a', '', 'g')"),
                 "flag `g`; `\\1` and `\\&` in the replacement; [patterns](#patterns)"),
            Form("`lpad(x, 5, '0')`, `rpad(x, 5)`", ("lpad({0}, 5, '0')", "rpad({0}, 5)"),
                 "length and fill are constants"),
            Form("`position('a' IN x)`, `strpos(x, 'a')`", ("position('a' IN {0})",),
                 "what is looked for is a constant"),
            Form("`replace(x, 'a', 'b')`", ("replace({0}, 'a', 'b')",), "all but x are constants"),
            Form("`translate(x, 'ab', 'c')`", ("translate({0}, 'ab', 'c')",), "all but x are constants"),
            Form("`x || y`", ("{0} || {1}",), "of each side the first 10,000 characters; one side is a text"),
            Form("`to_char(x, 'FM000')`", ("to_char({0}, 'FM000')", "to_char({0}, '999')"), "[formats](#formats)",
                 (NUMBER,)),
            Form("`concat(x, y, ...)`, `concat_ws('-', x, y, ...)`, `format('%s-%s', x, y)`",
                 ("concat({0}, {1})", "concat_ws('-', {0}, {1})", "format('%s: %2$s%%', {0}, {1})"),
                 "NULL counts as empty, or is left out"),
        ),
    ),
    (
        "Dates and times",
        (
            Form("`extract(year FROM x)`, `isoyear`", _fields("year", "isoyear")),
            Form("`extract(month FROM x)`, `quarter`, `week`, `day`, `doy`, `dow`, `isodow`",
                 _fields("month", "quarter", "week", "day", "doy", "dow", "isodow")),
            Form("`extract(decade FROM x)`, `century`, `millennium`", _fields("decade", "century", "millennium"),
                 "NULL before the year 1"),
            Form("`extract(hour FROM x)`, `minute`", _fields("hour", "minute")),
            Form("`extract(second FROM x)`, `milliseconds`", _fields("second", "milliseconds"), "with its fraction"),
            Form("`extract(microseconds FROM x)`", _fields("microseconds"), "with the seconds"),
            Form("`extract(epoch FROM x)`", _fields("epoch"),
                 "seconds since 1970; public groups of days, and of times cut to a unit"),
            Form("`date_part('month', x)`", ("date_part('month', {0})",), "the fields of `extract`"),
            Form("`date_trunc('month', x)`", tuple(f"date_trunc('{unit}', {{0}})" for unit in _UNITS),
                 ", ".join(f"`{unit}`" for unit in _UNITS)),
            Form("`date_trunc('milliseconds', x)`",
                 ("date_trunc('milliseconds', {0})", "date_trunc('microseconds', {0})"), "also `microseconds`"),
            Form("`to_char(x, 'YYYY-MM')`", ("to_char({0}, 'YYYY-MM')", "to_char({0}, 'FMDay, DD.MM.')"),
                 "[formats](#formats)", (TIME,)),
            Form("`x + 7`, `x - 7`", ("{0} + 7", "{0} - 7"), "days; NULL past the ends of the calendar", (TIME,)),
            Form("`x - y`", ("{0} - {1}",), "the days between them", (TIME, TIME)),
            Form("`extract(epoch FROM x - y)`", ("extract(epoch FROM {0} - {1})",),
                 "one of them is no date; [differences](#differences-of-times)", (TIME, TIME)),
            Form("`extract(day FROM x - y)`", ("extract(day FROM {0} - {1})",), "the same", (TIME, TIME)),
            Form("`extract(hour FROM x - y)`, `minute`",
                 ("extract(hour FROM {0} - {1})", "extract(minute FROM {0} - {1})"), "the same", (TIME, TIME)),
            Form("`extract(second FROM x - y)`, `milliseconds`",
                 ("extract(second FROM {0} - {1})", "extract(milliseconds FROM {0} - {1})"), "the same", (TIME, TIME)),
            Form("`extract(microseconds FROM x - y)`", ("extract(microseconds FROM {0} - {1})",), "the same",
                 (TIME, TIME)),
            Form("`x - y < INTERVAL '1 day'`, `<=`, `=`, ...", ("{0} - {1} < INTERVAL '1 day'",), "the same",
                 (TIME, TIME)),
            Form("`x::time < TIME '17:30'`, `<=`, `=`, `BETWEEN`, ...", ("{0}::time < '17:30'",),
                 "a time of day, which is compared, or of which a field is taken"),
            Form("`extract(year FROM age(x, y))`", ("extract(year FROM age({0}, {1}))",), "also `age(x)`",
                 (TIME, TIME)),
            Form("`extract(month FROM age(x, y))`, `day`, `hour`, `minute`",
                 tuple(f"extract({field} FROM age({{0}}, {{1}}))" for field in ("month", "day", "hour", "minute")),
                 "the months beyond the years, the days beyond these, ...", (TIME, TIME)),
            Form("`extract(second FROM age(x, y))`, `milliseconds`, `microseconds`",
                 tuple(f"extract({f} FROM age({{0}}, {{1}}))" for f in ("second", "milliseconds", "microseconds")),
                 "the same", (TIME, TIME)),
            Form("`extract(epoch FROM age(x, y))`", ("extract(epoch FROM age({0}, {1}))",),
                 "a year has 365.25 days, a month 30", (TIME, TIME)),
            Form("`age(x, y) < INTERVAL '1 year'`, `<=`, `BETWEEN`, ...", ("age({0}, {1}) < INTERVAL '1 year'",),
                 "a month has 30 days where ages are compared", (TIME, TIME)),
            Form("`coalesce(x - y, INTERVAL '0') < INTERVAL '1 day'`, `CASE ... END < ...`, ...",
                 ("coalesce({0}::timestamp - {1}::timestamp, INTERVAL '0') < INTERVAL '1 day'",),
                 "also `greatest`, `least`, `nullif`, sums and whole multiples of intervals", (TIME, TIME)),
            Form("`x + INTERVAL '3 months'`, `x - INTERVAL '1 day'`",
                 ("{0} + INTERVAL '3 months'", "{0} - INTERVAL '1 day'"), "NULL past the ends of the calendar"),
            Form("`x + y * INTERVAL '5 minutes'`", ("{0} + {1} * INTERVAL '5 minutes'", "{0} - {1} * INTERVAL '1 day'"),
                 "y is whole: an integer, `floor(...)`", (TIME, NUMBER)),
            Form("`date_bin('15 minutes', x, TIMESTAMP '2024-01-01')`", ("date_bin('15 minutes', {0}, '2024-01-01')",),
                 "interval and origin are constants"),
            Form("`to_date(x, 'DD.MM.YYYY')`", ("to_date({0}, 'DD.MM.YYYY')", "to_date({0}, 'YYYYMMDD')"),
                 "`YYYY`, `MM` and `DD`; NULL of texts that are not written so"),
            Form("`make_date(y, m, d)`", ("make_date({0}, 1, 1)",), "years 1 to 9999; NULL where there is no such day"),
            Form("`make_timestamp(y, m, d, 12, 0, 0)`", ("make_timestamp({0}, 1, 1, 12, 0, 0)",
                                                         "make_timestamptz({0}, 1, 1, 12, 0, 0)"),
                 "the time of day is constant; also `make_timestamptz`"),
            Form("`to_timestamp(x)`", ("to_timestamp({0})",), "seconds since 1970; NULL beyond the year 30,000"),
            Form("`x AT TIME ZONE 'Europe/Zurich'`, `timezone('UTC', x)`",
                 ("{0} AT TIME ZONE 'Europe/Zurich'", "timezone('Europe/Zurich', {0})"), "[time zones](#time-zones)"),
            Form("`date_trunc('month', x, 'Europe/Zurich')`", ("date_trunc('month', {0}, 'Europe/Zurich')",),
                 "the same"),
        ),
    ),
)  # fmt: skip

_COLUMN_TYPES = tuple(t for t in SqlType if t is not SqlType.INTERVAL)
_SHORT = {SqlType.TIMESTAMP: "timestamp", SqlType.TIMESTAMPTZ: "timestamptz", SqlType.VARCHAR: "varchar",
          SqlType.BPCHAR: "char"}  # fmt: skip
#: Words for sets of types, the largest first; what is left over is listed by name.
_WORDS = (
    ("any", frozenset(_COLUMN_TYPES)),
    ("number", frozenset(t for t in _COLUMN_TYPES if t.is_number)),
    ("integer", frozenset(t for t in _COLUMN_TYPES if t.is_integer)),
    ("text", frozenset(t for t in _COLUMN_TYPES if t.is_text and t is not SqlType.UUID)),
    ("time", frozenset(t for t in _COLUMN_TYPES if t.is_time)),
)
_CONSTANTS = Constants({}, datetime(2024, 1, 1, tzinfo=UTC))
_DAY = (date(2024, 1, 1), date(2024, 1, 2))
_HOUR = (datetime(2024, 1, 1, 8), datetime(2024, 1, 1, 9))
_HEAD = ("| you write | of | sums | groups | NULL | |", "| --- | --- | --- | --- | --- | --- |")


def tables() -> str:
    """The text that belongs between the markers. ValueError for a spelling or a function that has no place in it."""
    scope = _Scope()
    reached: set[str] = set()
    lines: list[str] = []
    for title, forms in SECTIONS:
        lines += [f"### {title}", "", *_HEAD]
        for form in forms:
            spelled = tuple(scope.bound(spelling, form.only) for spelling in form.spellings)
            reached.update(name for bound in spelled for b in bound for name in _functions(b.declared))
            lines.append(_row(form, spelled, scope.domains))
        lines.append("")
    casts, cast_names = _casts(scope)
    missing = set(FUNCTIONS) - reached - cast_names
    if missing:
        raise ValueError(f"no spelling in tools/function_page.py is of {', '.join(sorted(missing))}")
    return "\n".join((*lines, "### Casts", "", *casts))


class _Scope:
    """A table with two columns of every type: with a declared domain, and without."""

    def __init__(self) -> None:
        columns = (
            *(Column(name=f"d_{t.name}", type=t, domain=_domain(t), nullable=False) for t in _COLUMN_TYPES),
            *(Column(name=f"p_{t.name}", type=t, nullable=False) for t in _COLUMN_TYPES),
        )
        table = Table(name="t", relation=("t",), ownership=RowUnit(), columns=columns)
        self._refs = {c.name: ColumnRef(0, c.name, c.type) for c in columns}
        self.domains = Domains(Block(scans=(Scan(0, table),), where=(), keys=(), aggregates=()))

    def bound(self, spelling: str, only: tuple[Family, ...]) -> tuple[Bound, ...]:
        """The spelling with every choice of types it accepts. ValueError if it accepts none."""
        found = []
        for types in product(_COLUMN_TYPES, repeat=2 if "{1}" in spelling else 1):
            if only and tuple(t.family for t in types) != only:
                continue
            with contextlib.suppress(HushError, Unread):
                declared = self.scalar(spelling.format(*(f'"d_{t.name}"' for t in types)))
                plain = self.scalar(spelling.format(*(f'"p_{t.name}"' for t in types)))
                found.append(Bound(types, declared, plain))
        if not found:
            raise ValueError(f"no type of argument is accepted by {spelling}")
        return tuple(found)

    def scalar(self, text: str) -> Scalar:
        """The meaning of one expression. Raises HushError."""
        source = f"SELECT {text}"
        binder = make_binder(lambda node: self._refs[node.name], _CONSTANTS, source)
        (item,) = parse(source).expressions
        return binder.scalar(item)


def _domain(kind: SqlType) -> Domain:
    """Bounds or values that a policy could declare for a column of the type."""
    match kind.family:
        case Family.NUMBER:
            return Bounded(1, 9) if kind.is_integer else Bounded(1.0, 9.0)
        case Family.TIME:
            return Bounded(*_DAY if kind is SqlType.DATE else _HOUR)  # few enough seconds for public groups
        case Family.TEXT:
            return Listed(("Ab", "c"))
        case Family.BOOLEAN:
            return Listed((False, True))
        case Family.INTERVAL:
            return Unknown()


def _functions(scalar: Scalar) -> Iterator[str]:
    if isinstance(scalar, Call):
        yield scalar.function
    for child in children(scalar):
        yield from _functions(child)


# --- one line ---------------------------------------------------------------------------------------------


def _row(form: Form, spelled: tuple[tuple[Bound, ...], ...], domains: Domains) -> str:
    facts = {(_summed(bound, domains), _grouped(bound, domains), _null(bound, domains)) for bound in spelled}
    if len(facts) > 1:
        raise ValueError(f"the spellings of {form.shown} differ, so they need lines of their own")
    every = tuple(b for bound in spelled for b in bound)
    cells = (form.shown, _arguments(every), *facts.pop(), form.note)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _arguments(bound: tuple[Bound, ...]) -> str:
    """The accepted types, each argument's apart where they differ."""
    places = [_types(set(column)) for column in zip(*(b.types for b in bound), strict=True)]
    families = {tuple(t.family for t in b.types) for b in bound}
    if len(places) == 1:
        return places[0]
    if len(families) > 1 and all(len(set(f)) == 1 for f in families):
        return f"two of a kind, {places[0]}"
    if places[0] != places[1]:
        return ", ".join(places)
    return f"two of {places[0]}" if "," in places[0] else f"two {places[0]}s"


def _types(types: Iterable[SqlType]) -> str:
    """A set of types in as few words as possible."""
    left, words = set(types), []
    for word, meant in _WORDS:
        if meant <= left:
            words.append(word)
            left -= meant
    return ", ".join((*words, *(_name(t) for t in SqlType if t in left)))


def _name(kind: SqlType) -> str:
    return _SHORT.get(kind, kind.pg_name)


def _summed(bound: tuple[Bound, ...], domains: Domains) -> str:
    """Whether a numeric result has bounds, so that it can be summed and averaged."""
    numbers = tuple(b for b in bound if b.declared.type.is_number)
    return _told(numbers, lambda scalar: number_range(domains.of(scalar)) is not None)


def _grouped(bound: tuple[Bound, ...], domains: Domains) -> str:
    """Whether groups by the result are public."""
    return _told(bound, lambda scalar: KeyValues(domains, keeps_outside=True).of(scalar) is not None)


def _told(bound: tuple[Bound, ...], holds: Callable[[Scalar], bool]) -> str:
    """always; kept where it holds for arguments with domains only; never."""
    if all(holds(b.plain) for b in bound):
        return "always" if bound else ""
    kept = {b.declared.type for b in bound if holds(b.declared)}
    lost = {b.declared.type for b in bound} - kept
    return "kept" if not lost else "never" if not kept else f"kept: {_types(kept)}"


def _null(bound: tuple[Bound, ...], domains: Domains) -> str:
    """Whether arguments that are present may give NULL."""
    alike = [b for b in bound if len(set(b.types)) == 1] or list(bound)
    if any(domains.may_be_null(b.declared) for b in alike):
        return "possible"
    if any(domains.may_be_null(b.plain) for b in alike):
        return "without bounds"
    return "of mixed types" if any(domains.may_be_null(b.plain) for b in bound) else "never"


# --- casts ------------------------------------------------------------------------------------------------


def _casts(scope: _Scope) -> tuple[list[str], set[str]]:
    """The table of casts, and the functions it stands for."""
    names: set[str] = set()
    sources: dict[tuple[SqlType, ...], list[SqlType]] = {}
    for source in _COLUMN_TYPES:
        accepted = []
        for target in _COLUMN_TYPES:
            try:
                scalar = scope.scalar(f'CAST("p_{source.name}" AS {_name(target)})')
            except (HushError, Unread):
                continue
            names.update(_functions(scalar))
            if target is not source:
                accepted.append(target)
        sources.setdefault(tuple(accepted), []).append(source)
    lines = [
        f"| {', '.join(map(_name, kinds))} | {', '.join(map(_name, targets)) or 'nothing else'} |"
        for targets, kinds in sources.items()
    ]
    return ["| from | to |", "| --- | --- |", *lines], names


# --- the page ---------------------------------------------------------------------------------------------


def written(page: str, made: str) -> str:
    """The page with these tables. ValueError when a marker is missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} must hold the lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"


def main() -> int:
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
