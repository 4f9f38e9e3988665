"""Which questions are asked of which data, at which epsilon, and what else could answer them?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.data import Bounds, Rows
from benchmarks.accuracy.others import Sampled, all_together, cut_at_zero, equal_weights, groups_of
from benchmarks.accuracy.ours import PRIVACY, Product, Values
from benchmarks.accuracy.row import Row
from proxy.dp.accounting import PICO, knob_pico

LEARNINGS, ANSWERS = 20, 25  # draws of profiles, and answers with each
QUESTIONS = 70  # that one account answers, in all; learning is 1/20 of what it holds
_FOR_LEARNING = 20

COUNT = "SELECT count(*) FROM orders"
SUM = "SELECT sum(amount) FROM orders"
JOINT = "SELECT count(*), sum(amount), avg(amount) FROM orders"


Way = Callable[[], Values]


def error_of(values: Values, truth: Values, scales: Values) -> float:
    """Root mean square over all answers and numbers, each in the unit of its scale."""
    return float(np.sqrt(np.mean(((values - truth) / scales) ** 2)))


@dataclass(slots=True)
class Asking:
    """One product with everything that is asked of it."""

    product: Product
    draws: int = LEARNINGS * ANSWERS

    @property
    def rows(self) -> Rows:
        return self.product.rows

    @property
    def bounds(self) -> Bounds:
        return self.product.bounds

    def scalar(self, name: str, text: str, columns: tuple[str, ...], epsilon: float) -> Row:
        """A question without groups, with a profile, against fixed ones and sampling."""
        truth = self.product.truth(text)
        sampled = Sampled(self.rows, self.bounds, columns, all_together(self.rows), 1, len(columns) > 1)
        return self._profiled(name, text, epsilon, truth, sampled)

    def grouped(self, name: str, text: str, columns: tuple[str, ...], epsilon: float) -> Row:
        groups, size = groups_of(self.rows, "kind")
        return self._profiled(
            name, text, epsilon, self._of_groups(text, "kind"), Sampled(self.rows, self.bounds, columns, groups, size)
        )

    def _of_groups(self, text: str, key: str) -> Values:
        """The truth of each group, also of those without rows."""
        groups, size = groups_of(self.rows, key)
        return np.bincount(groups, weights=self.rows.amount if "sum(" in text else None, minlength=size).astype(float)

    def _profiled(self, name: str, text: str, epsilon: float, truth: Values, sampled: Sampled) -> Row:
        pico = knob_pico(PRIVACY, epsilon)
        price, learning = pico - pico // _FOR_LEARNING, QUESTIONS * pico // _FOR_LEARNING
        seeds = range(self.draws)
        found = []
        for number, profile in enumerate(self.product.profiled(learning, LEARNINGS)):
            plan, block = self.product.plan(text, price, [profile])
            found.append(self.product.answers(plan, block, seeds[number * ANSWERS : (number + 1) * ANSWERS]))
        plan, block = self.product.plan(text, pico)
        scales = np.maximum(np.abs(truth), 1.0) if sampled.has_average else np.ones(len(truth))
        others = {
            "fixed bounds": error_of(self.product.answers(plan, block, seeds), truth, scales),
            "sampling, epsilon split": error_of(sampled.answers(pico / PICO, seeds), truth, scales),
        }
        return self._row(name, epsilon, error_of(np.concatenate(found), truth, scales), others)

    def sparse(self, name: str, text: str, epsilon: float, draws: int = 100) -> Row:
        """Many small groups: brought to non-negative numbers together, against each by itself and none."""
        truth = self._of_groups(text, "day")
        pico = knob_pico(PRIVACY, epsilon)
        plan, block = self.product.plan(text, pico)
        whole, seeds = np.ones(len(truth)), range(draws)
        raw = self.product.answers(plan, block, seeds, nonnegative=False)
        others = {"as drawn": error_of(raw, truth, whole), "each cut at 0": error_of(cut_at_zero(raw), truth, whole)}
        ours = error_of(self.product.answers(plan, block, seeds), truth, whole)
        return self._row(name, epsilon, ours, others)

    def rollup(self, name: str, text: str, epsilon: float, draws: int = 300) -> Row:
        """Totals beside parts: made to agree, against each set by itself."""
        plan, block = self.product.plan(text, knob_pico(PRIVACY, epsilon))
        parts, seeds = self._of_groups(text, "kind"), range(draws)
        truth = np.append(parts, parts.sum())
        whole = np.ones(len(truth))
        apart = self.product.answers(plan, block, seeds, consistent=False)
        ours = error_of(self.product.answers(plan, block, seeds), truth, whole)
        return self._row(name, epsilon, ours, {"sets by themselves": error_of(apart, truth, whole)})

    def weighted(self, name: str, text: str, scales: tuple[float, ...], epsilon: float) -> Row:
        """Several numbers of one release: weights by formula, against equal ones."""
        truth, pico, seeds = self.product.truth(text), knob_pico(PRIVACY, epsilon), range(self.draws)
        plan, block = self.product.plan(text, pico)
        units = np.array(scales)
        ours = error_of(self.product.answers(plan, block, seeds), truth, units)
        with equal_weights():
            plan, block = self.product.plan(text, pico)
        return self._row(name, epsilon, ours, {"equal weights": error_of(
            self.product.answers(plan, block, seeds), truth, units)})  # fmt: skip

    def _row(self, name: str, epsilon: float, ours: float, others: dict[str, float]) -> Row:
        return Row(question=name, data=self.rows.name, bounds=self.bounds.name, epsilon=epsilon,
                   ours=ours, others=others)  # fmt: skip


def asked_of(rows: Rows, bounds: Bounds) -> Iterator[Row]:
    """Every question about one table under one policy."""
    asking = Asking(Product(rows, bounds))
    for epsilon in (0.1, 0.5, 2.0):
        yield asking.scalar("count", COUNT, ("count",), epsilon)
        yield asking.scalar("sum", SUM, ("sum",), epsilon)
    if bounds.name == "narrow":
        return
    yield asking.scalar("count, sum, average", JOINT, ("count", "sum"), 0.5)
    yield asking.grouped("count by kind", "SELECT kind, count(*) FROM orders GROUP BY kind", ("count",), 0.5)
    yield asking.grouped("sum by kind", "SELECT kind, sum(amount) FROM orders GROUP BY kind", ("sum",), 0.5)
    if bounds.name == "generous":
        return
    yield asking.sparse("count by day", "SELECT day, count(*) FROM orders GROUP BY day", 0.1)
    yield asking.sparse("sum by day", "SELECT day, sum(amount) FROM orders GROUP BY day", 0.1)
    yield asking.rollup("count by ROLLUP", "SELECT kind, count(*) FROM orders GROUP BY ROLLUP (kind)", 0.5)
    yield asking.rollup("sum by ROLLUP", "SELECT kind, sum(amount) FROM orders GROUP BY ROLLUP (kind)", 0.5)
    text = "SELECT count(*), sum(amount), sum(amount) FILTER (WHERE kind = 'a') FROM orders"
    yield asking.weighted("weights of a count and two sums", text, (1.0, bounds.amount, bounds.amount), 0.5)
