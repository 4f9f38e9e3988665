"""Can a grouping key be NULL in a row whose columns lie in their domains?

A function may have no answer, and CASE no branch that holds. So the key is looked at for all that its tested parts, or
its columns, can be. Claim: where the answer is no, no row that passes the block's conditions, with columns in their
domains, has the key NULL. It depends on policy and query only, and nothing of privacy rests on it: a row whose key is
NULL all the same is in no group that is shown.
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.analysis.cases import Cases, Of, combinations, computing, count, deciding, of_columns, of_tests
from proxy.analysis.domains import Domains
from proxy.analysis.evaluate import MISSING, NOTHING, KnownValues, reached
from proxy.analysis.key_values import KeyValues
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span, children, columns_of

_MOST_PARTS = 300
_NOTHING_KNOWN = computing(NOTHING)


def may_be_null(scalar: Scalar, domains: Domains, listed: KeyValues) -> bool:
    """Whether NULL is among the values of a key."""
    return domains.may_be_null(scalar) and _Absence(domains, listed).may_be_null(scalar)


class _Absence:
    def __init__(self, domains: Domains, listed: KeyValues) -> None:
        self._domains = domains
        self._listed = listed

    def may_be_null(self, scalar: Scalar) -> bool:
        if not self._may_be(scalar):
            return False
        if _size(scalar) > _MOST_PARTS or any(self._domains.column(c).case_blind for c in columns_of(scalar)):
            return True
        tests = of_tests(scalar, self._domains, self._may_be)
        if not self._in_any(scalar, tests, deciding):
            return False
        return self._in_any(scalar, of_columns(scalar, self._domains, self._listed.of, self._may_be), computing)

    def _in_any(self, scalar: Scalar, cases: Cases, told: Callable[[KnownValues], Of]) -> bool:
        """Whether NULL is possible for any combination; where these are not known nothing is."""
        size = count(cases)
        if not size or not self._listed.may_spend(size * _size(scalar)):
            return True
        return any(self._may_be(scalar, told(known)) for known in combinations(cases))

    def _may_be(self, scalar: Scalar, of: Of = _NOTHING_KNOWN) -> bool:
        """Whether a scalar may be NULL. of: what is told of it and of its parts."""
        match scalar:
            case Case():
                return any(self._may_be(value, of) for value in reached(scalar, of))
            case Call():
                may_be = self._domains.call_may_be_null(scalar, lambda part: self._may_be(part, of))
                return may_be and MISSING in (of(scalar) or (MISSING,))
            case Member(argument):
                return self._may_be(argument, of)
            case ColumnRef() | Literal() | Null() | Span():
                return MISSING in found if (found := of(scalar)) else self._domains.may_be_null(scalar)


def _size(scalar: Scalar) -> int:
    return 1 + sum(map(_size, children(scalar)))
