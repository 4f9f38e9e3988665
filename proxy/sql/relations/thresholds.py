"""What rows does a join with constants make where a private row may meet several of them, as with thresholds?

Those of the private side, once for each row of constants, with what it meets: UNION ALL of as many SELECTs. Claim: a
unit has at most the sum of what it has in each, as in any UNION ALL; which of them there are says the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from proxy.sql.algebra.nodes import ColumnRef, Literal, Null, Scalar, with_columns
from proxy.sql.algebra.renumber import Copies
from proxy.sql.algebra.rows import Joined, Named, Rows
from proxy.sql.relations import kept
from proxy.sql.relations.joins import Making
from proxy.sql.relations.joins import with_columns as with_names
from proxy.sql.syntax.refusal import refuse


def for_each(left: Joined, met: Sequence[tuple[Named, Scalar]], node: exp.Join, making: Making) -> Joined:
    """`left` once for each row of constants, where the condition holds. Raises Unsupported.

    `users JOIN (VALUES (18), (65)) v(t) ON age >= t` is
    `SELECT ..., 18 AS t FROM users WHERE age >= 18 UNION ALL SELECT ..., 65 FROM users WHERE age >= 65`.
    """
    plain = kept.plain(left.rows, node)
    copies = [Copies(making.fresh) for _ in met[1:]]
    parts = [replace(plain, where=(*plain.where, met[0][1]))]
    for copy, (_, condition) in zip(copies, met[1:], strict=True):
        rows = copy.rows(plain)
        parts.append(replace(rows, where=(*rows.where, copy.scalar(condition))))
    made = making.together(node, parts)

    def shared(column: ColumnRef) -> Scalar:
        return made.shared((column, *(copy.column(column) for copy in copies)))

    def shown(rows: Rows) -> Rows:
        return Rows(scans=(), columns=tuple((name, with_columns(s, shared)) for name, s in rows.columns))

    constants = []
    for place, (name, _) in enumerate(met[0][0].rows.columns):
        values = tuple(v for row, _ in met if isinstance(v := row.rows.columns[place][1], (Literal, Null)))
        if len(values) < len(met):
            raise refuse(node, "what private rows may meet several times is a constant", "Write it out.")
        constants.append((name, made.listed(values)))
    relations = tuple(Named(r.alias, shown(r.rows)) for r in left.relations)
    both = Joined(relations, shown(left.rows))
    relation = Named(met[0][0].alias, Rows(scans=(), columns=tuple(constants)))
    found = with_names(both, relation, node)
    return replace(found, rows=replace(found.rows, scans=(made.scan(),)))
