"""What does a change of a policy open to clients, and what does it close?

Compares two policies as they are understood, not their texts. A change opens if somebody could learn more after it, or
if less is promised; it closes if less can be learnt. Whatever else makes a difference changes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

from proxy.policy.figures import figure
from proxy.policy.model import (
    AccountLimit,
    Bounded,
    BoundSource,
    Budgets,
    Column,
    Domain,
    EpsilonLimit,
    JoinKey,
    Limits,
    Listed,
    LocalTable,
    Ownership,
    Policy,
    Privacy,
    ProfileUse,
    PublicTable,
    RawSelect,
    Refresh,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
    Unknown,
    WrittenBound,
)
from proxy.policy.randomized import mechanism_words
from proxy.policy.response import NotRandomized, Randomized
from proxy.policy.spent import accounting_words, reach_words, unit_words


class Effect(enum.Enum):
    """Which way a change goes."""

    OPENS = "opens"
    CLOSES = "closes"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Change:
    """where: the key of the policy. words: what is different, for people."""

    effect: Effect
    where: str
    words: str


def diff(old: Policy, new: Policy) -> tuple[Change, ...]:
    """Every change, in the order of the policy's parts. Connection strings are never repeated."""
    return (
        *_whole(old, new),
        *_privacy(old.privacy, new.privacy),
        *_spent(old, new),
        *_budgets(old.budgets, new.budgets),
        *_questions(old.privacy, new.privacy),
        *_tables(old, new),
        *_limits(old.limits, new.limits),
    )


def _whole(old: Policy, new: Policy) -> Iterator[Change]:
    if old.dataset != new.dataset:
        words = f"another dataset, {new.dataset} in place of {old.dataset}: a new account with nothing spent"
        yield Change(Effect.OPENS, "dataset", words)
    if old.source != new.source:
        yield Change(Effect.CHANGES, "source", "the rows are read from another place")
    if old.data_version != new.data_version:
        yield Change(Effect.CHANGES, "source.data_version", "answers about the old version are not given again")
    elif old.digest != new.digest:
        yield Change(Effect.CHANGES, "policy", "stored answers are not given again, so asking anew costs anew")
    if old.users_file != new.users_file:
        yield Change(Effect.CHANGES, "access.users_file", "the logins stand in another file")


# --- promise and budgets ---------------------------------------------------------------------------------

# where more is promised when the number is smaller, and where it is not
_LESS_IS_SAFER = ("delta", "delta_pool", "max_query_epsilon")
_MORE_IS_SAFER = ("group_size", "min_units", "time_grid_s")

_RAW_SELECT = {
    RawSelect.REFUSE: "asking for rows themselves is an error",
    RawSelect.EMPTY: "rows that are asked for themselves are no error, there are none",
    RawSelect.MADE_UP: "rows that are asked for themselves are made up from this policy, with a notice that says so",
}
_PROFILE = {
    ProfileUse.KNOWN: (Effect.OPENS, "what profiles tell is charged to the dataset alone, and known to who may ask"),
    ProfileUse.CHARGED: (Effect.CLOSES, "what profiles tell is charged to each login and session that is told"),
}


def _privacy(old: Privacy, new: Privacy) -> Iterator[Change]:
    for name in (f.name for f in fields(Privacy)):
        before, after = getattr(old, name), getattr(new, name)
        if before == after or name == "questions":
            continue
        where = f"privacy.{name.removesuffix('_s')}"
        if name in (*_LESS_IS_SAFER, *_MORE_IS_SAFER):
            is_opening = (after > before) == (name in _LESS_IS_SAFER)
            yield Change(_opens(is_opening), where, _becomes(name, before, after))
        elif name == "neighbors":
            stronger = new.neighbors.value == "replace_one"
            words = "a unit that was exchanged" if stronger else "a unit that is there or not, no more one exchanged,"
            yield Change(Effect.CLOSES if stronger else Effect.OPENS, where, f"{words} is hidden now")
        elif name == "unit":
            effect = Effect.OPENS if new.unit == "row" else Effect.CHANGES
            yield Change(effect, where, f"{before} becomes {after}: is the same protected as before?")
        elif name == "accounting":
            yield Change(Effect.CHANGES, where, f"{_becomes(name, before, after)}: {accounting_words(new)}")
        elif name == "raw_select":
            yield Change(Effect.CHANGES, where, _RAW_SELECT[new.raw_select])
        elif name == "profile":
            effect, words = _PROFILE[new.profile]
            yield Change(effect, where, words)
        else:
            yield Change(Effect.CHANGES, where, _becomes(name, before, after))


def _questions(old: Privacy, new: Privacy) -> Iterator[Change]:
    """Whether accounts make a question cost something else."""
    if old.questions != new.questions:
        words = "a question without an epsilon of its own costs something else: policy check says how much"
        yield Change(Effect.CHANGES, "budgets", words)


