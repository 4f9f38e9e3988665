"""How is pure work asked for that may take long, and whose is it?

Work is a function of `proxy.pipeline` and its arguments: nothing that it is given, and nothing that it returns, holds
rows, accounts, sockets or keys. So it may run in another process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from proxy.pipeline.outline import Cuts
from proxy.pipeline.premises import Premises

Given = ParamSpec("Given")
Result = TypeVar("Result")
Work = Callable[Concatenate[Cuts, Given], Result]


@dataclass(frozen=True, slots=True)
class Turn:
    """Who asks, so that each login has its share; how many characters there are to read; what all of it rests on."""

    login: str
    size: int
    premises: Premises


class Thinking(Protocol):
    """Does work elsewhere."""

    async def run(self, turn: Turn, work: Work[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        """What the work returns. Raises HushError and Unread as it does, and HushError since it took too long.

        When cancelled it is given up. work: a function of a module, found there by its name.
        """
        ...
