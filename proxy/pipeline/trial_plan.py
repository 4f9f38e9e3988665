"""Could a statement with stages ever be answered? Asked before its first stage is charged.

Its stages have no values yet, so values are made up: of the type that a stage has, or of each family of types where
that cannot be told. What can be planned with none of them is refused, and costs nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from proxy.errors import HushError
from proxy.pipeline.outline import Outline
from proxy.pipeline.statements import Understood
from proxy.sql.query.stages import StageText, WrittenStatement, with_stand_ins

#: How many statements are planned at most: all combinations for two values of unknown types.
MOST_TRIES = 49

TrialValues = tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Rehearsal:
    """One statement tried out with made up values.

    plan: plans what has no stages left. choices: what may be in each column of a stage, which is planned for that.
    write: the statement with values in it. All raise HushError. is_whole: whether every combination was tried so far.
    """

    plan: Callable[[Understood], object]
    choices: Callable[[Understood, StageText], TrialValues]
    write: Callable[[Understood, WrittenStatement], Understood]
    errors: list[HushError] = field(default_factory=list)
    is_whole: bool = True

    def check(self, handle: Understood) -> None:
        """Raises HushError if nothing can be planned: with any values, or always because of the same.

        Where not all combinations were tried, and errors differ, a statement may fail after its first stage.
        """
        if self._works(handle):
            return
        first = self.errors[0]
        if self.is_whole or all((e.message, e.position) == (first.message, first.position) for e in self.errors):
            raise first

    def _works(self, handle: Understood) -> bool:
        """Whether it can be planned with some values."""
        if not isinstance(handle.query, Outline) or not handle.query.stages:
            return self._tried(handle, lambda: self.plan(handle))
        choices = dict[tuple[object, ...], TrialValues]()
        for stage in different(handle.query.stages):
            if not self._tried(handle, lambda s=stage: choices.update({s.asks_for(): self.choices(handle, s)})):  # type: ignore[misc]  # a default
                return False
        return any(self._goes_on(handle, values) for values in self._dealt(choices))

    def _goes_on(self, handle: Understood, values: dict[tuple[object, ...], Sequence[str]]) -> bool:
        assert isinstance(handle.query, Outline), "it has stages"
        words = with_stand_ins(handle.query.text, {s: values[s.asks_for()] for s in handle.query.stages})
        after = list[Understood]()
        return self._tried(handle, lambda: after.append(self.write(handle, words))) and self._works(after[0])

    def _tried(self, handle: Understood, step: Callable[[], object]) -> bool:
        try:
            step()
        except HushError as error:
            error.position = handle.position(error.position)
            self.errors.append(error)
            return False
        return True

    def _dealt(
        self, choices: dict[tuple[object, ...], TrialValues]
    ) -> Iterator[dict[tuple[object, ...], Sequence[str]]]:
        """Values for each stage, as long as there have been few tries."""
        columns = [column for stage in choices.values() for column in stage]
        self.is_whole = self.is_whole and math.prod(map(len, columns)) <= MOST_TRIES
        for values in _combinations(columns):
            if len(self.errors) >= MOST_TRIES:
                self.is_whole = False
                return
            left = iter(values)
            yield {asked: tuple(itertools.islice(left, len(stage))) for asked, stage in choices.items()}


def different(stages: Sequence[StageText]) -> tuple[StageText, ...]:
    """The first of those that ask for the same."""
    found = dict[tuple[object, ...], StageText]()
    for stage in stages:
        found.setdefault(stage.asks_for(), stage)
    return tuple(found.values())


def _combinations(columns: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """All, first the ones with the same kind of value everywhere."""
    alike = [tuple(c[min(i, len(c) - 1)] for c in columns) for i in range(max(map(len, columns), default=1))]
    yield from alike
    yield from (c for c in itertools.product(*columns) if c not in alike)
