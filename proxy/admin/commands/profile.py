"""What does `hushql profile` take, and what does it tell?"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Protocol

import typer
from rich import progress as bars
from rich.console import Console

from proxy.admin.commands.serve import LedgerUrl, StateFolderOption, UsersOption, ledger_of
from proxy.admin.files import read_policy, replace_text
from proxy.admin.output import print_json
from proxy.admin.profiles.file import path_of, read_profiles
from proxy.admin.profiles.price import offers, proposal_lines, proposed
from proxy.admin.profiles.svg import drawn
from proxy.admin.profiles.words import charts_of, lines_of, tail_size
from proxy.config import EveryFilter, Filters, ProfileConfig, UsersAt, UsersOfPolicy
from proxy.dp.accounting import epsilon_spent
from proxy.errors import ConfigError
from proxy.plan.profile.profile import Sizes, TableProfile
from proxy.policy.figures import figure
from proxy.policy.model import Policy, Table
from proxy.session.learning.profile_questions import filters, has_several_rows, largest_value, measures, unlisted
from proxy.session.learning.profiling import Findings, Largest, ProfilingProgress, Wish
from proxy.sql.functions.domains.intervals import number_range

_MOST_EPSILON = 100.0
_ANY = 1.0  # until a price is agreed on


FilteredBy = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="TABLE.COLUMN",
        help="What people filter by, or none.",
        show_default="columns with values, ranges",
    ),
]


@dataclass(frozen=True, slots=True)
class Profiled:
    """What was found under which policy."""

    policy: Policy
    findings: Findings


class Run(Protocol):
    """Makes profiles, and tells how far it is."""

    def __call__(self, config: ProfileConfig, progress: ProfilingProgress, /) -> Profiled: ...


@contextlib.contextmanager
def bar_of(words: str) -> Iterator[ProfilingProgress]:
    """A bar on standard error while units are counted, if somebody is watching."""
    console = Console(stderr=True)
    with bars.Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, steps: bar.update(task, completed=done, total=steps)


def register(app: typer.Typer, run: Run) -> None:
    """Add `profile` to the command, and the word that it had before."""

    @app.command("learn-bounds", hidden=True)
    @app.command("profile")
    def profile(
        policy: Annotated[Path, typer.Argument(metavar="POLICY", help="The policy.", show_default=False)],
        state: StateFolderOption = Path(".state"),
        epsilon: Annotated[
            float | None,
            typer.Option("--epsilon", help="What all of it costs the dataset.", show_default="proposed, and asked"),
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", help="Take the price that is proposed, and do not ask.")] = False,
        table: Annotated[
            list[str] | None, typer.Option("--table", metavar="NAME", help="Whose units.", show_default="all private")
        ] = None,
        column: Annotated[
            list[str] | None,
            typer.Option(
                "--column", metavar="TABLE.COLUMN", help="Its largest values too, for its bounds.", show_default="none"
            ),
        ] = None,
        by: FilteredBy = None,
        users: UsersOption = None,
        ledger: LedgerUrl = "",
        show: Annotated[bool, typer.Option("--show", help="Show what is kept, free, and ask nothing.")] = False,
        svg: Annotated[
            Path | None, typer.Option("--svg", metavar="FILE", help="Show what is kept as a picture in this file.")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    ) -> None:
        """Count how much people have, by noisy numbers that the dataset's account pays for.

        From then on every query chooses its own bounds. A running proxy that owns the state directory does it and uses
        it at once; else its next start does. Everybody who may ask then sees what follows from it, beside what their
        own budget pays for.
        """
        if show or svg is not None:
            _show(policy, state, svg, as_json=as_json)
            return
        config = ProfileConfig(
            policy=policy,
            state=state,
            epsilon=_ANY if epsilon is None else epsilon,
            tables=tuple(dict.fromkeys(table or ())),
            columns=tuple(dict.fromkeys(map(_named, column or ()))),
            filters=EveryFilter() if by is None else Filters(_filters(by)),
            users=UsersOfPolicy() if users is None else UsersAt(users),
            ledger=ledger_of(ledger),
        )
        if epsilon is None:
            config = replace(config, epsilon=_agreed(config, is_agreed=yes))
        with bar_of("counting") as progress:
            profiled = run(config, progress)
        if as_json:
            print_json(_data(profiled))
        else:
            typer.echo("\n".join(_lines(profiled)))


def _agreed(config: ProfileConfig, *, is_agreed: bool) -> float:
    """The price that is proposed, or chosen at the terminal. Raises ConfigError, with nothing charged, if nobody can be
    asked."""
    policy = read_policy(config.policy, os.environ)
    wishes = wishes_of(config, policy)
    found = offers(policy, wishes)
    typer.echo("\n".join(proposal_lines(policy, wishes, found)), err=True)
    if is_agreed:
        return proposed(found, policy)
    if not sys.stdin.isatty():
        raise ConfigError("a profile has a price, and nobody can be asked here", hint="Say --epsilon, or --yes.")
    return float(typer.prompt("epsilon", default=proposed(found, policy), type=float, err=True))


def _filters(by: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return () if list(by) == ["none"] else tuple(dict.fromkeys(_named(text, "--by") for text in by))


def wishes_of(config: ProfileConfig, policy: Policy) -> tuple[Wish, ...]:
    """What the options ask for. Raises ConfigError if the policy has no such thing, or there is nothing to count."""
    if not 0 < config.epsilon <= _MOST_EPSILON:
        raise ConfigError(f"--epsilon is more than 0 and at most {figure(_MOST_EPSILON, 6)}")
    names = config.tables or tuple(t.name for t in policy.private_tables() if has_several_rows(t) or measures(t))
    by = config.filters.columns if isinstance(config.filters, Filters) else ()
    named = dict.fromkeys((*names, *(t for t, _ in (*config.columns, *by))))
    wishes = tuple(_wish(_private(policy, name), config) for name in named)
    if not wishes:
        raise ConfigError("every unit has one row in each table, and no column has bounds: there is nothing to count")
    return wishes


def _wish(table: Table, config: ProfileConfig) -> Wish:
    values = tuple(c for t, c in config.columns if t == table.name)
    for name in values:
        _check_bounded(table, name)
    if not has_several_rows(table) and not measures(table):
        raise ConfigError(f'table "{table.name}" has one row for each unit and no measures: there is nothing to count')
    return Wish(table, measures(table), values, _shared(table, config.filters), unlisted(table))


def _shared(table: Table, wanted: EveryFilter | Filters) -> tuple[str, ...]:
    """The columns whose shares of rows are counted. Raises ConfigError if one cannot be."""
    possible = filters(table)
    if isinstance(wanted, EveryFilter):
        return possible
    named = tuple(c for t, c in wanted.columns if t == table.name)
    for column in named:
        if column not in possible:
            raise ConfigError(
                f'of "{table.name}"."{column}" no values, no range and no truth values are declared',
                hint=f"Columns of {table.name} that can be counted by: {', '.join(possible) or 'none'}.",
            )
    return named


def _private(policy: Policy, name: str) -> Table:
    found = next((t for t in policy.private_tables() if t.name == name), None)
    if found is None:
        known = ", ".join(t.name for t in policy.private_tables())
        raise ConfigError(f'the policy has no private table "{name}"', hint=f"Private tables: {known}.")
    return found


def _check_bounded(table: Table, name: str) -> None:
    column = table.column(name)
    if column is None or column.hidden:
        raise ConfigError(f'table "{table.name}" has no column "{name}"')
    if not largest_value(table, name):
        raise ConfigError(
            f'"{table.name}"."{name}" is no number with bounds',
            hint="Declare generous ones first: what is learned makes them narrower.",
        )


def _named(text: str, option: str = "--column") -> tuple[str, str]:
    table, dot, column = text.partition(".")
    if not (table and dot and column):
        raise ConfigError(f"{option} is TABLE.COLUMN, not '{text}'")
    return table, column


def _show(path: Path, state: Path, svg: Path | None, *, as_json: bool) -> None:
    """What is kept of a policy's tables, with pictures, also in a file. Raises ConfigError."""
    policy = read_policy(path, os.environ)
    profiles, said = read_profiles(path_of(state, policy.dataset), policy)
    if as_json and svg is not None:
        raise ConfigError("--json and --svg are two ways to show one thing", hint="Say one, then the other.")
    if as_json:
        print_json({"dataset": policy.dataset, "tables": [_table_data(p) for p in profiles]})
        return
    if not profiles:
        raise ConfigError(f"{path_of(state, policy.dataset)} has no profile", hint="hushql profile makes one.")
    charts = [(p, chart) for p in profiles for chart in charts_of(p, policy.tables[p.table])]
    if svg is not None:
        replace_text(svg, drawn(f"What people have in {policy.dataset}", [(p.table, chart) for p, chart in charts]))
        typer.echo(f"{svg} has the pictures")
        return
    shown = (line for p in profiles for line in (*lines_of(p), *(w for of, c in charts if of is p for w in c.drawn())))
    for line in (*said, *shown):
        typer.echo(line)


