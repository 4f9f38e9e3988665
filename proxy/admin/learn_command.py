"""What does `hushql learn-bounds` take, and what does it tell?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proxy.admin.output import print_json
from proxy.admin.serve_commands import LedgerUrl, State, UsersFile, ledger_of
from proxy.config import LearnConfig, UsersAt, UsersOfPolicy
from proxy.dp.accounting import epsilon_spent
from proxy.errors import ConfigError
from proxy.plan.learned import LearnedTable
from proxy.policy.model import Policy, Table
from proxy.session.candidates import allowed_rows, largest_value
from proxy.session.learning import Largest, Lesson, Wish
from proxy.sql.intervals import number_range

_MOST_EPSILON = 100.0


@dataclass(frozen=True, slots=True)
class Taught:
    """What was learned under which policy."""

    policy: Policy
    lesson: Lesson


def register(app: typer.Typer, run: Callable[[LearnConfig], Taught]) -> None:
    """Add learn-bounds to the command."""

    @app.command("learn-bounds")
    def learn_bounds(
        policy: Annotated[Path, typer.Argument(metavar="POLICY", help="The policy.", show_default=False)],
        state: State = Path(".state"),
        epsilon: Annotated[float, typer.Option("--epsilon", help="What all of it costs the dataset.")] = 1.0,
        table: Annotated[
            list[str] | None, typer.Option("--table", metavar="NAME", help="Whose rows.", show_default="all private")
        ] = None,
        column: Annotated[
            list[str] | None,
            typer.Option("--column", metavar="TABLE.COLUMN", help="Its sums and values too.", show_default="none"),
        ] = None,
        users: UsersFile = None,
        ledger: LedgerUrl = "",
        as_json: Annotated[bool, typer.Option("--json", help="Print what was learned as JSON.")] = False,
    ) -> None:
        """Learn how many rows a person usually has, from noisy answers that the dataset's account pays for.

        A running proxy that owns the state directory does it and uses it at once; else its next start does. Everybody
        who may ask then sees what follows from it, beside what their own budget pays for.
        """
        config = LearnConfig(
            policy=policy,
            state=state,
            epsilon=epsilon,
            tables=tuple(dict.fromkeys(table or ())),
            columns=tuple(dict.fromkeys(map(_named, column or ()))),
            users=UsersOfPolicy() if users is None else UsersAt(users),
            ledger=ledger_of(ledger),
        )
        taught = run(config)
        if as_json:
            print_json(_data(taught))
        else:
            typer.echo("\n".join(_lines(taught)))


def wishes_of(config: LearnConfig, policy: Policy) -> tuple[Wish, ...]:
    """What the options ask for. Raises ConfigError if the policy has no such thing, or there is nothing to learn."""
    if not 0 < config.epsilon <= _MOST_EPSILON:
        raise ConfigError(f"--epsilon is more than 0 and at most {_MOST_EPSILON:g}")
    names = config.tables or tuple(t.name for t in policy.private_tables() if allowed_rows(t) > 1)
    columns = {name: tuple(c for t, c in config.columns if t == name) for name in names}
    columns |= {t: tuple(c for o, c in config.columns if o == t) for t, _ in config.columns}
    wishes = tuple(Wish(_private(policy, name), of) for name, of in columns.items())
    for wish in wishes:
        for name in wish.columns:
            _check_bounded(wish.table, name)
        if allowed_rows(wish.table) == 1 and not wish.columns:
            raise ConfigError(f'table "{wish.table.name}" has one row for each unit: there is nothing to learn')
    if not wishes:
        raise ConfigError("every unit has one row in each table: there is nothing to learn", hint="Give --column.")
    return wishes


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


def _named(text: str) -> tuple[str, str]:
    table, dot, column = text.partition(".")
    if not (table and dot and column):
        raise ConfigError(f"--column is TABLE.COLUMN, not '{text}'")
    return table, column


def _lines(taught: Taught) -> list[str]:
    lines = [line for table in taught.lesson.tables for line in _of_table(table)]
    lines += [_of_values(v, taught.policy.tables[v.table]) for v in taught.lesson.values]
    return [*lines, _charge(taught)]


def _of_table(of: LearnedTable) -> list[str]:
    if of.rows is None:
        return [f"{of.table}: too few units to tell; the policy's {of.allowed} rows stay"]
    few = "all but about {} units have"
    rows = f"{of.table}: {few.format(of.rows.above)} at most {of.rows.value:.0f} rows; the policy allows {of.allowed}"
    return [rows] + [
        f"{of.table}.{column}: {few.format(bound.above)} sums of size {bound.value:g} at most;"
        f" the policy allows {of.allowed} rows of {largest:g}"
        for column, largest, bound in of.totals
    ]


def _of_values(of: Largest, table: Table) -> str:
    """What would be better bounds of a column; the policy's are never changed by themselves."""
    name, column = f"{of.table}.{of.column}", table.column(of.column)
    ends = number_range(column.domain) if column is not None else None
    assert ends is not None, "what was asked of has bounds"
    low, high = max(ends[0], -of.bound.value), min(ends[1], of.bound.value)
    if (low, high) == ends or low > high:
        return f"{name}: nothing narrower than the policy's bounds [{ends[0]:g}, {ends[1]:g}] is told by this epsilon"
    return (
        f"{name}: all but about {of.bound.above} units have only values within [{low:g}, {high:g}]; to use that, write"
        f" bounds: [{low:g}, {high:g}] at tables.{of.table}.columns.{of.column}"
    )


def _charge(taught: Taught) -> str:
    privacy, lesson = taught.policy.privacy, taught.lesson
    paid = epsilon_spent(privacy, lesson.pico - lesson.reused)
    if not paid:
        return f"{taught.policy.dataset}: paid for before, nothing was charged"
    return f"{taught.policy.dataset}: charged to the dataset: epsilon {paid:.4g}"


def _data(taught: Taught) -> dict[str, object]:
    privacy, lesson = taught.policy.privacy, taught.lesson
    return {
        "dataset": taught.policy.dataset,
        "epsilon_charged": epsilon_spent(privacy, lesson.pico - lesson.reused),
        "tables": [
            {
                "table": t.table,
                "allowed_rows": t.allowed,
                "rows": None if t.rows is None else round(t.rows.value),
                "units_above": None if t.rows is None else t.rows.above,
                "sums": [{"column": c, "size": b.value, "units_above": b.above} for c, _, b in t.totals],
            }
            for t in lesson.tables
        ],
        "values": [
            {"table": v.table, "column": v.column, "size": v.bound.value, "units_above": v.bound.above}
            for v in lesson.values
        ],
    }
