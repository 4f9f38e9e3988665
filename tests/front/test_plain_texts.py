"""A text that is read without asking means to PostgreSQL what it means here, whatever the session's settings are.

Many texts of each type are made up; those that are plain are read by a PostgreSQL too, in several styles.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from proxy.front.reader import FrontReader
from proxy.session.asking.binary_values import value_of
from proxy.session.asking.parameters import read_parameters, unread
from proxy.session.contract import Parameter
from proxy.sql.algebra.constants import TIME_OID, Given, InputStyle, InputText
from proxy.sqltypes import SqlType
from tests.postgres_server import private_server

STYLES = tuple(
    InputStyle((("DateStyle", date), ("IntervalStyle", interval), ("TimeZone", zone), ("array_nulls", nulls)))
    for date, interval, zone, nulls in (
        ("ISO, MDY", "postgres", "UTC", "on"), ("SQL, DMY", "sql_standard", "America/New_York", "off"),
        ("German, YMD", "iso_8601", "Asia/Kolkata", "on"), ("Postgres, DMY", "postgres_verbose", "<-03>+03", "off"),
    )
)  # fmt: skip
COUNT = 2500
Maker = Callable[[random.Random], str]


def one_of(*texts: str) -> Maker:
    return lambda random: random.choice(texts)


def digits(least: int, most: int) -> Maker:
    return lambda random: "".join(random.choices(string.digits, k=random.randint(least, most)))


def joined(*parts: Maker) -> Maker:
    return lambda random: "".join(part(random) for part in parts)


def maybe(part: Maker) -> Maker:
    return lambda random: part(random) if random.random() < 0.5 else ""


def many(part: Maker, between: str, most: int) -> Maker:
    return lambda random: between.join(part(random) for _ in range(random.randint(1, most)))


def two(most: int) -> Maker:
    return lambda random: f"{random.randint(0, most):02}"


SIGN, BLANK = one_of("", "", "+", "-"), one_of("", " ", "  ")
WHOLE = joined(SIGN, digits(1, 20))
EXPONENT = joined(one_of("e", "E"), SIGN, digits(1, 3))
NUMBER = joined(SIGN, digits(0, 12), maybe(one_of(".")), digits(0, 9), maybe(EXPONENT))
YEARS = one_of("2024", "1999", "0099", "2000", "9998", "0004", "24", "12024")
DATE = joined(YEARS, one_of("-", "-", "-", "/"), two(13), one_of("-"), two(31))
SECONDS = joined(one_of(":"), two(60), maybe(joined(one_of("."), digits(1, 7))))
CLOCK = joined(two(24), one_of(":"), two(60), maybe(SECONDS))
OFFSET = one_of("Z", "+00", "-05", "+05:30", "-0800", "+15:59", "+16", " +02", " Z", " -03:30", "+2", " UTC")
MOMENT = joined(DATE, maybe(joined(one_of(" ", "T", "  "), CLOCK)), maybe(OFFSET))
UNITS = one_of(
    "day", "days", "hour", "hours", "mins", "minute", "sec", "secs", "second", "month", "mons", "years", "week",
    "weeks", "microseconds", "milliseconds", "MONTHS", "quarter", "s", "decade",
)  # fmt: skip
PART = joined(SIGN, digits(1, 5), maybe(joined(one_of("."), digits(1, 6))), BLANK, UNITS)
HOURS = joined(SIGN, digits(1, 4), one_of(":"), two(60), maybe(SECONDS))
SPAN = joined(maybe(many(PART, " ", 3)), BLANK, maybe(HOURS), maybe(PART))
HEX = one_of(*string.hexdigits)
UUID = joined(*(joined(*(HEX,) * n, one_of("-")) for n in (8, 4, 4, 4)), *(HEX,) * 11, maybe(HEX))
BOOLEAN = one_of(
    "t", "T", "true", "TRUE", "f", "False", "yes", "No", "on", "OFF", "1", "0", "y", "n", "tr", "of", "o", " t"
)  # fmt: skip
ELEMENT = one_of("a", '"b c"', '""', "NULL", '"NULL"', "x y", " 7", '"{"', "{1}", r"\a", "é", "null")


def array(element: Maker) -> Maker:
    listed = maybe(many(lambda random: random.choice((element, element, element, ELEMENT))(random), ",", 4))
    return joined(one_of("{", "{", "{", " {"), listed, one_of("}", "}", "}", ",}"))


MAKERS: dict[int, Maker] = {
    SqlType.BOOL.oid: BOOLEAN, SqlType.INT2.oid: WHOLE, SqlType.INT4.oid: WHOLE, SqlType.INT8.oid: WHOLE,
    SqlType.NUMERIC.oid: NUMBER, SqlType.FLOAT4.oid: NUMBER, SqlType.FLOAT8.oid: NUMBER, SqlType.UUID.oid: UUID,
    SqlType.DATE.oid: MOMENT, SqlType.TIMESTAMP.oid: MOMENT, SqlType.TIMESTAMPTZ.oid: MOMENT, TIME_OID: CLOCK,
    SqlType.INTERVAL.oid: SPAN, SqlType.BPCHAR.oid: joined(digits(0, 3), BLANK), SqlType.INT4.array_oid: array(WHOLE),
    SqlType.TEXT.array_oid: array(ELEMENT), SqlType.BOOL.array_oid: array(BOOLEAN),
    SqlType.DATE.array_oid: array(MOMENT),
}  # fmt: skip


@pytest.fixture(scope="module")
def reader() -> Iterator[FrontReader]:
    made = FrontReader(partial(private_server().owner, "postgres"))
    yield made
    made.close()


def plain_values(oid: int) -> dict[InputText, Given]:
    """What made up texts stand for, as far as nobody has to be asked."""
    seeded, found = random.Random(oid), dict[InputText, Given]()
    for _ in range(COUNT):
        text = MAKERS[oid](seeded)
        parameters = (Parameter(oid=oid, format=0, data=text.encode()),)
        if not unread(parameters):
            found[InputText(text, oid)] = read_parameters(parameters)[1]
    return found


@pytest.mark.parametrize("oid", MAKERS)
def test_a_plain_text_means_the_same_to_postgresql_in_every_style(reader: FrontReader, oid: int) -> None:
    plain = plain_values(oid)
    assert len(plain) >= 10
    for style in STYLES:
        read = reader.read(tuple(plain), style)
        for (text, here), data in zip(plain.items(), read, strict=True):
            assert value_of(oid, data) == here, (text, style)
