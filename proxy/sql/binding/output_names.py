"""What does PostgreSQL call a column of a select list that is given no name?"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.binding.times.times import is_date_part
from proxy.sql.syntax.names import fold, identifier
from proxy.sql.syntax.parse import is_interval

_NAMELESS = "?column?"
# constructs with syntax of their own, and functions that are written with spaces in their parentheses
_FIXED_NAMES: dict[type[exp.Expression], str] = {
    exp.Extract: "extract", exp.Substring: "substring", exp.StrPosition: "position", exp.Overlay: "overlay",
    exp.CurrentDate: "current_date", exp.CurrentTimestamp: "current_timestamp", exp.CurrentTime: "current_time",
    exp.Localtimestamp: "localtimestamp", exp.Localtime: "localtime", exp.CurrentUser: "current_user",
    exp.Boolean: "bool", exp.Array: "array", exp.Exists: "exists",
    exp.AtTimeZone: "timezone",
}  # fmt: skip
_TYPE_OUTPUT = {"int": "int4", "integer": "int4", "bigint": "int8", "smallint": "int2", "decimal": "numeric",
                "double precision": "float8", "real": "float4", "boolean": "bool", "char": "bpchar"}  # fmt: skip


def output_name(node: exp.Expression, source: str) -> str:
    """PostgreSQL's name for a select item. source: the statement, for functions' own spelling."""
    match node:
        case exp.Alias():
            return identifier(node.args["alias"])
        case exp.Column():
            return identifier(node.this)
        case exp.Paren() | exp.Filter() | exp.Window() | exp.Collate() | exp.WithinGroup():
            return output_name(node.this, source)
        case exp.Cast():
            inner = output_name(node.this, source)
            return inner if inner != _NAMELESS else _type_output_name(node)
        case exp.Case():
            default = node.args.get("default")
            inner = _NAMELESS if default is None else output_name(default, source)
            return inner if inner != _NAMELESS else "case"
        case exp.Dot() if isinstance(node.expression, exp.Expression):
            return output_name(node.expression, source)
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.expressions:
            return output_name(node.this.expressions[0], source)
        case exp.Trim() if "start" not in node.meta:
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "btrim")
        case exp.Extract() if is_date_part(node, source):
            return "date_part"
        case _ if type(node) in _FIXED_NAMES and "start" not in node.meta:
            return _FIXED_NAMES[type(node)]
        case exp.Func() | exp.Binary() if "start" in node.meta:
            return fold(source[node.meta["start"] : node.meta["end"] + 1])
        case _:
            return _NAMELESS


def _type_output_name(node: exp.Expression) -> str:
    if is_interval(node.args["to"]):
        return "interval"
    name = str(node.args["to"].sql(dialect="postgres")).lower().split("(")[0]
    return _TYPE_OUTPUT.get(name, name)
