"""How is a proposal written as a policy file that says what is still to be decided?

Every decision that is the admin's carries the word DECIDE. Columns and tables that only a person may open stand there
as comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from proxy.admin.proposing.proposal import DEFAULT_SCHEMAS, LeftOut, Own, Proposal, ProposedTable, Via
from proxy.admin.proposing.unclear import Unclear
from proxy.engines.described import FoundColumn, Unservable
from proxy.policy.columns import MAX_NAME_BYTES
from proxy.sqltypes import TYPE_NAMES, SqlType

MARK = "DECIDE"

_NAMES = {kind: name for name, kind in reversed(TYPE_NAMES.items())} | {
    SqlType.TIMESTAMP: "timestamp",
    SqlType.TIMESTAMPTZ: "timestamptz",
}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?")
_ID = re.compile(r"_?id\Z", re.IGNORECASE)  # at the end of a column's name
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_MOST_VALUES = 200


@dataclass(frozen=True, slots=True)
class PlacedSource:
    """The lines of `source` below its name, ready for YAML."""

    lines: tuple[str, ...]


def write(proposal: Proposal, dataset: str, source: PlacedSource) -> str:
    """The policy's text."""
    return "\n".join([*_head(proposal, dataset, source), *_tables(proposal), *_foot()]) + "\n"


def _head(proposal: Proposal, dataset: str, source: PlacedSource) -> Iterator[str]:
    others = [name for name in proposal.candidates if name != proposal.unit_table]
    yield f"# A proposal, made from the catalogue of the database. Look at each line with {MARK}; no rows were read."
    yield "# What a policy does not list does not exist for clients. `hushql policy check` says whether it can be read."
    yield "version: 1"
    yield f"dataset: {yaml_text(dataset)}"
    yield "source:"
    closed = {yaml_text(t.name) for t in proposal.tables if isinstance(t.owner, (LeftOut, Unclear))}
    for line in source.lines:  # each file is of one table
        is_closed = line.startswith(" ") and line.strip().partition(":")[0] in closed
        yield f"    # {line.strip()}" if is_closed else f"  {line}"
    yield '  data_version: "1" # another label whenever the data change: stored answers are not given again then'
    yield ""
    yield "privacy:"
    yield from _unit(proposal, others)
    yield f"  delta: 1e-6 # {MARK}: the chance that the promise fails; well below one in the number of units"
    yield ""
    yield "budgets:"
    yield f"  dataset: {{epsilon: 20}} # {MARK}: all that may ever be learnt, by all clients together"
    yield f"  user: {{epsilon: 10, questions: 100}} # {MARK}: by one login; a question costs a hundredth of it"
    yield ""


def _perhaps(others: list[str]) -> str:
    return f" Could also be: {', '.join(map(_shown, others[:5]))} (--unit)." if others else ""


def _foot() -> Iterator[str]:
    yield "access:"
    yield "  users_file: users.yaml # made by `hushql user add`"


def _unit(proposal: Proposal, others: list[str]) -> Iterator[str]:
    """Who is protected: the rows of a table, or whom a column of it names in several rows."""
    table = next(t for t in proposal.tables if t.name == proposal.unit_table)
    if isinstance(table.owner, Own) and len(table.owner.columns) == 1 and not table.is_one_row_per_unit:
        (column,) = table.owner.columns
        yield f"  unit: {yaml_text(_singular(_ID.sub('', column) or column))} # {MARK}: who is protected? Here whom"
        yield f"  # {_shown(column)} of {_shown(proposal.unit_table)} names; all rows with the same value are of one."
        return
    yield f"  unit: {yaml_text(_singular(proposal.unit_table))} # {MARK}: who is protected? Here the rows of"
    yield f"  # {_shown(proposal.unit_table)} are, and a person with several of them is several.{_perhaps(others)}"


def _tables(proposal: Proposal) -> Iterator[str]:
    yield "tables:"
    listed = {t.name: _listed_columns(t) for t in proposal.tables}
    for table in proposal.tables:
        yield from (f"  {line}".rstrip() for line in _said(table, listed))
        yield ""


