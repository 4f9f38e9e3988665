"""Which constant does a text stand for, and which constants does a query bring along?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from uuid import UUID

from sqlglot import exp

from proxy.sql.algebra import Literal, Null
from proxy.sql.refusal import refuse
from proxy.sqltypes import Family, SqlType, Value


@dataclass(frozen=True, slots=True)
class Elements:
    """The value of an array parameter."""

    items: tuple[Literal | Null, ...]


Bindings = Mapping[int, Literal | Null | Elements]


@dataclass(frozen=True, slots=True)
class Constants:
    """What a query may use besides its text: parameter values by number, and the time of planning."""

    parameters: Bindings
    now: datetime


@dataclass(frozen=True, slots=True)
class Untyped:
    """A string literal whose type comes from what it meets, as in PostgreSQL."""

    text: str


def coerce_text(text: str, wanted: SqlType, node: exp.Expression) -> Literal:
    """A string literal read as `wanted`, as PostgreSQL reads an untyped literal."""
    try:
        return Literal(_read(text, wanted), wanted)
    except (ValueError, InvalidOperation) as error:
        is_said = text.strip().lower() in _SAID and wanted.family is Family.TIME
        hint = _NOW if is_said else _HINTS.get(wanted.family, "Cast the text explicitly.")
        raise refuse(node, f"'{text[:40]}' is not understood as {wanted.pg_name} over private rows", hint) from error


_SAID = frozenset(("now", "today", "yesterday", "tomorrow", "epoch", "infinity", "-infinity"))
_NOW = "Write now(), current_date or current_date - 1; for a time without end leave the condition out."
_HINTS = {
    Family.NUMBER: "Write it in decimal digits.",
    Family.BOOLEAN: "Write true or false.",
    Family.TIME: "Write it like '2024-12-31' or '2024-12-31 23:59:59'.",
}
_TOO_FINE = re.compile(r"[.,]\d{7}")
_BOOLEANS = {"t": True, "true": True, "yes": True, "on": True, "1": True,
             "f": False, "false": False, "no": False, "off": False, "0": False}  # fmt: skip


def _read(text: str, wanted: SqlType) -> Value:
    match wanted.family:
        case Family.TEXT:
            return _read_text(text, wanted)
        case Family.BOOLEAN:
            if text.strip().lower() not in _BOOLEANS:
                raise ValueError(text)
            return _BOOLEANS[text.strip().lower()]
        case Family.NUMBER:
            return _read_number(text.strip(), wanted)
        case Family.TIME:
            return _read_time(text, wanted)
        case Family.INTERVAL:
            raise ValueError(text)


def _read_text(text: str, wanted: SqlType) -> str:
    if wanted is SqlType.UUID:
        return str(UUID(text.strip()))
    return text.rstrip(" ") if wanted is SqlType.BPCHAR else text


def _read_number(text: str, wanted: SqlType) -> Value:
    number = Decimal(text)
    if not math.isfinite(float(number)):
        raise ValueError(text)
    if wanted.is_integer:
        whole = int(text)
        if not -(2**63) <= whole < 2**63:
            raise ValueError(text)
        return whole
    return number if wanted is SqlType.NUMERIC else float(number)


def _read_time(text: str, wanted: SqlType) -> Value:
    if _TOO_FINE.search(text):
        raise ValueError(text)  # PostgreSQL rounds to microseconds, Python cuts
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is not None and not 1 < moment.year < 9999:
        raise ValueError(text)  # may have no local time in the policy's zone
    if moment.tzinfo is not None and wanted is not SqlType.TIMESTAMPTZ:
        moment = moment.replace(tzinfo=None)
    return moment.date() if wanted is SqlType.DATE else moment
