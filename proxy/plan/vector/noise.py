"""How large is the noise of an output, as far as public numbers tell?"""

from __future__ import annotations

import math
from typing import assert_never

from proxy.plan.vector.formulas import sd_over_even_values
from proxy.plan.vector.recipes import Apart, Count, Finish, Linear, Mean, Ranked, Relation, Spread, Total, Verdict


def noise_of(recipe: Finish, sds: tuple[float, ...]) -> float:
    """Standard deviation of an output; of an average, times its number of rows. sds: of the moments.

    0 for what is computed apart from them.
    """
    match recipe:
        case Apart() | Ranked():
            return 0.0
        case Count(form) | Total(form):
            return sd_of(form, sds)
        case Mean(number=number, total=total, middle=middle, half=half):
            apart = math.fsum(recipe.ends) / 2.0 - middle  # of the average whose noise is stated
            return math.hypot(sd_of(total, sds) * half, sd_of(number, sds) * apart)
        case Spread() | Relation():
            return sd_over_even_values(recipe, sds)
        case Verdict():
            return sd_of(recipe.deciding, sds)
        case _ as never:
            assert_never(never)


def sd_of(form: Linear, sds: tuple[float, ...]) -> float:
    """Standard deviation of a linear form's noise; the noises of a release are independent. sds: of the moments."""
    return math.sqrt(math.fsum((c * sds[i]) ** 2 for i, c in form.terms))
