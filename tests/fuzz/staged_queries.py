"""Random client SQL with sub-queries that were released first: values stand in their place as a session writes them."""

from __future__ import annotations

import random

from proxy.sql.query.split import Split, split
from proxy.sql.query.stages import Form, StageRow, StageText, written
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import World

#: Values that noise may give; None is NULL.
_Values = tuple[str | None, ...]
_NUMBERS: _Values = (
    None,
    "0",
    "-1",
    "1",
    "2.5",
    "-0.000001",
    "12345678901234567890.5",
    "-99999",
    "1e300",
    "-4e-324",
    "7",
    "3",
)
_WHOLE: _Values = (None, "0", "-1", "3", "1000000", "-65536")
_TEXTS: _Values = (None, "", "a", "A", "o'b", "\\", "é", "x ", "null", "{a,b}")
_KINDS = ("numeric", "numeric", "double precision", "bigint")


def make_staged_query(world: World, rng: random.Random) -> str:
    """One random query whose stages have random values."""
    text = _StagedWriter(world, rng).query()
    cut = _cut(world, text)
    while cut.stages:
        stage = cut.stages[0]
        cut = _cut(world, written(cut.text, cut.stages, stage, _told(stage, rng)).statement.text)
    return cut.text


def _cut(world: World, text: str) -> Split:
    return split(split_statements(text)[0], Catalog(world.tables), frozenset())


def _told(stage: StageText, rng: random.Random) -> tuple[StageRow, ...]:
    if stage.form is Form.EXISTS:
        return (("true", "boolean", rng.choice(("true", "false"))),)
    kind = "text" if "'text'" in stage.text else rng.choice(_KINDS)
    values = {"text": _TEXTS, "bigint": _WHOLE}.get(kind, _NUMBERS)
    count = 1 if stage.form is Form.VALUE else rng.choice((0, 1, 3))
    rows = tuple(("true", kind, rng.choice(values)) for _ in range(count))
    return rows or ((None, kind, None),)


class _StagedWriter(Writer):
    def query(self) -> str:
        rng = self._rng
        keys = [self._key() for _ in range(rng.choice((0, 1, 1)))]
        aggregates = [self._aggregate() for _ in range(rng.choice((0, 1)))] + [self._staged_aggregate()]
        where = [*self._from.conditions, *(self._condition() for _ in range(rng.choice((0, 1, 2))))]
        text = f"{self._from.prefix}select {', '.join([*keys, *aggregates])} from {self._from.text}"
        if where:
            text += " where " + " and ".join(f"({w})" for w in where)
        return text + (f" group by {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else "")

    def _staged_aggregate(self) -> str:
        rng = self._rng
        number = f"{self._number(1)} {rng.choice('+-*/')} {self._value()}"
        return rng.choice((f"sum({number})", f"avg({number})", f"count(*) filter (where {self._condition()})"))

    def _value(self) -> str:
        return f"(select {self._rng.choice(('count(*)', 'count(*) + 1'))} from {self._rng.choice('pe')})"

    def _condition(self) -> str:
        rng = self._rng
        word = rng.choice(("in", "not in", "= any", "<> all"))
        sets = "(select 'text' from e having count(*) > 1)"
        return rng.choice((
            f"{self._number(1)} {rng.choice(('>', '<=', '=', '<>'))} {self._value()}",
            f"{self._number(0)} {word} (select count(*) from p group by 1 + 1)",
            f"({self._text(0)} {word} {sets}) is not true",
            f"{self._text(0)} {word} {sets}",
            f"{rng.choice(('', 'not '))}exists (select 1 from e having count(*) > 3) or {self._bool(0)}",
        ))  # fmt: skip
