"""Is a dataset ready to answer, and what have its shared accounts spent? For the operator's monitoring.

The figures follow from what was asked and charged; whether the engine is there does not depend on private rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from proxy.admin.hosting import Hosted
from proxy.dp.accounting import epsilon_spent
from proxy.engines.base import Cancellation
from proxy.errors import HushError
from proxy.front.server import ServerState
from proxy.ledger.base import Balance, Ledger
from proxy.metrics import AccountFigures, DatasetFigures
from proxy.plan.charge import Account, AccountKind
from proxy.session.dataset import Version

_LOOK_S = 5.0


def figures_of(hosted: Hosted, ledger: Ledger) -> DatasetFigures:
    """What a monitoring system reads of one dataset. Raises nothing: what fails is a part that is not ready."""
    with hosted.dataset.used() as version:
        missing = [] if all(s.state is ServerState.RUNNING for s in hosted.front.servers) else ["front"]
        accounts: tuple[AccountFigures, ...] = ()
        try:
            accounts = tuple(_figures(b, version) for b in ledger.balances(_shared(version), datetime.now(UTC)))
        except HushError:
            missing.append("ledger")
        try:
            with version.engine.session((), timeout_s=_LOOK_S, cancellation=Cancellation()):
                pass
        except HushError:
            missing.append("engine")
        return DatasetFigures(
            name=version.policy.dataset, loaded_at=version.loaded_at, accounts=accounts, not_ready=tuple(missing)
        )


def _shared(version: Version) -> tuple[Account, ...]:
    """The account of everybody, and those of the roles that somebody has."""
    return (version.dataset_account(), *dict.fromkeys(_of_roles(version)))


def _of_roles(version: Version) -> Iterator[Account]:
    for login in version.users.everyone:
        yield from (a for a in version.accounts(login, "") if a.kind is AccountKind.ROLE)


def _figures(balance: Balance, version: Version) -> AccountFigures:
    privacy, limit, spent = version.policy.privacy, balance.limit, balance.spent
    share = spent.pico / limit.pico if balance.account.limited and limit.pico else 0.0
    return AccountFigures(
        dataset=version.policy.dataset, kind=balance.account.kind.value, name=balance.account.name, share=share,
        limit=epsilon_spent(privacy, limit.pico) if balance.account.limited else math.inf,
        spent=epsilon_spent(privacy, spent.pico),
    )  # fmt: skip
