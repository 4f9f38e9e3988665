"""Which sub-queries of private rows' conditions are released first, and what is said in their place?

A sub-query below the noise line that aggregates private rows, and names none of the rows around it, is a stage: the
front is asked for its value, which is made of noisy numbers, and the value is written into the statement as a constant.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import assert_never

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from proxy.errors import Unsupported
from proxy.sql.relations.scope import Cte, Ctes
from proxy.sql.render.dialect import quote
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.names import identifier
from proxy.sql.syntax.parse import Statement, split_statements
from proxy.sql.syntax.prepared import spelled
from proxy.sqltypes import TYPE_NAMES, SqlType

MOST_VALUES = 1000
#: Parts of made up values, and of others that are far from them.
_OTHERS = (("true", "false"), ("2020-01-01", "2024-06-01"), ("''", "'other'"), ("1", "30000"))
_ARRAY_WORDS = {"ANY", "SOME", "ALL"}

StageRow = tuple[str | None, ...]


class Form(enum.Enum):
    """What takes the place of a sub-query: one value, whether it has rows, all its values, or its rows."""

    VALUE = "value"
    EXISTS = "exists"
    VALUES = "values"
    ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageText:
    """A sub-query that is released before the SELECT around it.

    span: what its value takes the place of. before: words that come before the array of a set. names: of its columns,
    if these are rows that private ones are joined with. alias: what it is called then, "" if the text says so.
    text: what it stands for, as a statement of its own. parts: (start in text, start, length) of what was copied.
    is_public: whether it reads public tables alone, so that nothing is released for it.
    """

    span: TextSpan
    form: Form
    before: str
    text: str
    parts: tuple[tuple[int, int, int], ...]
    names: tuple[str, ...] = ()
    alias: str = ""
    is_public: bool = False

    @property
    def columns(self) -> int:
        """How many columns of values there are to be told."""
        return 0 if self.form is Form.EXISTS else len(self.names) or 1

    def asks_for(self) -> tuple[object, ...]:
        """What it stands for, whatever the spaces: stages that ask for the same have one value."""
        return meaning(split_statements(self.text)[0].tokens)

    def original(self, position: int) -> int:
        """The place in the statement of a 1-based position in the text; 0 stays 0."""
        for at, start, length in self.parts:
            if at < position <= at + length:
                return start + position - at
        return self.span.start + 1 if position else 0

    def asking(self, text: str) -> str:
        """What is asked of the front, given the text with its releases in place: a row of types and texts for each."""
        columns = [f"c{i}" for i in range(len(self.names) or 1)]
        cells = "".join(
            f", pg_catalog.pg_typeof(s.{c})::pg_catalog.text,"
            f" pg_catalog.to_jsonb(s.{c}) OPERATOR(pg_catalog.#>>) '{{}}'::pg_catalog.text[]"
            for c in columns
        )
        return (
            f"SELECT s.p::pg_catalog.text{cells} FROM (VALUES (1)) AS o(x) LEFT JOIN"
            f" (SELECT true, q.* FROM ({text}\n) AS q) AS s(p, {', '.join(columns)}) ON true LIMIT {MOST_VALUES + 1}"
        )

    def constants(self, rows: Sequence[StageRow]) -> str:
        """What is said in the place of the sub-query, given the front's answer. Raises Unsupported."""
        if len(rows) > MOST_VALUES:
            raise Unsupported(f"a sub-query has more than {MOST_VALUES} rows, too many to compare private rows with",
                              hint="Use LIMIT in the sub-query.", position=self.span.start + 1)  # fmt: skip
        kinds = tuple(self._kind(str(kind)) for kind in rows[0][1::2])
        found = [[spelled(v, k) for v, k in zip(row[2::2], kinds, strict=True)] for row in rows if row[0] is not None]
        if self.form is Form.ROWS and not found:
            raise Unsupported("a sub-query that private rows are joined with has no rows",
                              hint="Let it have at least one.", position=self.span.start + 1)  # fmt: skip
        firsts = [row[0] for row in found]
        return self._said(found, f"ARRAY[{', '.join(firsts)}]::{kinds[0]}[]")

    def _kind(self, name: str) -> str:
        if TYPE_NAMES.get(name, SqlType.INTERVAL) is SqlType.INTERVAL:
            raise Unsupported(f"private rows cannot be compared with a value of type {name} that a sub-query releases",
                              hint="Cast it in the sub-query.", position=self.span.start + 1)  # fmt: skip
        return {"character": "bpchar"}.get(name, name)  # a character without a length has one

    def stand_in(self, values: Sequence[str]) -> str:
        """The same with values made up, one for each column; in a second row others, if there may well be one."""
        rows = [values or ["true"], *([list(map(_another, values))] if self._has_groups else [])]
        return self._said(rows, f"ARRAY[{', '.join(values)}]")

    @property
    def _has_groups(self) -> bool:
        """Whether its rows are those of a SELECT with GROUP BY and without LIMIT 1, as far as the text tells."""
        tokens = split_statements(self.text)[0].tokens
        if self.form is not Form.ROWS or "".join(t.text for t in tokens[1:4]).upper() != "*FROM(":
            return False
        depths = list(accumulate((t.text == "(") - (t.text == ")") for t in tokens))
        words = [t.text.upper() for t, depth in zip(tokens, depths, strict=True) if depth == 1]
        return "GROUP BY" in words and ("LIMIT", "1") not in pairwise(words)

    def _said(self, rows: Sequence[Sequence[str]], array: str) -> str:
        match self.form:
            case Form.VALUE:
                return f"({rows[0][0]})"
            case Form.EXISTS:
                return rows[0][0]
            case Form.VALUES:
                return f"{self.before} ({array})"
            case Form.ROWS:
                listed = ", ".join(f"({', '.join(row)})" for row in rows)
                whole = f"(SELECT * FROM (VALUES {listed}) AS stage({', '.join(map(quote, self.names))}))"
                return f"{whole} AS {quote(self.alias)}" if self.alias else whole
            case _ as never:
                assert_never(never)


