"""What do all rules for expressions share: meeting types, conversions, calls of the function table?

The rules themselves stand in the bind_* modules, one for each kind of node; `bind` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TypeVar, assert_never, cast

from sqlglot import exp

from proxy.errors import HushError, Unsupported
from proxy.sql.advice.instead_of_part import advice, written_name
from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span, children
from proxy.sql.binding.consulted import Consulted
from proxy.sql.functions.domains.intervals import as_datetime
from proxy.sql.functions.folding import fold_call, fold_cast, fold_compared, fold_text, fold_time
from proxy.sql.functions.function import Whole
from proxy.sql.functions.signatures import common_type
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.render.dialects import times_written
from proxy.sql.syntax.refusal import refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import SqlType

Found = TypeVar("Found")
AnyBound = TypeVar("AnyBound", Scalar, "Bound")
Resolve = Callable[[exp.Column], Scalar]
_ITEMS_PER_WEIGHT = 10  # a list is one text, which engines read as a set
MOST_WEIGHT = 20_000  # columns and constants in the text of one expression
_SHORT_NAMES = {SqlType.TIMESTAMP: "timestamp", SqlType.TIMESTAMPTZ: "timestamptz"}


class _Weights:
    """How many columns and constants the text of each scalar holds.

    Functions may write an argument twice, and a sub-select's column is written out wherever it is named, so a
    short statement can stand for a text without end.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Scalar, int]] = {}  # by identity: equal parts weigh as often as they stand

    def of(self, scalar: Scalar) -> int:
        found = self._known.get(id(scalar))
        if found is None:
            found = self._known[id(scalar)] = (scalar, self._weigh(scalar))
        return found[1]

    def _weigh(self, scalar: Scalar) -> int:
        match scalar:
            case Call(function, args):
                return sum(self.of(a) * times_written(function, i) for i, a in enumerate(args))
            case Member(argument, items):
                return self.of(argument) + len(items) // _ITEMS_PER_WEIGHT
            case ColumnRef() | Literal() | Null() | Span() | Case():
                return max(1, sum(self.of(c) for c in children(scalar)))
            case _ as never:
                assert_never(never)


def unknown(node: exp.Expression, source: str = "") -> Unsupported:
    """A node that has no meaning over private rows. source: the statement, for the name as it was written."""
    name = written_name(node, source)
    return refuse(node, f"{f'{name}()' if name else construct(node)} is not supported over private rows",
                  advice(node, source) or _ACCEPTED)  # fmt: skip


_ACCEPTED = "Use comparisons, arithmetic, CASE, COALESCE, casts, EXTRACT, date_trunc or plain text functions."


_BY_CLOCKS = (
    "date_trunc ", "extract ", "to_char", "time + interval", "time - interval", "time of day", "cast time to ",
)  # fmt: skip
_INTERVALS = {
    "an age": "Compare it, age(x) > INTERVAL '1 year', or take a field, EXTRACT(year FROM age(x)).",
    "a difference of times": "Write EXTRACT(epoch FROM x - y), compare it with an interval, or subtract dates.",
}