def _said(table: ProposedTable, listed: dict[str, frozenset[str]]) -> Iterator[str]:
    match table.owner:
        case LeftOut() as left_out:
            return _left_out(table, left_out)
        case Unclear() as unclear:
            return _unclear(table, unclear)
        case Own() | Via():
            return _table(table, listed)
        case _ as never:
            assert_never(never)


def _left_out(table: ProposedTable, owner: LeftOut) -> Iterator[str]:
    yield f"# {_shown(table.name)}: {owner.reason}, so it is left out."
    yield f"# {MARK}: if no row says anything about anybody, take the # away: its rows are then shown to every client."
    if not _is_name(table.name):
        return
    yield f"# {yaml_text(table.name)}:"
    yield from (f"#   {line}" for line in _relation(table))
    yield "#   public: true"
    yield "#   columns:"
    for column in table.found.columns:
        if _is_servable(column):
            yield f"#     {yaml_text(column.name)}: {{{', '.join(_facts(column, is_key=False))}}}"


def _unclear(table: ProposedTable, owner: Unclear) -> Iterator[str]:
    yield f"# {_shown(table.name)}: {_shown(owner.reason)}, so it is left out."
    yield f"# {MARK}: which column says whose row it is? Name it, and take the # away."
    if table.found.is_view:
        yield "# But only if each row is made of that unit's rows alone, and nothing that it computes can fail."
    if not _is_name(table.name):
        return
    names = [*map(yaml_text, owner.columns)] or ['"?"']
    yield f"# {yaml_text(table.name)}:"
    yield from (f"#   {line}" for line in _relation(table))
    yield f"#   unit: {names[0] if len(names) == 1 else _list(names)}"
    yield "#   max_rows_per_unit: 100"
    yield "#   columns:"
    yield from (f"#     {line}" for column in table.found.columns for line in _column(table, column))


def _table(table: ProposedTable, listed: dict[str, frozenset[str]]) -> Iterator[str]:
    yield f"{yaml_text(table.name)}:"
    lines = [*_relation(table), *_owner(table)]
    joins: dict[str, list[str]] = {}
    for column, other, theirs in table.joins:
        if column in listed[table.name] and theirs in listed[other] and "." not in theirs:
            joins.setdefault(column, []).append(yaml_text(f"{other}.{theirs}"))
    if joins:
        pairs = (f"{yaml_text(c)}: {t[0] if len(t) == 1 else _list(t)}" for c, t in joins.items())
        lines.append(f"joins: {{{', '.join(pairs)}}}")
    lines.append("columns:")
    lines += [f"  {line}" for column in table.found.columns for line in _column(table, column)]
    yield from (f"  {line}" for line in lines)


def _list(items: list[str]) -> str:
    return f"[{', '.join(items)}]"


def _relation(table: ProposedTable) -> Iterator[str]:
    parts = table.found.relation
    if len(parts) > 1 and not (parts[0] in DEFAULT_SCHEMAS and parts[-1] == table.name):
        yield f"relation: {yaml_text('.'.join(_relation_part(p) for p in parts))}"
    elif len(parts) == 1 and parts != (table.name,):
        yield f"# in the source it is called {_shown(parts[-1])}"


def _relation_part(part: str) -> str:
    return part if _WORD.fullmatch(part) else '"' + part.replace('"', '""') + '"'


def _owner(table: ProposedTable) -> Iterator[str]:
    match table.owner:
        case Own(columns, is_guessed):
            names = ", ".join(map(yaml_text, columns))
            why = f" # {MARK}: is this whose rows they are? Only the name says so" if is_guessed else ""
            yield f"unit: {names if len(columns) == 1 else f'[{names}]'}{why}"
        case Via(parent, on):
            yield f"unit: {{via: {yaml_text(parent)}, on: {yaml_text(on)}}}"
        case LeftOut() | Unclear():
            raise AssertionError("a table that is left out has no owner")
    if table.others:
        ways = "; ".join(map(_shown, table.others))
        yield f"# {MARK}: a row refers to units in other ways too ({ways}); only one of them can be protected."
    if table.is_one_row_per_unit:
        yield "unit_unique: true # a key of the database says so"
    else:
        yield f"max_rows_per_unit: 100 # {MARK}: so many rows of one unit count; more mean more noise for all"


