"""Numbers are printed in digits, for people."""

from __future__ import annotations

import math

import pytest

from proxy.policy.figures import figure


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (1e6, "1,000,000"), (999_999.5, "1,000,000"), (12_345.6, "12,346"), (9_999, "9999"), (2.44949, "2.449"),
        (0.1013, "0.1013"), (0.00012341, "0.0001234"), (0.0000123, "0.000012"), (-0.0000123, "-0.000012"), (0, "0"),
        (100.0, "100"), (math.inf, "inf"), (1e20, "1e+20"), (-54_321, "-54,321"),
    ],
)  # fmt: skip
def test_figures(number: float, shown: str) -> None:
    assert figure(number) == shown


def test_more_digits() -> None:
    assert figure(1.4142135, 6) == "1.41421"
    assert figure(1_234_567.8, 6) == "1,234,568"
