"""How is a proposal written as a policy file that says what is still to be decided?

Every decision that has to be taken before anybody is served carries the word DECIDE. What can wait, as texts to open
and bounds of numbers, is one line for each table. What only a person may open stands there as a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from proxy.admin.proposing.guesses import Guess, guess_of, is_category
from proxy.admin.proposing.proposal import DEFAULT_SCHEMAS, EachRow, OwnUnit, Proposal, ProposedTable, TableLeftOut, Via
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How much may be learnt: epsilon of everybody together and of one login, and how many questions that one has."""

    dataset: str = "20"
    user: str = "10"
    questions: str = "100"


def write(proposal: Proposal, dataset: str, source: PlacedSource, amounts: Amounts) -> str:
    """The policy's text."""
    return "\n".join([*_head(proposal, dataset, source, amounts), *_tables(proposal), *_foot()]) + "\n"


def decisions(text: str) -> list[tuple[int, str]]:
    """The lines that ask for a decision, by number, without what stands before the question. First things first."""
    lines = enumerate(text.splitlines(), start=1)
    return [(n, line.partition(f"{MARK}: ")[2]) for n, line in lines if f"# {MARK}: " in line]


def _head(proposal: Proposal, dataset: str, source: PlacedSource, amounts: Amounts) -> Iterator[str]:
    yield f"# A proposal, made from the catalogue of the database. Look at each line with {MARK}; no rows were read."
    yield "# What a policy does not list does not exist for clients. `hushql policy check --data` says what is wrong."
    yield "version: 1"
    yield f"dataset: {yaml_text(dataset)}"
    yield "source:"
    closed = {yaml_text(t.name) for t in proposal.tables if isinstance(t.owner, (TableLeftOut, Unclear))}
    for line in source.lines:  # each file is of one table
        is_closed = line.startswith(" ") and line.strip().partition(":")[0] in closed
        yield f"    # {line.strip()}" if is_closed else f"  {line}"
    yield '  data_version: "1" # another label whenever the data change: stored answers are not given again then'
    yield ""
    yield "privacy:"
    yield from _unit(proposal)
    yield "  delta: 1e-6 # the chance that the promise fails; well below one in the number of units"
    yield ""
    yield "budgets:"
    user = f"{{epsilon: {amounts.user}, questions: {amounts.questions}}}"
    yield f"  dataset: {{epsilon: {amounts.dataset}}} # {MARK}: all that may ever be learnt, by all clients together"
    yield f"  user: {user} # {MARK}: what one login may learn, and in how many questions"
    yield ""


def _foot() -> Iterator[str]:
    yield "access:"
    yield "  users_file: users.yaml # made by `hushql user add`"


def _unit(proposal: Proposal) -> Iterator[str]:
    """Who is protected: the rows of a table, or whom a column of it names in several rows."""
    if not proposal.unit_table:
        yield f"  unit: row # {MARK}: who is protected? Here each row, and a person with several is several"
        return
    table = next(t for t in proposal.tables if t.name == proposal.unit_table)
    others = [c.option for c in proposal.candidates if c.table != proposal.unit_table]
    perhaps = f" Could also be: {', '.join(map(_shown, others[:5]))} (--unit)." if others else ""
    if isinstance(table.owner, OwnUnit) and len(table.owner.columns) == 1 and not table.is_one_row_per_unit:
        (column,) = table.owner.columns
        yield f"  unit: {yaml_text(_singular(_ID.sub('', column) or column))} # {MARK}: who is protected? Here whom"
        yield f"  # {_shown(column)} of {_shown(proposal.unit_table)} names; all rows with the same value are of one."
        return
    yield f"  unit: {yaml_text(_singular(proposal.unit_table))} # {MARK}: who is protected? Here the rows of"
    yield f"  # {_shown(proposal.unit_table)} are, and a person with several of them is several.{perhaps}"


def _tables(proposal: Proposal) -> Iterator[str]:
    yield "tables:"
    if all(isinstance(t.owner, (TableLeftOut, Unclear)) for t in proposal.tables):
        yield "  # no table is left: open one of those below"
    listed = {t.name: _listed_columns(t) for t in proposal.tables}
    asked: set[type] = set()
    for table in proposal.tables:
        question = _QUESTIONS.get(type(table.owner), ()) if type(table.owner) not in asked else ()
        asked.add(type(table.owner))
        yield from (f"  {line}".rstrip() for line in (*question, *_said(table, listed)))
        yield ""


