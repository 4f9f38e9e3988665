"""What would several statements cost together, one after the other, and how accurate would they be?

Free, and touches no data. Answers `hush.estimate(statements)`: for each statement a row for each account of the asker,
and at the end one for all statements together. A release that an earlier statement of the text brings is reused.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime

from proxy.dp.accounting import ATTO, epsilon_spent
from proxy.errors import HushError, InvalidParameter, Unsupported
from proxy.front.relations import CALLS
from proxy.pipeline.outline import Outline
from proxy.pipeline.plans import Planned
from proxy.pipeline.settings import Settings
from proxy.pipeline.statements import QueryString, Understood, understand
from proxy.plan.charge import Cost, Request
from proxy.plan.sets.sets import Plan, promised
from proxy.plan.words.outputs import NO_NOISE, OutputNoise
from proxy.policy.figures import figure
from proxy.policy.model import Accounting
from proxy.session.answering.notices import forecast
from proxy.session.asker import Asker
from proxy.session.asking.reading import informed
from proxy.session.asking.stages import Progress, asked_now, foreseen, ready
from proxy.session.contract import Piece, Refusal
from proxy.session.pricing.price import NOTHING, is_above_cap, largest
from proxy.session.relations import RelationRow, Viewer, columns_of, decimal, number, own_accounts
from proxy.sql.algebra.constants import Bindings, Readings
from proxy.sql.algebra.nodes import Literal
from proxy.sql.query.front.splice import InjectedColumn
from proxy.sql.syntax.system_calls import CallArgument, ParameterNumber
from proxy.sql.syntax.wrappers import EXPLAINS

_MOST_STATEMENTS = 200
_EXACT = "exact"


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why a statement would cost nothing and give nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Exact:
    """A statement that reads nothing private."""


@dataclass(frozen=True, slots=True)
class _Released:
    """A statement whose releases these are. planned: of those that can be planned now."""

    planned: Planned
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class _Planned:
    """A statement of which so much was planned, and how far it is."""

    progress: Progress
    planned: Planned
    text: str


_Priced = _Released | _Refused | _Exact
Pay = Callable[[Understood], Awaitable[None]]  # for what is told of a statement beside its own releases
Forecast = _Planned | _Refused | _Exact


async def foresee_all(
    argument: CallArgument, parameters: Bindings, asker: Asker, settings: Settings, waiting: Executor, pay: Pay
) -> tuple[Forecast, ...]:
    """What the statements would release, whoever has paid for what. pay: before one is planned. Raises HushError."""
    text = _text(argument, parameters)
    asked = QueryString(premises=asker.premises, text=text, has_intervals=False)
    pieces = await asker.think(len(text), understand, asked)
    if len(pieces) > _MOST_STATEMENTS:
        hint = "Estimate them in several calls."
        raise Unsupported(f"hush.estimate takes at most {_MOST_STATEMENTS} statements", hint=hint)
    return tuple([await _foreseen(piece, asker, settings, waiting, pay) for piece in pieces])


async def _foreseen(piece: Piece, asker: Asker, settings: Settings, waiting: Executor, pay: Pay) -> Forecast:
    if isinstance(piece.refusal, Refusal):
        return _refused(piece.refusal.error)
    if piece.asks:
        return _Refused("only what stands alone is estimated: give the SELECT without what keeps its rows")
    handle = piece.handle
    if isinstance(handle, Understood) and isinstance(handle.query, Outline) and handle.query.spans:
        if handle.wrapped.wrapper in EXPLAINS:
            return _Exact()

        await pay(handle)

        async def plan(known: Readings) -> tuple[Progress, Planned]:
            return await foreseen(handle, asker, settings, known, waiting)

        try:
            return _Planned(*await informed(plan, asker.dataset.reader, settings.style, waiting), piece.text)
        except HushError as error:
            return _refused(error)
    words = piece.text.split(None, 1)
    if words and words[0].upper() in ("SET", "RESET"):
        return _Refused("settings are those of the session: SET them before the estimate")
    return _Exact()


def estimate(
    found: tuple[Forecast, ...], viewer: Viewer, asker: Asker, settings: Settings
) -> tuple[InjectedColumn, ...]:
    """The rows of hush.estimate as columns. Raises HushError."""
    return columns_of(CALLS["estimate"], _Estimate(viewer, asker, settings).rows(found))


def _text(argument: CallArgument, parameters: Bindings) -> str:
    if isinstance(argument, ParameterNumber):
        given = parameters.get(argument.number)
        if not isinstance(given, Literal) or not isinstance(given.value, str):
            raise InvalidParameter("hush.estimate takes a text", detail=f"${argument.number} is none.")
        return given.value
    return argument


class _Estimate:
    def __init__(self, viewer: Viewer, asker: Asker, settings: Settings) -> None:
        self._asker = asker
        self._settings = settings
        self._privacy = asker.version.policy.privacy
        self._accounts = own_accounts(viewer)
        self._balances = asker.dataset.ledger.balances(self._accounts, datetime.now(UTC))
        self._asked: tuple[Request, ...] = ()
        self._plans: tuple[Plan, ...] = ()
        self._so_far = [NOTHING] * len(self._accounts)

    def rows(self, all_of_them: tuple[Forecast, ...]) -> list[RelationRow]:
        """Every statement's rows, then those of all together."""
        found = [row for place, one in enumerate(all_of_them, start=1) for row in self._of(place, self._priced(one))]
        return [*found, *self._row_by_account(None, list(self._so_far), "", "")]

    def _priced(self, foreseen: Forecast) -> _Priced:
        if not isinstance(foreseen, _Planned):
            return foreseen
        progress, text = foreseen.progress, foreseen.text
        try:
            planned = ready(progress, foreseen.planned, self._asker, self._settings, self._plans)
            return _Released(planned, asked_now(progress, planned, self._asker, text).requests)
        except HushError as error:
            return _refused(error)

    def _of(self, place: int, priced: _Priced) -> Iterator[RelationRow]:
        match priced:
            case _Refused(reason):
                yield (str(place), *(None,) * 7, reason, None)
            case _Exact():
                yield from self._row_by_account(place, [NOTHING] * len(self._accounts), _EXACT, "")
            case _Released(planned, requests):
                costs = self._costs(requests)
                own = largest(c for c, a in zip(costs, self._accounts, strict=True) if a.kind.is_own)
                if is_above_cap(own, self._settings, self._privacy):
                    refusal = f"hush.max_charge allows {figure(self._settings.max_charge, 6)}"
                else:
                    refusal, self._asked = "", self._asked + requests
                    self._plans += promised(planned.distinct())
                    self._so_far = [a + b for a, b in zip(self._so_far, costs, strict=True)]
                error = "; ".join(map(_expected_error, planned.outputs))
                told = forecast(planned.plans, self._privacy)
                yield from self._row_by_account(place, costs, error, refusal, told)

    def _costs(self, requests: tuple[Request, ...]) -> list[Cost]:
        """What a statement adds to what those before it cost."""
        payers, is_fresh = self._asker.accounts, self._settings.is_fresh
        quote = self._asker.dataset.ledger.quote
        before = (NOTHING,) * len(payers) if is_fresh else quote(payers, self._asked)
        after = quote(payers, requests if is_fresh else self._asked + requests, fresh=is_fresh)
        added = {
            payer: Cost(a.pico - b.pico, a.atto - b.atto) for payer, a, b in zip(payers, after, before, strict=True)
        }
        return [added[a] for a in self._accounts]

    def _row_by_account(
        self, place: int | None, costs: list[Cost], error: str, refusal: str, told: str = ""
    ) -> Iterator[RelationRow]:
        is_pure = self._privacy.accounting is Accounting.PURE
        for balance, cost, all_of_it in zip(self._balances, costs, self._so_far, strict=True):
            left = balance.remaining
            fits = not balance.account.limited or (all_of_it.pico <= left.pico and all_of_it.atto <= left.atto)
            yield (
                None if place is None else str(place), balance.account.kind,
                None if is_pure else decimal(cost.pico), number(epsilon_spent(self._privacy, cost.pico)),
                number(cost.atto / ATTO), "t" if cost == NOTHING and error != _EXACT else "f", "t" if fits else "f",
                error or None, refusal or None, told or None,
            )  # fmt: skip


def _refused(error: HushError) -> _Refused:
    told = error.told()
    return _Refused(f"{told.sqlstate}: {told.message}")


def _expected_error(output: OutputNoise) -> str:
    """Half of the 95 % interval, as far as it is public."""
    if output.mechanism == NO_NOISE:
        return f"{output.aggregate}: that of the randomization before rows were stored, see EXPLAIN"
    if output.is_of_mode:
        return f"{output.aggregate}: at most 5 % for a value {math.ceil(output.half_width_95)} rows short"
    if output.is_of_ranks:
        return f"{output.aggregate}: rank within {math.ceil(output.half_width_95)} rows"
    rows = " / number of rows" if output.is_per_row else ""
    return f"{output.aggregate}: {figure(output.half_width_95)}{rows}"
