"""Which SQL types exist for columns and expressions, and how does PostgreSQL call them?

Holds names, oids and families only; values are converted where they are read or rendered.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

# A value of a policy bound, a literal or a group key. bool before int: bool is a subclass.
Value = bool | int | float | Decimal | str | date | datetime


class Family(enum.Enum):
    """Types that mix without an explicit cast."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    TIME = "time"
    INTERVAL = "interval"


@dataclass(frozen=True, slots=True)
class _Row:
    pg_name: str
    oid: int
    array_oid: int
    family: Family
    size: int


class SqlType(enum.Enum):
    """A PostgreSQL type that private columns and expressions may have."""

    BOOL = _Row("boolean", 16, 1000, Family.BOOLEAN, 1)
    INT2 = _Row("smallint", 21, 1005, Family.NUMBER, 2)
    INT4 = _Row("integer", 23, 1007, Family.NUMBER, 4)
    INT8 = _Row("bigint", 20, 1016, Family.NUMBER, 8)
    NUMERIC = _Row("numeric", 1700, 1231, Family.NUMBER, -1)
    FLOAT4 = _Row("real", 700, 1021, Family.NUMBER, 4)
    FLOAT8 = _Row("double precision", 701, 1022, Family.NUMBER, 8)
    TEXT = _Row("text", 25, 1009, Family.TEXT, -1)
    VARCHAR = _Row("character varying", 1043, 1015, Family.TEXT, -1)
    BPCHAR = _Row("character", 1042, 1014, Family.TEXT, -1)
    UUID = _Row("uuid", 2950, 2951, Family.TEXT, 16)
    DATE = _Row("date", 1082, 1182, Family.TIME, 4)
    TIMESTAMP = _Row("timestamp without time zone", 1114, 1115, Family.TIME, 8)
    TIMESTAMPTZ = _Row("timestamp with time zone", 1184, 1185, Family.TIME, 8)
    INTERVAL = _Row("interval", 1186, 1187, Family.INTERVAL, 16)

    def __repr__(self) -> str:
        return self.name

    @property
    def pg_name(self) -> str:
        return self.value.pg_name

    @property
    def oid(self) -> int:
        return self.value.oid

    @property
    def array_oid(self) -> int:
        return self.value.array_oid

    @property
    def family(self) -> Family:
        return self.value.family

    @property
    def is_integer(self) -> bool:
        return self in (SqlType.INT2, SqlType.INT4, SqlType.INT8)

    @property
    def is_number(self) -> bool:
        return self.family is Family.NUMBER

    @property
    def is_text(self) -> bool:
        return self.family is Family.TEXT

    @property
    def is_time(self) -> bool:
        return self.family is Family.TIME


# Spellings accepted in a policy file and in casts; the first of each type is the canonical one.
TYPE_NAMES: dict[str, SqlType] = {
    "boolean": SqlType.BOOL,
    "bool": SqlType.BOOL,
    "smallint": SqlType.INT2,
    "int2": SqlType.INT2,
    "integer": SqlType.INT4,
    "int": SqlType.INT4,
    "int4": SqlType.INT4,
    "bigint": SqlType.INT8,
    "int8": SqlType.INT8,
    "numeric": SqlType.NUMERIC,
    "decimal": SqlType.NUMERIC,
    "real": SqlType.FLOAT4,
    "float4": SqlType.FLOAT4,
    "double precision": SqlType.FLOAT8,
    "double": SqlType.FLOAT8,
    "float8": SqlType.FLOAT8,
    "float": SqlType.FLOAT8,
    "text": SqlType.TEXT,
    "varchar": SqlType.VARCHAR,
    "character varying": SqlType.VARCHAR,
    "char": SqlType.BPCHAR,
    "character": SqlType.BPCHAR,
    "uuid": SqlType.UUID,
    "date": SqlType.DATE,
    "timestamp": SqlType.TIMESTAMP,
    "timestamp without time zone": SqlType.TIMESTAMP,
    "timestamptz": SqlType.TIMESTAMPTZ,
    "timestamp with time zone": SqlType.TIMESTAMPTZ,
}

BY_OID: dict[int, SqlType] = {t.oid: t for t in SqlType}
BY_ARRAY_OID: dict[int, SqlType] = {t.array_oid: t for t in SqlType}