def _spent(old: Policy, new: Policy) -> Iterator[Change]:
    """What becomes of what was charged to the dataset's accounts."""
    if old.dataset != new.dataset:
        return
    if words := reach_words(old.privacy, new.privacy):
        yield Change(Effect.CHANGES, "privacy", words)
    if words := unit_words(old, new):
        effect = Effect.OPENS if new.unit_changed_from == old.privacy.unit else Effect.CHANGES
        yield Change(effect, "privacy.unit_changed_from", words)


def _budgets(old: Budgets, new: Budgets) -> Iterator[Change]:
    for name in (f.name for f in fields(Budgets)):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            is_opening = _often(after) > _often(before) or _epsilon(after) > _epsilon(before)
            effect = Effect.OPENS if is_opening else Effect.CLOSES
            yield Change(effect, f"budgets.{name}", f"{_limit_words(before)} becomes {_limit_words(after)}")


def _epsilon(limit: AccountLimit) -> float:
    return limit.epsilon if isinstance(limit, EpsilonLimit) else float("inf")


def _often(limit: AccountLimit) -> int:
    """How often a limit comes back, in an order."""
    order = (Refresh.LIFETIME, Refresh.MONTH, Refresh.WEEK, Refresh.DAY)
    return order.index(limit.refresh) if isinstance(limit, EpsilonLimit) else len(order)


def _limit_words(limit: AccountLimit) -> str:
    if not isinstance(limit, EpsilonLimit):
        return "no limit"
    every = "" if limit.refresh is Refresh.LIFETIME else f" every {limit.refresh}"
    return f"epsilon {figure(limit.epsilon, 6)}{every}"


def _limits(old: Limits, new: Limits) -> Iterator[Change]:
    for name in (f.name for f in fields(Limits)):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield Change(Effect.CHANGES, f"limits.{name.removesuffix('_s')}", _becomes(name, before, after))


_EXACT = "its rows are shown to everybody, exactly and free"
_LOCAL = "all of it is public but what was randomized before it was stored"

# --- tables ----------------------------------------------------------------------------------------------


def _tables(old: Policy, new: Policy) -> Iterator[Change]:
    for name, table in new.tables.items():
        if name not in old.tables:
            shown = _count([c for c in table.columns if not c.hidden and not c.key], "column")
            yield Change(Effect.OPENS, f"tables.{name}", f"a new table with {shown} to ask about; {_shown_to(table)}")
    for name, table in old.tables.items():
        if name not in new.tables:
            yield Change(Effect.CLOSES, f"tables.{name}", "the table is not there for clients any more")
        else:
            yield from _table(table, new.tables[name])


def _table(old: Table, new: Table) -> Iterator[Change]:
    where = f"tables.{new.name}"
    yield from _owner(old.ownership, new.ownership, where)
    if old.relation != new.relation:
        words = f"its rows are those of {'.'.join(new.relation)}, no more of {'.'.join(old.relation)}"
        yield Change(Effect.CHANGES, f"{where}.relation", words)
    if old.unit_unique != new.unit_unique:
        words = "one row for each unit is claimed, and checked at the start" if new.unit_unique else (
            "a unit may have several rows")  # fmt: skip
        yield Change(Effect.CHANGES, f"{where}.unit_unique", words)
    if old.unit_filter_allowed != new.unit_filter_allowed:
        words = f"conditions may {'' if new.unit_filter_allowed else 'not '}name the unit's column"
        yield Change(_opens(new.unit_filter_allowed), f"{where}.unit_filter", words)
    if old.unit_constant != new.unit_constant:
        words = f"one value for each unit: {', '.join(new.unit_constant) or 'no column'}"
        yield Change(Effect.CHANGES, f"{where}.unit_constant", words)
    yield from _contributions(old, new, where)
    yield from _joins(old.joins, new.joins, where)
    if old.complete_joins != new.complete_joins:
        words = "other joins have a row for each: outer joins by them show groups of NULL, or do not"
        yield Change(Effect.CHANGES, f"{where}.complete_joins", words)
    yield from _columns(old, new, where)
    if old.comment != new.comment:
        yield Change(Effect.CHANGES, f"{where}.comment", "clients read another comment")


def _shown_to(table: Table) -> str:
    return _EXACT if table.is_public else _owner_words(table.ownership)


