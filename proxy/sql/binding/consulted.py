"""What do the constants of a SELECT stand for, and which of them does it consult?

A text in the plain form is read here, by the clock of the plan and those of the session. Any other is left to
PostgreSQL: the binder says which texts it needs to have read, and is asked again once they are. So what a text means is
never decided by two readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.constants import (
    ANY_MODIFIER,
    TIME_OID,
    Constants,
    Elements,
    Given,
    InputText,
    TimeOfDay,
    Unheld,
    Unread,
    names_clock,
)
from proxy.sql.algebra.nodes import Literal, Span
from proxy.sql.functions.domains.zones import are_same, clocks_of, instant_of, name_of
from proxy.sql.literals.interval_texts import plain_span
from proxy.sql.literals.plain_texts import plain_elements, plain_time_of_day, read_plain
from proxy.sql.syntax.refusal import refuse
from proxy.sqltypes import Family, SqlType, Value

_NOW = "now"
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_BLANKS = " \t\n\v\f\r"
_TIMES = frozenset(
    oid for kind in SqlType if kind.family is Family.TIME for oid in (kind.oid, kind.array_oid)
) | {TIME_OID}  # fmt: skip
#: What stands for a text that is still to be read; nothing that is made of it is ever used.
_STAND_INS: Mapping[int, Given] = MappingProxyType({
    **{kind.oid: Literal(0, kind) for kind in SqlType if kind.is_integer},
    **{kind.oid: Literal("", kind) for kind in SqlType if kind.is_text},
    **{kind.array_oid: Elements(()) for kind in SqlType},
    SqlType.BOOL.oid: Literal(False, SqlType.BOOL), SqlType.NUMERIC.oid: Literal(Decimal(0), SqlType.NUMERIC),
    SqlType.FLOAT4.oid: Literal(0.0, SqlType.FLOAT4), SqlType.FLOAT8.oid: Literal(0.0, SqlType.FLOAT8),
    SqlType.DATE.oid: Literal(date(2000, 1, 1), SqlType.DATE), SqlType.INTERVAL.oid: Span(0, 1, 0),
    SqlType.TIMESTAMP.oid: Literal(datetime(2000, 1, 1), SqlType.TIMESTAMP),
    SqlType.TIMESTAMPTZ.oid: Literal(datetime(2000, 1, 1, tzinfo=UTC), SqlType.TIMESTAMPTZ), TIME_OID: TimeOfDay(0),
})  # fmt: skip


def may_read_clock(asked: InputText) -> bool:
    """Whether PostgreSQL may find the clock's time in a text."""
    return asked.oid in _TIMES and names_clock(asked.text)


