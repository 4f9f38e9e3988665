"""How is a release with few public cells for each unit computed in one row a unit?

Produces the integers of `plan.statement`'s cells, with no cell kept and no factor joined back: a unit's cells stand in
columns, so that its norm is a sum of columns. The number of rows of a cell and their sum share one aggregate, which is
exact for units of at most 32,767 rows; the others are read again. See docs/decisions/speed-unit-groups.md.
"""

from __future__ import annotations

from proxy.analysis.keys import Key, KeyValue, NullKey, PublicKey, public_product
from proxy.plan.moments import RowCount, UnitCount, is_linear
from proxy.plan.selectivity import most_values
from proxy.plan.terms import ROW_UNITS, Statement, Terms
from proxy.sql.algebra import ColumnRef
from proxy.sql.render import double
from proxy.sqltypes import Value

_MOST_AGGREGATES = 12  # of one unit; with more, cells of their own are faster
_PACKED_ROWS = 2**15 - 1  # of one unit; its row integers, each made at least 0, then add up to less than 2^46
_PLACE = 46  # bits below the number of rows


def is_side_by_side(statement: Statement) -> bool:
    """Whether every key is a column of few listed values and all aggregates of a unit fit into one row."""
    keys, domains = statement.analysed.keys, statement.analysed.domains
    if not all(isinstance(k, PublicKey) and isinstance(k.scalar, ColumnRef) and k.values for k in keys):
        return False
    return 0 < most_values(keys, domains) * (1 + len(statement.moments)) <= _MOST_AGGREGATES


def side_by_side(statement: Statement, terms: Terms) -> str:
    """The statement's SQL; result rows as in `plan.statement.render`."""
    return _Writer(statement, terms).write()


