"""What does an expression of the client's tree mean in the algebra?

The only translator from sqlglot's scalars to ours. Each case lists the parts of the node it reads;
any other part that is filled in, and any node without a case, is refused with its position.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from uuid import UUID

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.algebra import Call, Case, Literal, Member, Null, Scalar, Span, children, conjunction
from proxy.sql.folding import fold_cast
from proxy.sql.functions import FUNCTIONS, common_type
from proxy.sql.intervals import as_datetime
from proxy.sql.parse import position_of
from proxy.sql.spans import parse_span
from proxy.sql.words import construct, part
from proxy.sqltypes import TYPE_NAMES, Family, SqlType, Value

Resolve = Callable[[exp.Column], Scalar]
MOST_WEIGHT = 20_000  # columns and constants in the text of one expression


@dataclass(frozen=True, slots=True)
class Constants:
    """What a query may use besides its text: parameter values by number, and the time of planning."""

    parameters: Mapping[int, Literal | Null]
    now: datetime


@dataclass(frozen=True, slots=True)
class Untyped:
    """A string literal whose type comes from what it meets, as in PostgreSQL."""

    text: str


_HINT = "Over private rows: SELECT with aggregates, inner joins on declared keys, WHERE and GROUP BY."


def refuse(node: exp.Expr, what: str, hint: str = "") -> Unsupported:
    """DP006 for a node, at its position."""
    return Unsupported(what, hint=hint or _HINT, position=position_of(node))


def only(node: exp.Expression, *names: str) -> None:
    """Refuse the node if any part besides `names` is filled in: nothing is silently dropped."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            raise refuse(node, f"{construct(node)} with {part(name)} is not supported over private rows")


def coerce_text(text: str, wanted: SqlType, node: exp.Expression) -> Literal:
    """A string literal read as `wanted`, as PostgreSQL reads an untyped literal."""
    try:
        return Literal(_read(text, wanted), wanted)
    except (ValueError, InvalidOperation) as error:
        hint = _LITERAL_HINTS.get(wanted.family, "Cast the text explicitly.")
        raise refuse(node, f"'{text[:40]}' is not understood as {wanted.pg_name} over private rows", hint) from error


_EXTRACTION = re.compile(r"\b(extract|date_part)\s*\(", re.IGNORECASE)  # sqlglot reads both as EXTRACT
_LITERAL_HINTS = {
    Family.NUMBER: "Write it in decimal digits.",
    Family.BOOLEAN: "Write true or false.",
    Family.TIME: "Write it like '2024-12-31' or '2024-12-31 23:59:59'.",
}
_TOO_FINE = re.compile(r"[.,]\d{7}")
_SHORT_NAMES = {SqlType.TIMESTAMP: "timestamp", SqlType.TIMESTAMPTZ: "timestamptz"}
_BOOLEANS = {"t": True, "true": True, "yes": True, "on": True, "1": True,
             "f": False, "false": False, "no": False, "off": False, "0": False}  # fmt: skip


def _read(text: str, wanted: SqlType) -> Value:
    match wanted.family:
        case Family.TEXT:
            return _read_text(text, wanted)
        case Family.BOOLEAN:
            if text.strip().lower() not in _BOOLEANS:
                raise ValueError(text)
            return _BOOLEANS[text.strip().lower()]
        case Family.NUMBER:
            number = Decimal(text.strip())
            if not math.isfinite(float(number)):
                raise ValueError(text)
            if wanted.is_integer:
                return _int8(text.strip())
            return number if wanted is SqlType.NUMERIC else float(number)
        case Family.TIME:
            if _TOO_FINE.search(text):
                raise ValueError(text)  # PostgreSQL rounds to microseconds, Python cuts
            moment = datetime.fromisoformat(text.strip())
            if moment.tzinfo is not None and not 1 < moment.year < 9999:
                raise ValueError(text)  # may have no local time in the policy's zone
            if moment.tzinfo is not None and wanted is not SqlType.TIMESTAMPTZ:
                moment = moment.replace(tzinfo=None)
            return moment.date() if wanted is SqlType.DATE else moment
        case Family.INTERVAL:
            raise ValueError(text)