def _lines(profiled: Profiled) -> list[str]:
    lines = [line for profile in profiled.findings.profiles for line in lines_of(profile)]
    lines += [_of_values(v, profiled.policy.tables[v.table]) for v in profiled.findings.values]
    return [*lines, _charge(profiled)]


def _of_values(of: Largest, table: Table) -> str:
    """What would be better bounds of a column; the policy's are never changed by themselves."""
    name, column = f"{of.table}.{of.column}", table.column(of.column)
    ends = number_range(column.domain) if column is not None else None
    assert ends is not None, "what was asked of has bounds"
    tail = of.sizes.tail
    few = max(1.0, 3.0 * of.sizes.sd)
    most = tail_size(tail, few) * of.largest
    low, high = max(ends[0], -most), min(ends[1], most)
    if (low, high) == ends or low > high or tail.units <= few:
        given = f"[{figure(ends[0], 6)}, {figure(ends[1], 6)}]"
        return f"{name}: nothing narrower than the policy's bounds {given} is told by this epsilon"
    found = f"[{figure(low)}, {figure(high)}]"
    return (
        f"{name}: all but about {few:.0f} units have only values within {found}; to use that, write"
        f" bounds: [{_digits(low)}, {_digits(high)}] at tables.{of.table}.columns.{of.column}"
    )


