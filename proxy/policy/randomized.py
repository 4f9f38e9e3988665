"""What does a policy say of a column that was randomized before it was stored, and can that be?

The mechanisms and their arithmetic are in `response`. Here a column's declaration becomes one, and the bounds of what
is stored follow from the true ones: docs/claims/local-model.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import assert_never

from proxy.policy.document import ColumnDocument, RandomizedDocument
from proxy.policy.figures import figure
from proxy.policy.model import Bounded, Domain, Listed
from proxy.policy.problems import Path, ProblemReport
from proxy.policy.response import (
    GaussianNoise,
    KeptOrUniform,
    LaplaceNoise,
    Noised,
    NotRandomized,
    Randomized,
    Response,
    TwoCoins,
    best_response,
)
from proxy.sqltypes import SqlType, Value

_FORMS = "{keep: 0.75}, {truth: 0.5, yes: 0.5}, {epsilon: 1.0}, {laplace: 2.0} or {gaussian: 3.0}"
_LEAST_EPSILON, _MOST_EPSILON = 1e-4, 20.0
_NOISED_TYPES = frozenset((SqlType.FLOAT4, SqlType.FLOAT8, SqlType.NUMERIC))
_LARGEST: Mapping[SqlType, Fraction] = MappingProxyType({
    SqlType.FLOAT4: Fraction(3.4028234663852886e38), SqlType.FLOAT8: Fraction(1.7976931348623157e308),
    SqlType.NUMERIC: Fraction(10) ** 38,
})  # fmt: skip
_DOWN, _UP = Context(prec=30, rounding=ROUND_FLOOR), Context(prec=30, rounding=ROUND_CEILING)
# keys of a column that mean nothing beside `randomized`, and why
_NOT_BESIDE: Mapping[str, str] = MappingProxyType({
    "key": "a key must be what it is",
    "hidden": "a hidden column is never asked about",
    "case_blind": "its values are stored as they are listed",
    "sum_bounds": "a clamped sum of randomized values is no estimate of the true one",
})  # fmt: skip


def lists_null(document: ColumnDocument) -> bool:
    """Whether NULL is one of the values of a randomized column."""
    return document.randomized is not None and document.values is not None and None in document.values


def listed(document: ColumnDocument) -> list[tuple[int, object]]:
    """The values that are listed, with their places; NULL may be one of a randomized column's."""
    pairs = list(enumerate(document.values or ()))
    return [(i, v) for i, v in pairs if v is not None] if lists_null(document) else pairs


def read_mechanism(
    document: ColumnDocument, kind: SqlType, domain: Domain, path: Path, report: ProblemReport, *, is_unit: bool
) -> Randomized | NotRandomized:
    """How the column was randomized. What is wrong goes to the report, and it counts as not randomized.

    domain: that of the true values.
    """
    said = document.randomized
    if said is None:
        return NotRandomized()
    here = (*path, "randomized")
    _check_beside(document, path, report, is_unit=is_unit)
    match {name for name in RandomizedDocument.model_fields if getattr(said, name) is not None}:
        case given if given == {"truth", "yes"}:
            return _coins(said, document, domain, here, report)
        case given if given in ({"keep"}, {"epsilon"}):
            return _response(said, document, domain, here, report)
        case given if given in ({"laplace"}, {"gaussian"}):
            return _noise(said, kind, domain, here, report)
        case _:
            report.add(here, f"expected one of {_FORMS}")
            return NotRandomized()


def stored_domain(domain: Domain, mechanism: Randomized | NotRandomized, kind: SqlType) -> Domain:
    """That of the values as they are stored: noise leads beyond the true bounds."""
    match mechanism:
        case LaplaceNoise() | GaussianNoise():
            lo, hi = mechanism.stored
            return Bounded(_outward(lo, kind, is_low=True), _outward(hi, kind, is_low=False))
        case _:
            return domain


def mechanism_words(mechanism: Randomized) -> str:
    """How it was done, and what it protects."""
    match mechanism:
        case KeptOrUniform(keep, choices):
            return f"keep {_figure(keep)} among {choices} values{_epsilon(mechanism)}"
        case TwoCoins(truth, yes):
            return f"truth {_figure(truth)}, else yes {_figure(yes)}{_epsilon(mechanism)}"
        case LaplaceNoise(scale):
            return f"Laplace noise of scale {_figure(scale)}{_epsilon(mechanism)}"
        case GaussianNoise(sd):
            return f"Gaussian noise of standard deviation {_figure(sd)}, rho {figure(mechanism.rho)}"
        case _ as never:
            assert_never(never)


def _epsilon(mechanism: Response | LaplaceNoise) -> str:
    return f", epsilon {figure(mechanism.epsilon)}"


def _figure(number: Fraction) -> str:
    return figure(float(number), 6)