def _read_text(text: str, wanted: SqlType) -> str:
    if wanted is SqlType.UUID:
        return str(UUID(text.strip()))
    return text.rstrip(" ") if wanted is SqlType.BPCHAR else text


def _int8(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


def is_date_part(node: exp.Expression, source: str) -> bool:
    """Whether an Extract of the tree was written date_part('field', x), which has another type and name."""
    calls = _EXTRACTION.findall(source[: max(0, position_of(node.expression) - 1)])
    return bool(calls) and calls[-1].lower() == "date_part"


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
                spelling = FUNCTIONS[function].duckdb
                times = (max(1, spelling.count(f"{{{i}}}")) for i in range(len(args)))
                return sum(self.of(a) * n for a, n in zip(args, times, strict=True))
            case Member(argument, items):
                return self.of(argument) + len(items)
            case _:
                return max(1, sum(self.of(c) for c in children(scalar)))


class Binder:
    """Binds scalars; `resolve` turns a column name into a scalar of the scope."""

    def __init__(self, resolve: Resolve, constants: Constants, source: str) -> None:
        self._resolve = resolve
        self._constants = constants
        self._source = source
        self._weights = _Weights()

    def scalar(self, node: exp.Expression) -> Scalar:
        """The node's meaning; an untyped string becomes text. Raises Unsupported."""
        bound = self._bind(node)
        return Literal(bound.text, SqlType.TEXT) if isinstance(bound, Untyped) else bound

    def condition(self, node: exp.Expression) -> Scalar:
        """The node as a boolean. Raises Unsupported."""
        bound = self.scalar(node)
        if isinstance(bound, Null):
            return Null(SqlType.BOOL)
        if bound.type is not SqlType.BOOL:
            raise refuse(node, f"a condition must be boolean, not {bound.type.pg_name}")
        return bound

    # --- dispatch -----------------------------------------------------------------------------------

    def _bind(self, node: exp.Expression) -> Scalar | Untyped:
        for kind in type(node).__mro__:
            handler = _HANDLERS.get(kind)
            if handler is not None:
                bound = handler(self, node)
                if not isinstance(bound, Untyped) and self._weights.of(bound) > MOST_WEIGHT:
                    raise refuse(node, "this expression is too large", "Use fewer nested functions and sub-selects.")
                return bound
        raise refuse(
            node,
            f"{construct(node)} is not supported over private rows",
            "Use comparisons, arithmetic, CASE, COALESCE, casts, EXTRACT, date_trunc or plain text functions.",
        )

    def call(self, node: exp.Expression, name: str, *args: Scalar) -> Scalar:
        """A row of the function table applied to bound arguments."""
        function = FUNCTIONS.get(name)
        result = function.types(tuple(a.type for a in args)) if function else None
        if result is None:
            kinds = ", ".join(a.type.pg_name for a in args)
            raise refuse(node, f"{name} is not supported for ({kinds})", "Cast the arguments explicitly.")
        return Call(name, args, result)

    def together(self, node: exp.Expression, *parts: exp.Expression) -> tuple[Scalar, ...]:
        """Bind operands that meet: untyped strings take the type of the others."""
        return self._united(node, tuple((self._bind(p), p) for p in parts))

    def _united(
        self, node: exp.Expression, parts: Sequence[tuple[Scalar | Untyped, exp.Expression]]
    ) -> tuple[Scalar, ...]:
        """The same for operands that are bound already."""
        typed = tuple(b.type for b, _ in parts if not isinstance(b, (Untyped, Null)))
        wanted = common_type(typed) if typed else SqlType.TEXT
        if wanted is None:
            raise refuse(node, f"cannot combine {' and '.join(t.pg_name for t in typed)}", "Cast one side explicitly.")
        return tuple(self._meet(b, wanted, p) for b, p in parts)

    def _meet(self, bound: Scalar | Untyped, wanted: SqlType, node: exp.Expression) -> Scalar:
        if isinstance(bound, Untyped):
            return coerce_text(bound.text, wanted, node)
        if isinstance(bound, Null):
            return Null(wanted)
        if bound.type is SqlType.DATE and wanted is not SqlType.DATE:
            return self._as_moment(bound, wanted, node)
        return bound

    def _as_moment(self, bound: Scalar, wanted: SqlType, node: exp.Expression) -> Scalar:
        """A date that meets a timestamp, as its midnight. Left to the engine, a far date would raise."""
        if isinstance(bound, Literal) and isinstance(bound.value, date):
            return Literal(as_datetime(bound.value), wanted)
        return self.convert(node, bound, wanted)

    # --- leaves -------------------------------------------------------------------------------------

    def _column(self, node: exp.Expression) -> Scalar:
        assert isinstance(node, exp.Column)
        return self._resolve(node)

    def _literal(self, node: exp.Expression) -> Scalar | Untyped:
        text = str(node.this)
        if node.args.get("is_string"):
            return Untyped(text)
        try:
            number = Decimal(text)
        except InvalidOperation as error:
            raise refuse(node, "this number is not understood") from error
        if not math.isfinite(float(number)):
            raise refuse(node, "this number is too large")
        if not text.isdigit() or number >= 2**63:
            return Literal(number, SqlType.NUMERIC)
        return Literal(int(text), SqlType.INT4 if number < 2**31 else SqlType.INT8)

    def _boolean(self, node: exp.Expression) -> Scalar:
        return Literal(bool(node.this), SqlType.BOOL)

    def _null(self, _node: exp.Expression) -> Scalar:
        return Null(SqlType.TEXT)

    def _paren(self, node: exp.Expression) -> Scalar | Untyped:
        only(node, "this")
        return self._bind(node.this)

    def _parameter(self, node: exp.Expression) -> Scalar | Untyped:
        only(node, "this")
        digits = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
        if not digits.isdigit():
            raise refuse(node, "the operator @ is not supported over private rows", "Write abs(x).")
        if int(digits) not in self._constants.parameters:
            raise refuse(
                node,
                f"parameter ${digits} has a type that is not supported over private rows",
                "Pass numbers, texts, booleans, dates and timestamps, each as a parameter of its own.",
            )
        return self._constants.parameters[int(digits)]

    def _now(self, node: exp.Expression) -> Scalar:
        only(node)
        return Literal(self._constants.now, SqlType.TIMESTAMPTZ)

    def _today(self, node: exp.Expression) -> Scalar:
        only(node)
        return Literal(self._constants.now.date(), SqlType.DATE)

    def _interval(self, node: exp.Expression) -> Scalar:
        only(node, "this", "unit")
        unit = node.args.get("unit")
        text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
        span = parse_span(text, "" if unit is None else str(unit.this))
        if span is None:
            raise refuse(node, "this interval is not understood", "Write it like INTERVAL '3 months'.")
        return span

    # --- operators ----------------------------------------------------------------------------------

    def _compare(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression")
        if isinstance(node.expression, exp.Any):
            return self._any(node)
        left, right = self.together(node, node.this, node.expression)
        return self.call(node, _COMPARISONS[type(node)], left, right)

    def _any(self, node: exp.Expression) -> Scalar:
        """x = ANY(ARRAY[...]) with constants."""
        array = node.expression.this
        array = array.this if isinstance(array, exp.Paren) else array
        if not isinstance(node, exp.EQ) or not isinstance(array, exp.Array):
            raise refuse(node, "ANY is accepted as x = ANY(ARRAY[constants])", "Write x IN (...).")
        only(array, "expressions", "value_constructor")
        return self._member(node, node.this, array.expressions)

    def _logic(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression")
        return self.call(node, node.key.lower(), self.condition(node.this), self.condition(node.expression))

    def _not(self, node: exp.Expression) -> Scalar:
        only(node, "this")
        return self.negated(node, self.condition(node.this), True)

    def negated(self, node: exp.Expression, bound: Scalar, negate: bool) -> Scalar:
        return self.call(node, "not", bound) if negate else bound

    def _is(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression", "negate")
        negate = bool(node.args.get("negate"))
        if isinstance(node.expression, exp.Null):
            return self.negated(node, self.call(node, "is null", self.scalar(node.this)), negate)
        if isinstance(node.expression, exp.Boolean):
            wanted = Literal(bool(node.expression.this), SqlType.BOOL)
            different = self.call(node, "is distinct from", self.condition(node.this), wanted)
            return self.negated(node, different, not negate)
        raise refuse(node, "IS is accepted with NULL, TRUE and FALSE")

    def _distinct_from(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression")
        left, right = self.together(node, node.this, node.expression)
        return self.negated(node, self.call(node, "is distinct from", left, right), isinstance(node, exp.NullSafeEQ))

    def _between(self, node: exp.Expression) -> Scalar:
        only(node, "this", "low", "high")
        found, lowest, highest = ((self._bind(p), p) for p in (node.this, node.args["low"], node.args["high"]))
        value, low = self._united(node, (found, lowest))
        again, high = self._united(node, (found, highest))
        return conjunction((self.call(node, ">=", value, low), self.call(node, "<=", again, high)))

    def _in(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expressions")
        return self._member(node, node.this, node.expressions)

    def _member(self, node: exp.Expression, argument: exp.Expression, items: list[exp.Expression]) -> Scalar:
        if not items or len(items) > 10_000:
            raise refuse(node, "IN takes 1 to 10000 constants")
        bound = self.together(node, argument, *items)
        if isinstance(bound[0], (Literal, Null)):
            raise refuse(node, "IN needs an expression on its left")
        constants = tuple(b for b in bound[1:] if isinstance(b, Literal))
        if len(constants) < len(items):
            raise refuse(node, "IN takes constants that are not NULL", "Write x IN (1, 2, 3).")
        return Member(bound[0], constants)

    def _arithmetic(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression", "typed", "safe")
        operator = _ARITHMETIC[type(node)]
        left, right = self._bind(node.this), self._bind(node.expression)
        if isinstance(left, Untyped) or isinstance(right, Untyped):
            left, right = self.together(node, node.this, node.expression)
        if left.type.is_time or right.type.is_time:
            return self._time_arithmetic(node, operator, left, right)
        if left.type.is_integer and right.type.is_integer:
            return self.call(node, f"integer {operator}", left, right)
        return self.call(node, operator, left, right)

    def _time_arithmetic(self, node: exp.Expression, operator: str, left: Scalar, right: Scalar) -> Scalar:
        if operator == "+" and not left.type.is_time:
            left, right = right, left
        if isinstance(right, Span):
            return self.call(node, f"time {operator} interval", left, right)
        if right.type.is_integer:
            return self.call(node, f"date {operator} integer", left, right)
        return self.call(node, f"date {operator} date", left, right)

    def _negative(self, node: exp.Expression) -> Scalar:
        only(node, "this")
        value = self.scalar(node.this)
        if isinstance(value, Literal) and isinstance(value.value, (int, Decimal, float)) and value.type.is_number:
            return Literal(-value.value, value.type)
        return self.call(node, "integer negate" if value.type.is_integer else "negate", value)

    def _like(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression", "negate")
        value, pattern = self.scalar(node.this), self.scalar(node.expression)
        if not isinstance(pattern, Literal):
            raise refuse(node, "LIKE needs a constant pattern")
        text = str(pattern.value)
        if (len(text) - len(text.rstrip("\\"))) % 2:
            raise refuse(node, "a LIKE pattern must not end with the escape character")
        name = "like" if isinstance(node, exp.Like) else "ilike"
        return self.negated(node, self.call(node, name, value, pattern), bool(node.args.get("negate")))

    # --- conditional expressions ----------------------------------------------------------------------

    def _case(self, node: exp.Expression) -> Scalar:
        only(node, "this", "ifs", "default")
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
        conditions = self._case_conditions(node)
        default = node.args.get("default") or exp.Null()
        values = self.together(node, *(b.args["true"] for b in node.args["ifs"]), default)
        wanted = common_type(tuple(v.type for v in values if not isinstance(v, Null)) or (SqlType.TEXT,))
        assert wanted is not None
        return Case(tuple(zip(conditions, values[:-1], strict=True)), values[-1], wanted)

    def _case_conditions(self, node: exp.Expression) -> tuple[Scalar, ...]:
        branches = [branch.this for branch in node.args["ifs"]]
        if node.this is None:
            return tuple(self.condition(b) for b in branches)
        subject = (self._bind(node.this), node.this)  # once: nested subjects would double with every branch
        return tuple(self.call(node, "=", *self._united(node, (subject, (self._bind(b), b)))) for b in branches)

    def _meeting(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expressions", "ignore_nulls")
        return self.call(node, node.key.lower(), *self.together(node, node.this, *node.expressions))

    def _nullif(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression")
        return self.call(node, "nullif", *self.together(node, node.this, node.expression))

    def _cast(self, node: exp.Expression) -> Scalar:
        only(node, "this", "to")
        wanted = self._cast_type(node)
        value = self._bind(node.this)
        if isinstance(value, Untyped):
            if wanted is SqlType.INTERVAL:
                span = parse_span(value.text, "")
                if span is None:
                    raise refuse(node, "this interval is not understood", "Write it like INTERVAL '3 months'.")
                return span
            return coerce_text(value.text, wanted, node)
        if isinstance(value, Null):
            return Null(wanted)
        return self.convert(node, value, wanted)

    def _cast_type(self, node: exp.Expression) -> SqlType:
        to = node.args["to"]
        if to.expressions or to.args.get("nested"):
            raise refuse(node, "a cast takes a plain type name here", "Leave out length and precision.")
        name = to.sql(dialect="postgres").lower()
        if name == "interval":
            return SqlType.INTERVAL
        if name not in TYPE_NAMES:
            raise refuse(node, f"a cast to {name} is not supported", f"Accepted: {', '.join(sorted(TYPE_NAMES))}.")
        return TYPE_NAMES[name]

    def convert(self, node: exp.Expression, value: Scalar, wanted: SqlType) -> Scalar:
        """An explicit cast through the row of the function table for that pair of families."""
        if value.type is wanted:
            return value
        if isinstance(value, Literal):
            try:
                folded = fold_cast(value, wanted)
            except ValueError as error:
                raise refuse(node, f"this constant is out of range for {wanted.pg_name}") from error
            if folded is not None:
                return folded
        source = value.type.family.value
        if wanted.is_integer and value.type in (SqlType.FLOAT4, SqlType.FLOAT8):
            source = "real"
        if wanted.is_text and value.type.is_integer:
            source = "integer"
        if wanted.is_text and value.type is SqlType.DATE:
            source = "date"
        target = _SHORT_NAMES.get(wanted, wanted.pg_name)
        return self.call(node, f"cast {source} to {target}", value)

    # --- functions ------------------------------------------------------------------------------------

    def _unary(self, node: exp.Expression) -> Scalar:
        only(node, "this")
        value = self.scalar(node.this)
        name = _UNARY[type(node)]
        if name == "abs" and value.type.is_integer:
            name = "integer abs"
        return self.call(node, name, value)

    def _round(self, node: exp.Expression) -> Scalar:
        only(node, "this", "decimals")
        value, digits = self.scalar(node.this), node.args.get("decimals")
        if digits is None:
            return self.call(node, "round", value)
        bound = self.scalar(digits)
        if not isinstance(bound, Literal) or not isinstance(bound.value, int) or not -20 <= bound.value <= 20:
            raise refuse(node, "round takes a constant number of digits from -20 to 20")
        return self.call(node, "round digits", value, bound)

    def _extract(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression")
        field = str(node.this.this).lower().strip("'")
        result = self.call(node, f"extract {field}", self.scalar(node.expression))
        return self.convert(node, result, SqlType.FLOAT8) if is_date_part(node, self._source) else result

    def _trunc_time(self, node: exp.Expression) -> Scalar:
        only(node, "this", "unit")
        unit = str(node.args["unit"].this).lower().strip("'")
        value = self.scalar(node.this)
        return self.call(node, f"date_trunc {unit}", value)

    def _substring(self, node: exp.Expression) -> Scalar:
        only(node, "this", "start", "length")
        value = self.scalar(node.this)
        start, length = node.args.get("start"), node.args.get("length")
        if start is None:
            raise refuse(node, "substring needs a start position")
        first = self._integer(start)
        if length is None:
            return self.call(node, "substring from", value, Literal(max(first, 1), SqlType.INT4))
        count = self._integer(length)
        if count < 0:
            raise refuse(node, "negative substring length is not allowed")
        last = max(first + count, 1)
        first = max(first, 1)
        return self.call(
            node, "substring", value, Literal(first, SqlType.INT4), Literal(max(last - first, 0), SqlType.INT4)
        )

    def _left(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression")
        count = self._integer(node.expression)
        if count < 0:
            raise refuse(node, "left takes a length that is not negative here")
        return self.call(
            node, "substring", self.scalar(node.this), Literal(1, SqlType.INT4), Literal(count, SqlType.INT4)
        )

    def _integer(self, node: exp.Expression) -> int:
        value = self.scalar(node)
        if not isinstance(value, Literal) or not isinstance(value.value, int) or abs(value.value) > 2**31 - 1:
            raise refuse(node, "an integer constant is needed here")
        return value.value

    def _trim(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression", "position")
        characters = node.args.get("expression")
        what = Literal(" ", SqlType.TEXT) if characters is None else self.scalar(characters)
        if not isinstance(what, Literal):
            raise refuse(node, "trim takes constant characters")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
        return self.call(node, name, self.scalar(node.this), what)

    def _concat(self, node: exp.Expression) -> Scalar:
        only(node, "this", "expression", "safe")
        return self.call(node, "||", self.scalar(node.this), self.scalar(node.expression))


_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip
_UNARY: dict[type[exp.Expression], str] = {
    exp.Lower: "lower", exp.Upper: "upper", exp.Length: "length", exp.Abs: "abs", exp.Floor: "floor",
    exp.Ceil: "ceil", exp.Trunc: "trunc", exp.Sqrt: "sqrt",
}  # fmt: skip

_Handler = Callable[[Binder, exp.Expression], Scalar | Untyped]
_HANDLERS: dict[type, _Handler] = {
    exp.Column: Binder._column,
    exp.Literal: Binder._literal,
    exp.Boolean: Binder._boolean,
    exp.Null: Binder._null,
    exp.Paren: Binder._paren,
    exp.Parameter: Binder._parameter,
    exp.CurrentTimestamp: Binder._now,
    exp.CurrentDate: Binder._today,
    exp.Interval: Binder._interval,
    **dict.fromkeys(_COMPARISONS, Binder._compare),
    exp.And: Binder._logic,
    exp.Or: Binder._logic,
    exp.Not: Binder._not,
    exp.Is: Binder._is,
    exp.NullSafeEQ: Binder._distinct_from,
    exp.NullSafeNEQ: Binder._distinct_from,
    exp.Between: Binder._between,
    exp.In: Binder._in,
    **dict.fromkeys(_ARITHMETIC, Binder._arithmetic),
    exp.Neg: Binder._negative,
    exp.Like: Binder._like,
    exp.ILike: Binder._like,
    exp.Case: Binder._case,
    exp.Coalesce: Binder._meeting,
    exp.Greatest: Binder._meeting,
    exp.Least: Binder._meeting,
    exp.Nullif: Binder._nullif,
    exp.Cast: Binder._cast,
    **dict.fromkeys(_UNARY, Binder._unary),
    exp.Round: Binder._round, exp.Extract: Binder._extract, exp.TimestampTrunc: Binder._trunc_time,
    exp.Substring: Binder._substring, exp.Left: Binder._left, exp.Trim: Binder._trim, exp.DPipe: Binder._concat,
}  # fmt: skip