def _digits(number: float) -> str:
    """A number of a policy."""
    return figure(number).replace(",", "")


def _charge(profiled: Profiled) -> str:
    privacy, findings = profiled.policy.privacy, profiled.findings
    paid = epsilon_spent(privacy, findings.pico - findings.reused)
    if not paid:
        return f"{profiled.policy.dataset}: paid for before, nothing was charged"
    return f"{profiled.policy.dataset}: charged to the dataset: epsilon {figure(paid)}"


def _data(profiled: Profiled) -> dict[str, object]:
    privacy, findings = profiled.policy.privacy, profiled.findings
    return {
        "dataset": profiled.policy.dataset,
        "epsilon_charged": epsilon_spent(privacy, findings.pico - findings.reused),
        "tables": [_table_data(p) for p in findings.profiles],
        "values": [
            {"table": v.table, "column": v.column, "largest": v.largest, **_sizes_data(v.sizes)}
            for v in findings.values
        ],
    }


def _table_data(of: TableProfile) -> dict[str, object]:
    return {
        "table": of.table,
        "allowed_rows": of.allowed,
        "data_version": of.data_version,
        "rows": _sizes_data(of.rows),
        "sums": [{"column": c, "largest": largest, **_sizes_data(s)} for c, largest, s in of.sums],
        "shares": [
            {"column": s.column, "rows": list(s.rows), "pairs": list(s.pairs), "noise_sd": s.sd} for s in of.shares
        ],
    }


def _sizes_data(of: Sizes) -> dict[str, object]:
    tail = of.tail
    return {"units": tail.units, "noise_sd": of.sd, "edges": list(tail.edges), "counts": list(of.counts)}
