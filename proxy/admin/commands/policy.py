"""Is a policy file right, what may stand in one, what does a change of it mean? The commands of `hushql policy`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path as FilePath
from typing import Annotated

import typer

from proxy.admin.commands.init import init
from proxy.admin.commands.try_queries import try_queries
from proxy.admin.files import read_policy, read_text
from proxy.admin.kept_policies import kept_policies, kept_text
from proxy.admin.ledger_place import InFiles, LedgerOption, LedgerPlace, StateOption, foretell, place_of
from proxy.admin.local_words import local_lines
from proxy.admin.output import print_error, print_json, print_table
from proxy.admin.profiles.file import path_of, read_profiles
from proxy.admin.proposing.text import MARK
from proxy.dp.accounting import epsilon_spent, questions_held, usual_epsilon
from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger.lifetime import worst_case_lines
from proxy.ledger.restated import overspent_lines, restated_lines
from proxy.plan.profile.learned import without_limit
from proxy.policy.diff import Effect, diff
from proxy.policy.document import schema
from proxy.policy.figures import figure
from proxy.policy.load import load_policy
from proxy.policy.model import EpsilonLimit, Policy, ProfileUse
from proxy.policy.pledge import pledge_of
from proxy.policy.problems import FileProblems, Path
from proxy.policy.users import users_schema
from proxy.session.dataset import dataset_account

#: What is wrong with the data of a policy, given its users file.
CheckData = Callable[[Policy, FilePath], tuple[str, ...]]


def app_of(check_data: CheckData) -> typer.Typer:
    """The commands. check_data comes from the composition root, which stands above this package."""
    app = typer.Typer(no_args_is_help=True, help="Make, check, try and compare policy files.")
    app.command("init")(init)
    _register_check(app, check_data)
    app.command("try")(try_queries)
    app.command("diff")(compare)
    app.command("schema")(print_schema)
    app.command("history")(history)
    app.command("show")(show)
    return app


def _register_check(app: typer.Typer, check_data: CheckData) -> None:
    @app.command("check")
    def check(
        files: Annotated[list[FilePath], typer.Argument(metavar="FILE", help="Policy files.", show_default=False)],
        as_json: Annotated[bool, typer.Option("--json", help="Print findings as JSON.")] = False,
        state: StateOption = None,
        ledger: LedgerOption = "",
        data: Annotated[
            bool, typer.Option("--data", help="Look at logins and data as a start would, without serving.")
        ] = False,
        users: Annotated[
            FilePath | None,
            typer.Option("--users", metavar="FILE", help="Logins for --data.", show_default="each policy's users_file"),
        ] = None,
    ) -> None:
        """Say everything that is wrong with policy files. Exit status 1 if anything is.

        With --state or --ledger also what becomes of what was spent there; a promise that cannot be made any more is
        wrong. With --data also whether the data keep what the policy declares: for administrators, since that may
        depend on private rows.
        """
        findings = [_check(path, [place_of(state, ledger)] if state or ledger else []) for path in files]
        if data:
            findings = [_with_data(finding, users, check_data) for finding in findings]
        _print_findings(findings, as_json=as_json)


def _with_data(finding: _Finding, users: FilePath | None, check_data: CheckData) -> _Finding:
    """A finding with what is wrong with the data, if the policy itself is right."""
    if finding.problems:
        return finding
    path = FilePath(finding.file)
    policy = read_policy(path, os.environ)
    said = check_data(policy, FilePath(policy.users_file) if users is None else users)
    faults = tuple(_Fault(line=0, path=(), message=words, text=f"{path}: {words}") for words in said)
    summary = f"{finding.summary}\nthe data keep what is declared, the logins are right, the public PostgreSQL starts"
    return _Finding(finding.file, faults, "" if faults else summary)


def _print_findings(findings: Sequence[_Finding], *, as_json: bool) -> None:
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            for line in finding.problems:
                typer.echo(line.text, err=True)
            if finding.summary:
                typer.echo(finding.summary)
    if any(finding.problems for finding in findings):
        raise typer.Exit(1)


def compare(
    old: Annotated[
        FilePath,
        typer.Argument(metavar="OLD", help="The policy as it was; NEW if it is the only one.", show_default=False),
    ],
    new: Annotated[
        FilePath | None, typer.Argument(metavar="NEW", help="The policy as it is to be.", show_default=False)
    ] = None,
    state: StateOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print changes as JSON.")] = False,
) -> None:
    """Say in words what a change opens to clients and what it closes. Exit status 1 if it opens anything.

    With one policy and --state, that policy is compared with what the proxy of the state directory has in force.
    """
    if new is None and state is None:
        raise ConfigError("one policy alone has nothing to be compared with", hint="Give OLD and NEW, or --state.")
    file = old if new is None else new
    try:
        after = read_policy(file, os.environ)
        before = _in_force(state, after, file) if new is None and state is not None else _as_it_was(old, file)
    except FileProblems as problems:
        print_error(problems)
        raise typer.Exit(2) from None  # 1 says that something opens
    changes = diff(before, after)
    if as_json:
        print_json([{**asdict(change), "effect": change.effect.value} for change in changes])
    elif changes:
        print_table(("effect", "where", "what"), [(c.effect.value, c.where, c.words) for c in changes])
    else:
        typer.echo("The two mean the same.")
    if any(change.effect is Effect.OPENS for change in changes):
        raise typer.Exit(1)


def _as_it_was(old: FilePath, new: FilePath) -> Policy:
    read_policy(old, os.environ)  # names the file in what is wrong with it
    as_if_beside = str(new.parent / old.name)  # an old copy kept elsewhere means the same files
    return load_policy(read_text(old, "policy"), filename=as_if_beside, environment=os.environ)


def _in_force(state: FilePath, after: Policy, new: FilePath) -> Policy:
    """What the proxy of a state directory took last of the same dataset: it serves that until it takes another."""
    kept = [one for one in kept_policies(state) if one.dataset == after.dataset]
    if not kept:
        raise ConfigError(f'the proxy of {state} has taken no policy of the dataset "{after.dataset}"')
    return load_policy(read_text(kept[-1].path, "policy"), filename=str(new), environment=os.environ)


def print_schema(
    users: Annotated[bool, typer.Option("--users", help="Of users files instead.")] = False,
) -> None:
    """Print the JSON Schema of policy files, for editors that complete and check YAML."""
    print_json(users_schema() if users else schema())


StateDirectory = Annotated[
    FilePath, typer.Option("--state", metavar="DIR", help="State directory of the proxy.", envvar="HUSHQL_STATE")
]


def history(
    state: StateDirectory,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the versions of policies that a proxy has taken, each with its time and the hash of its text."""
    rows = [(one.dataset, one.at.isoformat(timespec="seconds"), one.digest[:12]) for one in kept_policies(state)]
    if as_json:
        print_json([dict(zip(("dataset", "at", "digest"), row, strict=True)) for row in rows])
    else:
        print_table(("dataset", "taken", "digest"), rows)