class Binder:
    """Binds scalars. resolve: turns a column name into a scalar of the scope. rules: by the exact class of a node."""

    def __init__(self, resolve: Resolve, constants: Consulted, source: str, rules: Mapping[type, Rule]) -> None:
        self.resolve = resolve
        self.constants = constants
        self.source = source
        self._rules = rules
        self._weights = _Weights()
        self._found: dict[tuple[int, Callable[..., object]], tuple[exp.Expression, object]] = {}

    def knowing(self, rules: Mapping[type, Rule]) -> Binder:
        """The same binder with further rules, or others."""
        return Binder(self.resolve, self.constants, self.source, {**self._rules, **rules})

    def scalar(self, node: exp.Expression) -> Scalar:
        """The node's meaning; an untyped string becomes text. Raises Unsupported."""
        bound = self.bind(node)
        return Literal(bound.text, SqlType.TEXT) if isinstance(bound, Untyped) else bound

    def condition(self, node: exp.Expression) -> Scalar:
        """The node as a boolean. Raises Unsupported."""
        bound = self.scalar(node)
        if isinstance(bound, Null):
            return Null(SqlType.BOOL)
        if bound.type is not SqlType.BOOL:
            raise refuse(node, f"a condition must be boolean, not {bound.type.pg_name}")
        return bound

    def bind(self, node: exp.Expression, *, intervals: bool = False) -> Bound:
        """The node's meaning by its rule. A node that only resembles one with a rule has none. Raises Unsupported.

        intervals: whether the caller knows what to do with a difference of times.
        """
        rule = self._rules.get(type(node))
        if rule is None:
            raise unknown(node, self.source)
        if any(is_needed and node.args.get(name) is None for name, is_needed in node.arg_types.items()):
            raise refuse(node, f"{construct(node)} lacks an argument")
        bound = self.once(rule, node)
        if isinstance(bound, Literal):
            return self._in_zone(bound, node)
        if isinstance(bound, Call) and bound.type is SqlType.INTERVAL and not intervals:
            what = "an age" if bound.function == "age" else "a difference of times"
            raise refuse(node, f"{what} is not a value here", _INTERVALS[what])
        return bound if isinstance(bound, Untyped) else self.limited(node, bound)

    def once(self, ask: Callable[[Binder, exp.Expression], Found], node: exp.Expression) -> Found:
        """What `ask` says of a node, asked once: rules look below a node more than once, and so at every level.

        Raises what it raises, each time.
        """
        place = id(node), ask
        if place not in self._found:
            try:
                self._found[place] = node, ask(self, node)  # kept, or another node might get its place
            except HushError as error:
                self._found[place] = node, error
        found = self._found[place][1]
        if isinstance(found, HushError):
            raise found.with_traceback(None)
        return cast(Found, found)  # what this very question found

    def limited(self, node: exp.Expression, bound: Scalar) -> Scalar:
        """The same, if it is not too large. Raises Unsupported."""
        if self._weights.of(bound) > MOST_WEIGHT:
            raise refuse(node, "this expression is too large", "Use fewer nested functions and sub-selects.")
        return bound

    def _converted(self, node: exp.Expression, value: Literal, wanted: SqlType) -> Scalar | None:
        """A constant that is cast; None where that is left to the engine."""
        if isinstance(value.value, str) and (not wanted.is_text or wanted is SqlType.UUID):
            return self.read(node, value.value, wanted)
        if _is_instant(value) and self.constants.is_elsewhere and (wanted.is_time or wanted.is_text):
            return self.convert(node, self._there(node, value), wanted)
        if isinstance(value.value, date) and wanted is SqlType.TIMESTAMPTZ:
            instant = self.constants.instant(node, as_datetime(value.value))
            return self._in_zone(Literal(instant, wanted), node)
        try:
            return fold_cast(value, wanted)
        except ValueError as error:
            raise refuse(node, f"this constant is out of range for {wanted.pg_name}") from error

    def _in_zone(self, literal: Literal, node: exp.Expression) -> Literal:
        """An instant as the policy's zone shows it, which is what the engine compares it as."""
        moment, zone = literal.value, self.constants.zone
        if not isinstance(moment, datetime) or moment.tzinfo is None or zone is None:
            return literal
        try:
            return Literal(moment.astimezone(zone).replace(tzinfo=None), literal.type)
        except OverflowError:
            raise refuse(node, "this time is too far away", "Use years from 2 to 9998.") from None

    def call(self, node: exp.Expression, name: str, *args: Scalar) -> Scalar:
        """A row of the function table applied to bound arguments."""
        function = FUNCTIONS.get(name)
        result = function.types(tuple(a.type for a in args)) if function else None
        if function is None or result is None:
            kinds = ", ".join(a.type.pg_name for a in args)
            raise refuse(node, f"{name} is not supported for ({kinds})", "Cast the arguments explicitly.")
        if self.constants.is_elsewhere and _is_by_clocks(name) and any(map(_is_instant, args)):
            return self._called_elsewhere(node, name, args, result)
        folded = fold_call(function.fold, args, result) or fold_text(function.image, args, result)
        return folded or fold_time(function, args, result) or fold_compared(name, args) or Call(name, args, result)

    def _called_elsewhere(self, node: exp.Expression, name: str, args: tuple[Scalar, ...], result: SqlType) -> Scalar:
        """A function of constant instants by the session's clocks, which are not those of the policy."""
        found = self.call(node, name, *(self._there(node, a) for a in args))
        if result is not SqlType.TIMESTAMPTZ:
            return found
        if not isinstance(found, Literal):
            raise refuse(node, "this is computed in the policy's time zone only", self.constants.at_home())
        return self.convert(node, found, SqlType.TIMESTAMPTZ)

    def _there(self, node: exp.Expression, bound: AnyBound) -> AnyBound | Literal:
        """A constant instant as the time that clocks of the session show; all else as it is."""
        if isinstance(bound, Literal) and isinstance(bound.value, datetime) and bound.type is SqlType.TIMESTAMPTZ:
            return Literal(self.constants.local(node, bound.value), SqlType.TIMESTAMP)
        return bound

    def negated(self, node: exp.Expression, bound: Scalar, negate: bool) -> Scalar:
        return self.call(node, "not", bound) if negate else bound

    def read(self, node: exp.Expression, text: str, wanted: SqlType) -> Scalar:
        """What a text stands for as a type: an untyped constant, or a text that is cast. Raises Unsupported."""
        if wanted is SqlType.INTERVAL:
            return self.constants.span(node, text)
        return self._in_zone(self.constants.value(node, text, wanted), node)

    # --- operands that meet ---------------------------------------------------------------------------

    def together(self, node: exp.Expression, *parts: exp.Expression, is_compared: bool = False) -> tuple[Scalar, ...]:
        """Bind operands that meet: untyped strings take the type of the others."""
        return self.united(node, tuple((self.bind(p), p) for p in parts), is_compared=is_compared)

    def united(
        self, node: exp.Expression, parts: Sequence[tuple[Bound, exp.Expression]], *, is_compared: bool = False
    ) -> tuple[Scalar, ...]:
        """The same for operands that are bound already. is_compared: whether no value is made of them."""
        typed = tuple(b.type for b, _ in parts if not isinstance(b, (Untyped, Null)))
        wanted = common_type(typed) if typed else SqlType.TEXT
        if wanted is None:
            raise refuse(node, f"cannot combine {' and '.join(t.pg_name for t in typed)}", "Cast one side explicitly.")
        if wanted is SqlType.TIMESTAMPTZ and self.constants.is_elsewhere:
            self._check_clocks(node, [b for b, _ in parts])
            of_rows = [b.type for b, _ in parts if not isinstance(b, (Untyped, Null, Literal))]
            if is_compared and of_rows and wanted not in of_rows:  # instants as the rows' own clocks show them
                parts = [(self._there(p, b), p) for b, p in parts]
                wanted = SqlType.TIMESTAMP
        return tuple(self._meet(b, wanted, p) for b, p in parts)

    def _check_clocks(self, node: exp.Expression, parts: Sequence[Bound]) -> None:
        """Days and months of rows are the policy's, those of constants the session's: they never meet."""
        if any(isinstance(b, (Untyped, Literal)) for b in parts) and any(map(_is_cut, parts)):
            raise refuse(node, "times of rows that are cut to days or months meet constants of another time zone",
                         self.constants.cut_there())  # fmt: skip

    def _meet(self, bound: Bound, wanted: SqlType, node: exp.Expression) -> Scalar:
        if isinstance(bound, Untyped):
            bound = self.read(node, bound.text, wanted)
        if isinstance(bound, Literal):  # elements of an array have no rule that has done so
            bound = self._in_zone(bound, node)
        if isinstance(bound, Null):
            return Null(wanted)
        if bound.type is SqlType.DATE and wanted is not SqlType.DATE:
            return self._as_moment(bound, wanted, node)
        if bound.type is SqlType.TIMESTAMP and wanted is SqlType.TIMESTAMPTZ and isinstance(bound, Literal):
            return self.convert(node, bound, wanted)
        return bound

    def _as_moment(self, bound: Scalar, wanted: SqlType, node: exp.Expression) -> Scalar:
        """A date that meets a timestamp, as its midnight. Left to the engine, a far date would raise."""
        if isinstance(bound, Literal) and isinstance(bound.value, date):
            midnight = Literal(as_datetime(bound.value), SqlType.TIMESTAMP)
            return self.convert(node, midnight, wanted)
        return self.convert(node, bound, wanted)

    def convert(self, node: exp.Expression, value: Scalar, wanted: SqlType) -> Scalar:
        """An explicit cast through the row of the function table for that pair of families."""
        if value.type is wanted:
            return value
        folded = self._converted(node, value, wanted) if isinstance(value, Literal) else None
        if folded is not None:
            return folded
        if wanted is SqlType.BOOL and value.type is SqlType.INT4:
            return self.call(node, "<>", value, Literal(0, SqlType.INT4))
        if wanted.is_text and _is_spelled_whole(value):
            value = self.convert(node, value, SqlType.INT8)
        if wanted.is_text and value.type.is_number and not value.type.is_integer:
            what = f"{value.type.pg_name} as text is not supported: how each number was stored decides its digits"
            raise refuse(node, what, "Write round(x)::text, floor(x)::text, or group by the number itself.")
        source = _source(value.type, wanted)
        target = _SHORT_NAMES.get(wanted, wanted.pg_name)
        return self.call(node, f"cast {source} to {target}", value)


