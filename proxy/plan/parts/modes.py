"""Among which public values is the most frequent one looked for, and which statement counts them, every unit bounded?

Candidates are the values that a GROUP BY would show whatever the data hold: never those that occur. Of values that
nobody listed the rows are counted in groups with private keys, and the answer is read from these. See
docs/claims/modes.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from proxy.analysis.analyse import Analysed
from proxy.analysis.channels import channel_of, column_of
from proxy.analysis.key_values import KeyValues
from proxy.analysis.keys import NULL_KEY, KeyValue, PublicKey, public_product, public_values
from proxy.analysis.units import UnitOf
from proxy.dp.accounting import of_pico_down
from proxy.dp.modes import Poll
from proxy.dp.quantiles import MOST_MOVE
from proxy.errors import HushError, MissingBounds, PolicyForbids
from proxy.plan.parts.histogram import weighed
from proxy.plan.parts.part_requests import MostFrequent
from proxy.plan.parts.part_rows import part_rows
from proxy.plan.parts.quantile_grid import cells_left
from proxy.plan.sql.moment_sql import MomentTerms, VectorStatement
from proxy.policy.model import Bounded, Domain, Neighbors, Privacy, Promise
from proxy.sql.algebra.nodes import (
    TRUE,
    Aggregate,
    AggregateKind,
    Block,
    ColumnRef,
    Scalar,
    Stored,
    columns_of,
    conjuncts,
    is_present,
)
from proxy.sql.functions.domains.intervals import number_range, time_range
from proxy.sql.syntax.names import spelled
from proxy.sqltypes import SqlType

_DETAIL = (
    "mode() is drawn from public values: those that the policy or a condition lists, true and false, and whole numbers"
    " or days between bounds. Other texts, whole numbers and days are found if enough units have them, where nothing"
    " else is asked and the policy has a delta."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModePart:
    """The most frequent of some public values, for each group.

    pico: its share of the charge. nearer: by how much numbers of stored values are apart for each row that those of the
    true ones are; 1 where nothing was randomized.
    """

    asked: MostFrequent
    candidates: tuple[KeyValue, ...]
    poll: Poll
    pico: int
    sql: str = field(repr=False)
    nearer: float = 1.0


def plan_mode(asked: MostFrequent, statement: VectorStatement, pico: int, promise: Promise) -> ModePart:
    """Candidates, bounds and SQL of one mode. promise: in which units neighbours differ. Raises HushError.

    A unit that is replaced takes rows from one candidate and gives them to another: the scores do not all move one way
    then, by the rows of one unit each.
    """
    bounds = statement.analysed.bounds
    move = bounds.rows_per_group * promise.group_size
    if move > MOST_MOVE:
        raise PolicyForbids(
            "the policy allows one person too many rows for mode()",
            hint=f"SET hush.max_rows_per_group to {MOST_MOVE // promise.group_size} or less.",
        )
    candidates = _candidates(asked, statement.analysed)
    groups = min(bounds.groups, -(-bounds.rows // bounds.rows_per_group))
    poll = Poll(
        distribution=statement.distribution, candidates=len(candidates), move=move,
        is_monotone=promise.neighbors is Neighbors.ADD_REMOVE, groups=groups, amount=of_pico_down(pico),
    )  # fmt: skip
    return ModePart(asked=asked, candidates=candidates, poll=poll, pico=pico, sql=_counted(asked, statement, groups),
                    nearer=_nearer(asked.of, statement.analysed.owned.block))  # fmt: skip


def counted_values(block: Block, analysed: Analysed, privacy: Privacy) -> Block | None:
    """The block that counts the rows of each value, where all that is asked is the mode() of values nobody listed.

    None for every other block. Before: SELECT plan, mode() WITHIN GROUP (ORDER BY city) FROM users GROUP BY plan.
    After: SELECT plan, city, count(*) FROM users WHERE city IS NOT NULL GROUP BY plan, city. Its release is one of
    private keys like any other; `release.modes` reads it.
    """
    if len(block.aggregates) != 1 or block.aggregates[0].kind is not AggregateKind.MODE or privacy.delta_pool <= 0:
        return None
    where, of = block.aggregates[0].where, block.aggregates[0].argument
    domains = analysed.domains.passing(where)
    is_listed = public_values(of, domains, KeyValues(domains)) is not None or _between(of, domains.of(of)) > 0
    if is_listed or of in block.keys or _is_fine(of.type):
        return None
    present = (is_present(of),) if domains.may_be_null(of) else ()
    rows = Aggregate(AggregateKind.COUNT_ROWS, TRUE, TRUE, SqlType.INT8)
    return replace(block, where=(*block.where, *conjuncts(where), *present), keys=(*block.keys, of), aggregates=(rows,))


def _is_fine(kind: SqlType) -> bool:
    """Whether hardly two rows have the same value."""
    return (kind.is_number and not kind.is_integer) or (kind.is_time and kind is not SqlType.DATE)


def _nearer(of: Scalar, block: Block) -> float:
    channel = channel_of(of, column_of(of, block)) if isinstance(of, ColumnRef) else None
    return 1.0 if channel is None else 1.0 / (channel.on[0] - channel.off[0])


def _candidates(asked: MostFrequent, analysed: Analysed) -> tuple[KeyValue, ...]:
    """All values that a row may have which passes all conditions; NULL alone if no row can pass. Raises HushError."""
    domains = analysed.domains.passing(asked.where)
    found = public_values(asked.of, domains, KeyValues(domains))
    groups = max(1, len(public_product(analysed.keys, analysed.joints)))
    most = cells_left(groups, has_private_keys=bool(analysed.private_keys))
    number = _between(asked.of, domains.of(asked.of)) if found is None else len(found)
    if number > most:
        raise _too_many(asked.of, number, most)
    if found is None:
        raise _not_listed(asked, analysed)
    return found or (NULL_KEY,)


def _counted(asked: MostFrequent, statement: VectorStatement, groups: int) -> str:
    """The SQL: the keys, a value and the weight of the group's rows that have it. NULL counts nowhere."""
    terms = MomentTerms(statement)
    tests = [terms.renderer.condition(asked.where)] if conjuncts(asked.where) else []
    tests += terms.source.in_domains((PublicKey(asked.of, ()),))
    rows = part_rows(terms, " AND ".join(tests) or "TRUE", terms.renderer.key(asked.of))
    return weighed(statement, terms, f"SELECT * FROM (\n{rows}) AS valued WHERE x IS NOT NULL", groups)


