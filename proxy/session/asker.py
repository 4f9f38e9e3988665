"""Whose statement is it, and who pays for it?"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.metrics import Metrics
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
    def owner(self) -> Owner:
        """Under which name it is known what was shown."""
        return self.login, self.version.policy.digest, self.version.policy.data_version
