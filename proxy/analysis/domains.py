"""Which values can a scalar of a block have, and can it be NULL?

Facts come from the policy's column domains, the function table's rules, the block's own WHERE and conditions of CASE
and FILTER. They decide accuracy and which keys are public; every bound is enforced again in the rendered SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import assert_never

from proxy.analysis.narrowing import narrow, negations
from proxy.policy.model import Column, Domain, Listed, Table, Unknown
from proxy.sql.algebra.nodes import (
    TRUE,
    Block,
    Call,
    Case,
    ColumnRef,
    Literal,
    Member,
    Null,
    Scalar,
    Span,
    children,
    conjuncts,
)
from proxy.sql.conditions.decided import decided
from proxy.sql.conditions.factored import alternatives
from proxy.sql.functions.domains import answers
from proxy.sql.functions.domains.intervals import union
from proxy.sql.functions.domains.rules import Argument
from proxy.sql.functions.function import Nulls
from proxy.sql.functions.hazards import Operands
from proxy.sql.functions.table import FUNCTIONS
from proxy.sqltypes import SqlType

LARGEST_MEASURE = 1e100  # its square, and a width or a multiple of it, are doubles too
Conditions = tuple[Scalar, ...]
_MOST_CONDITIONS = 100  # beyond them nothing is narrowed, which costs accuracy only
_MOST_PARTS = 1000  # of an expression and the conditions on it: a sub-select's CASE of a CASE doubles with each level


class _Seen:
    """What was found about scalars. By identity, which is quick for large ones; they are kept, so that it is theirs."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], tuple[Scalar, int]] = {}

    def once(self, what: str, scalar: Scalar, find: Callable[[Scalar], int]) -> int:
        found = self._found.get((what, id(scalar)))
        if found is None:
            found = self._found[what, id(scalar)] = (scalar, find(scalar))
        return found[1]


