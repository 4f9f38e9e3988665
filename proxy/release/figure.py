"""What is one finished number?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A finished number with its noise: standard deviation and 95 % interval. value None is NULL."""

    value: float | None
    sd: float
    low: float
    high: float
