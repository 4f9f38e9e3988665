"""Which functions does the private engine postgres compute, and how are they spelled so that no row makes them raise?

A function that has no row here is refused on this engine. `plain` is used where bounds prove that nothing can go
wrong, `checked` where they do not; without one, `plain` never raises. `whole` is for arguments that are whole numbers.
"""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.render.postgres import numbers as postgres_numbers
from proxy.sql.render.postgres import texts as postgres_texts
from proxy.sql.render.postgres import times as postgres_times
from proxy.sql.render.postgres.casts import casts
from proxy.sql.render.postgres.spelling import Spelling
from proxy.sqltypes import SqlType

_CONDITIONS = {
    **{sign: Spelling(f"{{0}} {sign} {{1}}") for sign in ("=", "<>", "<", "<=", ">", ">=")},
    "and": Spelling("{0} AND {1}"),
    "or": Spelling("{0} OR {1}"),
    "not": Spelling("NOT {0}"),
    "is null": Spelling("{0} IS NULL"),
    "is distinct from": Spelling("{0} IS DISTINCT FROM {1}"),
    "coalesce": Spelling("coalesce({*})"),
    "nullif": Spelling("CASE WHEN {0} = {1} THEN NULL ELSE {0} END"),
    "greatest": Spelling("greatest({*})"),
    "least": Spelling("least({*})"),
}

SPELLINGS = MappingProxyType({
    **_CONDITIONS, **postgres_numbers.SPELLINGS, **postgres_times.SPELLINGS, **postgres_texts.SPELLINGS, **casts(),
})  # fmt: skip


def template_of(spelling: Spelling, kinds: tuple[SqlType, ...], *, may_raise: bool) -> str:
    """The template for arguments of these types."""
    if spelling.whole and kinds[0].is_integer:
        return spelling.whole
    return postgres_texts.with_letters(spelling.checked if may_raise and spelling.checked else spelling.plain)
