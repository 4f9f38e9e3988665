"""Whose statement is it, and who pays for it?"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.metrics import Metrics
from proxy.pipeline.premises import Premises, Terms
from proxy.pipeline.settings import Settings
from proxy.plan.charge import Account
from proxy.session.asking.seen_releases import ReleaseOwner
from proxy.session.dataset import Dataset, Version
from proxy.workers.thinking import Given, Result, Thinking, Turn, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whose statement it is, what it pays with, who counts it, and where it is thought about."""

    dataset: Dataset
    version: Version
    login: str
    accounts: tuple[Account, ...]
    metrics: Metrics
    thinking: Thinking

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

    async def think(self, size: int, work: Work[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        """Have pure work done that reads so many characters. Raises HushError, Unread."""
        turn = Turn(self.version.user_name(self.login), size, self.premises)
        return await self.thinking.run(turn, work, *args, **kwargs)

    @property
    def owner(self) -> ReleaseOwner:
        """Under which name it is known what was shown."""
        return self.login, self.version.policy.digest, self.version.policy.data_version