_QUESTIONS: dict[type, tuple[str, ...]] = {
    TableLeftOut: (
        f"# {MARK}: which of these tables say nothing about anybody? Take the # away from those, and from the joins to",
        "# them: their rows are then shown to every client.",
    ),
    Unclear: (
        f"# {MARK}: which column of these tables says whose row it is? Name it, and take the # away.",
    ),
}  # fmt: skip


def _said(table: ProposedTable, listed: dict[str, frozenset[str]]) -> Iterator[str]:
    match table.owner:
        case TableLeftOut() as left_out:
            return _left_out(table, left_out)
        case Unclear() as unclear:
            return _unclear(table, unclear)
        case OwnUnit() | EachRow() | Via():
            return _table(table, listed)
        case _ as never:
            assert_never(never)


def _left_out(table: ProposedTable, owner: TableLeftOut) -> Iterator[str]:
    yield f"# {_shown(table.name)}: {owner.reason}, so it is left out."
    if owner.is_of_people:
        yield "# Its name says that its rows are people's, so it is not proposed as public."
        return
    if not _is_name(table.name):
        return
    yield f"# {yaml_text(table.name)}:"
    yield from (f"#   {line}" for line in _relation(table))
    yield "#   public: true"
    yield "#   columns:"
    for column in table.found.columns:
        if _is_servable(column):
            yield f"#     {yaml_text(column.name)}: {{type: {_NAMES[_type(column)]}}}"


def _unclear(table: ProposedTable, owner: Unclear) -> Iterator[str]:
    yield f"# {_shown(table.name)}: {_shown(owner.reason)}, so it is left out."
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
    comment = _in_one_line(table.found.comment)
    lines = [*_relation(table), *([f"comment: {yaml_text(comment)}"] if comment else []), *_owner(table)]
    lines += _joins(table, listed)
    lines.append("columns:")
    lines += [f"  {line}" for line in _columns(table)]
    yield from (f"  {line}" for line in lines)


def _joins(table: ProposedTable, listed: dict[str, frozenset[str]]) -> Iterator[str]:
    """What is declared to meet; joins to tables that are left out stand there as comments."""
    there: dict[str, list[str]] = {}
    later: dict[str, list[str]] = {}
    for found, joins in ((there, table.joins), (later, table.later)):
        for column, other, theirs in joins:
            if column in listed[table.name] and theirs in listed[other] and "." not in theirs:
                found.setdefault(column, []).append(f"{other}.{theirs}")
    if there or later:
        yield "joins:" if there else "# joins:"
    for column, targets in there.items():
        yield f"  {yaml_text(column)}: {_targets(targets)}"
    for column, targets in later.items():
        if column in there:
            yield f"  # {_shown(column)} also refers to {', '.join(map(_shown, targets))}"
        else:
            yield f"#   {yaml_text(column)}: {_targets(targets)} # when that table is opened below"


def _targets(targets: list[str]) -> str:
    written = list(map(yaml_text, targets))
    return written[0] if len(written) == 1 else _list(written)


def _list(items: list[str]) -> str:
    return f"[{', '.join(items)}]"


def _relation(table: ProposedTable) -> Iterator[str]:
    parts = table.found.relation
    if len(parts) > 1 and not (parts[0] in DEFAULT_SCHEMAS and parts[-1] == table.name):
        yield f"relation: {yaml_text('.'.join(_relation_part(p) for p in parts))}"
    elif len(parts) == 1 and parts[0].lower() != table.name:
        yield f"# in the source it is called {_shown(parts[-1])}"


def _relation_part(part: str) -> str:
    return part if _WORD.fullmatch(part) else '"' + part.replace('"', '""') + '"'


def _owner(table: ProposedTable) -> Iterator[str]:
    match table.owner:
        case OwnUnit(columns, is_guessed):
            names = ", ".join(map(yaml_text, columns))
            said = f"does {_shown(columns[0])} say whose rows of {_shown(table.name)} they are? Only its name does"
            why = f" # {MARK}: {said}" if is_guessed else ""
            yield f"unit: {names if len(columns) == 1 else f'[{names}]'}{why}"
        case Via(parent, on):
            yield f"unit: {{via: {yaml_text(parent)}, on: {yaml_text(on)}}}"
        case EachRow():
            return
        case TableLeftOut() | Unclear():
            raise AssertionError("a table that is left out has no owner")
    if table.others:
        ways = "; ".join(map(_shown, table.others))
        yield f"# {MARK}: a row refers to units in other ways too ({ways}); only one of them can be protected."
    if table.is_one_row_per_unit:
        yield "unit_unique: true # a key says so; each start checks it"
    elif table.is_called_as_units and not table.found.references:
        yield "unit_unique: true # guessed: `hushql policy check --data` and each start check it"
    else:
        yield "max_rows_per_unit: 100 # a guess, until `hushql profile` has told how many rows units have"


