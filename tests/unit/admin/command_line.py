"""How do tests run one command line and see what it printed?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proxy.admin.cli import build, run
from proxy.admin.commands.profile import Profiled
from proxy.admin.commands.serve import Runners
from proxy.config import DemoConfig, ExplainRequest, ProfileConfig, ServeConfig
from proxy.errors import HushError
from proxy.policy.model import Policy
from proxy.session.learning.profiling import ProfilingProgress


@dataclass(slots=True)
class CommandLine:
    """Runs commands with runners that only remember what they were asked."""

    capsys: pytest.CaptureFixture[str]
    served: list[ServeConfig] = field(default_factory=list)
    demos: list[DemoConfig] = field(default_factory=list)
    explained: list[ExplainRequest] = field(default_factory=list)
    profile_configs: list[ProfileConfig] = field(default_factory=list)
    profiled: Profiled = field(init=False)  # what `profile` is to tell
    failure: HushError | None = None
    checked: list[tuple[str, Path]] = field(default_factory=list)
    data_faults: tuple[str, ...] = ()
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str) -> int:
        runners = Runners(serve=self._serve, demo=self.demos.append, explain=self._explain, check_data=self._check_data)
        status = run(build(runners, self._profile), arguments)
        self.out, self.err = self.capsys.readouterr()
        return status

    def _serve(self, config: ServeConfig) -> None:
        self.served.append(config)
        if self.failure is not None:
            raise self.failure

    def _check_data(self, policy: Policy, users_file: Path) -> tuple[str, ...]:
        self.checked.append((policy.dataset, users_file))
        return self.data_faults

    def _profile(self, config: ProfileConfig, progress: ProfilingProgress) -> Profiled:
        self.profile_configs.append(config)
        progress(1, 1)
        return self.profiled

    def _explain(self, request: ExplainRequest) -> str:
        self.explained.append(request)
        return "the plan"
