"""How is the privacy plan of a release printed?"""

from __future__ import annotations

import re
from itertools import chain

from proxy.plan.words.describe import counted
from proxy.plan.words.explain import Json
from proxy.policy.figures import figure

_NEARLY_ALL = 0.995  # of the rows: not worth saying
_WIDTH = 110  # of a line, where it has a blank to be broken at: psql sets all lines as wide as the longest
_CONTINUED = "  "
_WORD = re.compile(r"""(?:'[^']*(?:'|$)|"[^"]*(?:"|$)|[^\s'"])+""")  # what stands in quotes is one


def explain_lines(block: Json) -> list[str]:
    """The plan of one release as readable lines."""
    return list(chain.from_iterable(broken(line) for line in _long_lines(block)))


def charge_text(charge: Json) -> str:
    """A charge in words."""
    return ", ".join(f"{k} {figure(v, 6)}" for k, v in charge.items() if isinstance(v, (int, float)))


def broken(line: str) -> list[str]:
    """A line in pieces of at most _WIDTH characters, longer words aside."""
    indent = line[: len(line) - len(line.lstrip())]
    pieces: list[str] = []
    for word in _WORD.findall(line):
        if pieces and len(pieces[-1]) + 1 + len(word) <= _WIDTH:
            pieces[-1] += f" {word}"
        else:
            pieces.append(f"{indent}{_CONTINUED if pieces else ''}{word}")
    return pieces


def _long_lines(block: Json) -> list[str]:
    charge, bounds, sensitivity = block["charge"], block["bounds"], block["sensitivity"]
    assert isinstance(charge, dict)
    assert isinstance(bounds, dict)
    title = f"Release ({block['mechanism']}, {block['neighbors']} of one {block['unit']})"
    lines = [title, f"  Charge: {charge_text(charge)}"]
    lines.append(
        f"  Bounds: {counted(bounds['max_rows_per_unit'], 'row')} per unit, {bounds['max_rows_per_group']} per group,"
        f" {counted(bounds['max_groups_per_unit'], 'group')} ({bounds['source']})"
    )
    if isinstance(chosen := block["chosen_bound"], dict):
        lines.append(_chosen(chosen))
    if isinstance(left_out := block["left_out"], dict):
        lines.append(f"  Left out: {left_out['words']}")
    if isinstance(sensitivity, dict):
        norm, derivation = sensitivity["norm"], sensitivity["derivation"]
        lines.append(f"  Sensitivity: {figure(sensitivity['value'], 6)} ({norm}): {derivation}")
    lines += repeated_lines(block)
    lines += key_lines(block)
    if block["threshold"] is not None:
        lines.append(f"  Threshold: {figure(block['threshold'])} units (noisy)")
    lines += [
        f"  Moment: {m['moment']}; weight {figure(m['weight'])}, noise sd {figure(m['sd'])}"
        for m in list_of(block, "moments")
    ]
    lines += [f"  Output {o['aggregate']}: {_stated(o)}; {o['bound']}" for o in list_of(block, "outputs")]
    lines += [f"  Errors of {e['aggregate']}: {e['sources']}" for e in list_of(block, "errors")]
    lines += [
        f"  Sum bounds of {c['aggregate']}: noise sd {figure(c['sd_by_total'])} with a unit's total within"
        f" {c['total_within']}, {figure(c['sd_by_rows'])} with its rows bounded; by {c['used']} here"
        for c in list_of(block, "sum_bounds")
    ]
    for part in list_of(block, "parts"):
        share = part["rho"] if "rho" in part else part["epsilon"]
        noise = (
            f"sensitivity {figure(part['sensitivity'], 6)} ({part['norm']}), noise sd {figure(part['sd'])}"
            if "sd" in part
            else f"{counted(part['draws'], 'draw')} of epsilon {figure(part['epsilon_of_a_draw'])}"
        )
        lines.append(f"  Part {part['part']}: {figure(share, 6)} of the charge; {part['bound']}; {noise}")
    for sql in (block["private_sql"], *(p["private_sql"] for p in list_of(block, "parts"))):
        if sql:
            lines.append("  Private SQL:")
            lines += [f"    {line}" for line in str(sql).splitlines()]
    return lines


def key_lines(block: Json) -> list[str]:
    """How the groups of each key are shown."""
    return [f"  Key {k['key']}: {k['rule']}" + _count(k) for k in list_of(block, "keys")]


def _chosen(bound: Json) -> str:
    """The bound that a profile recommended, and why."""
    error, other = (f"{100 * float(str(bound[name])):.2g} %" for name in ("expected_error", "expected_error_by_policy"))
    kept, untold = float(str(bound["kept"])), bound["untold"]
    passing = f"; WHERE keeps about {100 * kept:.2g} % of a unit's rows" if kept < _NEARLY_ALL else ""
    passing += f"; no profile of {untold}: bound of the whole table" if untold else ""
    newer = f", while the data are of version {bound['newer_data_version']}" if bound["newer_data_version"] else ""
    return (
        f"  Bound: what a unit has counts up to that of {figure(bound['rows'])} rows, by the profile of data"
        f" version {bound['data_version']}{newer}; expected error {error}, with the policy's bounds {other}{passing}"
    )


def repeated_lines(block: Json) -> list[str]:
    """What is said of a join that repeats rows, if one does, and of totals that are lost in their noise."""
    rows = [f"  Rows: {block['repeated_rows']}"] if "repeated_rows" in block else []
    clamps = list_of(block, "clamps") if "clamps" in block else ()
    return [*rows, *(f"  Clamp: {c['noise']}. {c['instead']}" for c in clamps)]


def _stated(output: Json) -> str:
    """The accuracy of an output."""
    if "rows_short_5" in output:
        rows = counted(output["rows_short_5"], "row")
        return f"an element {rows} short of the best is given with a chance of at most 5 %"
    if "rank_error_95" in output:
        return f"rank 95 % within {figure(output['rank_error_95'])} rows"
    if "sd" in output:
        return f"noise sd {figure(output['sd'])}, 95 % within {figure(output['half_width_95'])}"
    return f"noise sd {figure(output['sd_times_rows'])} divided by the number of rows"


def _count(key: Json) -> str:
    return "" if key["values"] is None else f" ({counted(key['values'], 'value')})"


def list_of(block: Json, name: str) -> list[Json]:
    """What stands under a name of the plan, as a list."""
    rows = block[name]
    assert isinstance(rows, list)
    return rows
