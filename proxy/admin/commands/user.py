"""Who may log in? `hushql user add`, `remove` and `list`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from proxy.admin.files import locked_folder, read_text, read_users, replace_text
from proxy.admin.output import print_json, print_table
from proxy.config import check_private
from proxy.dp.samplers import salt_bytes
from proxy.errors import ConfigError
from proxy.policy.figures import figure
from proxy.policy.model import AccountLimit, EpsilonLimit, Login, NoLimit
from proxy.policy.problems import did_you_mean
from proxy.policy.users import NEW_FILE, UNCHECKED, load_users, with_login, without_login
from proxy.wire.scram import SALT_BYTES, make_verifier

app = typer.Typer(no_args_is_help=True, help="Manage the logins of a users file.")

PASSWORD_VARIABLE = "HUSHQL_PASSWORD"  # noqa: S105 the variable's name

UsersFileOption = Annotated[
    Path, typer.Option("--users", metavar="FILE", help="The users file.", envvar="HUSHQL_USERS")
]
NewUsersFile = Annotated[
    Path, typer.Option("--users", metavar="FILE", help="The users file; made if absent.", envvar="HUSHQL_USERS")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The login.", show_default=False)]


@app.command("add")
def add(
    name: Name,
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help="A role of the file.", show_default=False)],
    users: NewUsersFile = Path("users.yaml"),
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", help="Budget in place of the policy's budgets.user; 0 leaves it to the policy."),
    ] = 0.0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the password and role of an existing login.")
    ] = False,
) -> None:
    """Add a login. The password comes from HUSHQL_PASSWORD, else standard input, else a prompt."""
    verifier = make_verifier(_password(), salt=salt_bytes(SALT_BYTES)).text()
    with locked_folder(users):
        text = _text(users) if users.exists() else NEW_FILE
        found = load_users(text, filename=str(users), tables=UNCHECKED)
        logins = found.logins
        if found.roles and role not in found.roles:
            guess = did_you_mean(role, tuple(found.roles))
            hint = f"Its roles are: {', '.join(found.roles)}. Others are added under roles: in the file."
            raise ConfigError(f"{users}: there is no role '{role}'{guess}", hint=hint)
        if name in logins and not replace:
            raise ConfigError(f"{users}: user '{name}' exists", hint="Use --replace to change password and role.")
        budget: AccountLimit = EpsilonLimit(epsilon) if epsilon else NoLimit()
        login = Login(name=name, scram=verifier, role=role, budget=budget)
        replace_text(users, with_login(text, login, filename=str(users)))
    typer.echo(f"{users}: user '{name}' {'changed' if name in logins else 'added'} with role '{role}'")


@app.command("remove")
def remove(name: Name, users: UsersFileOption = Path("users.yaml")) -> None:
    """Remove a login. What it spent stays spent, also for a later login of the same name."""
    with locked_folder(users):
        text = _text(users)
        replace_text(users, without_login(text, name, filename=str(users)))
    typer.echo(f"{users}: user '{name}' removed")


@app.command("list")
def list_users(
    users: UsersFileOption = Path("users.yaml"),
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List logins with role, budget and visible tables; never verifiers."""
    found = read_users(users, UNCHECKED)
    rows = [
        {
            "name": login.name,
            "role": login.role,
            "admin": found.roles[login.role].is_admin,
            "epsilon": login.budget.epsilon if isinstance(login.budget, EpsilonLimit) else "policy",
            "tables": list(found.roles[login.role].tables) or "all",
        }
        for login in found.logins.values()
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("name", "role", "admin", "epsilon", "tables"),
        [
            (
                str(row["name"]),
                str(row["role"]),
                "yes" if row["admin"] else "no",
                figure(row["epsilon"], 6) if isinstance(row["epsilon"], float) else str(row["epsilon"]),
                ", ".join(row["tables"]) if isinstance(row["tables"], list) else str(row["tables"]),
            )
            for row in rows
        ],
        right=frozenset({3}),
    )


def _text(path: Path) -> str:
    """The file's text. Raises ConfigError if it cannot be read, or if others may read it."""
    text = read_text(path, "users file")
    check_private(path, "users file")
    return text


def _password() -> str:
    """The password, from the environment, a pipe or a prompt. Raises ConfigError if it is empty."""
    given = os.environ.get(PASSWORD_VARIABLE)
    if given is None:
        if sys.stdin.isatty():
            given = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
        else:
            given = sys.stdin.readline().rstrip("\r\n")
    if not given or "\0" in given:
        raise ConfigError("the password is empty", hint=f"Type one, pipe one in, or set {PASSWORD_VARIABLE}.")
    return given
