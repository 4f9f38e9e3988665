"""Random queries in which each row of constants asks for its own number, by a sub-query or a join.

For the tables of `constant_queries`.
"""

from __future__ import annotations

import random

from tests.fuzz.worlds import World

_AGGREGATES = (
    "count(*)",
    "count(x.code)",
    '"count"(x.code)',
    "count /* of codes */ (x.code)",
    "coalesce(sum(x.code), 0)",
    "count(*) filter (where x.code > 0)",
)
_JOINED = (*_AGGREGATES, "coalesce(sum(case when x.code > 0 then 1 else 0 end), 0)", "count(coalesce(x.code, 1))",
           "count(case when x.code is null then 1 end)", "count(*) filter (where x.code is null)")  # fmt: skip


def make_lifted_query(_: World, rng: random.Random) -> str:
    """One random query, which may be refused."""
    rows = (
        rng.choice(("generate_series(0, 3)", "(values (0), (2), (2), (7))", "(values (0), (1), (null))")) + " as d(k)"
    )
    where = rng.choice(("", "", " and x.code > 0", " and d.k < 2", " and x.code > d.k"))
    table, link = rng.choice("pe"), rng.choice(("x.code = d.k", "d.k + 1 = x.code", "x.code - 1 = d.k"))
    if rng.random() < 0.4:
        asked = " + ".join(rng.choices(_AGGREGATES, k=rng.choice((1, 2))))
        inner = f"(select {asked} from {table} x where {link}{where})"
        shown = rng.choice((f"d.k as g, {inner} as a from {{}}", f"coalesce(sum({inner}), 0) as a from {{}}",
                            f"d.k as g from {{}} where {inner} > 1"))  # fmt: skip
        return f"select {shown.format(rows)}"
    key = rng.choice(("d.k", "d.k", "d.k + 1", "d.k > 1"))
    joined = f"from {rows} left join {table} x on {link}{where} group by {key}"
    return f"select {key} as g, {rng.choice(_JOINED)} as a {joined}"