def _another(value: str) -> str:
    """A value of the same type that is not equal to a made up one, nor close to it. Of NULL there is one."""
    return next((value.replace(one, other, 1) for one, other in _OTHERS if one in value), value)


@dataclass(frozen=True, slots=True)
class WrittenStatement:
    """A statement in which a constant has taken the place of a sub-query. edits: (start, end, growth), in order."""

    statement: Statement
    edits: tuple[tuple[int, int, int], ...]

    def original(self, position: int) -> int:
        """The place in the statement before of a 1-based position; within a constant, that of the sub-query."""
        grown = 0
        for start, end, growth in self.edits:
            if position - 1 < start + grown:
                break
            if position - 1 < end + grown + growth:
                return start + 1
            grown += growth
        return position - grown


def meaning(tokens: Sequence[Token]) -> tuple[object, ...]:
    """The same for texts that differ in spaces and comments alone."""
    return tuple((t.token_type, t.text) for t in tokens)


def written(text: str, stages: Sequence[StageText], stage: StageText, rows: Sequence[StageRow]) -> WrittenStatement:
    """The text with the value of a stage, and of all that ask for the same. Raises Unsupported."""
    asked = stage.asks_for()
    return _replaced(text, {same: same.constants(rows) for same in stages if same.asks_for() == asked})


def with_stand_ins(text: str, values: Mapping[StageText, Sequence[str]]) -> WrittenStatement:
    """The text with made up values for every stage, one for each of its columns."""
    return _replaced(text, {stage: stage.stand_in(made_up) for stage, made_up in values.items()})


def _replaced(text: str, words: Mapping[StageText, str]) -> WrittenStatement:
    parts, edits, position = [], [], 0
    for stage, said in sorted(words.items(), key=lambda item: item[0].span.start):
        span = stage.span
        parts += [text[position : span.start], said]
        edits.append((span.start, span.end, len(said) - (span.end - span.start)))
        position = span.end
    (whole,) = split_statements("".join((*parts, text[position:])))
    return WrittenStatement(whole, tuple(edits))


def stage_of(query: exp.Expression, span: TextSpan, statement: Statement, ctes: Ctes) -> StageText | None:
    """The stage that an uncorrelated sub-query is, or None where it stands as no value. span: of its SELECTs."""
    tokens = statement.tokens
    form = _form_of(query)
    found = _parentheses(tokens, span)
    if form is None or found is None:
        return None
    first, last = found
    inner = TextSpan(tokens[first].end + 1, tokens[last].start)
    begin, before = first, ""
    if form is not Form.VALUE:
        begin, last = _word_before(tokens, first, last)
        word = tokens[begin].text.upper()
        if word == "IN":
            is_negated = tokens[begin - 1].text.upper() == "NOT"
            begin, before = (begin - 1, "<> ALL") if is_negated else (begin, "= ANY")
        elif word in _ARRAY_WORDS:
            begin += 1
        elif word != "EXISTS":
            return None
    shared = _declared(query, ctes)
    if shared is None:
        return None
    text, parts = _as_statement(form, inner, shared, statement.text)
    place = TextSpan(tokens[begin].start, tokens[last].end + 1)
    return StageText(span=place, form=form, before=before, text=text, parts=parts)


def joined_stage(
    node: exp.Expression,
    span: TextSpan | None,
    statement: Statement,
    ctes: Ctes,
    name_of: Callable[[exp.Expression], str],
) -> StageText | None:
    """The stage that a released relation of a FROM clause is, or None. span: of the SELECTs of a sub-select.

    name_of: of a select item.
    """
    query: exp.Expression = node
    given: tuple[str, ...] = ()
    if isinstance(node, exp.Table):
        name = identifier(node.this)
        if node.args.get("db") is not None or name not in ctes:
            return None
        query, given = ctes[name].body, ctes[name].columns
    names, shared = _column_names(query, given, name_of), _declared(node, ctes)
    if not names or shared is None:
        return None
    if isinstance(node, exp.Table):
        start, end = node.this.meta["start"], node.this.meta["end"] + 1
        place, inner = TextSpan(start, end), TextSpan(start, end)
        alias = "" if node.args.get("alias") is not None else identifier(node.this)
    else:
        found = None if span is None else _parentheses(statement.tokens, span)
        if found is None:
            return None
        first, last = (statement.tokens[i] for i in found)
        place, inner, alias = TextSpan(first.start, last.end + 1), TextSpan(first.end + 1, last.start), ""
    text, parts = _as_statement(Form.ROWS, inner, shared, statement.text, is_name=isinstance(node, exp.Table))
    return StageText(span=place, form=Form.ROWS, before="", text=text, parts=parts, names=names, alias=alias)


