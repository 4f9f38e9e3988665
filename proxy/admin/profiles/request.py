"""How does `hushql profile` have a running proxy make profiles, and what does the proxy do then?

The proxy charges through its own ledger, the one writer of it, keeps the profiles, and uses them at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from proxy.admin.commands.profile import wishes_of
from proxy.admin.control import ask
from proxy.admin.hosting import Hosted
from proxy.admin.profiles.file import keep_profiles, path_of, read_profiles, with_paid
from proxy.config import EveryFilter, Filters, ProfileConfig
from proxy.dp.mechanisms import Distribution, distribution_of
from proxy.dp.samplers import Noise
from proxy.errors import ConfigError, HushError
from proxy.events import LoggedEvent, tell
from proxy.ledger.base import Ledger
from proxy.policy.model import Policy
from proxy.session.dataset import Version, dataset_account
from proxy.session.learning.profiling import Findings, Wish

_FINDINGS = TypeAdapter(Findings)
Profile = Callable[[Version, Ledger, Noise, Sequence[Wish], float], Findings]


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Request(_Said):
    """digest, data_version: of the policy that the command read. filters: None for every column that may be one."""

    dataset: str
    digest: str
    data_version: str
    epsilon: float
    tables: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    filters: tuple[tuple[str, str], ...] | None


class _Reply(_Said):
    """findings: JSON of what was found, or "" and what went wrong."""

    findings: str = ""
    message: str = ""
    detail: str = ""
    hint: str = ""


def profiled_elsewhere(config: ProfileConfig, policy: Policy) -> Findings | None:
    """What the proxy that owns the state directory found; None if it cannot be asked. Raises ConfigError."""
    request = _Request(
        dataset=policy.dataset, digest=policy.digest, data_version=policy.data_version, epsilon=config.epsilon,
        tables=config.tables, columns=config.columns,
        filters=config.filters.columns if isinstance(config.filters, Filters) else None,
    )  # fmt: skip
    text = ask(config.state, request.model_dump_json())
    if text is None:
        return None
    reply = _Reply.model_validate_json(text)
    if not reply.findings:
        raise ConfigError(reply.message, detail=reply.detail, hint=reply.hint)
    return _FINDINGS.validate_json(reply.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiling:
    """The running proxy's part."""

    state: Path
    hosted: Sequence[Hosted]
    ledger: Ledger
    noise: Mapping[Distribution, Noise]
    profile: Profile

    async def answer(self, line: str) -> str:
        """The reply to a command's request."""
        try:
            request = _Request.model_validate_json(line)
        except ValidationError:
            return _Reply(message="the running proxy does not know this request",
                          hint="Use the command of the version that is running.").model_dump_json()  # fmt: skip
        try:
            findings = await self._profiled(request)
        except HushError as error:
            return _Reply(message=error.message, detail=error.detail, hint=error.hint).model_dump_json()
        return _Reply(findings=_FINDINGS.dump_json(findings).decode()).model_dump_json()

    async def _profiled(self, request: _Request) -> Findings:
        hosted = next((h for h in self.hosted if h.name == request.dataset), None)
        if hosted is None:
            raise ConfigError(
                f'the proxy that owns this state directory does not serve a dataset "{request.dataset}"',
                hint="Give the state directory of the one that does, or stop that proxy first.",
            )
        with hosted.dataset.used() as version:
            return await self._profiled_of(hosted, version, request)

    async def _profiled_of(self, hosted: Hosted, version: Version, request: _Request) -> Findings:
        if (version.policy.digest, version.policy.data_version) != (request.digest, request.data_version):
            raise ConfigError(
                "the running proxy has another policy in force than this file",
                hint="Give the file that it serves; if that was edited, see its log for why it was not taken.",
            )
        config = ProfileConfig(
            policy=hosted.path, state=self.state, epsilon=request.epsilon, tables=request.tables,
            columns=request.columns, filters=EveryFilter() if request.filters is None else Filters(request.filters),
        )  # fmt: skip
        wishes = wishes_of(config, version.policy)
        noise = self.noise[distribution_of(version.policy.privacy.accounting)]
        findings = await asyncio.to_thread(self.profile, version, self.ledger, noise, wishes, request.epsilon)
        path = path_of(self.state, request.dataset)
        keep_profiles(path, version.policy, findings.profiles)
        # a reload may have come between: what fits the policy that is in force now is used
        now = hosted.dataset.current
        fitting, _ = read_profiles(path, now.policy)
        served, _ = with_paid(fitting, self.ledger, dataset_account(now.policy))
        hosted.dataset.swap(replace(now, profiles=served))
        words = f"{request.dataset}: a profile was made at epsilon {request.epsilon:g} and is in use"
        tell(LoggedEvent.PROFILE, words, {"dataset": request.dataset, "epsilon": request.epsilon})
        return findings
