"""How is it said what randomized columns protect?"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.plan.unpromised import protected_words
from proxy.policy.model import Policy
from proxy.policy.randomized import mechanism_words
from proxy.policy.response import NotRandomized


def local_lines(policy: Policy) -> Iterator[str]:
    """Each randomized column of a policy, and the sum for a row of each table."""
    for table in policy.tables.values():
        for column in table.columns:
            if not isinstance(column.randomized, NotRandomized):
                yield f"{table.name}.{column.name} was randomized: {mechanism_words(column.randomized)}"
        if table.randomized:
            yield f"{table.name}: protected when collected, {protected_words(table, policy.privacy)}"
