"""What does a session plan of a statement, given what its asker was shown before?"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import replace

from proxy.pipeline.outline import Outline
from proxy.pipeline.plans import Planned, Task, plan_near_enough, plan_statement
from proxy.pipeline.settings import Settings
from proxy.pipeline.target import Shown
from proxy.plan.sets.sets import Plan
from proxy.release.store import StoredRelease
from proxy.session.asker import Asker
from proxy.session.asking.shown import shown_of
from proxy.session.pricing.price import release_key
from proxy.sql.algebra.constants import Constants


async def plan_asked(
    query: Outline, asker: Asker, settings: Settings, constants: Constants, share: int, waiting: Executor
) -> Planned:
    """The releases of a statement, as accurate as its asker wants. Costs nothing. Raises HushError.

    share: what each release may cost if earlier stages of the statement have decided it. waiting: for the ledger.
    """
    size, terms = len(query.text), asker.terms(settings)
    task = Task(query=query, premises=asker.premises, terms=terms, constants=constants, share=share)
    if share or not terms.target.amount or not query.spans:
        return await asker.think(size, plan_statement, task)
    largest = replace(terms, epsilon=asker.version.policy.privacy.max_query_epsilon)
    precise = await asker.think(size, plan_statement, replace(task, terms=largest))
    shown = await asyncio.get_running_loop().run_in_executor(waiting, _shown, precise, asker)
    return await asker.think(size, plan_near_enough, task, precise.outputs, shown)


def _shown(precise: Planned, asker: Asker) -> tuple[Shown | None, ...]:
    """What the asker was shown of each number."""
    sources = asker.dataset.known.sources(asker.owner)
    return tuple(s for p in precise.distinct() for s in shown_of(p, sources, lambda of: _shown_to(of, asker)))


def _shown_to(plan: Plan, asker: Asker) -> StoredRelease | None:
    """The release of a plan if all accounts of the asker paid for it."""
    found = asker.dataset.ledger.seen(asker.accounts, release_key(plan, asker.version))
    return found if isinstance(found, StoredRelease) else None
