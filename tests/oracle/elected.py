"""What are the weights of the candidates of a mode by definition? Rows one by one, each unit within its bounds.

Independent of the SQL and of what draws by it. The one formula from the product is the bound of a unit's weight, which
`tests.oracle.ranked` has; C and how many full groups count come from the plan.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from proxy.analysis.keys import PrivateKey
from proxy.plan.parts.modes import ModePart
from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import Unknown
from proxy.sql.algebra.nodes import TRUE, ColumnRef, columns_of
from tests.oracle.bounded import Key, Oracle
from tests.oracle.ranked import weighed
from tests.oracle.rows import Unit
from tests.oracle.scalars import Row
from tests.oracle.values import Value

Held = Mapping[Unit, Mapping[Key, Counter[Value]]]


def weights(
    oracle: Oracle, plan: ReleasePlan, part: ModePart, kept: Collection[Key]
) -> Mapping[Key, Mapping[Value, int]]:
    """By key and value. kept: the private parts of keys that were released; of no importance without them."""
    return weighed(held_values(oracle, plan, part, kept), plan, part.poll.groups)


def held_values(oracle: Oracle, plan: ReleasePlan, part: ModePart, kept: Collection[Key]) -> Held:
    """By unit and key, the number of its rows with each value."""
    is_private = [isinstance(k, PrivateKey) for k in plan.analysed.keys]
    asked = part.asked
    held: dict[Unit, dict[Key, Counter[Value]]] = defaultdict(lambda: defaultdict(Counter))
    for number, row in enumerate(oracle.rows()):
        key = oracle.key(row)
        private = tuple(k for k, p in zip(key, is_private, strict=True) if p)
        passes = asked.where == TRUE or oracle.evaluator.passes(asked.where, row)
        if not passes or (private and private not in kept):
            continue
        value = oracle.public_value(asked.of, row)
        if value is not None and all(_is_inside(oracle, plan, c, row) for c in columns_of(asked.of)):
            held[oracle.unit_of(row) or (number,)][key][value] += 1
    return held


def _is_inside(oracle: Oracle, plan: ReleasePlan, reference: ColumnRef, row: Row) -> bool:
    """Whether a column is in its domain; NULL is where it may be."""
    column, value = plan.analysed.domains.column(reference), oracle.evaluator.raw(reference, row)
    if value is None:
        return column.nullable
    return isinstance(column.domain, Unknown) or oracle.evaluator.is_inside(reference, value)
