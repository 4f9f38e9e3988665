"""What does one statement mean that no session has sent: of the command line, of the proxy itself, of a test?"""

from __future__ import annotations

from proxy.errors import HushError, Unsupported
from proxy.pipeline.outline import Cuts
from proxy.pipeline.premises import Premises
from proxy.pipeline.statements import QueryString, understand
from proxy.sql.advice.unknown_names import check_tables
from proxy.sql.query.split import split
from proxy.sql.syntax.parse import limited_depth, split_statements
from proxy.sql.syntax.table_command import write_out
from proxy.wire.exchange import Piece, Refusal

_NOTHING_KEPT = ((),)  # by a session on the front


class NothingPrivate(Unsupported):
    """The statement reads nothing private: PostgreSQL's to answer or to refuse."""


def read_alone(cuts: Cuts, text: str, premises: Premises) -> Piece:
    """The statement that reads private tables or a relation of the proxy. Raises HushError for any other.

    What the front would answer, or refuse, is refused here.
    """
    pieces = understand(cuts, QueryString(premises=premises, text=text, has_intervals=False, told=_NOTHING_KEPT))
    found = [piece for piece in pieces if piece.is_private]
    if len(found) > 1 or not pieces:
        raise Unsupported("expected one statement", hint="Give one SELECT.")
    if not found:
        _check(pieces[-1], premises)
        raise _nothing_private(premises)
    (piece,) = found
    if isinstance(piece.refusal, Refusal):
        error = piece.refusal.error
        error.position += piece.start if error.position else 0
        raise error
    return piece


def _check(piece: Piece, premises: Premises) -> None:
    """What is wrong with a statement that the front is left to answer. Raises HushError if something is."""
    (statement,) = split_statements(piece.text)
    written = write_out(statement)
    names = {t.text.lower() for t in statement.tokens}
    try:
        with limited_depth():
            if names & premises.private_names:
                split(written.statement, premises.catalog, premises.relations)
            else:
                check_tables(written.statement, premises.named)
    except HushError as error:
        error.position = piece.start + written.original(error.position) if error.position else 0
        raise


def _nothing_private(premises: Premises) -> NothingPrivate:
    private = ", ".join(t.name for t in premises.named.values() if not t.is_public)
    return NothingPrivate(
        "the statement reads no private table of this policy",
        detail="PostgreSQL answers it exactly and free, or refuses it; there is no privacy plan.",
        hint=f"Give a SELECT with aggregates over a private table: {private}.",
    )
