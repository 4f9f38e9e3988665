"""Are the auditor's mistakes still mistakes of the product? One that changes nothing would be found by nobody."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from proxy.dp import quantiles, samplers, selection
from proxy.dp.modes import Poll
from proxy.dp.quantiles import Choose, Draw, Weights
from proxy.dp.selection import key_rule
from proxy.release import modes
from tests.audit.planted import half_the_noise, half_the_threshold
from tests.unit.plan.shop import plan
from tests.unit.plan.test_modes import part


def tau() -> float:
    return key_rule(
        delta_r=1e-3, sigma_n=3.0, norm_ratio=1.0, keys_per_unit=1, group_size=1, min_units=0
    ).tau  # fmt: skip


def test_thresholds_are_for_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    before = tau()
    monkeypatch.setattr(selection, "threshold", selection.threshold)  # put back afterwards
    half_the_threshold()
    assert tau() == pytest.approx(1 + (before - 1) / 2, rel=1e-3)


def test_noise_and_choices_are_half_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for of, name in ((samplers.NoisePool, "take"), (quantiles, "scores"), (modes, "elect")):
        monkeypatch.setattr(of, name, getattr(of, name))
    monkeypatch.setattr(samplers.NoisePool, "take", lambda _, n: (8, -8)[:n])
    half_the_noise()
    assert samplers.NoisePool.take(None, 2) == (4, -4)  # type: ignore[arg-type]  # which needs none
    poll = part(plan("select mode() within group (order by plan) from users")).poll

    def choose(weights: Weights, _: Draw) -> int:
        return int(weights.sum())

    elect: Callable[[Poll, Weights, Choose], int] = getattr(modes, "elect")  # noqa: B009  # for mypy
    assert elect(poll, np.array([1, 2], dtype=np.int64), choose) == 6
