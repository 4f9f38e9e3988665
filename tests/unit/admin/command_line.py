"""How do tests run one command line and see what it printed?"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from proxy.admin.cli import build, run
from proxy.admin.commands.profile import Profiled
from proxy.admin.commands.serve import Runners
from proxy.config import DemoConfig, ExplainRequest, ProfileConfig, ServeConfig
from proxy.errors import HushError
from proxy.session.learning.profiling import Progress


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
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str) -> int:
        runners = Runners(serve=self._serve, demo=self.demos.append, explain=self._explain)
        status = run(build(runners, self._profile), arguments)
        self.out, self.err = self.capsys.readouterr()
        return status

    def _serve(self, config: ServeConfig) -> None:
        self.served.append(config)
        if self.failure is not None:
            raise self.failure

    def _profile(self, config: ProfileConfig, progress: Progress) -> Profiled:
        self.profile_configs.append(config)
        progress(1, 1)
        return self.profiled

    def _explain(self, request: ExplainRequest) -> str:
        self.explained.append(request)
        return "the plan"
