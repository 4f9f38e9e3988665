"""Functions with arguments that are hard for one engine or the other, as data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from proxy.sql.algebra.nodes import Span
from proxy.sql.conditions import patterns
from proxy.sql.literals.formats import pieces_of
from proxy.sqltypes import SqlType

Constant = str | int | float | Span
NUMERIC, DOUBLE, INT8, TEXT = SqlType.NUMERIC, SqlType.FLOAT8, SqlType.INT8, SqlType.TEXT
MOMENT, DATE = SqlType.TIMESTAMP, SqlType.DATE

_MOMENTS = (
    "2024-02-29 13:14:15.123456", "2024-01-01", "2023-12-31 23:59:59.999999", "1999-12-31", "2000-01-01", "2001-01-01",
    "1969-12-31 23:59:59.5", "0001-01-01", "0009-06-01", "0099-12-31", "0100-01-01", "9999-12-31 23:59:59",
    "2024-03-31 02:30:00", "2024-10-27 02:30:00", "2020-12-30", "2021-01-03", "infinity", "-infinity",
)  # fmt: skip
_WRITTEN = (
    "2024-01-05", "2024-1-5", "2024/01/05", "2024/1-5", "2024-02-30", "2023-02-29", "2024-02-29", "0000-01-01",
    "0001-01-01", "9999-12-31", "2024-01-05 10:00", "2024-01-05T10:00:00Z", "2024-01-05 10:00:00+02",
    "2024-01-05 10:00:00.5", "2024-01-05 23:59:59.999999", " 2024-01-05 ", "epoch", "infinity", "2024-13-01",
    "24-01-05", "2024-01-05 24:00:00", "2024-01-05 9:05:07-14:59", "2024-01-05 10:00:60", "5", "-5", "+5", " 5 ",
    "\t5\n", "5\x0b", "007", "0" * 40 + "7", "-0", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "32768", "2147483648", "12.5", ".5", "5.", "+.5", "-.5e1", "1e5",
    "1E-5", "1e149", "nan", "NaN", "inf", "-Infinity", "INFINITY", "1_000", "0x10", "1e", "e5", "--5", "1 2",
    "0e99999", "1e-99999", "0.000", "1" * 40, "0." + "0" * 100 + "1", "123456789.123456789123456789", "1e400",
    "-1e400", "1e200", "-1.7e308", "1e-200", "-1e99999", "1e308", "9" * 308, "9" * 310,
)  # fmt: skip
_SPELLED = (
    "", "a", "Ab c", "ZÜRICH", "Straße ß", "İstanbul", "ΟΔΟΣ ς", "ǆ ǅ Ǆ", "ŉ", "K ſ k s", "a-b-c", "-", "--", "a--b",
    "o'HARA 1ST éa_x", "ⓐb", "x²y", "a$b$", "a\nb", "aaa", "AAA", "É" * 999, "日本 語", "ab@cd@ef", "Zed_9 9z", "a.b",
    "[x]", "\\", "%", "_", "k", "K", "S", "ſ", "z", "xx", "ABab", "^", "Pro", "]", "}{",
)  # fmt: skip

#: The values of each column, by the type in which engines compute it.
VALUES: dict[SqlType, tuple[object, ...]] = {
    DOUBLE: (
        0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 1.5, 0.1, 0.3, 1.005, 2.675, -1.005, 99.995, 1234567.891, 1e14, 1e15,
        -7.25, 123456789012.345, 1e-5, 1e100, 9.99, 49.5, 100.0, 7.0, 1 / 3, 2.0**53, 0.49999999999999994, 1e149,
        5e-324, 1e-200, float("inf"), -float("inf"), float("nan"), 1e200, -1.7976931348623157e308,
        1e308, 9e307, 1e300, -1e300, 1e160, 1e-160, -1e-300, 2.2250738585072014e-308, 3e-310,
    ),
    INT8: (
        0, 1, -1, 2, 7, 10, 12, 13, 29, 30, 31, 2024, 9999, 10000, -5, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63),
    ),
    TEXT: (*_SPELLED, *_WRITTEN, "x" * 20_000, "é" * 20_000, "5" * 20_000, " " * 20_000 + "1"),
    MOMENT: _MOMENTS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Called:
    """One function of columns of these types, followed by constants."""

    function: str
    columns: tuple[SqlType, ...]
    constants: tuple[tuple[Constant, SqlType], ...] = ()

    @property
    def is_of_spans(self) -> bool:
        """Whether the constant is a span; it stands between the two columns."""
        return any(isinstance(value, Span) for value, _ in self.constants)


def calls() -> Iterator[Called]:
    yield from _digits()
    yield from _times()
    yield from _spelled()
    yield from _patterns()


def _digits() -> Iterator[Called]:
    for kind in (DOUBLE, INT8):
        for digits in (0, 1, 2, 6, 20):
            yield from (Called(f"{name} digits", (kind,), ((digits, INT8),)) for name in ("round", "trunc"))
            yield from (Called(f"{name} tens", (kind,), ((-digits, INT8),)) for name in ("round", "trunc") if digits)
        yield from (Called("power", (kind,), ((n, NUMERIC),)) for n in (0, 2, -1, 0.5, -0.5, 3, 1 / 3, 100, 1e-200))
        yield from (Called(name, (kind,)) for name in ("degrees", "radians"))
        for low, high, count in ((0, 100, 10), (-100.5, 400.25, 6), (0, 1, 3), (-1e15, 1e15, 100)):
            ends = ((low, NUMERIC), (high, NUMERIC), (count, INT8))
            yield from (Called(name, (kind,), ends) for name in ("width_bucket", "width_bucket numeric"))
        yield from (Called(name, (kind, DOUBLE)) for name in "+-*/%")
        yield from (Called(name, (kind,)) for name in ("sin", "cos", "tan", "atan", "floor", "trunc", "sign", "sqrt"))
        yield Called("to_timestamp", (kind,))
    yield from (Called(f"cast text to {n}", (TEXT,)) for n in ("smallint", "integer", "bigint", "numeric", "date",
                                                               "double precision", "timestamp"))  # fmt: skip


def _times() -> Iterator[Called]:
    for unit in ("decade", "century", "millennium"):
        yield from (Called(f"{name} {unit}", (MOMENT,)) for name in ("extract", "date_trunc"))
    for written in ("YYYY-MM-DD HH24:MI:SS.MS", "IYYY-IW-ID", "YY Mon Dy DDD", "HH12:MI AM", "FMMonth FMDay", "US",
                    "FMMM/FMDD FMHH24 FMHH12 FMMI FMSS", '"its" YYYY%'):  # fmt: skip
        pieces = (p.directives for p in pieces_of(written) if not p.number)
        yield from (Called("to_char", (MOMENT,), ((p, TEXT),)) for p in pieces)
    for zone in ("Europe/Zurich", "America/New_York", "Australia/Lord_Howe"):
        yield Called("local time", (MOMENT,), (("UTC", TEXT), (zone, TEXT)))
        yield Called("instant", (MOMENT,), ((zone, TEXT), ("UTC", TEXT)))
    for stride in (1, 1_000_000, 30 * 86_400_000_000, 2**53 - 1, 1_234_567):
        yield Called("date_bin", (MOMENT,), ((stride, INT8), ("2001-02-03 04:05:06.789", MOMENT)))
    for span in (Span(0, 1, 0), Span(1, 0, 0), Span(0, 0, 3_600_000_000), Span(1, -3, 5), Span(0, 0, 1)):
        yield from (Called(f"time {sign} intervals", (MOMENT, INT8), ((span, SqlType.INTERVAL),)) for sign in "+-")
    yield Called("make_date", (INT8, INT8, INT8))


def _spelled() -> Iterator[Called]:
    yield from (Called(name, (TEXT,)) for name in ("lower", "upper", "initcap"))
    likes = ("a%", "%Z_r%", "stra_e%", "%ß%", "i%", "k%", "%ſ%", "o'hara%", "\\%", "%é%", "")
    yield from (Called("ilike", (TEXT,), ((pattern, TEXT),)) for pattern in likes)


def _patterns() -> Iterator[Called]:
    for pattern in ("^[a-z]+$", "k", "s", "[a-z]$", "[^a-z]", "[^k]", "[A-J]", "s+", "(a|b)-", "^$", ".", "a.b", "[^^]",
                    "\\[x\\]", "[0-9]{4}", "\\d", "[_.-]", "^x{1,3}$", "a$|^z", "(ab){2,3}|z", "\\$", "[$^]", "^",
                    "([a-z]{1,9}){1,9}$"):  # fmt: skip
        patterns.check_regular(pattern)
        yield from (Called(name, (TEXT,), ((pattern, TEXT),)) for name in ("matches", "matches, any case"))
    for pattern, group in (("^([a-z]+)-", 1), ("@(.*)$", 1), ("[0-9]+", 0), ("^.*@(.*)$", 1), ("([0-9]+)", 0), ("é", 0),
                           ("^(a)", 1), ("-(.)", 1)):  # fmt: skip
        patterns.check_extent(pattern)
        yield Called("extracted", (TEXT,), ((pattern, TEXT), (group, INT8)))
    for pattern, new in (("[^A-Za-z]", ""), ("a", "[\\0]"), ("([a-z])-", "<\\1>"), ("^a", "b"), ("[0-9]+", "#")):
        replaced = ((pattern, TEXT), (new, TEXT))
        yield from (Called(name, (TEXT,), replaced) for name in ("replaced match", "replaced matches"))
    for mark, number in (("-", 1), ("-", 2), ("-", -1), ("-", -2), ("aa", 1), ("aa", 2), (" ", 3), ("@", -3)):
        given = ((patterns.of_split(mark, number), TEXT), (mark, TEXT), (number, INT8))
        yield Called("field", (TEXT,), given)


def generated(count: int, seed: int) -> dict[SqlType, tuple[object, ...]]:
    """Values made by chance: texts of pieces that patterns and casts know, numbers of every size, times of all years.

    The same for the same seed.
    """
    chance = random.Random(seed)
    pieces = [*_SPELLED, *(w for w in _WRITTEN if len(w) < 50), *"+-.eE0123456789 :/TZ\t"]

    def number() -> float:
        share = round(chance.random(), chance.randint(0, 17))
        return chance.choice((-share, share)) * 10.0 ** chance.randint(-320, 308)

    def moment() -> str:
        year, month, day = chance.choice((chance.randint(1, 9999), 2024)), chance.randint(1, 12), chance.randint(1, 28)
        second = Decimal(chance.randint(0, 59_999_999)) / 1_000_000
        return f"{year:04}-{month:02}-{day:02} {chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{second}"

    return {
        DOUBLE: tuple(number() for _ in range(count)),
        INT8: tuple(chance.randint(-(2**63), 2**63 - 1) >> chance.randint(0, 63) for _ in range(count)),
        TEXT: tuple("".join(chance.choices(pieces, k=chance.randint(0, 8))) for _ in range(count)),
        MOMENT: tuple(moment() for _ in range(count)),
    }
