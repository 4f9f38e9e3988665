"""How is it told what is computed of a local table, for which nothing is charged?"""

from __future__ import annotations

from proxy.dp.accounting import PICO
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.unpromised import local_table, protected_words
from proxy.plan.words.explain import Json, explain_key
from proxy.plan.words.explain_lines import broken, key_lines, list_of
from proxy.plan.words.sources import error_sources
from proxy.policy.model import Accounting, Privacy


def explain_unpromised(plan: ReleasePlan, privacy: Privacy) -> Json:
    """The plan as data: what protects its rows, and how far off its numbers are."""
    table, pure = local_table(plan), privacy.accounting is Accounting.PURE
    return {
        "table": table.name,
        "mechanism": "none",
        "protected_when_collected": protected_words(table, privacy),
        "charge": {"epsilon" if pure else "rho": plan.cost.pico / PICO, "delta": 0.0},
        "keys": [explain_key(plan, i) for i in range(len(plan.analysed.keys))],
        "outputs": [],
        "errors": [{"aggregate": name, "sources": words} for name, words in error_sources(plan)],
        "private_sql": plan.sql,
    }


def unpromised_lines(block: Json) -> list[str]:
    """The same as readable lines."""
    lines = [
        f"Answer about the local table {block['table']}, without noise",
        "  Charge: none",
        f"  Protected when collected: {block['protected_when_collected']}",
        *key_lines(block),
        *(f"  Errors of {e['aggregate']}: {e['sources']}" for e in list_of(block, "errors")),
        "  Private SQL:",
    ]
    return [p for line in lines for p in broken(line)] + [
        f"    {line}" for line in str(block["private_sql"]).splitlines()
    ]
