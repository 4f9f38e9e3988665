"""What have accounts spent, by the files alone? `hushql ledger show` and `hushql ledger verify`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from proxy.admin.files import read_policy
from proxy.admin.output import print_json, print_table
from proxy.dp.accounting import ATTO, PICO, epsilon_spent
from proxy.ledger.base import Total
from proxy.ledger.replay import inspect
from proxy.policy.model import Policy

app = typer.Typer(no_args_is_help=True, help="Read and verify what was spent, also while the proxy runs.")

State = Annotated[
    Path, typer.Option("--state", metavar="DIR", help="State directory of the proxy.", envvar="HUSHQL_STATE")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("show")
def show(
    state: State,
    policies: Annotated[
        list[Path],
        typer.Option("--policy", metavar="FILE", help="Show epsilon at this policy's delta; may be repeated."),
    ] = [],  # noqa: B006 typer copies it
    as_json: AsJson = False,
) -> None:
    """Show what every account has spent. Verifies first; exit status 1 if the books are not right."""
    known = [read_policy(path, os.environ) for path in policies]
    rows = [_row(total, known) for total in inspect(state).totals]
    if as_json:
        print_json(rows)
        return
    headings = ("kind", "account", "spent", "delta", *(("epsilon",) if known else ()))
    print_table(headings, [[str(row.get(h, "")) for h in headings] for row in rows], right=frozenset({2, 3, 4}))


@app.command("verify")
def verify(state: State, as_json: AsJson = False) -> None:
    """Add up every charge again from the first and check the chain. Exit status 1 if anything is not right."""
    report = inspect(state)
    if as_json:
        print_json({"entries": report.entries, "releases": report.releases, "head": report.head})
    else:
        typer.echo(
            f"{state}: {report.entries} charges and {report.releases} releases verified, head {report.head[:16]}"
        )


def _row(total: Total, known: list[Policy]) -> dict[str, str]:
    """spent is rho, or epsilon in pure accounting; exact decimals as text."""
    row = {
        "kind": total.kind,
        "account": total.name,
        "spent": _decimal(total.spent.pico, PICO, 12),
        "delta": f"{total.spent.atto / ATTO:.3g}",
    }
    owner = next((p for p in known if belongs_to(total.name, p.dataset)), None)
    if owner is not None:
        row["epsilon"] = f"{epsilon_spent(owner.privacy, total.spent.pico):.6f}"
    return row


def belongs_to(account: str, dataset: str) -> bool:
    """Whether an account is one of a dataset: its own, or one whose name starts with the dataset's and a slash."""
    return account == dataset or account.startswith(dataset + "/")


def _decimal(count: int, unit: int, digits: int) -> str:
    return f"{count // unit}.{count % unit:0{digits}d}".rstrip("0").rstrip(".")