def _column_names(
    query: exp.Expression, given: tuple[str, ...], name_of: Callable[[exp.Expression], str]
) -> tuple[str, ...]:
    """The names of a query's columns; none if they cannot be told, or not apart."""
    while isinstance(query, (exp.Subquery, exp.SetOperation)):
        query = query.this
    if not isinstance(query, exp.Select) or any(item.is_star for item in query.expressions):
        return ()
    shown = tuple(name_of(item) for item in query.expressions)
    names = (*given, *shown[len(given) :])
    return names if len(set(names)) == len(names) else ()


def _form_of(query: exp.Expression) -> Form | None:
    around = query.parent
    match around:
        case exp.Exists():
            return Form.EXISTS
        case exp.In() if query is around.args.get("query"):
            return None if isinstance(around.this, exp.Tuple) else Form.VALUES
        case exp.Any() | exp.All():
            return Form.VALUES
        case _:
            return Form.VALUE if isinstance(query, exp.Subquery) else None


def _parentheses(tokens: Sequence[Token], span: TextSpan) -> tuple[int, int] | None:
    """The parentheses around a query, a WITH clause of its own included."""
    first = next((i for i, t in enumerate(tokens) if t.start == span.start), 0)
    while (first := _unmatched(tokens, first)) >= 0:
        last = _partner(tokens, first)
        if tokens[last].start >= span.end:
            return first, last
    return None


def _unmatched(tokens: Sequence[Token], position: int) -> int:
    """The parenthesis that is open before a token, or -1."""
    depth = 0
    while depth <= 0 and position >= 0:
        position -= 1
        kind = tokens[position].token_type if position >= 0 else None
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0) if kind is not None else 0
    return position


def _partner(tokens: Sequence[Token], first: int) -> int:
    depth = 0
    for position in range(first, len(tokens)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[position].token_type, 0)
        if not depth:
            return position
    return len(tokens) - 1


def _word_before(tokens: Sequence[Token], first: int, last: int) -> tuple[int, int]:
    """The word before a sub-query and all parentheses around it, and the last of these."""
    while tokens[first - 1].token_type is TokenType.L_PAREN and tokens[last + 1].token_type is TokenType.R_PAREN:
        first, last = first - 1, last + 1
    return first - 1, last


def _declared(query: exp.Expression, ctes: Ctes) -> Mapping[str, Cte] | None:
    """The CTEs around a query that it needs, in order; None where one is not what its name means here."""
    needed, waiting = set[str](), _named(query, ctes)
    while waiting:
        name = waiting.pop()
        if not ctes[name].tokens:
            return None
        needed.add(name)
        deeper = _named(ctes[name].body, ctes[name].visible)
        if any(ctes.get(n) is not ctes[name].visible[n] for n in deeper):
            return None
        waiting |= deeper - needed
    return {name: ctes[name] for name in ctes if name in needed}


def _named(query: exp.Expression, ctes: Collection[str]) -> set[str]:
    tables = (t for t in query.find_all(exp.Table) if t.args.get("db") is None)
    return {name for t in tables if (name := identifier(t.this)) in ctes}


def _as_statement(
    form: Form, inner: TextSpan, ctes: Mapping[str, Cte], source: str, *, is_name: bool = False
) -> tuple[str, tuple[tuple[int, int, int], ...]]:
    text, parts = "", []

    def copied(span: TextSpan) -> None:
        nonlocal text
        parts.append((len(text), span.start, span.end - span.start))
        text += source[span.start : span.end]

    for number, (name, cte) in enumerate(ctes.items()):
        columns = f"({', '.join(map(quote, cte.columns))})" if cte.columns else ""
        text += f"{', ' if number else 'WITH '}{quote(name)}{columns} AS ("
        copied(TextSpan(cte.tokens[0].start, cte.tokens[-1].end + 1))
        text += "\n) "
    text += {Form.VALUE: "SELECT (", Form.EXISTS: "SELECT EXISTS (", Form.VALUES: "SELECT * FROM (",
             Form.ROWS: "SELECT * FROM (SELECT * FROM " if is_name else "SELECT * FROM ("}[form]  # fmt: skip
    copied(inner)
    text += "\n) AS stage" if form in (Form.VALUES, Form.ROWS) else "\n)"
    return text, tuple(parts)
