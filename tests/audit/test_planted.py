"""Are the auditor's mistakes still mistakes of the product? One that changes nothing would be found by nobody."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from proxy.dp import quantiles, samplers
from proxy.dp.modes import Poll
from proxy.dp.quantiles import Choose, Draw, Weights
from proxy.plan.release_plan import Threshold
from proxy.release import modes, noisy
from proxy.release.noisy import NoisyCell
from proxy.release.raw import RawResult
from tests.audit.planted import half_the_noise, half_the_threshold
from tests.unit.plan.shop import plan
from tests.unit.plan.test_modes import part
from tests.unit.release.make import Scripted


def test_thresholds_are_for_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a release is published: a threshold's distance from a lone unit is halved."""
    of = plan("select city, count(*) from users group by city")
    assert isinstance(of.selection, Threshold)
    seen: list[float] = []

    def selected(*arguments: object) -> list[NoisyCell]:
        tau = arguments[4]
        assert isinstance(tau, float)
        seen.append(tau)
        return []

    monkeypatch.setattr(noisy, "_selected", selected)
    half_the_threshold()
    noisy.publish(of, RawResult(0, ()), Scripted([0, 0]))
    assert seen == [1 + (of.selection.rule.tau - 1) / 2]


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
