"""Do an engine's rows equal the oracle's integers?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from proxy.analysis.keys import PrivateKey
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.moments import UnitCount
from tests.oracle import times
from tests.oracle.bounded import Exact, Key
from tests.oracle.values import Value


def key_value(value: object) -> Value:
    """A key of an engine's row as the oracle has it."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case date():
            return times.moment_of(value)
        case Decimal():
            return float(value)
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise AssertionError(f"a key of type {type(value).__name__}")


def engine_exact(plan: ReleasePlan, raw: Sequence[tuple[object, ...]]) -> Exact:
    """An engine's rows in the oracle's form."""
    size = len(plan.analysed.keys)
    per_part = [isinstance(m, UnitCount) and m.per_part for m in plan.vector.moments]
    is_private = [isinstance(k, PrivateKey) for k in plan.analysed.keys]
    cells: dict[Key, tuple[int, ...]] = {}
    parts: dict[Key, int] = {}
    units = {2: 0, 3: 0}  # that are cut, and that are not
    for row in raw:
        if isinstance(row[0], int) and row[0] in units:
            value = row[1 + size]
            units[row[0]] = value if isinstance(value, int) else -1
            continue
        key = tuple(key_value(k) for k in row[1 : 1 + size])
        moments = tuple(m if isinstance(m, int) else 0 for m in row[1 + size :])
        if row[0] == 1:
            parts[tuple(k for k, p in zip(key, is_private, strict=True) if p)] = moments[per_part.index(True)]
        else:
            cells[key] = moments
    return Exact(cells=cells, parts=parts, units=(units[2], units[3]))


def differences(engine: Exact, oracle: Exact, *, are_keys_public: bool) -> list[str]:
    """What differs, as sentences; empty when all integers and all keys are equal.

    are_keys_public: every key is shown whatever is found, so that a cell of zeros is the same as none.
    """
    found = [f"units cut and whole: engine {engine.units}, oracle {oracle.units}"] * (engine.units != oracle.units)
    nothing: tuple[int, ...] = ()
    for key in engine.cells.keys() | oracle.cells.keys():
        ours, theirs = engine.cells.get(key, nothing), oracle.cells.get(key, nothing)
        if ours != theirs and (any(ours) or any(theirs) or not are_keys_public):
            found.append(f"cell {key!r}: engine {ours}, oracle {theirs}")
    found += [
        f"part {part!r}: engine {engine.parts.get(part)}, oracle {oracle.parts.get(part)}"
        for part in engine.parts.keys() | oracle.parts.keys()
        if engine.parts.get(part) != oracle.parts.get(part)
    ]
    return found
