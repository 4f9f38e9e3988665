"""What would become of the queries that people ask today? The command `hushql policy try`.

Reads a policy and a log of queries, and no data. What is said follows from the two alone.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from proxy.admin.files import read_policy, read_text
from proxy.admin.output import print_json
from proxy.admin.profiles.file import path_of, read_profiles
from proxy.dp.accounting import epsilon_spent, limit_pico, pool_atto, usual_epsilon
from proxy.errors import ConfigError, HushError
from proxy.pipeline.alone import NothingPrivate
from proxy.plan.charge import Cost
from proxy.plan.profile.profile import TableProfile
from proxy.policy.figures import figure
from proxy.policy.model import EpsilonLimit, Policy
from proxy.session.pricing.dry_run import expected
from proxy.sql.syntax.parse import split_statements

#: A line of PostgreSQL's own log that holds a statement, and one with what its parameters were.
_LOGGED = re.compile(r"\bLOG:\s+(?:duration: [0-9.]+ ms\s+)?(?:statement|execute [^:]*): (.*)")
_PARAMETERS = re.compile(r"\bDETAIL:\s+[Pp]arameters: (.*)")
_PARAMETER = re.compile(r"(\$[0-9]+) = ('(?:[^']|'')*'|NULL)")
_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedQuery:
    """A statement of the log: where it stands first, how often it is there."""

    line: int
    times: int
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What would become of it: `answered`, `refused` or `free`; with its price, or with why not."""

    asked: LoggedQuery
    outcome: str
    cost: Cost = Cost(0, 0)  # noqa: RUF009 - an immutable value
    outputs: tuple[str, ...] = ()
    code: str = ""
    message: str = ""
    hint: str = ""


def try_queries(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The policy.", show_default=False)],
    queries: Annotated[
        Path,
        typer.Option(
            "--queries", metavar="FILE", help="Queries with semicolons, or PostgreSQL's own log.", show_default=False
        ),
    ],
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="DIR", help="Use the profiles that are kept there.", envvar="HUSHQL_STATE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Say what would become of a log of queries: answered how well, refused why, at which price. Reads no data.

    Exit status 1 if a query would be refused.
    """
    policy = read_policy(file, os.environ)
    profiles = read_profiles(path_of(state, policy.dataset), policy)[0] if state else ()
    log = asked_in(read_text(queries, "log of queries"))
    if not log:
        raise ConfigError(f"{queries} holds no statement", hint="Separate queries with semicolons.")
    tried = [_try(policy, asked, profiles) for asked in log]
    if as_json:
        print_json({"queries": [asdict(one) for one in tried], "accounts": dict(_days(policy, tried))})
    else:
        for line in (*_lines(policy, tried), *_in_all(policy, tried)):
            typer.echo(line)
    if any(one.outcome == "refused" for one in tried):
        raise typer.Exit(1)


# --- the log ----------------------------------------------------------------------------------------------


def asked_in(text: str) -> list[LoggedQuery]:
    """The statements of a log, each once, by where they stand first. Raises HushError if they cannot be told apart."""
    found = list(_logged(text)) if _LOGGED.search(text) else list(_written(text))
    times = Counter(" ".join(sql.split()) for _, sql in found)
    first: dict[str, tuple[int, str]] = {}
    for line, sql in found:
        first.setdefault(" ".join(sql.split()), (line, sql))
    return [LoggedQuery(line=line, times=times[plain], sql=sql) for plain, (line, sql) in first.items()]


def _written(text: str) -> Iterator[tuple[int, str]]:
    for statement in split_statements(text):
        start = statement.start
        yield text.count("\n", 0, start) + 1, statement.text.strip()


def _logged(text: str) -> Iterator[tuple[int, str]]:
    """Statements of PostgreSQL's log, continued on lines that begin with a tab, with their parameters put in."""
    found: list[tuple[int, str]] = []
    is_open = False
    for number, line in enumerate(text.splitlines(), start=1):
        if logged := _LOGGED.search(line):
            found.append((number, logged[1]))
        elif is_open and line.startswith("\t"):
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line[1:]}")
        elif found and (parameters := _PARAMETERS.search(line)):
            at, sql = found[-1]
            found[-1] = (at, _with_parameters(sql, parameters[1]))
        is_open = bool(logged) or (is_open and line.startswith("\t"))
    return (one for one in found if one[1].strip(" ;"))


