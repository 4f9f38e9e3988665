"""Texts that PostgreSQL reads as values, and statements that depend on what it reads.

Data alone: each text is one that programs send, or that people write, and few are in the form in which PostgreSQL
itself would write the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement with one parameter of a type, and texts for it."""

    kind: str
    oid: int
    sql: str
    texts: tuple[str, ...]

    def literal(self, text: str) -> str:
        """The statement with the text written in the parameter's place."""
        quoted = text.replace("'", "''")
        return self.sql.replace("$1", f"'{quoted}'::{self.kind}")


#: The settings by which PostgreSQL reads texts: DateStyle, IntervalStyle, TimeZone.
STYLES = (
    ("ISO, MDY", "postgres", "UTC"),
    ("SQL, DMY", "sql_standard", "America/New_York"),
    ("German", "iso_8601", "<+05:30>-05:30"),
)
_TIMES = (
    "2024-06-01", "20240601", "2024-06-01 +00", "2024-06-01 12:00", "2024-06-01T12:00:00.000+02:00",
    "2024-06-01T12:00:00Z", " 2024-06-01 12:00:00 ", "2024-06-01 12:00:00.1234567", "20240601 120000",
    "20240601T120000", "2024-06-01 24:00", "June 1, 2024", "Sat Jun 01 12:00:00 2024", "01/06/2024", "1.6.2024 13:00",
    "2024-06-01 12:00 PM", "2024-06-01 01:30 PM", "2024.153", "J2460463", "2024-06-01 allballs", "epoch",
    "2024-06-01 12:00:00 Europe/Zurich", "2024-06-01 12:00 PST", "99-06-01", "24-06-01", "2024-13-01", "soon", "",
    "2024-03-10 02:30", "2024-11-03 01:30", "today", "Yesterday", "tomorrow 04:00", "NOW",
)  # fmt: skip
_DATES = tuple(text.replace("2024", "2021").replace("24-", "21-") for text in _TIMES)
ASKED = (
    Asked("boolean", 16, "SELECT count(*) FROM users WHERE (age > 30) = $1", (
        "t", "TRUE", "1", "yes", "on", " true ", "Y", "f", "FALSE", "0", "no", "off", "of", "o", "2", "wahr")),
    Asked("smallint", 21, "SELECT count(*) FROM users WHERE kids = $1", ("2", " 2", "0x2", "40000", "2.0")),
    Asked("integer", 23, "SELECT count(*) FROM users WHERE age > $1", (
        "40", "+40", "-40", " 40 ", "\t40\n", "040", "0x28", "0X28", "0o50", "0b101000", "4_0", "4__0", "40.5", "4e1",
        "٤٠", "2147483648", "")),
    Asked("bigint", 20, "SELECT count(*) FROM users WHERE steps > $1", (
        "5000000", "5_000_000", "0x4C4B40", "9223372036854775808")),
    Asked("numeric", 1700, "SELECT count(*) FROM orders WHERE amount > $1", (
        "10", "1e1", " 10.50 ", ".5", "5.", "1_0", "0x10", "1E+2", "1e1000000", "-0", "ten")),
    Asked("double precision", 701, "SELECT count(*) FROM items WHERE price > $1", (
        "10", "0x1p3", "1e1", " 10 ", "-.5e1", "5.", "1_0", "1e400", "1e-400", "4e-320", "ten")),
    Asked("real", 700, "SELECT count(*) FROM users WHERE height > $1", (
        "1.6", "1.7", "0x1.9p0", "1.75", " 1.7 ", "1e40", "tall")),
    Asked("real", 700, "SELECT count(*) FROM users WHERE height::float8 + 0.2 > $1", ("1.9", "1.7")),
    Asked("text", 25, "SELECT count(*) FROM users WHERE plan = $1", ("pro", " pro", "PRO")),
    Asked("date", 1082, "SELECT count(*) FROM users WHERE joined > $1", _DATES),
    Asked("timestamp", 1114, "SELECT count(*) FROM orders WHERE at > $1", _TIMES),
    Asked("timestamptz", 1184, "SELECT count(*) FROM users WHERE seen > $1", _TIMES),
    Asked("time", 1083, "SELECT count(*) FROM orders WHERE at::time < $1", (
        "17:30", "5:30 PM", "173000", "17:30:15.5", "17:30+02", "24:00", "allballs", "17:30:15.12345678", "noonish")),
    Asked("interval", 1186, "SELECT count(*) FROM orders WHERE at > timestamp '2025-12-01' - $1", (
        "1 year 2 months", "1-2", "P1Y2M", "P1Y2M3DT4H", "1 day 2:03:04", "-1 day 2:03:04", "-1 day 2 hours",
        "@ 1 year ago", "90", "100 days", "1.5 months", "2 weeks 3 days", "1 decade", "400 days 25:00", "1y 2mon",
        "1 day 12:30:00", "1 years 2 mons 3 days 4 hours 5 mins 6.5 secs", "40 days 3600.000000 seconds", "x")),
    Asked("interval", 1186, "SELECT count(*) FROM orders WHERE timestamp '2025-12-01' - at > $1", ("100 days", "1-2")),
    Asked("integer[]", 1007, "SELECT count(*) FROM users WHERE age = ANY ($1)", (
        "{20,30}", "{ 20 , 30 }", '{"20",30}', "{0x14}", "{{20},{30}}", "[2:3]={20,30}", "{20,NULL}", "{}", "{20",
        "{a}")),
    Asked("text[]", 1009, "SELECT count(*) FROM users WHERE plan = ANY ($1)", (
        "{pro,team}", '{"pro", team }', r"{p\ro}", '{"PRO"}', "{null}", '{"null"}')),
    Asked("date[]", 1182, "SELECT count(*) FROM users WHERE joined = ANY ($1)", (
        "{2020-01-12,20200123}", "{01/02/2020}")),
)  # fmt: skip

#: What PostgreSQL reads and no private engine holds.
BEYOND = (
    Asked("date", 1082, "SELECT count(*) FROM users WHERE joined > $1", (
        "2021-06-01 BC", "infinity", "-infinity", "20000-01-01")),
    Asked("timestamp", 1114, "SELECT count(*) FROM orders WHERE at > $1", ("0044-03-15 12:00 BC", "Infinity")),
    Asked("timestamptz", 1184, "SELECT count(*) FROM users WHERE seen > $1", ("infinity", "99999-01-01 00:00+00")),
    Asked("interval", 1186, "SELECT count(*) FROM orders WHERE at > timestamp '2025-12-01' - $1", ("infinity",)),
    Asked("numeric", 1700, "SELECT count(*) FROM orders WHERE amount > $1", ("NaN", "inf", "1e1000")),
    Asked("double precision", 701, "SELECT count(*) FROM items WHERE price > $1", ("NaN", "-Infinity")),
    Asked("real", 700, "SELECT count(*) FROM users WHERE height > $1", ("nan",)),
    Asked("double precision[]", 1022, "SELECT count(*) FROM items WHERE price = ANY ($1)", ("{1,NaN}",)),
)  # fmt: skip


def every(asked: Sequence[Asked]) -> list[tuple[Asked, str]]:
    """Each statement with each of its texts."""
    return [(one, text) for one in asked for text in one.texts]
