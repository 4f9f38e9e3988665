"""What remains of a statement that was cut at the noise line, once its trees are let go of?

Trees are large, and stay in the process that made them. An outline says where the pieces are; whoever needs the trees
cuts its text again, which gives the same.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from proxy.pipeline.premises import Premises
from proxy.sql.query.split import BlockText, EmptiedText, Split, SystemText, split
from proxy.sql.query.stages import StageText, meaning
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.parse import limited_depth, split_statements

_MOST_KEPT = 64
_LONGEST_KEPT = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A statement cut at the noise line, without trees. See `Split`.

    spans: of its blocks. keyed: for each release of the statement and its stages that is charged, whether it may have
    private keys.
    """

    text: str
    spans: tuple[TextSpan, ...] = ()
    system: tuple[SystemText, ...] = ()
    emptied: tuple[EmptiedText, ...] = ()
    stages: tuple[StageText, ...] = ()
    keyed: tuple[bool, ...] = ()
    feeds_aggregation: bool = False
    asks_free: bool = True


def outline_of(cut: Split) -> Outline:
    """The outline of a statement."""
    return Outline(
        text=cut.text,
        spans=tuple(b.span for b in cut.blocks),
        system=cut.system,
        emptied=cut.emptied,
        stages=cut.stages,
        keyed=tuple(b.may_have_private_keys for b in _releases_of(cut) if b.is_promised),
        feeds_aggregation=cut.feeds_aggregation,
        asks_free=cut.asks_free,
    )


def _releases_of(cut: Split) -> tuple[BlockText, ...]:
    """The blocks of a statement and of all its stages, without those that mean the same."""
    found: dict[tuple[object, ...], list[BlockText]] = {}
    for block in (*cut.first, *cut.blocks):
        same = found.setdefault(meaning(block.tokens), [])
        if all(b.ctes != block.ctes for b in same):
            same.append(block)
    return tuple(b for same in found.values() for b in same)


class Cuts:
    """Statements that were cut lately, so that planning one after understanding it need not read it again."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[int, str], tuple[Premises, Split]] = OrderedDict()

    def of(self, premises: Premises, text: str) -> Split:
        """A text cut at the noise line. Raises HushError."""
        known = self._found.get((id(premises), text))
        if known is not None:
            return known[1]
        with limited_depth():
            cut = split(split_statements(text)[0], premises.catalog, premises.relations)
        self.keep(premises, cut)
        return cut

    def keep(self, premises: Premises, cut: Split) -> None:
        """Remember a cut for as long as there is room; a large one until this work is done."""
        self._found[id(premises), cut.text] = premises, cut  # kept, or others might get the same id
        while len(self._found) > _MOST_KEPT:
            self._found.popitem(last=False)

    def let_go(self) -> None:
        """Forget what takes much memory, at the end of a work."""
        for key in [key for key in self._found if len(key[1]) > _LONGEST_KEPT]:
            del self._found[key]
