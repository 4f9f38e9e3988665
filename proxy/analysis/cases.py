"""For which combinations of values has an expression to be looked at, so that no other gives anything else?

Of two kinds: every value of every column, of which the whole expression can be computed; and one value of every part
that its conditions test, on each side of the constants that it is compared with. The latter decide about conditions
and nothing else: another use of such a part may tell apart what they do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

from proxy.analysis.cuts import values_between
from proxy.analysis.domains import Domains
from proxy.analysis.evaluate import MISSING, Choice, Choices, KnownValues, choices
from proxy.analysis.grain import moments
from proxy.sql.algebra.comparisons import HOLDS
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, children, columns_in_order
from proxy.sqltypes import SqlType, Value

MOST_CASES = 5_000
_COMPARISONS = frozenset((*HOLDS, "is distinct from", "nullif"))
_UNORDERED = frozenset(("=", "<>", "is distinct from", "nullif"))
_CONNECTIVES = frozenset(("and", "or", "not", "is null"))

Cases = Mapping[Scalar, Sequence[Choice]]  # of each part what it can be; nothing where that is not known
Test = tuple[Scalar, tuple[Value, ...], bool]  # a part, the constants that it is compared with, whether for their order
MayBeNull = Callable[[Scalar], bool]
Of = Callable[[Scalar], Choices]


def count(cases: Cases) -> int:
    """How many combinations there are; 0 where they are not known, or too many."""
    found = math.prod(map(len, cases.values())) if cases else 0
    return found if found <= MOST_CASES else 0


def combinations(cases: Cases) -> Iterator[KnownValues]:
    return (dict(zip(cases, some, strict=True)) for some in product(*cases.values()))


def computing(known: KnownValues) -> Of:
    """What is made of values of columns."""
    return lambda scalar: choices(scalar, known)


def deciding(known: KnownValues) -> Of:
    """What conditions are where parts that they test are known; of all else nothing."""

    def of(scalar: Scalar) -> Choices:
        match scalar:
            case _ if scalar in known or scalar.type is SqlType.BOOL:
                return choices(scalar, known)
            case Call("nullif", (_, Literal()) | (Literal(), _)):
                return choices(scalar, known)
            case _:
                return ()

    return of


def of_columns(
    scalar: Scalar, domains: Domains, values_of: Callable[[Scalar], Sequence[Value] | None], may_be_null: MayBeNull
) -> Cases:
    """Every value of every column, or every day, month or year of it where no more of it matters."""
    found: dict[Scalar, Sequence[Choice]] = {}
    for column in columns_in_order(scalar):
        values = values_of(column) or moments((scalar,), column, domains.of(column), MOST_CASES) or ()
        found[column] = _with_null(column, values, may_be_null)
    return found


def of_tests(scalar: Scalar, domains: Domains, may_be_null: MayBeNull) -> Cases:
    """Values of every part that is tested, for the conditions alone."""
    constants, ordered = dict[Scalar, list[Value]](), set[Scalar]()
    for part, against, is_ordered in _tests(scalar):
        constants.setdefault(part, []).extend(against)
        ordered |= {part} if is_ordered else set()
    found: dict[Scalar, Sequence[Choice]] = {}
    for part, all_of in constants.items():
        between = values_between(part, domains.of(part), all_of, ordered=part in ordered)
        found[part] = _with_null(part, between, may_be_null)
    return found


def _with_null(part: Scalar, values: Sequence[Choice], may_be_null: MayBeNull) -> Sequence[Choice]:
    return (*values, MISSING) if values and may_be_null(part) else values


def _tests(scalar: Scalar) -> Iterable[Test]:
    """What conditions ask, and what NULLIF does."""
    match scalar:
        case Call(name, (part, Literal(constant)) | (Literal(constant), part)) if name in _COMPARISONS:
            yield from _tested(part, (constant,), is_ordered=name not in _UNORDERED)
        case Member(part, items):
            yield from _tested(part, tuple(i.value for i in items), is_ordered=False)
        case Call("is null", (part,)):
            yield from _tested(part, (), is_ordered=False)
        case Call(name) if scalar.type is SqlType.BOOL and name not in _CONNECTIVES and columns_in_order(scalar):
            yield scalar, (), False
        case ColumnRef() if scalar.type is SqlType.BOOL:
            yield scalar, (), False
        case _:
            for child in children(scalar):
                yield from _tests(child)


def _tested(part: Scalar, against: tuple[Value, ...], *, is_ordered: bool) -> Iterable[Test]:
    """Constants that conditions choose are looked at by way of these."""
    if _chooses_constants(part):
        yield from _tests(part)
    else:
        yield part, against, is_ordered


def _chooses_constants(scalar: Scalar) -> bool:
    match scalar:
        case Literal() | Null() | Member():
            return True
        case Case(branches, otherwise):
            return all(map(_chooses_constants, (*(value for _, value in branches), otherwise)))
        case Call(name, args) if name in _CONNECTIVES:
            return all(a.type is SqlType.BOOL or name == "is null" for a in args)
        case Call(name, (_, Literal()) | (Literal(), _)) if scalar.type is SqlType.BOOL:
            return name in _COMPARISONS
        case _:
            return False
