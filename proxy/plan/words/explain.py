"""How is the privacy plan of a release told to the analyst?

Public quantities only: nothing here has seen data. The same facts as lines of text: `explain_lines`.
"""

from __future__ import annotations

from typing import assert_never

from proxy.analysis.keys import PublicKey
from proxy.dp.accounting import ATTO, PICO
from proxy.plan.parts.cut_units import norm_up
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.parts import Part
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.profile.bound_choice import ChosenBound, FromPolicy, FromProfile
from proxy.plan.profile.left_out import About, Complete, LeftOut, Untold, told
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.plan.sql.unit_totals import SumChoice
from proxy.plan.vector.moments import UnitCount, UnitTotal, size_in_cell
from proxy.plan.words.describe import counted, describe_moment, describe_part, limits_of
from proxy.plan.words.outputs import OutputNoise, output_noise
from proxy.plan.words.sources import error_sources
from proxy.policy.figures import figure
from proxy.policy.model import Accounting, Neighbors, Privacy
from proxy.sql.algebra.describe import describe_aggregate, describe_scalar

Json = dict[str, "str | int | float | bool | list[Json] | Json | None"]


def explain_block(plan: ReleasePlan, privacy: Privacy) -> Json:
    """The plan of one release as data."""
    bounds = plan.analysed.bounds
    pure = privacy.accounting is Accounting.PURE
    moments = zip(plan.vector.moments, plan.allocation.weights, plan.sds, strict=True)
    return {
        "unit": privacy.unit,
        "neighbors": privacy.neighbors.value,
        "mechanism": plan.distribution.value,
        "charge": {
            "epsilon" if pure else "rho": plan.cost.pico / PICO,
            "delta": plan.cost.atto / ATTO,
        },
        "bounds": {
            "max_rows_per_unit": bounds.rows,
            "max_rows_per_group": bounds.rows_per_group,
            "max_groups_per_unit": bounds.groups,
            "max_keys_per_unit": bounds.keys,
            "source": bounds.source,
        },
        "chosen_bound": _chosen(plan.bound),
        "left_out": _left_out(plan.left_out, privacy.unit),
        "sensitivity": _sensitivity(plan, privacy) if plan.vector.moments else None,
        "keys": [explain_key(plan, i) for i in range(len(plan.analysed.keys))],
        "threshold": plan.selection.tau if isinstance(plan.selection, Threshold) else None,
        "moments": [{"moment": describe_moment(m), "weight": w, "sd": sd} for m, w, sd in moments],
        "outputs": [{"aggregate": o.aggregate, "bound": o.bound, **_accuracy(o)} for o in output_noise(plan)],
        "errors": [{"aggregate": name, "sources": words} for name, words in error_sources(plan)],
        "sum_bounds": [_choice(c) for c in plan.sum_choices],
        "private_sql": plan.shown(plan.sql),
        "parts": [_part(p, plan, privacy) for p in plan.parts],
    }


def _sensitivity(plan: ReleasePlan, privacy: Privacy) -> Json:
    """Of the vector of moments."""
    pure = privacy.accounting is Accounting.PURE
    return {
        "value": plan.sensitivity,
        "norm": "l1" if pure else "l2",
        "row": plan.allocation.row_norm,
        "group": plan.allocation.cell_norm,
        "unit": plan.allocation.unit_norm,
        "derivation": _derivation(plan, privacy, pure=pure),
    }


def _chosen(bound: ChosenBound) -> Json | None:
    """What a profile recommended; None where the policy's bounds hold."""
    match bound:
        case FromPolicy():
            return None
        case FromProfile():
            return {
                "rows": bound.rows,
                "expected_loss": bound.loss,
                "expected_error": bound.error,
                "expected_error_by_policy": bound.by_policy,
                "data_version": bound.data_version,
                "newer_data_version": bound.newer,
                "kept": bound.kept.share,
                "untold": ", ".join(f'"{name}"' for name in bound.kept.untold),
            }
        case _ as never:
            assert_never(never)


def _left_out(of: LeftOut, unit: str) -> Json | None:
    """What bounding leaves out, as far as it is told."""
    match of:
        case Complete():
            return None
        case Untold():
            return {"words": told(of, unit), "noise_grows_by": of.growth}
        case About():
            return {"words": told(of, unit), "share": of.share, "least": of.least, "most": of.most, "units": of.units}
        case _ as never:
            assert_never(never)


