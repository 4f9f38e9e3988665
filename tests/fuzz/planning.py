"""From a world and a query's text to its release plan."""

from __future__ import annotations

import random
from types import MappingProxyType
from zoneinfo import ZoneInfo

from proxy.analysis.analyse import Lowered
from proxy.errors import Unsupported
from proxy.plan.release_plan import PlanContext, ReleasePlan, plan_release
from proxy.policy.model import Accounting
from proxy.sql.algebra.constants import Constants, Unread, not_understood
from proxy.sql.query.block import BoundBlock, bind_block
from proxy.sql.query.public_rows.aggregate_below_join import split_lifted
from proxy.sql.query.split import BlockText, Split
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.fuzz.worlds import NOW, World

RHO_PICO = 10**10
EPSILON_PICO = 10**11
SALT = "5a17"


def make_context(world: World, rng: random.Random) -> PlanContext:
    """What planning needs, with a client's own bounds now and then."""
    lowered = Lowered(rows_per_group=rng.choice((0, 0, 0, 1, 2)), groups=rng.choice((0, 0, 0, 1, 2)))
    return context_of(world, lowered)


def context_of(world: World, lowered: Lowered) -> PlanContext:
    """What planning needs."""
    is_pure = world.privacy.accounting is Accounting.PURE
    return PlanContext(
        tables=world.tables,
        unique=world.unique,
        privacy=world.privacy,
        lowered=lowered,
        pico=EPSILON_PICO if is_pure else RHO_PICO,
        atto_for_keys=0 if is_pure else 5 * 10**9,
        salt=SALT,
    )


def split_query(world: World, query: str) -> Split:
    """A query cut at the noise line, in the words that it is lifted to. Raises HushError."""
    return split_lifted(split_statements(query)[0], Catalog(world.tables), frozenset())[0]


def block_of(cut: Split) -> BlockText:
    """Where the one block of a query stands. Raises HushError."""
    if len(cut.blocks) != 1:  # a part of a query, made smaller, may have none
        raise Unsupported("the query has no block of its own")
    return cut.blocks[0]


def bind(world: World, query: str) -> BoundBlock:
    """The one block of a query. Raises HushError."""
    constants = Constants(MappingProxyType({}), NOW.replace(tzinfo=ZoneInfo(world.privacy.time_zone)))
    cut = split_query(world, query)
    return bound(block_of(cut), world, constants, cut.text)


def bound(block: BlockText, world: World, constants: Constants, text: str) -> BoundBlock:
    """A block of a statement, where there is no server to read constants. Raises HushError."""
    try:
        return bind_block(block, Catalog(world.tables), constants, text)
    except Unread as unread:
        raise not_understood(unread) from None


def plan_query(world: World, query: str, context: PlanContext) -> ReleasePlan:
    """The release plan of a query with one block. Raises HushError."""
    return plan_release(bind(world, query).block, context)
