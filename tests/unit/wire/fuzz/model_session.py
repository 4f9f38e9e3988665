"""A model of a session: it answers each question of the relay by the words of the text, at once, and counts charges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.errors import BudgetSpent, HushError, NotAggregate, Unsupported
from proxy.wire.exchange import Array, Asking, NoRefusal, Notice, Piece, Refusal, Spliced
from proxy.wire.flow import Ask, AskPrepare, AskRelease
from proxy.wire.lexer import StatementSpan, statements

_PREFIXES = ("copyout ", "declare ")
_ARRAY = Array(oid=1016, text="{7}")
_CHARGED = (Notice(severity="NOTICE", sqlstate="00000", message="charged"),)
#: Words of the client's text that its release keeps.
_KEPT = ("mistyped", "bindfail", "runfail")


@dataclass(slots=True)
class SessionModel:
    """charged: how many releases were answered, each with the next serial."""

    charged: int = 0
    refused: list[str] = field(default_factory=list)
    _known: dict[str, tuple[Piece, ...]] = field(default_factory=dict)

    def may_be_private(self, text: str) -> bool:
        return "users" in text

    def known(self, text: str, settings: Mapping[str, str]) -> tuple[Piece, ...]:
        return self._known.get(text, ())

    def note_refusal(self, error: HushError) -> None:
        self.refused.append(error.sqlstate)

    def answer(self, ask: Ask) -> tuple[Piece, ...] | Spliced | Asking | HushError:
        match ask:
            case AskPrepare(text, _, told):
                if "unreadable" in text:
                    return Unsupported("this statement cannot be read", position=8)
                pieces = tuple(_piece(text, span, is_told=bool(told)) for span in statements(text))
                if not told:
                    self._known[text] = pieces
                return pieces
            case AskRelease(piece, parameters, _):
                return self._release(piece, len(parameters))

    def _release(self, piece: Piece, parameters: int) -> Spliced | Asking | HushError:
        words = piece.text.split()
        if "broke" in words:
            return BudgetSpent("the budget is spent")
        if "staged" in words and not piece.told:
            said = " ".join(f"${number + 1}" for number in range(parameters + 1))
            return Asking(sql=f"select rows 2 {said}", arrays=(_ARRAY,), piece=piece)
        self.charged += 1
        verb = next((word for word in words if word in ("copyout", "declare")), "select")
        kept = [word for word in words if word in (*_KEPT, "nothing")] + ["\u2192"] * ("latin" in words)
        literal = " ".join([verb, f"serial{self.charged}", "rows 2", *kept])
        numbered = " ".join(f"${number + 1}" for number in range(parameters + 1))
        return Spliced(
            sql=f"{literal} {numbered}",
            literal_sql=literal,
            arrays=(_ARRAY,),
            notices=_CHARGED,
            tag="EXPLAIN" if "tagged" in words else "",
        )


def _piece(whole: str, span: StatementSpan, *, is_told: bool) -> Piece:
    text = whole[span.start : span.end]
    words = text.split()
    is_private = "users" in words and not (is_told and "turned" in words)
    prefix = next((len(prefix) for prefix in _PREFIXES if text.startswith(prefix)), 0) if is_private else 0
    inner = "select " + text[prefix:] if prefix else text.replace(" nothing", "")
    refusal = Refusal(NotAggregate("rows are not shown", position=3)) if "refuse" in words else NoRefusal()
    return Piece(
        text=text,
        start=span.start,
        is_private=is_private,
        describe_text=inner + " also" * ("widened" in words),
        prefix_chars=prefix,
        needs_transaction=text.startswith("declare"),
        returns_rows="nothing" not in words and not text.startswith("declare"),
        asks="select rows 1" if "asks" in words and not is_told else "",
        is_fleeting="asks" in words,
        is_inert="inert" in words,
        refusal=refusal,
    )