def show(
    digest: Annotated[str, typer.Argument(metavar="DIGEST", help="As `history` prints it.", show_default=False)],
    state: StateDirectory,
) -> None:
    """Print the text of a version that a proxy has taken."""
    typer.echo(kept_text(kept_policies(state), digest), nl=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    line: int
    path: Path
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class _Finding:
    file: str
    problems: tuple[_Fault, ...]
    summary: str


def _check(path: FilePath, books: Sequence[LedgerPlace]) -> _Finding:
    """Problems, or a summary if there are none. books: where the dataset's charges are kept, if that is looked at."""
    try:
        policy = read_policy(path, os.environ)
    except FileProblems as error:
        faults = [_Fault(line=p.line, path=p.path, message=p.message, text=p.render(str(path))) for p in error.problems]
        return _Finding(str(path), tuple(faults), "")
    except ConfigError as error:
        return _Finding(str(path), (_Fault(line=0, path=(), message=error.message, text=error.message),), "")
    try:
        said = [line for place in books for line in (*_of_books(policy, place), *_told_by_profiles(policy, place))]
    except LedgerFailed as error:
        fault = _Fault(line=0, path=(), message=error.message, text=f"{path}: {error.text()}")
        return _Finding(str(path), (fault,), "")
    lines = (_summary(policy), *local_lines(policy), *_left_to_profiles(policy), _questions(policy),
             *worst_case_lines(policy), *said, *_open_decisions(path))  # fmt: skip
    return _Finding(str(path), (), "\n".join(lines))


def _of_books(policy: Policy, place: LedgerPlace) -> Iterator[str]:
    """What becomes of what was spent. Raises LedgerFailed if the policy promises what cannot be promised any more."""
    try:
        restated = foretell(place, pledge_of(policy), dataset_account(policy))
    except ConfigError as error:
        yield f"{error.message}: nothing was spent"
        return
    yield from restated_lines(restated, policy.privacy)
    yield from overspent_lines((restated.balance,), policy.privacy)


def _told_by_profiles(policy: Policy, place: LedgerPlace) -> list[str]:
    """What a login learns beside its account, or pays for. Raises ConfigError if the file of profiles is damaged."""
    if not isinstance(place, InFiles):
        return []
    profiles, said = read_profiles(path_of(place.directory, policy.dataset), policy)
    if not profiles:
        return list(said)
    privacy, names = policy.privacy, ", ".join(p.table for p in profiles)
    whole = figure(epsilon_spent(privacy, sum(p.all_pico for p in profiles)))
    if privacy.profile is ProfileUse.KNOWN:
        beside = f"profiles of {names}: what a login learns is its own account plus epsilon {whole} of these"
        return [*said, f"{beside}, paid for by the dataset alone"]
    each = "; ".join(
        f"{p.table} {figure(epsilon_spent(privacy, sum(one.request.cost.pico for one in p.paid)))}" for p in profiles
    )
    return [*said, f"profiles are charged to each login, session and role that asks: epsilon of {each}, once"]


def _left_to_profiles(policy: Policy) -> list[str]:
    """Tables without a bound of rows."""
    names = ", ".join(without_limit(policy.tables))
    words = f"no max_rows_per_unit: {names}; answered once hushql profile has told how many rows units have"
    return [words] if names else []


def _open_decisions(path: FilePath) -> list[str]:
    """What `policy init` left to the administrator and is still marked."""
    marked = [n for n, line in enumerate(read_text(path, "policy").splitlines(), start=1) if f"# {MARK}" in line]
    return [f"{len(marked)} decisions are still yours: look for {MARK}, first in line {marked[0]}"] if marked else []


def _questions(policy: Policy) -> str:
    """What a question costs that says no epsilon, and how many of them each account holds."""
    named = ((f.name, getattr(policy.budgets, f.name)) for f in fields(policy.budgets))
    accounts = ((name, limit.epsilon) for name, limit in named if isinstance(limit, EpsilonLimit))
    held = (
        f"{name} of epsilon {figure(epsilon, 6)} holds {questions_held(policy.privacy, epsilon):,}"
        for name, epsilon in accounts
    )
    usual = figure(usual_epsilon(policy.privacy), 6)
    return f"a question without an epsilon of its own costs {usual}: {', '.join(held)}"


def _summary(policy: Policy) -> str:
    private = len(policy.private_tables())
    local = sum(t.is_local for t in policy.tables.values())
    local_words = f", {local} local" if local else ""
    limit = policy.budgets.dataset
    budget = figure(limit.epsilon, 6) if isinstance(limit, EpsilonLimit) else "unlimited"
    return (
        f"{policy.dataset}: {private} private{local_words} and {len(policy.tables) - private - local} public tables, "
        f"epsilon {budget} at delta {policy.privacy.delta:g}, digest {policy.digest[:12]}"
    )
