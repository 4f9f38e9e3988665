"""What does a release compute beside its vector of moments, and what does each part of it cost?

A part has its own private SQL, share of the charge, bound, noise and results: integers for each cell that is emitted.
All of them are charged with the vector, before its SQL runs. With private keys they are computed for the keys that the
vector's noisy unit count kept: their SQL reads those as parameters, which are public by then.

A new kind of part is a case of `asked.Asked`, of `Part` and `plan_part` here, of `release.parts`, of
`release.finish` and of `plan.describe`, `plan.outputs` and `plan.explain`.
"""

from __future__ import annotations

from typing import assert_never

from proxy.errors import PolicyForbids
from proxy.plan.parts.distinct import DistinctPart, plan_distinct
from proxy.plan.parts.modes import ModePart, plan_mode
from proxy.plan.parts.part_requests import DistinctValues, MostFrequent, PartRequest, Quantiles
from proxy.plan.parts.quantiles import QuantilePart, plan_quantiles
from proxy.plan.sql.moment_sql import VectorStatement
from proxy.policy.model import Promise

Part = DistinctPart | QuantilePart | ModePart


def plan_part(asked: PartRequest, statement: VectorStatement, pico: int, promise: Promise) -> Part:
    """One part over the rows of `statement`. promise: in which units neighbours differ. Raises HushError."""
    match asked:
        case DistinctValues():
            return plan_distinct(asked, statement, pico, promise.reach)
        case Quantiles():
            return plan_quantiles(asked, statement, pico, promise.reach)
        case MostFrequent():
            return plan_mode(asked, statement, pico, promise)
        case _ as never:
            assert_never(never)


def identity(part: Part) -> list[str]:
    """What tells a part apart from others that publish other results."""
    match part:
        case DistinctPart():
            return [part.sql]
        case QuantilePart(grid=grid, ladder=ladder):
            return [part.sql, repr(grid), repr(ladder)]
        case ModePart(candidates=candidates, poll=poll):
            return [part.sql, repr(candidates), repr(poll)]
        case _ as never:
            assert_never(never)


def shares(pico: int, parts: int, *, has_vector: bool) -> tuple[int, tuple[int, ...]]:
    """What the vector and each part cost: equal shares, what is left over for the first. Raises PolicyForbids."""
    takers = parts + has_vector
    share, rest = divmod(pico, takers)
    if share == 0:
        raise PolicyForbids(
            f"epsilon is too small for the {takers} parts of this release",
            hint="Raise hush.epsilon, or ask in several statements.",
        )
    if has_vector:
        return share + rest, (share,) * parts
    return 0, (share + rest, *(share,) * (parts - 1))
