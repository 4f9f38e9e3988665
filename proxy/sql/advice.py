"""What can be written for a function that private rows do not know? By its name, as a person wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from sqlglot import exp

_DEGREES = "Write {name}(radians(x))."
_IN_DEGREES = "Write degrees({name}(x))."
_FIELD = "Write EXTRACT({name} FROM x)."
_CASE = "Write CASE WHEN a THEN x ELSE y END."
_TO_CHAR = "Write to_char(x, 'YYYY-MM')."
_MATCH = "Write (regexp_match(x, 'pattern'))[1], regexp_replace(x, 'pattern', '') or split_part(x, ',', 1)."
_QUOTE = "Write '''' || replace(x, '''', '''''') || ''''."
_WHOLE = "Accepted of integers are + - * / %, the bits & | # >> and abs."
_DIGITS = "Numbers are computed in double precision, which has no scale; round(x, 2) and trunc(x, 2) are accepted."
_SPAN = "Take a field, EXTRACT(day FROM x - y), or aggregate the difference: avg(x - y)."
_CHANCE = "Rows are not drawn by chance; take a share of them by a value, as in WHERE x % 10 = 0."
_NOW = "Write now(), or current_date."
_MOVED = "Write x + INTERVAL '1 day'."
_APART = "Write x::date - y::date for days, or EXTRACT(epoch FROM x - y) for seconds."
_HASH = "Group by the value itself: hashes would choose people by chance."
_PART = "Accepted are x LIKE '%a%', position('a' IN x) and x IN ('a', 'b')."
_ANY = "Group by it, or write min(x) or max(x)."
_COLLECTED = "Group by it, and collect above: SELECT string_agg(x, ',') FROM (SELECT x FROM t GROUP BY x) AS v."
JOINED_INSTEAD = (
    "Ask for the unit in one plain SELECT, user_id IN (SELECT user_id FROM orders WHERE ...), aggregate to one row, "
    "or join one row each: LEFT JOIN (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) o USING (user_id)."
)
_HYPERBOLIC = "Write it with exp(x): (exp(x) - exp(-x)) / 2 for sinh(x)."


def _listed() -> Iterator[tuple[str, str]]:
    for text, names in (
        (_FIELD, "year month day hour minute second quarter week epoch dow doy"),
        (_CASE, "if iif decode choose"),
        (_TO_CHAR, "strftime date_format format_date format_datetime monthname dayname"),
        (_MATCH, "regexp_matches regexp_split_to_array regexp_split_to_table regexp_extract regexp_extract_all"),
        (_QUOTE, "quote_literal quote_nullable quote_ident"),
        (_WHOLE, "gcd lcm factorial bit_count"),
        (_DIGITS, "scale min_scale trim_scale"),
        (_SPAN, "justify_days justify_hours justify_interval"),
        (_CHANCE, "random setseed rand gen_random_uuid uuid random_normal"),
        (_NOW, "clock_timestamp timeofday localtime current_time getdate sysdate"),
        (_MOVED, "date_add date_subtract dateadd date_sub"),
        (_APART, "datediff date_diff timestampdiff"),
        (_HASH, "md5 sha224 sha256 sha384 sha512 digest hashtext crc32 hash"),
        (_PART, "contains list_contains array_position array_contains levenshtein similarity soundex"),
        (_HYPERBOLIC, "sinh cosh tanh asinh acosh atanh"),
        ("Write x::numeric, which is NULL where the text is no number.", "to_number"),
        ("Write x::integer, which is NULL where the text is no number.", "try_cast safe_cast"),
        ("Write to_char(x, 'FM000'), or x::text.", "to_hex to_bin to_oct hex"),
        ("Write 1 / tan(x).", "cot"),
        ("Write 1 / tan(radians(x)).", "cotd"),
        ("Write concat_ws(', ', x, y).", "array_to_string"),
        ("Write split_part(x, ',', 1), or (string_to_array(x, ','))[1].", "string_to_array string_split unnest"),
        ("Write width_bucket(x, 0, 100, 10), or floor(x / 10) * 10.", "ntile bin"),
        (
            "Write percentile_cont(0.5) WITHIN GROUP (ORDER BY x).",
            "median quantile quantile_cont approx_quantile approx_percentile",
        ),
        ("Write percentile_disc(0.5) WITHIN GROUP (ORDER BY x).", "quantile_disc"),
        ("Write count(DISTINCT x).", "approx_count_distinct approx_distinct count_distinct uniq"),
        ("Count the values: SELECT x, count(*) FROM t GROUP BY x ORDER BY 2 DESC LIMIT 1.", "mode approx_top_k"),
        ("Write count(*) FILTER (WHERE x).", "count_if countif sumif sum_if"),
        ("Write bool_and(x) or bool_or(x).", "logical_and logical_or"),
        (_ANY, "any_value first last first_value last_value arbitrary arg_max arg_min max_by min_by"),
        ("Write count(*) FILTER (WHERE x < 3) + 1.", "rank dense_rank percent_rank cume_dist"),
        (_COLLECTED, "string_agg array_agg json_agg jsonb_agg json_array_agg json_arrayagg json_object_agg"),
        (_COLLECTED, "jsonb_object_agg xmlagg group_concat listagg list histogram"),
    ):
        for name in names.split():
            yield name, text.format(name=name) if text is _FIELD else text
    for name in ("sin", "cos", "tan"):
        yield f"{name}d", _DEGREES.format(name=name)
        yield f"a{name}d", _IN_DEGREES.format(name=f"a{name}")


_ADVICE = MappingProxyType(dict(_listed()))


def written_name(node: exp.Expr, source: str) -> str:
    """The name of a function call as it stands in the statement, in lower case; "" for all else."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if not isinstance(node, exp.Func) or not isinstance(start, int) or not isinstance(end, int):
        return ""
    name = source[start : end + 1].lower()
    return name if name.isidentifier() else ""


def advice(node: exp.Expr, name: str) -> str:
    """What to write instead; "" where nothing comes to mind."""
    return _ADVICE.get(name or (node.sql_name().lower() if isinstance(node, exp.Func) else ""), "")


def advice_within(tree: exp.Expr) -> str:
    """The same for the first function of a statement that has some; "" for all others."""
    calls = tree.find_all(exp.Anonymous)
    return next((found for call in calls if (found := advice(call, str(call.this).lower()))), "")


def instead_of(statement: exp.Expr) -> str:
    """What can be written for a statement that keeps the rows of a private SELECT; "" for the usual words."""
    if isinstance(statement, exp.Create) and str(statement.args.get("kind")).upper() == "VIEW":
        return "Write CREATE TEMP VIEW, or CREATE TEMP TABLE t AS SELECT ... to keep one answer."
    if isinstance(statement, (exp.Create, exp.Insert)):
        return "Write CREATE TEMP TABLE t AS SELECT ..., or SELECT ... INTO TEMP t; what it holds can be copied on."
    if isinstance(statement, (exp.Update, exp.Delete, exp.Merge)):
        return "Private tables are only read, by SELECT with aggregates."
    return ""
