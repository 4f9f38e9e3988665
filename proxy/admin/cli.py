"""Which commands does `hushql` have, and how does each end?

Exit status: 0 done, 1 refused or something is wrong with what was looked at, 2 wrong options or files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from proxy import __version__
from proxy.admin.commands import data as data_commands
from proxy.admin.commands import ledger as ledger_commands
from proxy.admin.commands import policy as policy_commands
from proxy.admin.commands import profile as profile_command
from proxy.admin.commands import serve as serve_commands
from proxy.admin.commands import user as user_commands
from proxy.admin.commands.demo_data import demo_data
from proxy.admin.commands.profile import Run
from proxy.admin.commands.randomize import randomize
from proxy.admin.commands.serve import Runners
from proxy.admin.output import print_error
from proxy.errors import ConfigError, HushError

PROGRAM = "hushql"
OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit(OK)


def build(runners: Runners, profile: Run) -> typer.Typer:
    """The whole command. `runners` come from the composition root, which stands above this package."""
    app = typer.Typer(
        name=PROGRAM,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="Differentially private answers for PostgreSQL clients.",
    )

    @app.callback()
    def options(
        version: Annotated[
            bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
        ] = False,
    ) -> None:
        pass

    serve_commands.register(app, runners)
    profile_command.register(app, profile)
    app.add_typer(policy_commands.app_of(runners.check_data), name="policy")
    app.add_typer(user_commands.app, name="user")
    app.add_typer(ledger_commands.app, name="ledger")
    app.add_typer(data_commands.app, name="data")
    app.command("demo-data")(demo_data)
    app.command("randomize")(randomize)
    return app


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run one command line; its exit status. Only our own bugs leave as exceptions."""
    command = typer.main.get_command(app)
    _hide_types_of_flags(command)
    try:
        status = command.main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except HushError as error:
        print_error(error)
        return MISUSED if isinstance(error, ConfigError) else FAILED
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as end:  # how the printing of completion scripts ends
        return end.code if isinstance(end.code, int) else OK
    except typer.TyperException as error:
        return _misused(error)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output is gone; Python would complain once more at exit
        return FAILED
    return status if isinstance(status, int) else OK


def _hide_types_of_flags(command: object) -> None:
    """Options without a value are shown without a type in the help."""
    assert isinstance(command, (TyperCommand, TyperGroup))  # typer's own base class of both has no public name
    for option in command.get_params(typer.Context(command)):
        if isinstance(option, TyperOption) and option.is_flag:
            option.metavar = ""
    for inner in command.commands.values() if isinstance(command, TyperGroup) else ():
        _hide_types_of_flags(inner)


def _misused(error: typer.TyperException) -> int:
    """Wrong arguments: one line, with where help is. Help that was asked for by giving none is printed already."""
    words = " ".join(error.format_message().split()).replace("Value error, ", "")
    command = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)  # typer keeps its context to itself
    if words:
        end = "" if words[-1] in ".?" else "."
        typer.echo(f"{PROGRAM}: {words}{end} Try '{command} --help'.", err=True)
    return MISUSED