def _accuracy(output: OutputNoise) -> Json:
    if output.is_of_mode:
        return {"rows_short_5": output.half_width_95}
    if output.is_of_ranks:
        return {"rank_error_95": output.half_width_95}
    ending = "_times_rows" if output.is_per_row else ""
    return {f"sd{ending}": output.sd, f"half_width_95{ending}": output.half_width_95}


def _part(part: Part, plan: ReleasePlan, privacy: Privacy) -> Json:
    """What is computed beside the vector, as data."""
    pure = privacy.accounting is Accounting.PURE
    return {
        "part": describe_part(part),
        "epsilon" if pure else "rho": part.pico / PICO,
        "bound": limits_of(part),
        **_noise_of_part(part, pure=pure),
        "private_sql": plan.shown(part.sql),
    }


def _noise_of_part(part: Part, *, pure: bool) -> Json:
    match part:
        case DistinctPart(sensitivity=sensitivity, sd=sd):
            return {"sensitivity": sensitivity, "norm": "l1" if pure else "l2", "sd": sd}
        case QuantilePart(ladder=ladder):
            return {"draws": ladder.draws, "epsilon_of_a_draw": ladder.epsilon}
        case ModePart(poll=poll):
            return {"draws": 1, "epsilon_of_a_draw": poll.epsilon}
        case _ as never:
            assert_never(never)


def _choice(choice: SumChoice) -> Json:
    return {
        "aggregate": describe_aggregate(choice.aggregate),
        "total_within": f"[{figure(choice.least, 6)}, {figure(choice.most, 6)}]",
        "sd_by_total": choice.by_total,
        "sd_by_rows": choice.by_rows,
        "used": "total" if choice.is_used else "rows",
    }


def _derivation(plan: ReleasePlan, privacy: Privacy, *, pure: bool) -> str:
    bounds, allocation = plan.analysed.bounds, plan.allocation
    if allocation.is_chosen:
        text = f"B = {figure(allocation.unit_norm)}, chosen; what a unit has is scaled down to it in all groups alike"
        return text + _beside(plan) + _factors(privacy)
    units = [w for m, w in zip(plan.vector.moments, allocation.weights, strict=True) if isinstance(m, UnitCount)]
    parts = []
    if allocation.row_norm > 0:
        parts.append(f"{counted(bounds.rows_per_group, 'row')} in a group, each at most {figure(allocation.row_norm)}")
    if units:
        parts.append(f"{counted(len(units), 'unit count')} of weight {figure(max(units))}")
    totals = [
        w * size_in_cell(m, 0)
        for m, w in zip(plan.vector.moments, allocation.weights, strict=True)
        if isinstance(m, UnitTotal)
    ]
    if totals:
        parts.append(f"{counted(len(totals), 'total')} of at most {figure(max(totals))}")
    text = f"{' and '.join(parts)}, so W = {figure(allocation.cell_norm)}"
    spread = f"{bounds.groups}" if pure else f"sqrt({bounds.groups})"
    text += f"; {counted(bounds.groups, 'group')} and {counted(bounds.rows, 'row')} in all,"
    text += f" so B = {figure(allocation.unit_norm)}, at most {spread} * W"
    return text + _beside(plan) + _factors(privacy)


def _beside(plan: ReleasePlan) -> str:
    """What a unit weighs among those that are cut, or whole, beside its vector."""
    if not plan.cut_weight:
        return ""
    whole = figure(norm_up(plan.allocation.unit_norm, plan.cut_weight, plan.distribution))
    return f"; {whole} with {figure(plan.cut_weight)} beside it for whether rows of it are left out"


def _factors(privacy: Privacy) -> str:
    """By what neighbours multiply a unit's bound."""
    text = f"; times {privacy.group_size} for the group size" if privacy.group_size > 1 else ""
    return text + ("; times 2 because one unit is replaced" if privacy.neighbors is Neighbors.REPLACE_ONE else "")


def explain_key(plan: ReleasePlan, number: int) -> Json:
    """By which rule the groups of a key are shown."""
    key = plan.analysed.keys[number]
    if isinstance(key, PublicKey):
        return {"key": describe_scalar(key.scalar), "rule": "public: every value is shown", "values": len(key.values)}
    rule = "public: every value that a row has is shown" if plan.is_unpromised else "private: shown above the threshold"
    return {"key": describe_scalar(key.scalar), "rule": rule, "values": None}
