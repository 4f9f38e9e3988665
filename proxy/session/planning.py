"""What does a session plan of a statement, given what its asker was shown before?"""

from __future__ import annotations

from dataclasses import replace

from proxy.pipeline.plans import Planned, plan_near_enough, plan_statement
from proxy.pipeline.settings import Settings
from proxy.plan.sets import Plan
from proxy.release.store import Stored
from proxy.session.asker import Asker
from proxy.session.price import release_key
from proxy.session.shown import shown_of
from proxy.sql.constants import Constants
from proxy.sql.split import Split


def plan_asked(query: Split, asker: Asker, settings: Settings, constants: Constants, share: int = 0) -> Planned:
    """The releases of a statement, as accurate as its asker wants. Costs nothing. Raises HushError.

    share: what each release may cost if earlier stages of the statement have decided it.
    """
    premises, terms = asker.premises, asker.terms(settings)
    if share or not terms.target.amount or not query.blocks:
        return plan_statement(query, premises, terms, constants, share)
    largest = replace(terms, epsilon=premises.privacy.max_query_epsilon)
    precise = plan_statement(query, premises, largest, constants)
    sources = asker.dataset.known.sources(asker.owner)
    shown = tuple(s for p in precise.distinct() for s in shown_of(p, sources, lambda of: _shown_to(of, asker)))
    return plan_near_enough(query, premises, terms, constants, precise, shown)


def _shown_to(plan: Plan, asker: Asker) -> Stored | None:
    """The release of a plan if all accounts of the asker paid for it."""
    found = asker.dataset.ledger.seen(asker.accounts, release_key(plan, asker.version))
    return found if isinstance(found, Stored) else None
