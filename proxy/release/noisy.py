"""How do exact integers become a noisy, publishable set of keyed cells?

The one place where noise meets private results. What leaves is a function of noisy numbers, the plan
and, for private keys, of noisy counts that reached their threshold. See docs/claims/noise.md and
docs/claims/key-selection.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from proxy.analysis.keys import KeyValue, PrivateKey
from proxy.dp.samplers import Noise
from proxy.errors import BadGroups
from proxy.plan.parts.cut_units import CUT, WHOLE
from proxy.plan.release_plan import AllKeys, KeysOfRows, ReleasePlan, Threshold
from proxy.plan.vector.moments import UnitCount
from proxy.release.keys import decode, encode, identity, order, read_integer, read_key
from proxy.release.raw import RawResult

_TAU_SLACK = 1.0 + 2.0**-40
MOST_CELLS = 200_000  # of one release with private keys
MOST_KEY_CHARS = 20_000_000  # of its private keys' texts, counted for each cell
_AT_A_TIME = 4096  # keys, rows or values of noise between two looks at whether to stop

Check = Callable[[], None]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class NoisyCell:
    """One emitted key, its noisy moments in grid units, and the results of each part of the release."""

    key: tuple[KeyValue, ...]
    moments: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class NoisyCut:
    """Of one grouping set, by its number, the noisy numbers of units that are cut and of those that are not.

    In units of the grid.
    """

    number: int
    cut: int
    whole: int


@dataclass(frozen=True, slots=True)
class NoisyCells:
    """All cells of one release, in key order. cut: how many units bounds have cut, where that is counted."""

    cells: tuple[NoisyCell, ...]
    cut: tuple[NoisyCut, ...] = ()

    def payload(self) -> bytes:
        """Canonical bytes for the store of releases: the cells, as before units were counted, or both by name."""
        cells = [[[encode(k) for k in c.key], c.moments, *([c.parts] if c.parts else ())] for c in self.cells]
        cut = [[c.number, c.cut, c.whole] for c in self.cut]
        content = {"cells": cells, "cut": cut} if cut else cells
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()

    @staticmethod
    def of_payload(payload: bytes) -> NoisyCells:
        """The cells that `payload` was made of."""
        content = json.loads(payload)
        cells, cut = (content["cells"], content["cut"]) if isinstance(content, dict) else (content, [])
        return NoisyCells(
            tuple(
                NoisyCell(tuple(decode(k) for k in key), tuple(moments), tuple(tuple(p) for ps in parts for p in ps))
                for key, moments, *parts in cells
            ),
            tuple(NoisyCut(*c) for c in cut),
        )


def publish(plan: ReleasePlan, raw: RawResult, noise: Noise, check: Check = lambda: None) -> NoisyCells:
    """Add noise to every coordinate of the vector that is emitted, and select private keys.

    Claim: for databases that differ in one unit (or the policy's group), the result is
    (rho, delta)-close at the plan's cost, if `raw` is the result of the plan's own SQL and every value
    of `noise` is an independent draw of the plan's distribution at scale 2^40.

    check: called again and again; what it raises ends the work. Noise that was taken by then is lost.
    """
    exact = _Exact(plan, raw, check)
    cells = in_order(_emitted(plan, exact, noise, check))
    return replace(cells, cut=_counted(exact, noise, check)) if plan.cut_weight else cells


def _counted(exact: _Exact, noise: Noise, check: Check) -> tuple[NoisyCut, ...]:
    """The numbers of units that are cut and that are not, which are released whatever keys are."""
    cut, whole = (number + draw for number, draw in zip(exact.units(), draws(noise, 2, check), strict=True))
    return (NoisyCut(0, cut, whole),)


def every_public_key(plan: ReleasePlan) -> NoisyCells:
    """The cells of a plan without moments, before its parts are computed."""
    return in_order(NoisyCell(key, ()) for key in plan.public_keys)


def in_order(cells: Iterable[NoisyCell]) -> NoisyCells:
    """Cells as they are published: in the order of their keys."""
    return NoisyCells(tuple(sorted(cells, key=lambda c: tuple(order(k) for k in c.key))))


def _emitted(plan: ReleasePlan, exact: _Exact, noise: Noise, check: Check) -> list[NoisyCell]:
    match plan.selection:
        case Threshold(moment, rule):
            return _selected(plan, exact, noise, moment, rule.tau, check)
        case KeysOfRows():
            return _of_rows(plan, exact, noise, check)
        case AllKeys():
            cells = ((key, exact.cell(key)) for key in plan.public_keys)
            return list(_noisy(cells, draws(noise, len(plan.public_keys) * exact.size, check)))


def draws(noise: Noise, count: int, check: Check) -> Iterator[int]:
    """That many values, each once."""
    for start in range(0, count, _AT_A_TIME):
        check()
        yield from noise.take(min(_AT_A_TIME, count - start))


def _checked(items: Iterable[Item], check: Check) -> Iterator[Item]:
    for number, item in enumerate(items):
        if number % _AT_A_TIME == 0:
            check()
        yield item


class _Exact:
    """The engine's integers by key; keys outside the public domains do not exist here."""

    def __init__(self, plan: ReleasePlan, raw: RawResult, check: Check) -> None:
        self.size = len(plan.vector.moments)
        self._is_private = tuple(isinstance(k, PrivateKey) for k in plan.analysed.keys)
        self._cells: dict[tuple[object, ...], tuple[int, ...]] = {}
        self.parts: dict[tuple[object, ...], tuple[tuple[KeyValue, ...], tuple[int, ...]]] = {}
        self._units: dict[object, int] = {}
        is_mixed = any(isinstance(m, UnitCount) and m.per_part for m in plan.vector.moments)
        for row in _checked(raw.rows, check):
            if row[0] in (CUT, WHOLE):
                self._units[row[0]] = read_integer(row[1 + len(self._is_private)])
                continue
            key = tuple(read_key(v) for v in row[1 : 1 + len(self._is_private)])
            moments = tuple(read_integer(v) for v in row[1 + len(self._is_private) :])
            if row[0] == 0:
                self._cells[identity(key)] = moments
            if row[0] == 1 or not is_mixed:
                private = self._private_part(key)
                self.parts[identity(private)] = (private, moments)

    def _private_part(self, key: tuple[KeyValue, ...]) -> tuple[KeyValue, ...]:
        return tuple(k for k, p in zip(key, self._is_private, strict=True) if p)

    def units(self) -> tuple[int, int]:
        """How many units are cut, and how many are not, on the grid."""
        return self._units[CUT], self._units[WHOLE]

    def cell(self, key: tuple[KeyValue, ...]) -> tuple[int, ...]:
        """The moments of a key; zeros for one without rows."""
        return self._cells.get(identity(key), (0,) * self.size)

    def whole_key(self, private: tuple[KeyValue, ...], public: tuple[KeyValue, ...]) -> tuple[KeyValue, ...]:
        """The key in GROUP BY order from its private and public parts."""
        ours, theirs = iter(private), iter(public)
        return tuple(next(ours) if p else next(theirs) for p in self._is_private)


def _selected(plan: ReleasePlan, exact: _Exact, noise: Noise, moment: int, tau: float, check: Check) -> list[NoisyCell]:
    """Private parts whose noisy unit count reaches tau, each with the full public product."""
    least = math.ceil(tau * plan.scale * plan.allocation.weights[moment] * _TAU_SLACK)
    candidates = list(exact.parts.values())
    counts = (
        (private, moments[moment] + draw)
        for (private, moments), draw in zip(candidates, draws(noise, len(candidates), check), strict=True)
    )
    kept = [(private, count) for private, count in counts if count >= least]
    check_size([private for private, _ in kept], len(plan.public_keys))
    keys = [(exact.whole_key(private, public), count) for private, count in kept for public in plan.public_keys]
    cells = _noisy(((key, exact.cell(key)) for key, _ in keys), draws(noise, len(keys) * exact.size, check))
    return [
        NoisyCell(cell.key, (*cell.moments[:moment], count, *cell.moments[moment + 1 :]))
        for cell, (_, count) in zip(cells, keys, strict=True)
    ]


def _of_rows(plan: ReleasePlan, exact: _Exact, noise: Noise, check: Check) -> list[NoisyCell]:
    """The private parts that rows have, each with the full public product."""
    kept = [private for private, _ in exact.parts.values()]
    check_size(kept, len(plan.public_keys))
    keys = [exact.whole_key(private, public) for private in kept for public in plan.public_keys]
    return list(_noisy(((k, exact.cell(k)) for k in keys), draws(noise, len(keys) * exact.size, check)))


def check_size(kept: Sequence[tuple[KeyValue, ...]], publics: int) -> None:
    """Refuse an answer that would take the memory of all sessions. Looks at keys that are shown, at nothing else."""
    texts = sum(len(k) for private in kept for k in private if isinstance(k, str))
    if len(kept) * publics > MOST_CELLS or texts * publics > MOST_KEY_CHARS:
        raise BadGroups(
            "the answer has too many groups to be sent",
            detail="Every key that is shown comes with all public keys beside it. What was reserved stays charged.",
            hint="Group by fewer or coarser expressions.",
        )


def _noisy(cells: Iterable[tuple[tuple[KeyValue, ...], tuple[int, ...]]], noise: Iterator[int]) -> Iterator[NoisyCell]:
    """A value of its own for every coordinate; too few are an error."""
    for key, moments in cells:
        own = islice(noise, len(moments))
        yield NoisyCell(key, tuple(m + d for m, d in zip(moments, own, strict=True)))