def _check_beside(document: ColumnDocument, path: Path, report: ProblemReport, *, is_unit: bool) -> None:
    if is_unit:
        report.add((*path, "randomized"), "the column identifies the unit, so it cannot be randomized")
    for name, reason in _NOT_BESIDE.items():
        if getattr(document, name):
            report.add((*path, name), f"not with 'randomized': {reason}; remove the line")
    if document.public:
        report.add((*path, "public"), "the column is randomized, so its true values are not public; remove one line")
    has_null = lists_null(document)
    if document.nullable and not has_null and "nullable" in document.model_fields_set:
        words = "a missing value would tell that it is missing; list null among the values, or remove the line"
        report.add((*path, "nullable"), words)
    nulls = [i for i, value in enumerate(document.values or ()) if value is None]
    for i in nulls[1:]:
        report.add((*path, "values", i), "null is listed already")
    if has_null and not document.nullable:
        report.add((*path, "nullable"), "null is listed among the values; remove the line")


def _response(
    said: RandomizedDocument, document: ColumnDocument, domain: Domain, path: Path, report: ProblemReport
) -> Response | NotRandomized:
    if not isinstance(domain, Listed):
        if not (report.names((*path[:-1], "values")) or document.key or document.hidden):
            report.add(path, "needs the 'values' among which one is drawn, or a boolean")
        return NotRandomized()
    choices = len(domain.values) + lists_null(document)
    if choices < 2:
        report.add((*path[:-1], "values"), "a single value is not randomized; list the others too")
        return NotRandomized()
    if said.epsilon is not None:
        if not _LEAST_EPSILON <= said.epsilon <= _MOST_EPSILON:
            report.add((*path, "epsilon"), f"must be from {_LEAST_EPSILON} to {_MOST_EPSILON:g}, found {said.epsilon}")
            return NotRandomized()
        return best_response(_exact(said.epsilon), choices)
    keep = _chance("keep", said.keep, path, report)
    return NotRandomized() if keep is None else KeptOrUniform(keep, choices)


def _coins(
    said: RandomizedDocument, document: ColumnDocument, domain: Domain, path: Path, report: ProblemReport
) -> Response | NotRandomized:
    if not isinstance(domain, Listed) or len(domain.values) != 2 or lists_null(document):
        if not report.names((*path[:-1], "values")):
            report.add(path, "coins need a boolean, or two 'values' of which the first is yes")
        return NotRandomized()
    truth, yes = _chance("truth", said.truth, path, report), _chance("yes", said.yes, path, report)
    return NotRandomized() if truth is None or yes is None else TwoCoins(truth, yes)


def _noise(
    said: RandomizedDocument, kind: SqlType, domain: Domain, path: Path, report: ProblemReport
) -> Noised | NotRandomized:
    name, size = ("laplace", said.laplace) if said.laplace is not None else ("gaussian", said.gaussian)
    if kind not in _NOISED_TYPES:
        words = "noise makes numbers between others: declare the column as numeric, real or double precision"
        report.add((*path, name), f"{words}, not {kind.pg_name}")
        return NotRandomized()
    if not isinstance(domain, Bounded):
        if not report.names((*path[:-1], "bounds")):
            report.add((*path, name), "needs 'bounds' of the true values, to which they were clamped first")
        return NotRandomized()
    lo, hi = _number(domain.lo), _number(domain.hi)
    if lo == hi:
        report.add((*path[:-1], "bounds"), "the two ends are equal, so there is nothing to hide")
        return NotRandomized()
    if size is None or not math.isfinite(size) or size <= 0:
        report.add((*path, name), f"must be a finite number above 0, found {size}")
        return NotRandomized()
    noise = (LaplaceNoise if name == "laplace" else GaussianNoise)(_exact(size), lo, hi)
    if max(abs(end) for end in noise.stored) > _LARGEST[kind]:
        report.add((*path, name), f"noise of that size leaves the range of {kind.pg_name}")
        return NotRandomized()
    return noise


def _chance(name: str, value: float | None, path: Path, report: ProblemReport) -> Fraction | None:
    if value is None or not 0 < value < 1:
        report.add((*path, name), f"must lie strictly between 0 and 1, found {value}")
        return None
    return _exact(value)


def _exact(number: float) -> Fraction:
    """The decimal that a person wrote to get this number."""
    return Fraction(repr(float(number)))


def _number(value: Value) -> Fraction:
    match value:
        case float():
            return _exact(value)
        case int() | Decimal():
            return Fraction(value)
        case _:
            raise AssertionError("bounds of a number that are none")


def _outward(end: Fraction, kind: SqlType, *, is_low: bool) -> Value:
    """The next value of the type on the far side."""
    if kind is SqlType.NUMERIC:
        return (_DOWN if is_low else _UP).divide(Decimal(end.numerator), Decimal(end.denominator)).normalize()
    found = float(end)
    if Fraction(found) > end if is_low else Fraction(found) < end:
        found = math.nextafter(found, -math.inf if is_low else math.inf)
    return found
