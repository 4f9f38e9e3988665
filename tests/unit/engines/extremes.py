"""What is hardest to compute with, type by type: rows of the shop's tables in which every value meets many others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle, islice

_ROWS = 180
_TEXTS = r"'' '\' '%' 'a' repeat('x',20000) 'ß_İ' 'paid' 'free' '2024-02-30' '-5' '1e400' 'nan'"
_WHOLE = {
    "integer": "0 1 -1 2147483647 -2147483648",
    "smallint": "0 1 -32768 32767",
    "bigint": "0 1 -1 9223372036854775807 -9223372036854775808",
    "boolean": "true false",
}
_DOUBLES = (
    "0 '-0' 'NaN' 'Infinity' '-Infinity' 1.7976931348623157e308 -1.7976931348623157e308 5e-324 -5e-324 1e-200 1e200"
    " -49.5"
)
#: Texts of values by type; a colon stands for a blank. numeric without a scale holds what no double does.
IN_POSTGRES = {
    **_WHOLE,
    "double precision": _DOUBLES,
    "real": "'NaN' 'Infinity' 3.4e38 1e-45 1.5",
    "numeric": "0 'NaN' 'Infinity' '-Infinity' 1e400 -1e400 1e-400 1e130000 5.5 0.0000000001",
    "numeric(300,150)": "0 'NaN' 9.9e149 -9.9e149 1e-150 -1e-150 5.5 0.0000000001 -49.5",
    "date": "'infinity' '-infinity' '4713-01-01:BC' '5874897-12-31' '2024-02-29' '0001-01-01' '294277-01-01'",
    "timestamp without time zone": "'infinity' '-infinity' '4713-01-01:BC' '294276-12-31:23:59:59.999999' '2024-02-29'",
    "timestamp with time zone": "'infinity' '-infinity' '4713-01-01:BC' '294276-12-31:23:59:59.999999' '2024-02-29'",
    "text": _TEXTS,
}
_TIMES = "'infinity' '-infinity' '290309-12-22:(BC):00:00:00' '294247-01-10:04:00:54.775806' '2024-02-29'"
IN_DUCKDB = {
    **_WHOLE,
    "double": _DOUBLES,
    "float": "'NaN' 'Infinity' '-Infinity' 3.4e38 1e-45 1.5",
    "decimal(12,2)": "0 9999999999.99 -9999999999.99 5.5 0.01",
    "date": "'infinity' '-infinity' '5877642-06-25:(BC)' '5881580-07-10' '2024-02-29' '0001-01-01' '294247-01-10'",
    "timestamp": _TIMES,
    "timestamp with time zone": _TIMES,
    "varchar": _TEXTS,
}


def insertion(table: str, columns: Iterable[tuple[str, str]], texts: Mapping[str, str]) -> str:
    """A statement that fills a table. columns: names and types."""
    values = [_values(table, name, texts.get(kind, "").split()) for name, kind in columns]
    rows = (f"({', '.join(row)})" for row in islice(zip(*values, strict=False), _ROWS))
    return f"insert into {table} values {', '.join(rows)}"


def _values(table: str, column: str, texts: list[str]) -> Iterator[str]:
    """A column's values: cycles of different lengths, so that each meets each. A few units have many rows."""
    if column == "user_id" and table == "users":
        return (str(i) for i in range(_ROWS))
    if column in ("user_id", "User", "order_id"):
        return cycle(str(i) for i in (*range(1, 30), 1, 1))
    assert texts
    found = ["NULL", *(text.replace(":", " ", 2 if "(BC)" in text else 1) for text in texts)]
    length = len(found) + sum(map(ord, column)) % 5
    return cycle(found[i % len(found)] for i in range(length))
