"""What can be written instead of what private rows, or PostgreSQL, do not know? In the words of the statement."""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.advice.calls import instead_of_call
from proxy.sql.advice.statements import tile_ends
from proxy.sql.syntax.words import construct
from proxy.sql.syntax.written_calls import WrittenCall, call_at, call_of

JOINED_INSTEAD = (
    "Ask for the unit in one plain SELECT, user_id IN (SELECT user_id FROM orders WHERE ...), aggregate to one row, "
    "or join one row each: LEFT JOIN (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) o USING (user_id)."
)


def written_name(node: exp.Expr, source: str) -> str:
    """The name of a function call as it stands in the statement, in lower case; "" for all else."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if not isinstance(node, exp.Func) or not isinstance(start, int) or not isinstance(end, int):
        return ""
    name = source[start : end + 1].lower()
    return name if name.isidentifier() else ""


def advice(node: exp.Expr, source: str) -> str:
    """What to write instead of a call; "" where nothing comes to mind. source: the statement."""
    if isinstance(node, exp.Window) and isinstance(node.this, exp.Ntile):
        return shares_instead(node)
    if not isinstance(node, exp.Func):
        return ""
    start = node.meta.get("start")
    if isinstance(start, int) and (written := call_at(source, start)) is not None:
        return instead_of_call(written)
    names = (construct(node), *(name.lower() for name in node.sql_names()))
    found = next((call for name in names if (call := call_of(source, name)) is not None), WrittenCall(names[-1]))
    return instead_of_call(found)


_MOST_SHARES = 20  # that a hint writes out


def shares_instead(node: exp.Expression) -> str:
    """The ends of the tiles of ntile(4) OVER (ORDER BY x), as percentiles of x."""
    order, tiles = node.args.get("order"), node.this.args.get("this")
    number = max(2, int(str(tiles.this))) if isinstance(tiles, exp.Literal) and str(tiles.this).isdigit() else 4
    ordered = order.expressions[0].this.sql(dialect="postgres") if order is not None else "x"
    shares = ", ".join(f"{n / number:.4g}" for n in range(1, min(number, _MOST_SHARES)))
    asked = tile_ends(node, shares, ordered) or f"percentile_cont(ARRAY[{shares}]) WITHIN GROUP (ORDER BY {ordered})"
    return (
        f"Tiles of all rows end at percentiles: {asked}. Their numbers are constants of your next statement:"
        f" width_bucket({ordered}, ...) or CASE."
    )


def advice_within(tree: exp.Expr, source: str) -> str:
    """The same for the first function of a statement that has some; "" for all others."""
    return next((found for call in tree.find_all(exp.Anonymous) if (found := advice(call, source))), "")


def instead_of(statement: exp.Expr) -> str:
    """What can be written for a statement that keeps the rows of a private SELECT; "" for the usual words."""
    if isinstance(statement, exp.Create) and str(statement.args.get("kind")).upper() == "VIEW":
        return "Write CREATE TEMP VIEW, or CREATE TEMP TABLE t AS SELECT ... to keep one answer."
    if isinstance(statement, (exp.Create, exp.Insert)):
        return "Write CREATE TEMP TABLE t AS SELECT ..., or SELECT ... INTO TEMP t; what it holds can be copied on."
    if isinstance(statement, (exp.Update, exp.Delete, exp.Merge)):
        return "Private tables are only read, by SELECT with aggregates."
    return ""
