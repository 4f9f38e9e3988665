"""Which values can a grouping key have, if they are few and known without looking at the data?

Two ways lead to them: every whole number or day between the bounds of the key, and what its function makes of the
values of its arguments. Claim: where a row's columns lie in their domains and the row passes the block's conditions,
the key is NULL or in the list. The list depends on policy and query only; a row whose key is not in it is dropped.
`absent` says whether it can be NULL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import islice, product
from typing import assert_never

from proxy.analysis.cases import combinations, count, deciding, of_tests
from proxy.analysis.domains import Domains
from proxy.analysis.evaluate import MISSING, Choice, MissingValue, choices, reached, reads_through
from proxy.analysis.grain import moments
from proxy.analysis.narrowing import inside
from proxy.policy.model import Bounded, Domain, Listed, Unknown
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span, children, columns_of
from proxy.sql.conditions.whole import is_whole
from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions.constant_evaluation import Constant
from proxy.sql.functions.domains.intervals import number_range, time_range
from proxy.sql.functions.table import FUNCTIONS
from proxy.sqltypes import SqlType, Value

MOST_KEYS = 100_000  # of one public domain, and of the product of all
_MOST_MADE = 20_000  # combinations of arguments for one function
_MOST_WORK = 50_000  # and for all keys of a block: a statement can have thousands
_MOST_READERS = 3
_MOST_PARTS = 300  # of an expression that is looked into; a sub-select's columns are parts as often as they are named


class KeyValues:
    """The values of keys of one block. A value may be listed in two spellings of one number or time."""

    def __init__(self, domains: Domains, *, keeps_outside: bool = False) -> None:
        """keeps_outside: whether rows count that have a column outside of its domain, unlike those of groups."""
        self._domains = domains
        self._keeps_outside = keeps_outside
        self._left = _MOST_WORK
        self._known: dict[int, tuple[Scalar, tuple[Value, ...] | None]] = {}  # by identity: scalars may be large

    def of(self, scalar: Scalar) -> tuple[Value, ...] | None:
        """All values but NULL, or None when they are not known or too many."""
        found = self._known.get(id(scalar))
        if found is None:
            found = self._known[id(scalar)] = (scalar, self._listed(scalar))
        return found[1]

    def _listed(self, scalar: Scalar) -> tuple[Value, ...] | None:
        domain = self._domains.of(scalar)
        between = self._between(domain, scalar)
        parts = _parts(scalar)
        if len(parts) > _MOST_PARTS:
            return between
        made = self._made(domain, scalar)
        is_exact = made is not None and sum(map(_depends, parts)) == 1
        found = (between, made, None if is_exact else self._made_of_one(domain, scalar))
        return min((f for f in found if f is not None), key=len, default=None)

    # --- between bounds -----------------------------------------------------------------------------------

    def _between(self, domain: Domain, scalar: Scalar) -> tuple[Value, ...] | None:
        match domain:
            case Listed(values):
                is_padded = isinstance(scalar, ColumnRef) and scalar.type is SqlType.BPCHAR
                return tuple(v.rstrip(" ") if is_padded and isinstance(v, str) else v for v in values)
            case Bounded(int() | float() | Decimal() as lo, int() | float() | Decimal() as hi):
                if not math.isfinite(lo) or not math.isfinite(hi) or not is_whole(scalar) or not self._is_exact(scalar):
                    return None
                if self._may_be_no_number(scalar):
                    return None
                least, most = math.ceil(lo), math.floor(hi)
                return tuple(range(least, most + 1)) if most - least < MOST_KEYS else None
            case Bounded(date() as lo, date() as hi) if scalar.type is SqlType.DATE and time_range(domain) is not None:
                first, last = _day(lo), _day(hi)
                days = (last - first).days
                return tuple(first + timedelta(days=i) for i in range(days + 1)) if days < MOST_KEYS else None
            case Bounded() | Unknown():
                return None
            case _ as never:
                assert_never(never)

    def _is_exact(self, scalar: Scalar) -> bool:
        """Whether no integer is missing between the ends: inferred ones are doubles made from those of its parts."""
        if isinstance(scalar, ColumnRef):
            return True
        ends = [e for part in _parts(scalar) if (e := number_range(self._domains.of(part))) is not None]
        return all(abs(end) < 2**53 for pair in ends for end in pair)

    def _may_be_no_number(self, scalar: Scalar) -> bool:
        """Whether NaN may be made of a part without bounds: the remainder of infinity is one."""
        has_sign = isinstance(scalar, Call) and scalar.function == "sign"  # 0 of NaN
        if not scalar.type.is_number or scalar.type.is_integer or has_sign:
            return False
        return number_range(self._domains.of(scalar)) is None or any(map(self._may_be_no_number, children(scalar)))

    # --- made of the arguments' values ----------------------------------------------------------------------

    def _made(self, domain: Domain, scalar: Scalar) -> tuple[Value, ...] | None:
        made = self._made_anywhere(scalar)
        return None if made is None else _inside(made, domain)

    def _made_anywhere(self, scalar: Scalar) -> tuple[Value, ...] | None:
        match scalar:
            case Case():
                return self._any_of(self._reached(scalar))
            case Call("coalesce", args):
                present = (number for number, choice in enumerate(args, 1) if not self._may_be_null(choice))
                return self._any_of(args[: next(present, None)])
            case Call(function, args) if FUNCTIONS[function].image is images.an_argument:
                return self._any_of(args)
            case Call(function, args) if FUNCTIONS[function].image is not images.nothing_known:
                return self._computed(function, args)
            case ColumnRef() | Literal() | Null() | Span() | Member() | Call():
                return None
            case _ as never:
                assert_never(never)

    def _reached(self, scalar: Case) -> list[Scalar]:
        """The results of a CASE, as far as can be told those that some row has."""
        every = [*(value for _, value in scalar.branches), scalar.otherwise]
        size = len(_parts(scalar))
        if size > _MOST_PARTS or self._is_blind(scalar):
            return every
        cases = of_tests(scalar, self._domains, self._may_be_null)
        work = count(cases) * size
        if not work or not self.may_spend(work):
            return every
        found = {id(v) for known in combinations(cases) for v in reached(scalar, deciding(known))}
        return [v for v in every if id(v) in found]

    def _may_be_null(self, part: Scalar) -> bool:
        """Whether a part is NULL in some row, as it is wherever a column's value is none of its domain."""
        return self._keeps_outside or self._domains.may_be_null(part)

    def _is_blind(self, scalar: Scalar) -> bool:
        """Whether texts are told apart by another rule than the engine's, so that conditions decide nothing."""
        return any(self._domains.column(c).case_blind for c in columns_of(scalar))

    def _made_of_one(self, domain: Domain, scalar: Scalar) -> tuple[Value, ...] | None:
        """What the whole expression makes of each value of the one part that reads columns, however often it stands."""
        for part, values in self._readers(scalar):
            if values is None or not self._may_spend((), len(values) * len(_parts(scalar))):
                continue
            made = self._evaluated(scalar, part, values)
            if made is not None:
                return _inside(_distinct(made), domain)
        return None

    def _evaluated(self, scalar: Scalar, part: Scalar, values: tuple[Value, ...]) -> list[Value] | None:
        for decides in (False,) if self._is_blind(part) else (True, False):
            every: list[Choice] = [*values, *((MISSING,) if decides and self._may_be_null(part) else ())]
            made = [choices(scalar, {part: v}, decides=decides) for v in every]
            if all(made):
                return [v for found in made for v in found if not isinstance(v, (MissingValue, Span))]
        return None

    def _readers(self, scalar: Scalar) -> Iterator[tuple[Scalar, tuple[Value, ...] | None]]:
        """The one column that is read, and calls with few values, such as date_trunc, that it is read through, with
        values of which the scalar makes all it can make.
        """
        columns = columns_of(scalar)
        for column in columns if len(columns) == 1 and not isinstance(scalar, ColumnRef) else ():
            yield column, self.of(column)
            yield column, moments((scalar,), column, self._domains.of(column), _MOST_MADE)
        calls = dict.fromkeys(p for p in _parts(scalar)[1:] if isinstance(p, Call) and columns_of(p))
        listed = (c for c in calls if self._is_of_few(c) and reads_through(scalar, c))
        yield from ((call, self.of(call)) for call in islice(listed, _MOST_READERS))

    def _is_of_few(self, call: Call) -> bool:
        domain = self._domains.of(call)
        return isinstance(domain, Listed) or (call.function.startswith("extract ") and isinstance(domain, Bounded))

    def _any_of(self, parts: Sequence[Scalar]) -> tuple[Value, ...] | None:
        lists = [self.of(p) for p in parts if not isinstance(p, Null)]
        known = [found for found in lists if found is not None]
        return _distinct(v for found in known for v in found) if self._may_spend(lists, sum(map(len, known))) else None

    def _computed(self, function: str, args: Sequence[Scalar]) -> tuple[Value, ...] | None:
        lists: list[tuple[Constant, ...] | None] = [(a,) if isinstance(a, Span) else self.of(a) for a in args]
        known = [found for found in lists if found is not None]
        if not self._may_spend(lists, math.prod(map(len, known))):
            return None
        made = [FUNCTIONS[function].image(combination) for combination in product(*known)]
        return _distinct(v for values in made for v in values) if all(made) else None

    def may_spend(self, work: int) -> bool:
        """Whether so much may still be computed for the keys of the block."""
        return self._may_spend((), work)

    def _may_spend(self, lists: Sequence[object], work: int) -> bool:
        if None in lists or work > min(_MOST_MADE, self._left):
            return False
        self._left -= work
        return True


def _inside(values: Iterable[Value], domain: Domain) -> tuple[Value, ...]:
    """Those that conditions of the block leave."""
    return tuple(v for v in values if not isinstance(domain, Bounded) or inside(v, domain))


def _depends(part: Scalar) -> bool:
    """Whether a part may have other values in some rows than next to others, which a list of all does not show."""
    return isinstance(part, (ColumnRef, Case)) or (isinstance(part, Call) and part.function == "nullif")


def _parts(scalar: Scalar) -> list[Scalar]:
    return [scalar, *(part for child in children(scalar) for part in _parts(child))]


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    """Each value once; TRUE is not 1 here."""
    return tuple({(type(v), v): v for v in values}.values())