def _not_listed(asked: MostFrequent, analysed: Analysed) -> HushError:
    return MissingBounds(
        f"the values of {_named(asked.of, analysed)} are not listed",
        detail=_DETAIL,
        hint=f"{_listing(asked.of)} Or count them: {_counting(asked, analysed)}",
    )


def _listing(of: Scalar) -> str:
    """What names the values."""
    x = _shown(of)
    if of.type.is_integer:
        return f"Give bounds, WHERE {x} BETWEEN 0 AND 100."
    if of.type.is_number:
        return f"Order by whole numbers between bounds, floor({x}) WHERE {x} BETWEEN 0 AND 100."
    if of.type is SqlType.DATE:
        return f"Give bounds, WHERE {x} BETWEEN '2024-01-01' AND '2024-12-31'."
    if of.type.is_time:
        return f"Order by days between bounds, {x}::date WHERE {x} BETWEEN '2024-01-01' AND '2024-12-31'."
    return f"Name them, WHERE {x} IN ('a', 'b')."


def _too_many(of: Scalar, number: int, most: int) -> HushError:
    x = _shown(of)
    times = 10 ** len(str(-(-number // most) - 1))
    if of.type.is_integer:
        coarser = f"{x} / {times}"
    else:
        coarser = f"floor({x} / {times})" if of.type.is_number else f"date_trunc('month', {x})"
    return MissingBounds(
        f"mode() is drawn from at most {most:,} values here, and these are {number:,}",
        detail=_DETAIL,
        hint=f"Take coarser values, mode() WITHIN GROUP (ORDER BY {coarser}), or narrower bounds in WHERE.",
    )


def _between(of: Scalar, domain: Domain) -> int:
    """How many whole numbers or days there are between bounds; 0 where these do not tell."""
    if not isinstance(domain, Bounded):
        return 0
    if of.type.is_integer and (ends := number_range(domain)) is not None:
        return math.floor(ends[1]) - math.ceil(ends[0]) + 1
    if of.type is SqlType.DATE and (days := time_range(domain)) is not None:
        return (days[1].date() - days[0].date()).days + 1
    return 0


def _shown(of: Scalar) -> str:
    return spelled(of.name) if isinstance(of, ColumnRef) else "x"


def _named(of: Scalar, analysed: Analysed) -> str:
    if not isinstance(of, ColumnRef):
        return "this expression"
    return f'"{analysed.owned.block.scan(of.scan).table.name}"."{of.name}"'


def _counting(asked: MostFrequent, analysed: Analysed) -> str:
    """A statement that shows those that enough units have, as far as it can be written from what is known here."""
    block, of = analysed.owned.block, asked.of
    is_plain = len(block.scans) == 1 and not block.joins and isinstance(block.scans[0].rows, Stored)
    keys = [spelled(k.name) for k in block.keys if isinstance(k, ColumnRef)]
    if not is_plain or not isinstance(of, ColumnRef) or len(keys) < len(block.keys):
        return "SELECT x, count(*) ... GROUP BY 1 ORDER BY 2 DESC LIMIT 1."
    table, x = spelled(block.scans[0].table.name), spelled(of.name)
    units = analysed.owned.unit.columns if isinstance(analysed.owned.unit, UnitOf) else ()
    has_conditions = asked.where != TRUE or any(columns_of(c) - {*units} for c in block.where)
    more = " Keep your conditions." if has_conditions else ""
    if not keys:
        return f"SELECT {x}, count(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC LIMIT 1.{more}"
    numbers, last = ", ".join(str(i) for i in range(1, len(keys) + 1)), len(keys) + 1
    names = ", ".join((*keys, x))
    return (
        f"SELECT {names}, count(*) FROM {table} GROUP BY {numbers}, {last} ORDER BY {numbers}, {last + 1} DESC.{more}"
    )