class _Writer:
    def __init__(self, statement: Statement, terms: Terms) -> None:
        self._s = statement
        self._t = terms
        self._keys = statement.analysed.keys
        self._cells = tuple(enumerate(public_product(self._keys)))
        conditions = dict.fromkeys(terms.condition(m) for m in statement.moments)
        self._names = {c: f"c{i}" for i, c in enumerate(conditions)}
        self._scaled = [i for i, m in enumerate(statement.moments) if not isinstance(m, (RowCount, UnitCount))]

    def write(self) -> str:
        units, limit = ", ".join(self._t.units), self._t.heavy_limit()
        q = " + ".join(self._t.norm(f"_{place}") for place, _ in self._cells)
        ratio = f"{double(float(limit))} / q"
        factor = f"CASE WHEN q > {limit} THEN {f'sqrt({ratio})' if self._t.is_gaussian() else ratio} ELSE 1e0 END"
        factors = ", ".join(f"{self._t.row_factor(f'_{place}')} AS r_{place}" for place, _ in self._cells)
        sums = ", ".join(
            f"coalesce(sum({self._t.on_grid(i, m, ' * f', f'_{place}')}), 0) AS s{i}_{place}"
            for place, _ in self._cells
            for i, m in enumerate(self._s.moments)
        )
        rows = f"  FROM {self._t.tables()}\n  WHERE {self._t.where()}"
        ctes = [
            f"held AS NOT MATERIALIZED (SELECT {', '.join(self._held())}\n{rows})",
            *(self._packed(units) if self._is_packed() else [f"cells AS ({self._counted('held', units)})"]),
            f"scored AS (SELECT *, {factors} FROM cells)",
            f"normed AS (SELECT *, {q} AS q FROM scored)",
            f"summed AS MATERIALIZED (SELECT {sums} FROM (SELECT *, {factor} AS f FROM normed))",
        ]
        return "WITH " + ",\n".join(ctes) + "\n" + "\nUNION ALL\n".join(map(self._told, self._cells))

    def _held(self) -> list[str]:
        """Each row's unit, keys, row integers and conditions."""
        named = [*zip(self._t.unit_columns(), self._t.units, strict=True)]
        named += zip(self._t.short_key_texts(), self._t.keys, strict=True)
        for index, moment in enumerate(self._s.moments):
            if not isinstance(moment, (RowCount, UnitCount)):
                named.append((self._t.row_integer(moment), f"x{index}"))
        named += [(condition, name) for condition, name in self._names.items() if condition != "TRUE"]
        return [f"{text} AS {name}" for text, name in named]

    def _counted(self, rows: str, units: str) -> str:
        """One row for each unit: `n_` rows used and the moments of each cell."""
        texts = [text for cell in self._cells for text in self._columns(*cell)]
        return f"SELECT {', '.join(texts)} FROM {rows} GROUP BY {units}"

    def _columns(self, place: int, values: tuple[KeyValue, ...]) -> list[str]:
        used = {self._t.condition(m) for m in self._s.moments if is_linear(m)}
        texts = [f"{f'count(*) {self._of(values, used)}' if used else '1'} AS n_{place}"]
        for index, moment in enumerate(self._s.moments):
            rows = self._of(values, {self._t.condition(moment)})
            if isinstance(moment, RowCount):
                text = f"count(*) {rows}"
            elif isinstance(moment, UnitCount):
                text = f"(count(*) {rows} > 0)::BIGINT"
            else:
                text = f"coalesce(sum_no_overflow(x{index}) {rows}, 0)"  # 2^33 rows fit
            texts.append(f"{text} AS m{index}_{place}")
        return texts

    def _of(self, values: tuple[KeyValue, ...], conditions: set[str]) -> str:
        """FILTER for the rows of one cell that meet any of the conditions."""
        tests = [
            f"{name} IS NULL" if isinstance(v, NullKey) else f"{name} = {self._constant(k, v)}"
            for name, k, v in zip(self._t.keys, self._keys, values, strict=True)
        ]
        if "TRUE" not in conditions:
            tests.append("(" + " OR ".join(sorted(self._names[c] for c in conditions)) + ")")
        return f"FILTER (WHERE {' AND '.join(tests)})"

    def _told(self, cell: tuple[int, tuple[KeyValue, ...]]) -> str:
        place, values = cell
        keys = [
            f"{'NULL' if isinstance(v, NullKey) else self._constant(k, v)} AS {name}"
            for name, k, v in zip(self._t.keys, self._keys, values, strict=True)
        ]
        sums = [f"s{i}_{place} AS m{i}" for i in range(len(self._s.moments))]
        return f"SELECT {', '.join(['0 AS is_part', *keys, *sums])} FROM summed"

    def _constant(self, key: Key, value: Value) -> str:
        return self._t.renderer.constant(value, key.scalar.type)

    # --- rows and sum in one aggregate -------------------------------------------------------------------

    def _is_packed(self) -> bool:
        """Whether some sum and every count are over the same rows."""
        return bool(self._scaled) and len(self._names) == 1

    def _packed(self, units: str) -> list[str]:
        """The cells of units of few rows, unpacked, and those of the others, read again."""
        first, added = self._scaled[0], ROW_UNITS + 2**_PLACE
        texts = [*self._t.units, "count(*) AS total"]
        for place, values in self._cells:
            rows = self._of(values, set(self._names))
            texts.append(f"coalesce(sum_no_overflow(x{first} + {added}) {rows}, 0) AS p_{place}")
            texts += [f"coalesce(sum_no_overflow(x{i}) {rows}, 0) AS m{i}_{place}" for i in self._scaled[1:]]
        many = f"SELECT {units} FROM packed WHERE total > {_PACKED_ROWS}"
        unpacked = ", ".join(text for place, _ in self._cells for text in self._unpacked(place))
        again = self._counted(
            f"held SEMI JOIN ({many}) USING ({units})", ", ".join(self._t.sparse_units(self._t.units))
        )
        return [
            f"packed AS MATERIALIZED (SELECT {', '.join(texts)} FROM held GROUP BY {units})",
            f"cells AS (SELECT {unpacked}\n  FROM packed WHERE total <= {_PACKED_ROWS}\n  UNION ALL {again})",
        ]

    def _unpacked(self, place: int) -> list[str]:
        """Shifts, masks and a product that stays below 2^48: nothing here can overflow, whatever was packed."""
        count = f"(p_{place} >> {_PLACE})"
        texts = [f"{count} AS n_{place}"]
        for index, moment in enumerate(self._s.moments):
            if isinstance(moment, RowCount):
                text = count
            elif isinstance(moment, UnitCount):
                text = f"({count} > 0)::BIGINT"
            elif index == self._scaled[0]:
                text = f"(p_{place} & {2**_PLACE - 1}) - {count} * {ROW_UNITS}"
            else:
                text = f"m{index}_{place}"
            texts.append(f"{text} AS m{index}_{place}")
        return texts
