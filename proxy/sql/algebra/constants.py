"""Which constants does a query bring along?

Its parameters, the time of planning, and the values that PostgreSQL has read in texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from proxy.errors import Unsupported
from proxy.sql.algebra.nodes import Literal, Null, Span
from proxy.sqltypes import BY_ARRAY_OID, BY_OID

TIME_OID = 1083
ANY_MODIFIER = -1


@dataclass(frozen=True, slots=True)
class Elements:
    """The value of an array; of several dimensions, all its elements in order."""

    items: tuple[Literal | Null, ...]
    dimensions: int = 1


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """The value of a time without a date."""

    microseconds: int


@dataclass(frozen=True, slots=True)
class Unheld:
    """A value that PostgreSQL has and no private engine holds, and why."""

    reason: str


#: What a parameter or a text is.
Given = Literal | Null | Span | Elements | TimeOfDay | Unheld
Bindings = Mapping[int, Given]


@dataclass(frozen=True, slots=True)
class InputText:
    """A text that PostgreSQL's input function of a type is to read. modifier: of the type, as intervals have it."""

    text: str
    oid: int
    modifier: int = ANY_MODIFIER


_CLOCK = re.compile("now|today|tomorrow|yesterday", re.IGNORECASE | re.ASCII)
Readings = Mapping[InputText, Given]
#: The settings by which PostgreSQL reads texts.
STYLE_NAMES = ("DateStyle", "IntervalStyle", "TimeZone", "timezone_abbreviations", "array_nulls")


def names_clock(text: str) -> bool:
    """Whether PostgreSQL may find the clock's time in a text of a time: its words for that stand there as they are."""
    return _CLOCK.search(text) is not None


@dataclass(frozen=True, slots=True)
class InputStyle:
    """What a session's settings are by which texts are read: name and value of those that are known."""

    values: tuple[tuple[str, str], ...] = ()


class Unread(Exception):
    """Before a statement can be understood, PostgreSQL is to read these texts: see `Constants.readings`."""

    def __init__(self, texts: tuple[InputText, ...]) -> None:
        super().__init__(texts)
        self.texts = texts


def name_of_type(oid: int) -> str:
    """PostgreSQL's name of a type that a parameter may have."""
    kind, element = BY_OID.get(oid), BY_ARRAY_OID.get(oid)
    return kind.pg_name if kind is not None else f"{element.pg_name}[]" if element is not None else "time"


def not_understood(unread: Unread) -> Unsupported:
    """The refusal where there is nobody to read the texts."""
    text, name = unread.texts[0].text, name_of_type(unread.texts[0].oid)
    form = _PLAIN_FORMS.get(name, "'{a,b}'" if name.endswith("]") else "decimal digits, such as 40 or 40.5")
    return Unsupported(f"'{text[:40]}' is not understood as {name} without a server", hint=f"Write {form}.")


_PLAIN_FORMS = MappingProxyType({
    "boolean": "true or false", "date": "'2024-12-31'", "time": "'17:30' or '17:30:59'",
    "timestamp without time zone": "'2024-12-31 23:59:59'", "timestamp with time zone": "'2024-12-31 23:59:59+00'",
    "interval": "'3 months', '2 days' or '10:30:00'", "uuid": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Constants:
    """What a query may use besides its text: parameters by number, the time of planning, and texts that were read.

    now: in the policy's time zone, in which all times of private rows are shown.
    session_zone: the name of the client's, by which constants are meant; "" for the policy's.
    """

    parameters: Bindings
    now: datetime
    readings: Readings = field(default_factory=lambda: MappingProxyType({}))
    session_zone: str = ""


@dataclass(frozen=True, slots=True)
class Untyped:
    """A string literal whose type comes from what it meets, as in PostgreSQL."""

    text: str
