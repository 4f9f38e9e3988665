"""Does a server compute what the spellings of `sql.render.spark` rest on?

Servers that speak Spark's protocol accept settings that they ignore, so a setting that was accepted proves nothing.
Every session asks these constants first; one that answers otherwise is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proxy.engines.base import EngineStopped
from proxy.engines.spark_client import SparkConnection
from proxy.errors import Failure
from proxy.sql.render.spark.dialect import SPARK

_MOST_BYTES = 1 << 20
_HOSTILE = 'it\'s \\ "x" `y` \n'
_ZERO = "CASE WHEN zero <> 0 THEN zero END"

#: What is asked of one row with the columns `big`, `zero`, `none` and `hostile`, and what a server must answer.
PROBES: Mapping[str, tuple[tuple[str, object], ...]] = MappingProxyType({
    "sums of whole numbers": (
        ("try_add(big, 1L)", None), ("try_multiply(big, 2L)", None),
        ("sum(CAST(big AS DECIMAL(20,0))) OVER ()", 2**63 - 1),
        ("CAST(big AS DECIMAL(38,0)) * 1000000", (2**63 - 1) * 1_000_000),
    ),
    "zero": ((f"1e0 / {_ZERO}", None), (f"1e0 / CAST({_ZERO.replace('zero', '(zero + 0e0)')} AS DOUBLE)", None)),
    "NULL": (("none <=> NULL", True), ("least(none, 2)", 2), ("greatest(none, 2)", 2)),
    "casts": (
        ("try_cast(-2.9e0 AS BIGINT)", -2), ("try_cast(double('NaN') AS BIGINT)", None),
        ("try_cast(1e30 AS BIGINT)", None), ("try_cast('x' AS BIGINT)", None), ("try_cast('2024-02-30' AS DATE)", None),
    ),
    "rounding": (
        ("round(2.5e0)", 3.0), ("round(-2.5e0)", -3.0), ("bround(2.5e0)", 2.0), ("(-5) DIV 2", -2), ("pmod(-5, 7)", 2),
        ("0.1e0 + 0.2e0", 0.1 + 0.2), ("ceil(1.2e0)", 2),
    ),
    "quotes": (
        (f"hostile = {SPARK.text_literal(_HOSTILE)}", True), ("char_length(hostile)", len(_HOSTILE)),
        ("`x``y`", 7), (f"char_length({SPARK.text_literal('😀')})", 1),
    ),
    "texts": (("'a' = 'A'", False), ("'a' = 'a '", False), ("lower('I')", "i"), ("'Z' < 'a'", True)),
    "md5": ((f"md5({SPARK.text_literal('é')})", "66ddcd97cfdeabb2f6fb8a999b4bc76f"),),
    "NaN": (("greatest(double('NaN'), 1e0) > 1e308", True), ("double('NaN') = double('NaN')", True)),
    "time zone": (
        ("unix_micros(CAST(TIMESTAMP_NTZ '1970-01-01 00:00:00' AS TIMESTAMP))", 0),
        ("unix_micros(CAST(TIMESTAMP_NTZ '0001-01-01 00:00:00' AS TIMESTAMP))", -62_135_596_800_000_000),
        ("unix_date(DATE '1582-10-10')", -141_432),
    ),
})  # fmt: skip


def check_probes(connection: SparkConnection) -> None:
    """Raise EngineStopped, naming the first subject of which a server answers something else, or what it fails with."""
    for subject, asked in PROBES.items():
        listed = ", ".join(f"{expression} AS c{n}" for n, (expression, _) in enumerate(asked))
        row = (
            f"SELECT {2**63 - 1} AS big, -0.0e0 AS zero, CAST(NULL AS INT) AS none, 7 AS `x``y`,"
            f" {SPARK.text_literal(_HOSTILE)} AS hostile"
        )
        _, rows = connection.rows(f"SELECT {listed} FROM ({row}) AS probed", max_bytes=_MOST_BYTES)
        if rows != [tuple(expected for _, expected in asked)]:
            raise EngineStopped(f"Probe: {subject}", Failure.CHANGED)