def _columns(table: ProposedTable) -> Iterator[str]:
    """A line for each column that is there; what can wait for a person is named at the end."""
    texts, numbers = [], []
    for column in table.found.columns:
        if not _is_servable(column):
            yield f"# {_shown(column.name)}: {_shown(column.stated_type)} cannot be served"
        elif column.name not in _listed_columns(table):
            yield f"# {_shown(column.name)}: another column has this name in other letters"
        elif _waits(table, column):
            texts.append(column.name)
        else:
            if column.comment:
                yield f"# {_in_one_line(column.comment)}"
            yield _column(table, column)
            if _is_summed(table, column):
                numbers.append(column.name)
    if numbers:
        yield f"# later: bounds: [low, high], from what is known, for sums of {', '.join(map(_shown, numbers))}"
    if texts:
        yield f"# later: texts that are left out: {', '.join(map(_shown, texts))}. One is opened so:"
        yield f"# {yaml_text(texts[0])}: {{type: text}}"


def _is_summed(table: ProposedTable, column: FoundColumn) -> bool:
    """Whether bounds are missing of a number or a time that is no id."""
    refers = {name for reference in table.found.references for name in reference.columns}
    is_id = column.name in table.keys | refers or _ID.search(column.name)
    kind = _type(column)
    return not is_id and not _has_domain(column) and (kind.is_number or kind.is_time)


def _waits(table: ProposedTable, column: FoundColumn) -> bool:
    """Whether a column is a text that may name somebody."""
    return (
        column.name not in table.keys and _type(column).is_text and not _has_domain(column) and not is_category(column)
    )


def _column(table: ProposedTable, column: FoundColumn) -> str:
    is_key = column.name in table.keys
    line = f"{yaml_text(column.name)}: {{{', '.join(_facts(column, is_key=is_key))}}}"
    if is_key:
        return line
    if not _stated(column) and isinstance(guess := guess_of(column), Guess):
        return f"{line} # guessed: {guess.what}"
    if _type(column).is_text and not _has_domain(column):
        return f"{line} # guessed: names categories, not people; groups appear if enough units are in them"
    return line if _has_domain(column) else f"{line}{_half(column)}"


def _type(column: FoundColumn) -> SqlType:
    """The type, or for a column of CSV that which its name tells."""
    assert isinstance(column.type, SqlType)
    guess = guess_of(column) if column.is_untyped else column
    return guess.type if isinstance(guess, Guess) else column.type


def _half(column: FoundColumn) -> str:
    said = column.said
    ends = [f"at least {said.low}"] * bool(said.low) + [f"at most {said.high}"] * bool(said.high)
    return f" # a CHECK says {' and '.join(map(_shown, ends))}" if ends else ""


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
    if is_key:
        assert isinstance(column.type, SqlType)
        yield f"type: {_NAMES[column.type]}"
        yield "key: true"
        return
    yield f"type: {_NAMES[_type(column)]}"
    if bounds := _bounds(column):
        yield f"bounds: [{', '.join(bounds)}]"
    elif values := _values(column):
        yield f"values: [{', '.join(values)}]"
    if _has_domain(column) and not column.is_nullable:
        yield "nullable: false"


def _has_domain(column: FoundColumn) -> bool:
    return bool(_bounds(column) or _values(column))


def _bounds(column: FoundColumn) -> tuple[str, ...]:
    guess = guess_of(column) if not _stated(column) else column
    return (guess.low, guess.high) if isinstance(guess, Guess) else _checked(column)


def _stated(column: FoundColumn) -> bool:
    """Whether constraints say which values there are."""
    return bool(_checked(column) or _values(column))


def _checked(column: FoundColumn) -> tuple[str, ...]:
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


def _in_one_line(text: str) -> str:
    return _shown(" ".join(text.split()))


def _singular(name: str) -> str:
    word = "".join(c for c in name if c.isprintable()).strip().lower()[:60] or "person"
    word = word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word
    return "unit" if word == "row" else word
