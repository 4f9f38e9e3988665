"""What is kept of one question: our error beside those of other ways."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: errors of the product and of each other way, in the unit of the answer or relative."""

    question: str
    data: str
    bounds: str
    epsilon: float
    ours: float
    others: dict[str, float]

    @property
    def best(self) -> str:
        """The other way with the least error."""
        return min(self.others, key=self.others.__getitem__)

    @property
    def ratio(self) -> float:
        """The product's error over that of the best other way."""
        return self.ours / self.others[self.best]