def _owner(old: Ownership, new: Ownership, where: str) -> Iterator[Change]:
    if old == new:
        return
    if isinstance(new, PublicTable):
        yield Change(Effect.OPENS, f"{where}.public", _EXACT)
    elif isinstance(old, PublicTable):
        words = f"its rows are no more shown, but those that were are known; {_owner_words(new)}"
        yield Change(Effect.CLOSES, f"{where}.public", words)
    elif isinstance(old, LocalTable) and isinstance(new, LocalTable):
        yield from _local(old, new, where)
    elif isinstance(new, LocalTable):
        yield Change(Effect.OPENS, f"{where}.local", f"{_LOCAL}, and nothing is charged or promised any more")
    elif isinstance(old, LocalTable):
        words = (
            "its rows are charged for and promised to be hidden, but what was answered exactly is known;"
            f" {_owner_words(new)}"
        )
        yield Change(Effect.CLOSES, f"{where}.local", words)
    else:
        words = f"{_owner_words(new)}, no more: {_owner_words(old)}; is the same protected as before?"
        yield Change(Effect.CHANGES, f"{where}.unit", words)


def _local(old: LocalTable, new: LocalTable, where: str) -> Iterator[Change]:
    if old.shows_rows != new.shows_rows:
        words = "its rows are shown as they are stored" if new.shows_rows else "its rows are no more shown as they are"
        yield Change(_opens(new.shows_rows), f"{where}.raw_select", words)
    if old.columns != new.columns:
        words = f"persons stand in {', '.join(new.columns) or 'no column'}; nothing is protected by it"
        yield Change(Effect.CHANGES, f"{where}.unit", words)


def _owner_words(owner: Ownership) -> str:
    match owner:
        case PublicTable():
            return "it is nobody's"
        case LocalTable():
            return _LOCAL
        case RowUnit():
            return "each row is a unit"
        case UnitColumns(columns):
            return f"the unit is {', '.join(columns)}"
        case UnitVia(parent, on, key):
            return f"the unit is that of {parent}, by {on} = {key}"


_CONTRIBUTIONS: tuple[tuple[str, Callable[[Table], BoundSource]], ...] = (
    ("max_rows_per_unit", lambda t: t.rows_per_unit),
    ("max_rows_per_group", lambda t: t.rows_per_group),
    ("max_groups_per_unit", lambda t: t.groups_per_unit),
    ("max_keys_per_unit", lambda t: WrittenBound(t.keys_per_unit)),
)


def _contributions(old: Table, new: Table, where: str) -> Iterator[Change]:
    """Bounds of what one unit adds: the promise stays, as noise follows them."""
    for name, limit in _CONTRIBUTIONS:
        before, after = limit(old), limit(new)
        if before != after:
            words = f"{_bound_words(before)} becomes {_bound_words(after)}"
            more = "what counts of very active units changes, and the noise with it"
            yield Change(Effect.CHANGES, f"{where}.{name}", f"{words}: {more}")
    if old.rows_per != new.rows_per:
        words = "rows with the same values are bounded otherwise: what counts of very active units changes"
        yield Change(Effect.CHANGES, f"{where}.max_rows_per", words)


def _bound_words(limit: BoundSource) -> str:
    match limit:
        case WrittenBound(most, is_ceiling):
            return f"at most {most}, whatever a profile tells" if is_ceiling else str(most)
        case _:
            return "the default"


def _joins(old: tuple[JoinKey, ...], new: tuple[JoinKey, ...], where: str) -> Iterator[Change]:
    for effect, joins, others, word in ((Effect.OPENS, new, old, "may"), (Effect.CLOSES, old, new, "may no more")):
        for join in joins:
            if join not in others:
                words = f"{word} be joined to {join.table}.{join.ref_column}"
                yield Change(effect, f"{where}.joins.{join.column}", words)


def _columns(old: Table, new: Table, where: str) -> Iterator[Change]:
    for column in new.columns:
        before = old.column(column.name)
        here = f"{where}.columns.{column.name}"
        if before is None:
            yield Change(_opens(not column.hidden), here, f"a new column{_for_what(column)}")
        elif before != column:
            yield from _column(before, column, here)
    for column in old.columns:
        if new.column(column.name) is None:
            here = f"{where}.columns.{column.name}"
            yield Change(Effect.CLOSES, here, "the column is not there for clients any more")
    kept = [[c.name for c in table.columns if other.column(c.name)] for table, other in ((old, new), (new, old))]
    if kept[0] != kept[1]:
        yield Change(Effect.CHANGES, f"{where}.columns", "they stand in another order, as clients see them")


def _for_what(column: Column) -> str:
    if column.hidden:
        return ", which clients do not see"
    if column.key:
        return ", which may only be joined on"
    return "" if isinstance(column.domain, Unknown) else f"; {_domain_words(column.domain)}"


