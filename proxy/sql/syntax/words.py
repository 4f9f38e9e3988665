"""What does a person call a part of the tree?

Only for messages: the parser's own class names are not words of SQL.
"""

from __future__ import annotations

from sqlglot import exp

_CONSTRUCTS: dict[type[exp.Expr], str] = {
    exp.National: "a national string (N'...')",
    exp.HexString: "a hexadecimal constant",
    exp.BitString: "a bit string",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.Subquery: "a sub-query",
    exp.Select: "a SELECT",
    exp.Exists: "EXISTS",
    exp.Escape: "LIKE ... ESCAPE",
    exp.SimilarTo: "SIMILAR TO",
    exp.RegexpLike: "a regular expression",
    exp.RegexpILike: "a regular expression",
    exp.Collate: "COLLATE",
    exp.Operator: "OPERATOR(...)",
    exp.Pow: "the operator ^ or power()",
    exp.BitwiseAnd: "the operator &",
    exp.BitwiseOr: "the operator |",
    exp.BitwiseXor: "the operator #",
    exp.BitwiseNot: "the operator ~",
    exp.BitwiseLeftShift: "the operator <<",
    exp.BitwiseRightShift: "the operator >>",
    exp.Array: "an array",
    exp.Bracket: "an array element",
    exp.Any: "ANY",
    exp.Tuple: "a row of values",
    exp.Dot: "a field or a function of a schema",
    exp.Concat: "concat() or a continued string",
    exp.CurrentUser: "current_user",
    exp.Localtimestamp: "localtimestamp",
    exp.Lateral: "LATERAL",
    exp.Table: "a table",
    exp.Rollup: "ROLLUP",
    exp.Cube: "CUBE",
    exp.GroupingSets: "GROUPING SETS",
    exp.Parameter: "the operator @",
    exp.TimestampTrunc: "date_trunc",
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.GroupConcat: "string_agg",
    exp.ArrayAgg: "array_agg",
    exp.LogicalOr: "bool_or",
    exp.LogicalAnd: "bool_and",
    exp.StrPosition: "position() or strpos()",
    exp.TimeToStr: "to_char()",
    exp.StrToDate: "to_date()",
    exp.StrToTime: "to_timestamp()",
    exp.UnixToTime: "to_timestamp()",
    exp.Rand: "random()",
    exp.Ln: "ln()",
    exp.JSONArrayAgg: "json_agg",
}
_PARTS = {
    "side": "LEFT, RIGHT or FULL", "method": "NATURAL", "sample": "TABLESAMPLE", "locks": "FOR UPDATE or FOR SHARE",
    "into": "INTO", "limit": "LIMIT", "offset": "OFFSET", "order": "ORDER BY", "group": "GROUP BY", "having": "HAVING",
    "distinct": "DISTINCT", "windows": "WINDOW", "query": "a sub-query", "zone": "a time zone",
    "decimals": "a number of digits", "catalog": "a database name", "columns": "column names", "hint": "a hint",
    "joins": "a join in parentheses", "laterals": "LATERAL", "expressions": "expressions",
}  # fmt: skip


def construct(node: exp.Expr) -> str:
    """A noun for what the node is."""
    if isinstance(node, exp.Anonymous):
        return f"{str(node.this).lower()}()"
    found = next((_CONSTRUCTS[kind] for kind in type(node).__mro__ if kind in _CONSTRUCTS), None)
    if found is not None:
        return found
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary):
        return f"{node.sql_name().lower()}()"
    return node.key.upper()


def part(name: str) -> str:
    """A noun for an argument of a node."""
    return _PARTS.get(name, name.strip("_").upper())
