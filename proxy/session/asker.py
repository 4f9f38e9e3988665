"""Whose statement is it, and who pays for it?"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.metrics import Metrics
from proxy.pipeline.premises import Premises, Terms
from proxy.pipeline.settings import Settings
from proxy.plan.charge import Account
from proxy.session.dataset import Dataset, Version
from proxy.session.known import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whose statement it is, what it pays with, and who counts it."""

    dataset: Dataset
    version: Version
    login: str
    accounts: tuple[Account, ...]
    metrics: Metrics

    @property
    def premises(self) -> Premises:
        """What its statements are planned from."""
        return self.version.premises(self.login)

    def terms(self, settings: Settings) -> Terms:
        """On which its statements are planned."""
        return Terms(
            epsilon=settings.epsilon,
            limits=tuple(a.limit.pico for a in self.accounts if a.limited),
            max_charge=settings.max_charge,
            lowered=settings.lowered,
            shares=settings.shares,
            target=settings.target,
        )

    @property
    def owner(self) -> Owner:
        """Under which name it is known what was shown."""
        return self.login, self.version.policy.digest, self.version.policy.data_version