class Domains:
    """Domains of the scalars of one block. Values are memoised: scalars are immutable.

    Claim: `operands` rests on declared domains alone. Those hold wherever a scalar is computed, since columns are
    read through them; what WHERE or CASE says holds only for rows that have passed it, and an engine computes one
    condition before another as it likes.
    """

    def __init__(self, block: Block) -> None:
        self._tables = {scan.number: scan.table for scan in block.every_scan}
        self._where = block.where
        self._known: dict[tuple[Scalar, Conditions], Domain] = {}
        self._anywhere: dict[Scalar, Domain] = {}
        self._seen = _Seen()

    def __getstate__(self) -> tuple[dict[int, Table], tuple[Scalar, ...]]:
        """What is remembered is of one process: some of it by the identity of scalars."""
        return self._tables, self._where

    def __setstate__(self, state: tuple[dict[int, Table], tuple[Scalar, ...]]) -> None:
        self._tables, self._where = state
        self._known, self._anywhere, self._seen = {}, {}, _Seen()

    def passing(self, where: Scalar) -> Domains:
        """Those of rows that pass `where` as well."""
        found = copy(self)
        found._where = (*self._where, *conjuncts(where)[:_MOST_CONDITIONS])
        return found

    def column(self, reference: ColumnRef) -> Column:
        """The policy's column behind a reference."""
        column = self._tables[reference.scan].column(reference.name)
        assert column is not None, "the binder made a reference to a column that the policy lacks"
        return column

    def of(self, scalar: Scalar, where: Scalar = TRUE) -> Domain:
        """The scalar's domain, narrowed by conditions on the very same scalar: the block's, and `where`."""
        return self._within(scalar, conjuncts(where)[:_MOST_CONDITIONS])

    def _within(self, scalar: Scalar, conditions: Conditions) -> Domain:
        if conditions and self._size(scalar) + sum(map(self._size, conditions)) > _MOST_PARTS:
            conditions = ()
        key = (scalar, conditions)
        if key not in self._known:
            domain = self._narrowed(scalar, conditions)
            for condition in (*self._where, *conditions):
                domain = narrow(domain, scalar, condition)
            self._known[key] = domain
        return self._known[key]

    def _size(self, scalar: Scalar) -> int:
        """How many columns, constants and functions the text of a scalar has."""
        return self._seen.once("size", scalar, lambda s: 1 + sum(map(self._size, children(s))))

    def _narrowed(self, scalar: Scalar, conditions: Conditions) -> Domain:
        if isinstance(scalar, Case):
            return union(tuple(self._branches(scalar, conditions)))
        if isinstance(scalar, Call) and scalar.function == "coalesce":
            scalar = replace(scalar, args=self._reached(scalar.args))
        return self._plain(scalar, lambda part: self._within(part, conditions))

    def _reached(self, choices: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        """Those of COALESCE up to the first that conditions leave never NULL.

        What a policy says of a column is not enough: a value outside its domain is NULL here, and has the default.
        """
        present = (number for number, choice in enumerate(choices, 1) if self._is_present(choice))
        return choices[: next(present, None)]

    def _is_present(self, scalar: Scalar) -> bool:
        return any(_implies_present(condition, scalar) for condition in self._where) or (
            not isinstance(scalar, ColumnRef) and not self.may_be_null(scalar) and self._reads_present(scalar)
        )

    def _reads_present(self, scalar: Scalar) -> bool:
        """Whether conditions leave every column present that it reads."""
        read = self._is_present if isinstance(scalar, ColumnRef) else self._reads_all_present
        return bool(self._seen.once("present", scalar, read))

    def _reads_all_present(self, scalar: Scalar) -> bool:
        return all(map(self._reads_present, children(scalar)))

    def _branches(self, case: Case, conditions: Conditions) -> Iterator[Domain]:
        """The domain of each result, where its condition holds and those before it do not."""
        before = conditions
        for condition, value in (*case.branches, (TRUE, case.otherwise)):
            if not isinstance(value, Null):
                here = () if isinstance(value, Literal) else (*before, *conjuncts(condition))
                yield self._within(value, here[:_MOST_CONDITIONS])
            before = (*before, *negations(condition))[:_MOST_CONDITIONS]

    def declared(self, scalar: Scalar) -> Domain:
        """The scalar's domain on any row, whatever the block's conditions say."""
        if scalar not in self._anywhere:
            self._anywhere[scalar] = self._plain(scalar, self.declared)
        return self._anywhere[scalar]

    def _plain(self, scalar: Scalar, of: Callable[[Scalar], Domain]) -> Domain:
        match scalar:
            case ColumnRef():
                return self.column(scalar).domain
            case Literal(value):
                return Listed((value,))
            case Null():
                return Listed(())
            case Span():
                return Unknown()
            case Call(function, args):
                return FUNCTIONS[function].domain(tuple(_argument(a, of(a)) for a in args))
            case Case(branches, otherwise):
                parts = (*(v for _, v in branches), otherwise)
                return union(tuple(of(p) for p in parts if not isinstance(p, Null)))
            case Member():
                return Listed((False, True))

    def may_be_null(self, scalar: Scalar) -> bool:
        """Whether a row that passes the block's conditions can give NULL (out-of-domain values aside).

        What is made of a test may be: that is NULL outside of a column's domain, where a measure is clamped.
        """
        return bool(self._seen.once("null", scalar, self._may_be_null))

    def _may_be_null(self, scalar: Scalar) -> bool:
        if any(_implies_present(condition, scalar) for condition in self._where):
            return False
        match scalar:
            case ColumnRef():
                return self.column(scalar).nullable
            case Literal() | Span():
                return False
            case Null():
                return True
            case Case(branches, otherwise):
                return any(self.may_be_null(v) for v in (*(v for _, v in branches), otherwise))
            case Call():
                is_of_tests = scalar.type is not SqlType.BOOL and any(a.type is SqlType.BOOL for a in scalar.args)
                return is_of_tests or self.call_may_be_null(scalar, self.may_be_null)
            case Member(argument):
                return self.may_be_null(argument)

    def call_may_be_null(self, call: Call, may_be_null: Callable[[Scalar], bool]) -> bool:
        """Whether a function may be NULL. may_be_null: of its arguments."""
        match FUNCTIONS[call.function].nulls:
            case Nulls.NEVER:
                return False
            case Nulls.WITH_ALL:
                return all(map(may_be_null, call.args))
            case Nulls.WITH_ANY | Nulls.WITH_SOME | Nulls.WITH_ANY_OR_NO_ANSWER:
                return not self._has_answer(call) or any(map(may_be_null, call.args))
            case _ as never:
                assert_never(never)

    def _has_answer(self, call: Call) -> bool:
        """Whether a call whose arguments are there has an answer, in rows that pass the block's conditions."""
        function, result = FUNCTIONS[call.function], self.of(call)
        arguments = tuple(_argument(a, self.of(a)) for a in call.args)
        if function.answers is not answers.nowhere:
            return function.answers(arguments, result)
        is_partial = function.nulls is Nulls.WITH_ANY_OR_NO_ANSWER
        operands = Operands(tuple(a.type for a in call.args), tuple(a.domain for a in arguments), result)
        return not is_partial and not function.beyond(operands)

    def operands(self, call: Call) -> Operands:
        """What a call is computed from wherever it is computed, for whether it could raise there."""
        return Operands(tuple(a.type for a in call.args), tuple(map(self.declared, call.args)), self.declared(call))


def _argument(scalar: Scalar, domain: Domain) -> Argument:
    match scalar:
        case Span():
            return Argument(domain, span=scalar)
        case _:
            return Argument(domain, is_constant=isinstance(scalar, Literal))


def _implies_present(condition: Scalar, scalar: Scalar) -> bool:
    if condition == scalar:
        return True
    match decided(condition):
        case Member(argument):
            return argument == scalar
        case Call("=" | "<>" | "<" | "<=" | ">" | ">=", args):
            return scalar in args
        case Call("not", (Call("is null", (argument,)),)):
            return argument == scalar
        case Call("not", (Member() | Call("=" | "<>" | "<" | "<=" | ">" | ">=") | ColumnRef() as inner,)):
            return _implies_present(inner, scalar)  # NOT of NULL is NULL
        case Call("not", (Call("or") as inner,)):
            return any(_implies_present(Call("not", (a,), SqlType.BOOL), scalar) for a in alternatives(inner))
        case Call("or"):
            return all(any(_implies_present(p, scalar) for p in conjuncts(a)) for a in alternatives(condition))
        case _:
            return False
