"""Pure work done in a thread of the test, which knows what is asked of it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from proxy.pipeline.outline import Cuts
from proxy.workers.thinking import Given, Result, Turn, Work


@dataclass(slots=True)
class InThread:
    """Implements `Thinking`, for sessions whose processes are not what a test is about."""

    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    cuts: Cuts = field(default_factory=Cuts)
    asked: list[str] = field(default_factory=list)

    async def run(self, turn: Turn, work: Work[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        self.asked.append(work.__name__)
        return await asyncio.get_running_loop().run_in_executor(self.thread, lambda: work(self.cuts, *args, **kwargs))
