"""What have accounts spent, by the files alone, and what may be added? `hushql ledger`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from proxy.admin.commands.exchange import export, lines_of, take
from proxy.admin.commands.report import report
from proxy.admin.commands.top_up import By, Onto, TopUp, gift_of, told
from proxy.admin.files import read_policy
from proxy.admin.ledger_place import LedgerOption, LedgerPlace, StateOption, grant, granted_to, inspect, place_of
from proxy.admin.output import print_json, print_table
from proxy.config import UsersAt, UsersOfPolicy
from proxy.dp.accounting import ATTO, PICO, epsilon_spent
from proxy.errors import ConfigError
from proxy.ledger.base import AccountTotal, VerifiedLedger
from proxy.ledger.exchange import verified
from proxy.ledger.restated import breaks_words, promise_words
from proxy.plan.charge import AccountKind, dataset_of
from proxy.policy.model import Policy

app = typer.Typer(no_args_is_help=True, help="Read and verify what was spent, also while the proxy runs.")

_FIGURES = ("spent", "delta", "granted", "epsilon")
_ALWAYS = ("kind", "account", "spent", "delta", "granted", "accounting")
_HEADINGS = (*_ALWAYS, "epsilon", "promise", "outside", "unit")

AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("show")
def show(
    state: StateOption = None,
    ledger: LedgerOption = "",
    policies: Annotated[
        list[Path],
        typer.Option("--policy", metavar="FILE", help="Show epsilon at this policy's delta; may be repeated."),
    ] = [],  # noqa: B006 typer copies it
    as_json: AsJson = False,
) -> None:
    """Show what every account has spent: rho, or epsilon in pure accounting.

    Verifies first; exit status 1 if the books are not right.
    """
    known = [read_policy(path, os.environ) for path in policies]
    rows = [_row(total, known) for total in inspect(place_of(state, ledger)).totals]
    if as_json:
        print_json(rows)
        return
    headings = [h for h in _HEADINGS if h in _ALWAYS or any(row.get(h) for row in rows)]
    right = frozenset(headings.index(h) for h in _FIGURES if h in headings)
    print_table(headings, [[row.get(h, "") for h in headings] for row in rows], right=right)


@app.command("verify")
def verify(
    state: StateOption = None,
    ledger: LedgerOption = "",
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="An export in place of a state directory.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add up every charge again from the first and check the chain. Exit status 1 if anything is not right."""
    where, report = _verified(state, ledger, file)
    if as_json:
        print_json({"entries": report.entries, "releases": report.releases, "head": report.head})
    else:
        typer.echo(
            f"{where}: {report.entries} charges and {report.releases} releases verified, head {report.head[:16]}"
        )


app.command("report")(report)
app.command("export")(export)
app.command("import")(take)


@app.command("top-up")
def top_up(
    kind: Annotated[AccountKind, typer.Argument(help="Kind of the account.", show_default=False)],
    account: Annotated[
        str, typer.Argument(metavar="ACCOUNT", help="Its name, as `show` prints it.", show_default=False)
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept for ever.")],
    policy: Annotated[Path, typer.Option("--policy", metavar="FILE", help="The policy of the dataset.")],
    state: StateOption = None,
    ledger: LedgerOption = "",
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="What an account of this epsilon may spend is added.")
    ] = None,
    to: Annotated[float | None, typer.Option("--to", help="Make it an account of this epsilon.")] = None,
    delta: Annotated[float, typer.Option("--delta", help="Also for groups with unlisted keys.")] = 0.0,
    users: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="Where the logins are.", show_default="the policy's users_file"),
    ] = None,
) -> None:
    """Add to what one account may spend, also while the proxy runs: for good, or in the present window."""
    match epsilon, to:
        case float() as more, None:
            amount: By | Onto = By(more)
        case None, float() as whole:
            amount = Onto(whole)
        case _:
            raise ConfigError("a top-up is either of --epsilon or --to", hint="Say one of them.")
    place = place_of(state, ledger)
    wish = TopUp(
        policy=policy, kind=kind, account=account, amount=amount, delta=delta, reason=reason,
        users=UsersOfPolicy() if users is None else UsersAt(users),
    )  # fmt: skip
    gift, limits = gift_of(wish, granted_to(place, kind, account))
    typer.echo(told(grant(place, gift), limits))


def _verified(state: Path | None, ledger: str, file: Path | None) -> tuple[LedgerPlace | Path, VerifiedLedger]:
    if file is not None:
        with lines_of(file) as lines:
            return file, verified(lines)
    place = place_of(state, ledger)
    return place, inspect(place)


def _row(total: AccountTotal, known: list[Policy]) -> dict[str, str]:
    """spent, granted and outside are rho, or epsilon in pure accounting; exact decimals as text.

    promise: for what they count, "" if for single units that come or go. unit: which ones were given up, and outside
    is what had been spent by then.
    """
    row = {
        "kind": total.kind,
        "account": total.name,
        "spent": _decimal(total.spent.pico, PICO, 12),
        "delta": f"{total.spent.atto / ATTO:.3g}",
        "granted": _decimal(total.granted.pico, PICO, 12),
        "accounting": total.accounting.value,
        "promise": "" if total.standing.is_weakest else promise_words(total.standing),
        "unit": breaks_words(total.standing),
        "outside": _decimal(total.outside.pico, PICO, 12) if total.standing.breaks else "",
    }
    owner = next((p for p in known if dataset_of(total.name) == p.dataset), None)
    if owner is not None and owner.privacy.accounting is total.accounting:
        row["epsilon"] = f"{epsilon_spent(owner.privacy, total.spent.pico):.6f}"
    return row


def _decimal(count: int, unit: int, digits: int) -> str:
    return f"{count // unit}.{count % unit:0{digits}d}".rstrip("0").rstrip(".")