def _is_by_clocks(function: str) -> bool:
    """Whether a function sees the time which clocks show of an instant."""
    return function.startswith(_BY_CLOCKS) and function != "extract epoch"


def _is_instant(bound: Bound) -> bool:
    """Whether this is a constant point in time, which shows another time on other clocks."""
    return isinstance(bound, Literal) and bound.type is SqlType.TIMESTAMPTZ


def _is_cut(bound: Bound) -> bool:
    """Whether this is an instant that clocks of the policy's zone have made."""
    match bound:
        case Call(function, args) if bound.type is SqlType.TIMESTAMPTZ:
            return function.startswith(("date_trunc ", "cast time to timestamptz")) or any(map(_is_cut, args))
        case Case(branches, otherwise):
            return any(_is_cut(value) for _, value in branches) or _is_cut(otherwise)
        case _:
            return False


def _source(kind: SqlType, wanted: SqlType) -> str:
    """What the row of a cast is called by, of which a family may have several."""
    if wanted.is_integer and kind in (SqlType.FLOAT4, SqlType.FLOAT8):
        return "real"
    if wanted.is_text and kind.is_integer:
        return "integer"
    if wanted.is_text and kind in (SqlType.DATE, SqlType.TIMESTAMP):
        return "date" if kind is SqlType.DATE else "timestamp"
    return kind.family.value


def _is_spelled_whole(value: Scalar) -> bool:
    """Whether PostgreSQL writes a number that may have fractions without any: fields of times, rounded numbers."""
    match value:
        case Call("cast number to double precision", (Call() as inner,)):
            return inner.function.startswith("extract ") and _is_spelled_whole(inner)
        case Call("floor" | "ceil" | "trunc" | "round" | "round real", (argument,)):
            return value.type is SqlType.NUMERIC or argument.type in (SqlType.INT2, SqlType.INT4)
        case Call(function):
            return function.startswith("extract ") and FUNCTIONS[function].whole is Whole.YES
        case _:
            return False


Bound = Scalar | Untyped
Rule = Callable[[Binder, exp.Expression], Bound]