def _with_parameters(sql: str, parameters: str) -> str:
    """A prepared statement with the values that PostgreSQL logged as `$1 = 'a', $2 = NULL`."""
    values = dict(_PARAMETER.findall(parameters))
    return re.sub(r"\$[0-9]+", lambda found: values.get(found[0], found[0]), sql)


# --- one of them ------------------------------------------------------------------------------------------


def _try(policy: Policy, asked: LoggedQuery, profiles: Sequence[TableProfile]) -> Tried:
    try:
        found = expected(policy, asked.sql, profiles)
    except NothingPrivate:
        return Tried(asked=asked, outcome="free")
    except HushError as error:
        return Tried(
            asked=asked, outcome="refused", code=error.sqlstate, message=error.message,
            hint=" ".join(part for part in (error.detail, error.hint) if part),
        )  # fmt: skip
    return Tried(asked=asked, outcome="answered", cost=found.cost, outputs=found.outputs)


def _lines(policy: Policy, tried: Sequence[Tried]) -> Iterator[str]:
    for one in tried:
        times = f", {one.asked.times} times" if one.asked.times > 1 else ""
        sql = " ".join(one.asked.sql.split())
        yield f"line {one.asked.line}{times}: {sql if len(sql) <= _MOST_SHOWN else sql[: _MOST_SHOWN - 4] + ' ...'}"
        match one.outcome:
            case "free":
                yield "  free: PostgreSQL answers it, or refuses it; it reads nothing private"
            case "refused":
                yield f"  refused, {one.code}: {one.message}{'. ' + one.hint if one.hint else ''}"
            case _:
                yield f"  answered, epsilon {figure(epsilon_spent(policy.privacy, one.cost.pico))}"
                yield from (f"    {output}" for output in one.outputs)


# --- all of them ------------------------------------------------------------------------------------------


def _in_all(policy: Policy, tried: Sequence[Tried]) -> Iterator[str]:
    times: Counter[str] = Counter()
    for one in tried:
        times[one.outcome] += one.asked.times
    kinds = ", ".join(f"{times[kind]} {kind}" for kind in ("answered", "refused", "free"))
    yield f"{sum(times.values())} queries, {len(tried)} different: {kinds}"
    reasons = Counter(f"{one.code} {one.message}" for one in tried if one.outcome == "refused")
    yield from (f"  refused in {count}: {reason}" for reason, count in reasons.most_common())
    epsilon = figure(usual_epsilon(policy.privacy), 6)
    yield f"each at epsilon {epsilon}; repeats are free, and all of them by one login cost at most"
    for account, days in _days(policy, tried):
        spent = figure(epsilon_spent(policy.privacy, _spent(tried).pico))
        yield f"  epsilon {spent} of the {account} account, which holds that {days} times"


def _spent(tried: Sequence[Tried]) -> Cost:
    return sum((one.cost for one in tried), Cost(0, 0))


def _days(policy: Policy, tried: Sequence[Tried]) -> Iterator[tuple[str, int]]:
    """How often each account with a limit holds all of them; nothing where they are free."""
    spent = _spent(tried)
    for kind in fields(policy.budgets):
        limit = getattr(policy.budgets, kind.name)
        if isinstance(limit, EpsilonLimit) and spent.pico:
            days = limit_pico(policy.privacy, limit.epsilon) // spent.pico
            yield kind.name, min(days, pool_atto(policy.privacy) // spent.atto) if spent.atto else days
