"""What can be written for a call by its name, with its arguments as a person wrote them?

Of functions that private rows do not know, and of those of other databases that PostgreSQL does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

from proxy.sql.syntax.written_calls import WrittenCall, is_constant

Template = str | Callable[[WrittenCall], str]  # {x}, {y}, {z}: arguments. {c}: the first that is no constant.

_DEGREES = "Write {bare}(radians({x}))."
_IN_DEGREES = "Write degrees({bare}({x}))."
_FIELD = "Write EXTRACT({name} FROM {x})."
_CASE = "Write CASE WHEN {a} THEN {y} ELSE {z} END."
_MATCH = "Write (regexp_match({x}, 'pattern'))[1], regexp_replace({x}, 'pattern', '') or split_part({x}, ',', 1)."
_QUOTE = "Write '''' || replace({x}, '''', '''''') || ''''."
_WHOLE = "Accepted of integers are + - * / %, the bits & | # >> and abs."
_DIGITS = "Numbers are computed in double precision, which has no scale; round({x}, 2) and trunc({x}, 2) are accepted."
_SPAN = "Take a field, EXTRACT(day FROM {x}), or aggregate the difference: avg({x})."
_CHANCE = "Rows are not drawn by chance; take a share of them by a value, as in WHERE x % 10 = 0."
_NOW = "Write now(), or current_date."
_HASH = "Group by the value itself, {x}: hashes would choose people by chance."
_PART = "Accepted are {c} LIKE '%a%', position('a' IN {c}) and {c} IN ('a', 'b')."
_ANY = (
    "Group by {x}; of numbers and times min({x}), max({x}) and percentile_disc(0.5) WITHIN GROUP (ORDER BY {x}) are"
    " answered."
)
_COLLECTED = "Group by it, and collect above: SELECT {above} FROM (SELECT {x} AS x FROM {table} GROUP BY 1) AS v."
_HYPERBOLIC = "Write it with exp({x}): (exp({x}) - exp(-({x}))) / 2 for sinh({x})."
_COLLECTING = {"array_agg": "array_agg(v.x)", "list": "array_agg(v.x)", "json_agg": "json_agg(v.x)",
               "jsonb_agg": "jsonb_agg(v.x)"}  # fmt: skip
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "week": 604800}
_CODES = {"%Y": "YYYY", "%y": "YY", "%m": "MM", "%d": "DD", "%H": "HH24", "%M": "MI", "%S": "SS", "%j": "DDD",
          "%b": "Mon", "%B": "Month", "%a": "Dy", "%A": "Day", "%i": "MI", "%s": "SS"}  # fmt: skip


def _fraction(call: WrittenCall) -> str:
    """percentile_cont of the column, at the fraction that is among the arguments."""
    given = (a for a in call.arguments if is_constant(a) and a.strip("'").replace(".", "", 1).isdigit())
    number = float(next(given, "0.5").strip("'"))
    share = f"{number / 100 if number > 1 else number:g}"
    kind = "percentile_disc" if call.name.endswith("_disc") else "percentile_cont"
    return f"Write {kind}({share}) WITHIN GROUP (ORDER BY {call.subject})."


def _unit(text: str) -> str:
    return text.strip("'\"").lower().removesuffix("s")


def _moved(call: WrittenCall) -> str:
    """x + INTERVAL '1 day', of dateadd(day, 1, x), date_add('day', 1, x) or date_add(x, INTERVAL '1 day')."""
    sign = "-" if "sub" in call.name else "+"
    if len(call.arguments) == 3:
        unit, number, time = call.arguments
        is_whole = is_constant(number) or number.lstrip("-").isdigit()
        moved = f"INTERVAL '{number} {_unit(unit)}'" if is_whole else f"{number} * INTERVAL '1 {_unit(unit)}'"
        return f"Write {time} {sign} {moved}."
    moved = call.argument(1, "INTERVAL '1 day'")
    return f"Write {call.argument(0, 'x')} {sign} {moved}."


def _apart(call: WrittenCall) -> str:
    """The difference of two times, in a unit if the call names one."""
    unit, before, after = ("day", *reversed(call.arguments)) if len(call.arguments) == 2 else (
        _unit(call.argument(0, "day")), call.argument(1, "y"), call.argument(2, "x"))  # fmt: skip
    if unit in _SECONDS:
        return f"Write EXTRACT(epoch FROM {after} - {before}) / {_SECONDS[unit]}."
    if unit in ("month", "year", "quarter"):
        months = f"EXTRACT(year FROM age({after}, {before}))"
        return f"Write {months}, and 12 times it plus EXTRACT(month FROM age({after}, {before})) for months."
    return f"Write {after}::date - {before}::date for days, or EXTRACT(epoch FROM {after} - {before}) for seconds."


def _formatted(call: WrittenCall) -> str:
    """to_char of the time, in the format that is among the arguments where PostgreSQL has a word for all of it."""
    given = next((a.strip("'") for a in call.arguments if is_constant(a)), "%Y-%m")
    for code, word in _CODES.items():
        given = given.replace(code, word)
    kept = given if "%" not in given else "YYYY-MM"
    return f"Write to_char({call.subject}, '{kept}')."


def _cut(call: WrittenCall) -> str:
    """date_trunc with the unit as a string, before the time."""
    plain = [_unit(a) for a in call.arguments]
    unit = next((p for p in plain if p in _TRUNCATED), call.name.removeprefix("tostartof").removeprefix("to"))
    time = next((a for a, p in zip(call.arguments, plain, strict=True) if p != unit), "x")
    return f"Write date_trunc('{unit if unit in _TRUNCATED else 'day'}', {time})."


_TRUNCATED = frozenset(["second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century"])


_ROWS: tuple[tuple[Template, str], ...] = (
    (_FIELD, "year month day hour minute second quarter week epoch dow doy isodow isoyear"),
    ("Write EXTRACT(dow FROM {x}).", "dayofweek weekday"),
    ("Write EXTRACT(doy FROM {x}).", "dayofyear"),
    ("Write EXTRACT(day FROM {x}).", "dayofmonth"),
    ("Write EXTRACT(week FROM {x}).", "weekofyear"),
    (_CASE, "if iif iff choose"),
    ("Write CASE {x} WHEN {y} THEN {z} END.", "decode"),
    ("Write CASE WHEN {x} IS NOT NULL THEN {y} ELSE {z} END.", "nvl2"),
    (
        lambda call: (
            f"Write {call.argument(0, 'x')} IS NULL."
            if len(call.arguments) == 1
            else f"Write coalesce({call.argument(0, 'x')}, {call.argument(1, 'y')})."
        ),
        "isnull",
    ),
    ("Write coalesce({x}, {y}).", "ifnull nvl zn"),
    ("Write coalesce({x}, 0).", "zeroifnull"),
    (_formatted, "strftime date_format format_date format_datetime time_format"),
    ("Write to_char({x}, 'FMMonth').", "monthname"),
    ("Write to_char({x}, 'FMDay').", "dayname"),
    (_cut, "datetrunc timestamp_trunc datetime_trunc tostartofmonth tostartofyear tostartofhour tostartofday"),
    (_cut, "tostartofweek tostartofquarter date_trunc trunc_date"),
    ("Write EXTRACT(year FROM {x}).", "toyear"),
    ("Write EXTRACT(month FROM {x}).", "tomonth"),
    ("Write EXTRACT(hour FROM {x}).", "tohour"),
    ("Write {x}::date, or to_date(t, 'YYYY-MM-DD') of a text t.", "to_date todate try_to_date"),
    ("Write {c}::timestamp, or to_timestamp(n) of seconds since 1970.", "to_timestamp from_unixtime todatetime"),
    (_MATCH, "regexp_matches regexp_split_to_array regexp_split_to_table regexp_extract regexp_extract_all"),
    (_QUOTE, "quote_literal quote_nullable quote_ident"),
    (_WHOLE, "gcd lcm factorial bit_count"),
    (_DIGITS, "scale min_scale trim_scale"),
    ("Write round(({x})::numeric, {y}).", "round truncate"),
    ("Write ln({x}) / ln(2).", "log2"),
    ("Write {x} * {x}.", "square"),
    ("Write length({x}).", "len lengthutf8"),
    ("Write strpos({y}, {x}).", "charindex locate"),
    ("Write strpos({x}, {y}).", "instr"),
    ("Write upper({x}).", "ucase"),
    ("Write lower({x}).", "lcase"),
    ("Write split_part({x}, {y}, 1).", "substring_index"),
    (_SPAN, "justify_days justify_hours justify_interval"),
    (_CHANCE, "random setseed rand gen_random_uuid uuid random_normal newid"),
    (_NOW, "clock_timestamp timeofday localtime current_time getdate sysdate curdate getutcdate today"),
    (_moved, "date_add date_subtract dateadd date_sub timestampadd adddate subdate"),
    (_apart, "datediff date_diff timestampdiff months_between days_between"),
    (_HASH, "md5 sha224 sha256 sha384 sha512 digest hashtext crc32 hash"),
    (_PART, "contains list_contains array_position array_contains levenshtein similarity soundex"),
    (_HYPERBOLIC, "sinh cosh tanh asinh acosh atanh"),
    ("Write {x}::numeric, which is NULL where the text is no number.", "to_number tofloat64"),
    ("Write {x}::integer, which is NULL where the text is no number.", "try_cast safe_cast toint toint32 toint64"),
    ("Write {x}::text.", "tostring to_varchar str"),
    ("Write to_char({x}, 'FM000'), or {x}::text.", "to_hex to_bin to_oct hex"),
    ("Write 1 / tan({x}).", "cot"),
    ("Write 1 / tan(radians({x})).", "cotd"),
    ("Write concat_ws(', ', x, y).", "array_to_string"),
    ("Write split_part({x}, ',', 1), or (string_to_array({x}, ','))[1].", "string_to_array string_split unnest"),
    ("Write width_bucket({x}, 0, 100, 10), or floor({x} / 10) * 10.", "bin"),
    (_fraction, "median quantile quantile_cont approx_quantile approx_percentile percentile quantile_disc"),
    (_fraction, "percentile_approx approx_median percentile_cont percentile_disc approx_quantiles"),
    (_fraction, "quantileexact percentiles quantiletdigest"),
    (
        "Write count(DISTINCT {x}).",
        "approx_count_distinct approx_distinct count_distinct countd ndv uniq uniqexact",
    ),
    ("Write count(DISTINCT {x}).", "hll_cardinality approximate_count_distinct uniqcombined"),
    ("Write mode() WITHIN GROUP (ORDER BY {x}).", "mode"),
    (
        "Count the values: SELECT {x}, count(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC LIMIT 1.",
        "approx_top_k topk",
    ),
    ("Write count(*) FILTER (WHERE {x}).", "count_if countif"),
    ("Write sum({x}) FILTER (WHERE {y}).", "sumif sum_if"),
    ("Write avg({x}) FILTER (WHERE {y}).", "avgif avg_if averageif"),
    ("Write avg({x}).", "mean average"),
    ("Write sum({x}).", "total"),
    ("Write exp(avg(ln({x}))).", "geomean geometric_mean product"),
    ("Write stddev_samp({x}).", "stdev stddevsamp"),
    ("Write stddev_pop({x}).", "std stdevp stddevpop"),
    ("Write var_samp({x}).", "var varsamp"),
    ("Write var_pop({x}).", "varp varpop"),
    ("Write bool_and({x}).", "logical_and booland_agg"),
    ("Write bool_or({x}).", "logical_or boolor_agg"),
    (
        _ANY,
        "any_value first last first_value last_value arbitrary arg_max arg_min max_by min_by any anylast argmax",
    ),
    (_ANY, "argmin nth_value"),
    ("Write count(*) FILTER (WHERE x < 3) + 1.", "rank dense_rank percent_rank cume_dist"),
    (_COLLECTED, "string_agg array_agg json_agg jsonb_agg json_array_agg json_arrayagg json_object_agg"),
    (_COLLECTED, "jsonb_object_agg xmlagg group_concat listagg list histogram collect_list collect_set grouparray"),
)


def _listed() -> Iterator[tuple[str, Template]]:
    for template, names in _ROWS:
        yield from ((name, template) for name in names.split())
    for name in ("sin", "cos", "tan"):
        yield f"{name}d", _DEGREES
        yield f"a{name}d", _IN_DEGREES


_ADVICE = MappingProxyType(dict(_listed()))


def instead_of_call(call: WrittenCall) -> str:
    """What to write instead; "" where nothing comes to mind."""
    template = _ADVICE.get(call.name, "")
    if not isinstance(template, str):
        return template(call)
    return template.format(
        name=call.name,
        bare=call.name.removesuffix("d"),
        a=call.argument(0, "a"),
        x=call.argument(0, call.ordered or "x"),
        y=call.argument(1, "y"),
        z=call.argument(2, "z"),
        c=call.subject,
        table=call.table,
        above=_COLLECTING.get(call.name, "string_agg(v.x::text, ',')"),
    )