class Consulted:
    """The constants of one SELECT as it is bound: what they are, and which of them were asked for.

    reads_clock: whether something was, that is another thing at another time.
    is_elsewhere: whether the session's clocks, by which constants are meant, may show other times than the policy's.
    collects: whether texts that are still to be read are noted, with a stand-in for each, so that all are known at
    once; `check` is to be called then.
    """

    def __init__(self, constants: Constants, *, collects: bool = False) -> None:
        self._constants = constants
        self._collects = collects
        self._unread: dict[InputText, None] = {}
        self._clocks = clocks_of(constants.session_zone) if constants.session_zone else self.zone
        self.is_elsewhere = bool(constants.session_zone) and not are_same(self._clocks, self.zone)
        self.reads_clock = False

    def of_policy(self) -> Consulted:
        """Those that no client has a say in: the clock, in the policy's zone."""
        return Consulted(Constants({}, self._constants.now))

    def check(self) -> None:
        """Raises Unread if stand-ins were used."""
        if self._unread:
            raise Unread(tuple(self._unread))

    def parameter(self, number: int) -> Given | None:
        """None for one that has a type which is not supported."""
        return self._constants.parameters.get(number)

    # --- clocks ---------------------------------------------------------------------------------------------------

    @property
    def zone(self) -> tzinfo | None:
        """The policy's, in which all times of private rows are shown."""
        return self._constants.now.tzinfo

    def now(self) -> datetime:
        """The time of planning."""
        self.reads_clock = True
        return self._constants.now

    def local_now(self, node: exp.Expression) -> datetime:
        """What the session's clocks show now. Raises Unsupported."""
        return self._local(node, self.now())

    def local(self, node: exp.Expression, moment: datetime) -> datetime:
        """What the session's clocks show when those of the policy's zone show a time. Raises Unsupported."""
        if self.zone is None:
            return moment
        early, late = (moment.replace(tzinfo=self.zone, fold=fold) for fold in (0, 1))
        if self.is_elsewhere and early.utcoffset() != late.utcoffset():
            raise refuse(node, f"clocks of the time zone {self.zone} show this time twice, or never", self.at_home())
        return self._local(node, early)

    def at_home(self) -> str:
        """What to do where the session's time zone is in the way."""
        return f"SET TimeZone = '{name_of(self.zone)}', in which private times are computed."

    def cut_there(self) -> str:
        """What else to do where days and months are those of the policy."""
        return f"{self.at_home()} Or write date_trunc('day', x, '{self._constants.session_zone}')."

    def _local(self, node: exp.Expression, instant: datetime) -> datetime:
        try:
            return self._shown(instant)
        except ValueError:
            zone = self._constants.session_zone
            raise refuse(node, f"the clocks of the time zone {zone} are not known over private rows",
                         "SET TimeZone to a name like 'Europe/Zurich'.") from None  # fmt: skip

    def instant(self, node: exp.Expression, moment: datetime) -> datetime:
        """When the session's clocks show a time. Raises Unsupported."""
        try:
            return self._instant(moment)
        except ValueError:
            found = self._read(node, InputText(moment.isoformat(" "), SqlType.TIMESTAMPTZ.oid))
        assert isinstance(found, Literal)
        assert isinstance(found.value, datetime)
        return found.value

    def _shown(self, instant: datetime) -> datetime:
        if self._clocks is None and instant.tzinfo is not None:
            raise ValueError("only PostgreSQL knows these clocks")
        return instant.astimezone(self._clocks).replace(tzinfo=None) if instant.tzinfo is not None else instant

    def _instant(self, moment: datetime) -> datetime:
        if self._clocks is None and self.zone is not None:
            raise ValueError("only PostgreSQL knows these clocks")
        return moment if self._clocks is None else instant_of(moment, self._clocks)

    # --- texts ----------------------------------------------------------------------------------------------------

    def value(self, node: exp.Expression, text: str, kind: SqlType) -> Literal:
        """A text read as a type. Raises Unsupported."""
        try:
            return Literal(self._plain(text, kind), kind)
        except ValueError:
            found = self._read(node, InputText(text, kind.oid))
        assert isinstance(found, Literal)
        return found

    def span(self, node: exp.Expression, text: str, field: str = "", modifier: int = ANY_MODIFIER) -> Span:
        """A text read as an interval. field: the one that is said behind it, if that is one. Raises Unsupported."""
        try:
            if modifier != ANY_MODIFIER and not field:
                raise ValueError("several fields")
            return plain_span(text, field)
        except ValueError:
            found = self._read(node, InputText(text, SqlType.INTERVAL.oid, modifier))
        assert isinstance(found, Span)
        return found

    def time_of_day(self, node: exp.Expression, text: str) -> TimeOfDay:
        """A text read as a time without a date. Raises Unsupported."""
        try:
            return TimeOfDay(plain_time_of_day(text))
        except ValueError:
            found = self._read(node, InputText(text, TIME_OID))
        assert isinstance(found, TimeOfDay)
        return found

    def elements(self, node: exp.Expression, text: str, kind: SqlType) -> Elements:
        """A text read as an array of a type. Raises Unsupported."""
        try:
            return Elements(tuple(Literal(read_plain(item, kind), kind) for item in plain_elements(text)))
        except ValueError:
            found = self._read(node, InputText(text, kind.array_oid))
        assert isinstance(found, Elements)
        return found

    def _plain(self, text: str, kind: SqlType) -> Value:
        """Raises ValueError for what is not plain, or depends on clocks that only PostgreSQL knows."""
        if kind.family is Family.TIME and (word := text.strip(_BLANKS).lower()) in (_NOW, *_DAYS):
            return self._said(word, kind)
        if kind is not SqlType.TIMESTAMPTZ:
            return read_plain(text, kind)
        try:
            return read_plain(text, kind)
        except ValueError:
            moment = read_plain(text, SqlType.TIMESTAMP)
        assert isinstance(moment, datetime)
        return self._instant(moment)

    def _said(self, word: str, kind: SqlType) -> Value:
        """now, today, tomorrow or yesterday by the clock of the plan."""
        if word == _NOW and kind is SqlType.TIMESTAMPTZ:
            return self.now()
        moment = self._shown(self.now())
        if word != _NOW:
            moment = moment.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=_DAYS[word])
        if kind is SqlType.TIMESTAMPTZ:
            return self._instant(moment)
        return moment.date() if kind is SqlType.DATE else moment

    def _read(self, node: exp.Expression, asked: InputText) -> Given:
        """What PostgreSQL says. A text that may name the clock's time is another constant at another time."""
        self.reads_clock = self.reads_clock or may_read_clock(asked)
        found = self._constants.readings.get(asked)
        if isinstance(found, Unheld):
            raise refuse(node, f"'{asked.text[:40]}' {found.reason}")
        if found is None:
            if not self._collects:
                raise Unread((asked,))
            self._unread[asked] = None
            found = _STAND_INS[asked.oid]
        return found
