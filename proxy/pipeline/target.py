"""Which epsilon is the smallest that makes a statement as accurate as its asker wants?

Decided from public quantities, profiles and answers that the asker was shown before; never from anything else. What
bounds are expected to leave out counts like noise. An average's noise depends on its number of rows, and a per cent on
a value: for both such an answer must be there, or a profile that tells the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.errors import PolicyForbids
from proxy.plan.words.outputs import OutputNoise
from proxy.policy.figures import figure
from proxy.policy.model import MIN_QUERY_EPSILON

_DIGITS = 900  # epsilons of three digits in one power of ten


@dataclass(frozen=True, slots=True)
class Target:
    """Half of the 95 % interval that is wanted. is_share: as a share of the answer. amount 0: nothing is wanted."""

    amount: float
    is_share: bool = False

    def __str__(self) -> str:
        return f"{figure(100 * self.amount, 6)}%" if self.is_share else figure(self.amount, 6)


NO_TARGET = Target(0.0)


@dataclass(frozen=True, slots=True)
class Shown:
    """What is known of one number from an answer that was shown: means over its groups.

    value: of its size. reach: of half its interval. stated: the public figure that the interval is in proportion to.
    fewer: how many times more rows were shown than there may be; at most twice.
    """

    value: float
    reach: float
    stated: float
    fewer: float = 1.0


def epsilons(least: float, most: float) -> Callable[[int], float]:
    """Epsilons of three digits, ascending, from the number of each; the last is `most`."""

    def of(number: int) -> float:
        power, digits = divmod(number, _DIGITS)
        return min(most, max(least, float(f"{100 + digits}e{power - 6}")))

    return of


def smallest(meets: Callable[[float], bool], most: float) -> float:
    """The smallest epsilon of three digits that meets a wish, which all larger ones meet as well; else `most`."""
    of = epsilons(MIN_QUERY_EPSILON, most)
    low, high = -1, 0
    while of(high) < most:
        high += _DIGITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(of(middle)) else (middle, high)
    return of(high)


def is_met(target: Target, outputs: Sequence[OutputNoise], shown: Sequence[Shown | None]) -> bool:
    """Whether all numbers are as near as is wanted. Raises PolicyForbids when that cannot be known beforehand."""
    return all(_error(target, o, s) <= _wanted(target, o, s) for o, s in zip(outputs, shown, strict=True))


def _error(target: Target, output: OutputNoise, shown: Shown | None) -> float:
    if not output.is_per_row:
        return output.half_width_95 + output.missing
    if shown is None:
        raise PolicyForbids(
            f"hush.target_error cannot be met for {output.aggregate} yet",
            detail="Its noise depends on its number of rows, which is not public.",
            hint="RESET hush.target_error and ask once with hush.epsilon: the answer tells how many rows there are.",
        )
    found = shown.reach * output.half_width_95 / shown.stated
    return output.missing + (found if _is_near(target, shown) else found * shown.fewer)


def _wanted(target: Target, output: OutputNoise, shown: Shown | None) -> float:
    if not target.is_share:
        return target.amount
    if shown is None and output.usual > 0.0:
        return target.amount * output.usual
    if shown is None:
        raise PolicyForbids(
            f"a hush.target_error of {target} needs a value of {output.aggregate}",
            detail="It is a share of an answer that you were shown before, and there is none that can be used.",
            hint="RESET hush.target_error and ask once with hush.epsilon, SET it to a number, or have a profile made.",
        )
    return target.amount * (shown.value if _is_near(target, shown) else max(0.0, shown.value - shown.reach))


def _is_near(target: Target, shown: Shown) -> bool:
    """What is near enough stays so; else an answer may be as small, and its rows as few, as its interval says."""
    return shown.reach <= target.amount * (shown.value if target.is_share else 1.0)


def unmet(target: Target, most: float, needed: float | None) -> PolicyForbids:
    """The refusal where the largest epsilon that is allowed is too small. needed: an epsilon that would do."""
    cost = (
        f"it costs epsilon {figure(needed, 6)}" if needed is not None else "no epsilon that the policy allows is enough"
    )
    return PolicyForbids(
        f"hush.target_error = {target} cannot be had: {cost}, and at most {figure(most, 6)} is allowed",
        hint="SET hush.target_error to more, raise hush.max_charge, or ask for fewer numbers at once.",
    )
