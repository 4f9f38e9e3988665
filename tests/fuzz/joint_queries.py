"""Random queries whose groups are several expressions of one column."""

from __future__ import annotations

import random

from proxy.policy.model import Bounded, Listed
from proxy.sqltypes import Family, Value
from tests.fuzz.expressions import Name
from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import World


def make_joint_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return _JointWriter(world, rng).query()


class _JointWriter(Writer):
    def query(self) -> str:
        rng = self._rng
        known = [n for n in self._from.columns if isinstance(n.domain, (Bounded, Listed))]
        name = rng.choice(known or list(self._from.columns))
        keys = [self._of(name) for _ in range(rng.choice((2, 2, 3)))]
        if rng.random() < 0.3:
            keys.append(self._public_key())
        if rng.random() < 0.2:
            keys.append(self._key())
        aggregates = [self._aggregate() for _ in range(rng.choice((1, 2)))]
        where = [*self._from.conditions, *(self._bool(1) for _ in range(rng.choice((0, 0, 1))))]
        text = f"{self._from.prefix}select {', '.join([*keys, *aggregates])} from {self._from.text}"
        if where:
            text += " where " + " and ".join(f"({w})" for w in where)
        return f"{text} group by {', '.join(str(i + 1) for i in range(len(keys)))}"

    def _of(self, name: Name) -> str:
        """An expression of few values, of the one column."""
        rng, column = self._rng, name.text
        match name.type.family:
            case Family.NUMBER if name.type.is_integer:
                forms = [column, f"{column} % 3", f"{column} / 2", f"-{column}", f"{column}::text"]
            case Family.TIME:
                forms = [f"date_trunc('{unit}', {column})" for unit in ("year", "quarter", "month", "week", "day")]
                forms += [f"extract({field} from {column})" for field in ("year", "month", "dow", "quarter")]
                forms += [f"{column}::date", f"to_char({column}, 'YYYY-MM')", f"to_char({column}, 'Dy')"]
            case Family.TEXT:
                forms = [column, f"upper({column})", f"left({column}, 1)", f"length({column})", f"{column} || 'x'"]
            case _:
                forms = [column]
        if rng.random() < 0.4:
            return self._tiers(name, rng.choice(forms))
        return rng.choice(forms)

    def _tiers(self, name: Name, form: str) -> str:
        rng, constants = self._rng, self._some(name)
        conditions = [f"{name.text} {rng.choice(('=', '<>', '<', '>='))} {c}" for c in constants]
        conditions += [f"{name.text} is null", f"not ({conditions[0]})", f"{name.text} in ({', '.join(constants)})",
                       f"{name.text} is distinct from {constants[0]}",
                       f"{name.text} between {constants[0]} and {constants[-1]}",
                       f"{conditions[0]} and {conditions[-1]}",
                       f"{conditions[0]} or {name.text} is not null"]  # fmt: skip
        results = ["'a'", "'b'", "'c'", f"({form})::text"]
        branches = " ".join(
            f"when {rng.choice(conditions)} then {rng.choice(results)}" for _ in range(rng.choice((1, 2)))
        )
        return f"case {branches}{rng.choice(('', ' else null', f' else {rng.choice(results)}'))} end"

    def _some(self, name: Name) -> list[str]:
        match name.domain:
            case Bounded(lo, hi):
                values: list[Value] = [lo, hi]
            case Listed(values=listed):
                values = list(listed[:3])
            case _:
                values = []
        return [self._constant(v) for v in values] or ["null"]

    def _constant(self, value: Value) -> str:
        return str(value) if isinstance(value, (bool, int, float)) else f"'{str(value).replace(chr(39), chr(39) * 2)}'"
