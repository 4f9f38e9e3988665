"""How is the plan of a release, with or without grouping sets, told to the analyst?

As data for every kind of plan, and as lines of text. Public quantities only.
"""

from __future__ import annotations

from dataclasses import replace

from proxy.dp.accounting import ATTO, PICO
from proxy.plan.sets.sets import GroupingSet, Plan, SetsPlan
from proxy.plan.vector.moments import UnitCount
from proxy.plan.words.describe import counted
from proxy.plan.words.explain import Json, explain_block
from proxy.plan.words.explain_lines import broken, explain_lines, list_of, repeated_lines
from proxy.plan.words.explain_unpromised import explain_unpromised, unpromised_lines
from proxy.plan.words.outputs import OutputNoise, output_noise
from proxy.plan.words.repeats import repeated_rows
from proxy.plan.words.wide import too_wide
from proxy.policy.figures import figure
from proxy.policy.model import Accounting, Privacy
from proxy.sql.algebra.describe import describe_scalar


def explain_plan(plan: Plan, privacy: Privacy) -> Json:
    """The plan of one release as data; that of grouping sets has one of each set in it."""
    one, several = plan.plans[0], plan.several
    if one.is_unpromised:
        return explain_unpromised(one, privacy)
    found = repeated_rows(plan, privacy.unit)
    repeated: Json = {"repeated_rows": f"{found.what}. {found.cut} {found.instead}"} if found else {}
    clamps: list[Json] = [{"noise": w.what, "instead": w.instead} for w in too_wide(plan, privacy.unit)]
    said: Json = {**repeated, **({"clamps": clamps} if clamps else {})}
    if several is None:
        return {**explain_block(one, privacy), **said}
    sets: list[Json] = [{"set": label(s), **explain_block(s.plan, privacy)} for s in several.sets]
    pure = privacy.accounting is Accounting.PURE
    return {
        "unit": privacy.unit,
        "neighbors": privacy.neighbors.value,
        "mechanism": plan.distribution.value,
        "charge": {"epsilon" if pure else "rho": plan.cost.pico / PICO, "delta": plan.cost.atto / ATTO},
        "consistency": "; ".join(_consistency(several)),
        "outputs": [{**output, "set": one["set"]} for one in sets for output in list_of(one, "outputs")],
        "grouping_sets": sets,
        **said,
    }


def plan_lines(block: Json) -> list[str]:
    """What `explain_plan` gives, as readable lines."""
    if "protected_when_collected" in block:
        return unpromised_lines(block)
    if "grouping_sets" not in block:
        return explain_lines(block)
    charge, sets = block["charge"], list_of(block, "grouping_sets")
    assert isinstance(charge, dict)
    amount = ", ".join(f"{k} {figure(v, 6)}" for k, v in charge.items() if isinstance(v, (int, float)))
    how = f"{block['mechanism']}, {block['neighbors']} of one {block['unit']}"
    lines = [
        f"Release of {counted(len(sets), 'grouping set')} ({how})",
        f"  Charge: {amount}, in equal shares",
        *broken(f"  Consistency: {block['consistency']}"),
        *(line for text in repeated_lines(block) for line in broken(text)),
    ]
    for one in sets:
        own = explain_lines(one)
        lines += [f"  Grouping set {one['set']}", *(f"  {line}" for line in own[1:])]
    return lines


def output_noises(plan: Plan) -> tuple[OutputNoise, ...]:
    """One row for each aggregate, of each grouping set."""
    several = plan.several
    if several is None:
        return output_noise(plan.plans[0])
    return tuple(
        replace(o, aggregate=f"{o.aggregate} by {label(s)}") for s in several.sets for o in output_noise(s.plan)
    )


def label(one: GroupingSet) -> str:
    """A grouping set as SQL spells it."""
    return f"({', '.join(describe_scalar(k.scalar) for k in one.plan.analysed.keys)})"


def _consistency(plan: SetsPlan) -> list[str]:
    """Which numbers are made consistent, and which cannot be."""
    families = plan.families()
    labels = [", ".join(label(plan.sets[n]) for n in family) for family in families]
    found = [f"totals become the sums of their parts in {of}" for of in labels]
    if any(_leaves_units(plan, family) for family in families):
        found.append("numbers of units stay as they are, since a unit may be in several groups")
    alone = [label(one) for n, one in enumerate(plan.sets) if not any(n in family for family in families)]
    if alone:
        found.append(f"by themselves, for other private keys or other bounds of a unit: {', '.join(alone)}")
    if families:
        found.append("noise is stated as it was before; SET hush.consistency = off keeps what was drawn")
    return found


def _leaves_units(plan: SetsPlan, family: tuple[int, ...]) -> bool:
    counts = {
        m for n in family for m in plan.sets[n].plan.vector.moments if isinstance(m, UnitCount) and not m.per_part
    }
    return not counts <= set(plan.additive(family))
