"""How is it said what randomized columns protect?"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.dp.response import ApproximateRow, PureRow, RhoRow, of_row
from proxy.policy.figures import figure
from proxy.policy.model import Policy, Table
from proxy.policy.randomized import mechanism_words
from proxy.policy.response import NotRandomized


def protected_words(table: Table, policy: Policy) -> str:
    """The sum over a row's randomized columns."""
    match of_row(table.randomized, policy.privacy):
        case PureRow(epsilon):
            return f"epsilon {figure(epsilon)} for each row"
        case RhoRow(rho):
            return f"rho {figure(rho)} for each row"
        case ApproximateRow(rho, epsilon, delta):
            return f"rho {figure(rho)}, which is epsilon {figure(epsilon)} at delta {figure(delta)}, for each row"


def local_lines(policy: Policy) -> Iterator[str]:
    """Each randomized column of a policy, and the sum for a row of each table."""
    for table in policy.tables.values():
        for column in table.columns:
            if not isinstance(column.randomized, NotRandomized):
                yield f"{table.name}.{column.name} was randomized: {mechanism_words(column.randomized)}"
        if table.randomized:
            yield f"{table.name}: protected when collected, {protected_words(table, policy)}"
