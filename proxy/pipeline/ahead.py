"""What is planned of a statement as soon as it is understood, because it will probably be run as it stands?"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.errors import HushError
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.plans import Planned, Task, plan_statement
from proxy.pipeline.premises import Terms
from proxy.pipeline.statements import QueryString, Understood, understand
from proxy.sql.algebra.constants import Constants, Unread
from proxy.wire.exchange import Piece


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A query string's pieces, and the plan of its only one: none if that asks for more, or is refused."""

    pieces: tuple[Piece, ...]
    planned: tuple[Planned, ...] = ()


def foresee(cuts: Cuts, asked: QueryString, terms: Terms, constants: Constants) -> Foreseen:
    """Understand a query string, and plan it if it is one statement that needs nothing else."""
    pieces = understand(cuts, asked)
    handle = pieces[0].handle if len(pieces) == 1 else None
    query = handle.query if isinstance(handle, Understood) else None
    if not isinstance(query, Outline) or not query.spans or query.stages or terms.target.amount or "$" in asked.text:
        return Foreseen(pieces)
    task = Task(query=query, premises=asked.premises, terms=terms, constants=constants)
    try:
        return Foreseen(pieces, (plan_statement(cuts, task),))
    except (HushError, Unread):
        return Foreseen(pieces)  # it is said, or read, when the statement is run
