"""Which rows of a table exist for a role that may not see all?

Those that pass the condition of its users file. It is bound here as a WHERE over the table alone is, by the policy's
clocks and whatever a session has set, and joins the conditions of the block.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.errors import HushError, Unsupported
from proxy.policy.model import Table
from proxy.sql.algebra.constants import Unread, not_understood
from proxy.sql.algebra.nodes import ColumnRef, Scalar
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.consulted import Consulted
from proxy.sql.binding.rules import RULES
from proxy.sql.conditions.factored import requirements
from proxy.sql.syntax.complete import check_complete
from proxy.sql.syntax.names import identifier
from proxy.sql.syntax.parse import parse_item, tokenize
from proxy.sql.syntax.refusal import only, refuse


def rows_where(table: Table, number: int, constants: Consulted) -> tuple[Scalar, ...]:
    """What a row must pass to exist for who asks, over the scan of that number. Nothing where all rows do.

    Claim (docs/claims/roles.md): a function of the table, the policy and, if it names the clock, the time. No
    parameter, setting or name of the client's bears on it. It may name columns that are hidden from the role.
    Raises HushError: `check_roles` has asked for each role before it was served.
    """
    if not table.rows_where:
        return ()
    own = constants.of_policy()
    try:
        found = tuple(requirements(_binder(table, number, own).condition(_tree(table.rows_where))))
    except Unread as unread:  # the client's settings decide how PostgreSQL would read it
        raise not_understood(unread) from None
    except HushError as error:
        error.position = 0  # it is no place of the client's statement
        raise
    constants.reads_clock |= own.reads_clock
    return found


def _tree(text: str) -> exp.Expression:
    """The one expression that a condition is. Raises Unsupported."""
    tokens = tokenize(text)
    select = parse_item(tokens, text)
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        raise Unsupported("it is not one condition", hint="Write what would stand behind WHERE.")
    only(select, "expressions", "kind")
    condition = select.expressions[0]
    assert isinstance(condition, exp.Expression)
    check_complete((condition,), tokens)
    if condition.find(exp.Parameter, exp.Placeholder, exp.Query) is not None:
        raise refuse(condition, "a condition on the rows of a role has no parameters and no sub-queries")
    return condition


def _binder(table: Table, number: int, constants: Consulted) -> Binder:
    def resolve(node: exp.Column) -> Scalar:
        only(node, "this", "table")
        prefix, name = identifier(node.args.get("table")), identifier(node.this)
        column = table.column(name) if prefix in ("", table.name) else None
        if column is None:
            raise refuse(node, f'column "{name}" does not exist in table "{table.name}"')
        if column.is_randomized:  # true values are estimated from all rows
            raise refuse(node, f'the values of "{name}" were randomized, and do not tell which rows exist',
                         "Name columns that are stored as they are.")  # fmt: skip
        return ColumnRef(number, column.name, column.type)

    return Binder(resolve, constants, table.rows_where, RULES)