def _column(table: ProposedTable, column: FoundColumn) -> Iterator[str]:
    if not _is_servable(column):
        yield f"# {_shown(column.name)}: {_shown(column.stated_type)} cannot be served"
        return
    if column.name not in _listed_columns(table):
        yield f"# {_shown(column.name)}: another column has this name in other letters"
        return
    is_key = column.name in table.keys
    line = f"{yaml_text(column.name)}: {{{', '.join(_facts(column, is_key=is_key))}}}"
    if is_key or column.type is SqlType.BOOL or _has_domain(column):
        yield line
    elif isinstance(column.type, SqlType) and column.type.is_text:
        yield f"# {line} # {MARK}: open it? A text appears when enough units share it; list them with values: [...]"
    else:
        yield f"{line} # {MARK}: bounds: [low, high], from what is known, not from the rows{_half(column)}"


def _half(column: FoundColumn) -> str:
    said = column.said
    ends = [f"at least {said.low}"] * bool(said.low) + [f"at most {said.high}"] * bool(said.high)
    return f" (a CHECK says {' and '.join(map(_shown, ends))})" if ends else ""


# --- columns that can be listed -------------------------------------------------------------------------


def _listed_columns(table: ProposedTable) -> frozenset[str]:
    """Servable columns, the first of those that differ in letters only."""
    by_lower: dict[str, str] = {}
    for column in table.found.columns:
        if _is_servable(column):
            by_lower.setdefault(column.name.lower(), column.name)
    return frozenset(by_lower.values())


def _is_servable(column: FoundColumn) -> bool:
    return not isinstance(column.type, Unservable) and _is_name(column.name)


def _is_name(name: str) -> bool:
    return name.isprintable() and name == name.strip() and "${" not in name and 0 < len(name.encode()) <= MAX_NAME_BYTES


def _facts(column: FoundColumn, *, is_key: bool) -> Iterator[str]:
    assert isinstance(column.type, SqlType)
    yield f"type: {_NAMES[column.type]}"
    if is_key:
        yield "key: true"
        return
    if bounds := _bounds(column):
        yield f"bounds: [{', '.join(bounds)}]"
    elif values := _values(column):
        yield f"values: [{', '.join(values)}]"
    if _has_domain(column) and not column.is_nullable:
        yield "nullable: false"


def _has_domain(column: FoundColumn) -> bool:
    return bool(_bounds(column) or _values(column))


def _bounds(column: FoundColumn) -> tuple[str, ...]:
    said, kind = column.said, column.type
    if not isinstance(kind, SqlType) or not said.low or not said.high or said.values:
        return ()
    if kind.is_number and _NUMBER.fullmatch(said.low) and _NUMBER.fullmatch(said.high):
        if not kind.is_integer:
            return said.low, said.high
        if "." not in said.low + said.high:
            return str(int(said.low) + said.is_low_out), str(int(said.high) - said.is_high_out)
    if kind.is_time and _TIME.fullmatch(said.low) and _TIME.fullmatch(said.high):
        return said.low, said.high
    return ()


def _values(column: FoundColumn) -> tuple[str, ...]:
    values, kind = column.said.values, column.type
    if not isinstance(kind, SqlType) or len(values) > _MOST_VALUES or not all(v.isprintable() for v in values):
        return ()
    if kind is SqlType.TEXT or kind is SqlType.VARCHAR or kind is SqlType.BPCHAR:
        return tuple(yaml_text(v) for v in dict.fromkeys(values))
    if kind.is_integer and all(_NUMBER.fullmatch(v) and "." not in v for v in values):
        return tuple(str(n) for n in dict.fromkeys(map(int, values)))
    return ()


# --- spelling -------------------------------------------------------------------------------------------


def yaml_text(text: str) -> str:
    """A text as YAML reads it back, with nothing in it that stands for a variable."""
    if _WORD.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    return json.dumps(text.replace("${", "$${"), ensure_ascii=False)


def _shown(text: str) -> str:
    """A name inside a comment: nothing that ends the line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _singular(name: str) -> str:
    word = "".join(c for c in name if c.isprintable()).strip().lower()[:60] or "person"
    word = word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word
    return "unit" if word == "row" else word
