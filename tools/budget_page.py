"""How many statements does a budget buy, at which accuracy, and are the guide's tables what the code charges?

Writes the tables between two markers of the guide. Every figure is computed with the functions that price, charge and
calibrate a statement.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from proxy.dp.accounting import PICO, epsilon_spent, knob_pico, limit_pico
from proxy.dp.accuracy import half_width_95
from proxy.dp.mechanisms import Distribution
from proxy.pipeline.target import smallest
from proxy.policy.model import Privacy
from tools.sources import ROOT

PAGE = ROOT / "docs" / "guide" / "client.md"
BEGIN = "<!-- budgets: begin; written by `python -m tools.budget_page` -->"
END = "<!-- budgets: end -->"

_PRIVACY = Privacy(unit="customer", delta=1e-6, delta_pool=5e-7)
_USUAL = 0.5
_STATEMENTS = (1, 2, 4, 10, 20, 50, 70)
_KNOBS = (0.1, 0.25, 0.5, 1.0, 2.0)
_BUDGETS = (1.0, 3.0, 5.0, 10.0, 20.0)
_ERRORS = (200, 100, 50, 20, 10, 5, 2)


def tables() -> str:
    """The text that belongs between the markers."""
    return "\n\n".join((_spending(), _holding(), _accuracy()))


def _spending() -> str:
    one = knob_pico(_PRIVACY, _USUAL)
    spent = [f"{epsilon_spent(_PRIVACY, n * one):.3g}" for n in _STATEMENTS]
    return _table(f"statements of epsilon {_USUAL:g}", _STATEMENTS, (("they spend epsilon", spent),))


def _holding() -> str:
    rows = [(f"an account of {of:g} holds", [_held(of, knob) for knob in _KNOBS]) for of in _BUDGETS]
    return _table("epsilon of a statement", [f"{k:g}" for k in _KNOBS], rows)


def _accuracy() -> str:
    needed = [_epsilon_for(error) for error in _ERRORS]
    rows: list[tuple[str, Sequence[object]]] = [("needs epsilon", [f"{epsilon:g}" for epsilon in needed])]
    rows += [(f"an account of {of:g} holds", [_held(of, epsilon) for epsilon in needed]) for of in _BUDGETS]
    return _table("a count of people, 95 % within", [f"± {e}" for e in _ERRORS], rows)


def _held(account: float, knob: float) -> str:
    return f"{limit_pico(_PRIVACY, account) // knob_pico(_PRIVACY, knob):,}"


def _epsilon_for(error: float) -> float:
    """What `hush.target_error` would choose for a count that one person changes by 1."""

    def is_near(epsilon: float) -> bool:
        rho = knob_pico(_PRIVACY, epsilon) / PICO
        return half_width_95(Distribution.GAUSSIAN, 1.0 / math.sqrt(2.0 * rho)) <= error

    return smallest(is_near, _PRIVACY.max_query_epsilon)


def _table(head: str, columns: Sequence[object], rows: Sequence[tuple[str, Sequence[object]]]) -> str:
    lines = [(head, columns), ("---", ["---"] * len(columns)), *rows]
    return "\n".join(f"| {' | '.join((first, *map(str, rest)))} |" for first, rest in lines)


def written(page: str, made: str) -> str:
    """The page with these tables between its markers. ValueError without markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no place for the tables")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(written(page, tables()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