def _column(old: Column, new: Column, where: str) -> Iterator[Change]:
    if old.type is not new.type:
        yield Change(Effect.CHANGES, f"{where}.type", f"{old.type.pg_name} becomes {new.type.pg_name}")
    if old.hidden != new.hidden:
        yield Change(_opens(not new.hidden), f"{where}.hidden", f"clients {'do not ' * new.hidden}see it")
    if old.key != new.key:
        words = "it may only be joined on" if new.key else "it may be asked about, no more only be joined on"
        yield Change(_opens(not new.key), f"{where}.key", words)
    if old.domain != new.domain:
        yield from _domain(old.domain, new.domain, new, where)
    if old.sum_bounds != new.sum_bounds:
        yield Change(Effect.CHANGES, f"{where}.sum_bounds", _sum_words(old.sum_bounds, new.sum_bounds))
    if old.randomized != new.randomized:
        yield from _randomized(old.randomized, new.randomized, f"{where}.randomized")
    if old.nullable != new.nullable:
        words = "NULL is a value of its own" if new.nullable else "NULL counts as the middle"
        yield Change(Effect.CHANGES, f"{where}.nullable", words)
    if old.case_blind != new.case_blind:
        words = "groups are told apart in lower case" if new.case_blind else "spellings in other letters are told apart"
        yield Change(Effect.CHANGES, f"{where}.case_blind", words)


def _randomized(old: Randomized | NotRandomized, new: Randomized | NotRandomized, where: str) -> Iterator[Change]:
    """Nothing is drawn again by an edit: it is said otherwise what the stored values are."""
    if isinstance(new, NotRandomized):
        yield Change(Effect.CHANGES, where, "what is stored counts as the truth: is it?")
    elif isinstance(old, NotRandomized):
        words = f"what is stored counts as randomized by {mechanism_words(new)}: was it?"
        yield Change(Effect.CHANGES, where, words)
    else:
        words = f"{mechanism_words(old)} becomes {mechanism_words(new)}: answers are estimates by it, were values so?"
        yield Change(Effect.CHANGES, where, words)


def _sum_words(old: Bounded | Unknown, new: Bounded | Unknown) -> str:
    if isinstance(new, Unknown):
        return f"no more {_domain_words(old)}: the sum of a unit is bounded by its rows alone"
    words = f"{_domain_words(new)}, where no bounds were" if isinstance(old, Unknown) else (
        f"{_domain_words(old)} becomes {_domain_words(new)}")  # fmt: skip
    return f"{words}: the sum of a unit beyond counts as the end"


def _domain(old: Domain, new: Domain, column: Column, where: str) -> Iterator[Change]:
    match old, new:
        case Listed(before), Listed(after):
            if added := [v for v in after if v not in before]:
                words = f"{_count(added, 'value')} more {'are' if len(added) > 1 else 'is'} public and may be a group"
                yield Change(Effect.OPENS, f"{where}.values", words)
            if gone := [v for v in before if v not in after]:
                words = f"{_count(gone, 'value')} fewer: rows with them belong to no group"
                yield Change(Effect.CLOSES, f"{where}.values", words)
            if not added and not gone:
                yield Change(Effect.CHANGES, f"{where}.values", "another order")
        case Bounded(), Bounded():
            words = f"{_domain_words(old)} becomes {_domain_words(new)}: values beyond count as the end, noise follows"
            yield Change(Effect.CHANGES, f"{where}.bounds", words)
        case Listed() | Bounded(), Listed() | Bounded():
            words = f"{_domain_words(new)}, no more {_domain_words(old)}: other values count, other groups are public"
            yield Change(Effect.CHANGES, where, words)
        case _, Listed() | Bounded():
            words = f"{_domain_words(new)}, and public: {_measures(column)}all its groups may be asked for"
            yield Change(Effect.OPENS, where, words)
        case _:
            without = f"no {_measures(column)}" if _measures(column) else ""
            words = f"no more {_domain_words(old)}: {without}any value may be a group, if enough units are in it"
            yield Change(Effect.CHANGES, where, words)


def _measures(column: Column) -> str:
    """What needs bounds."""
    if column.type.is_number:
        return "sums, averages and quantiles, and "
    return "quantiles, and " if column.type.is_time else ""


def _domain_words(domain: Domain) -> str:
    match domain:
        case Bounded(lo, hi):
            return f"[{lo}, {hi}]"
        case Listed(values):
            return f"{_count(values, 'value')} listed"
        case _:
            return "nothing"


def _count(values: Sequence[object], noun: str) -> str:
    number = len(values)
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _opens(is_opening: bool) -> Effect:
    return Effect.OPENS if is_opening else Effect.CLOSES


def _becomes(name: str, before: object, after: object) -> str:
    """name: of the field, which says whether it is seconds."""
    unit = " s" if name.endswith("_s") else ""
    return f"{_plain(before)}{unit} becomes {_plain(after)}{unit}"


def _plain(value: object) -> str:
    match value:
        case enum.Enum():
            return str(value.value)
        case float():
            return figure(value, 6)
        case _:
            return str(value)
