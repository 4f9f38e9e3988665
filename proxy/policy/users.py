"""Which logins and roles does a users file hold, and how is one added or removed?

Text in, values or text out. Edits keep comments and the order of the file. A password never comes here:
the file holds SCRAM verifiers, which no message quotes.
"""

from __future__ import annotations

import base64
import binascii
import io
import posixpath
import re
from collections.abc import Collection
from types import MappingProxyType
from typing import Annotated

from pydantic import BeforeValidator, Field
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from proxy.errors import ConfigError
from proxy.policy.budgets import read_account
from proxy.policy.columns import RESERVED_PREFIXES, check_identifier
from proxy.policy.document import SCHEMA_URL, AccountDocument, Document
from proxy.policy.model import AccountLimit, EpsilonLimit, Login, NoLimit, Refresh, Role, Users
from proxy.policy.outside.document import LdapDocument, TokensDocument, read_ldap, read_tokens
from proxy.policy.outside.logins import NoOutside, Outside
from proxy.policy.problems import Path, ProblemReport, did_you_mean, one_of
from proxy.policy.shape import Shaped, read_shape
from proxy.policy.tree import read_tree

#: Given as `tables` of `load_users` when no policy is at hand to check role's tables against.
UNCHECKED: frozenset[str] = frozenset()

_SECRET_KEYS = frozenset({"scram", "password"})
_RESERVED_NAMES = frozenset({"public", "none", "postgres", "current_role", "current_user", "session_user"})
_VERIFIER = re.compile(
    r"SCRAM-SHA-256\$(?P<iterations>\d{4,8}):(?P<salt>[A-Za-z0-9+/=]+)"
    r"\$(?P<stored>[A-Za-z0-9+/=]+):(?P<server>[A-Za-z0-9+/=]+)"
)
_LEAST_ITERATIONS, _DIGEST_BYTES = 4096, 32


def _empty_if_null(value: object) -> object:
    return {} if value is None else value


def _as_set(value: object) -> object:
    """A plain value as SET takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, (int, float)) else value


class LoginDocument(Document):
    """One login."""

    scram: str = Field(description="SCRAM-SHA-256 verifier, written by `hushql user add`.")
    role: str = Field(description="One of the roles of this file.")
    budget: AccountDocument | None = Field(
        default=None, description="Epsilon of this login in place of the policy's budgets.user."
    )


class RoleDocument(Document):
    """What the logins of a role may see and spend."""

    tables: list[str] | None = Field(
        default=None, min_length=1, description="Tables that exist for the role; all of the policy if left out."
    )
    columns: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(
        default={}, description="Columns that exist for the role, of tables of which it may not read all."
    )
    rows: dict[str, str] = Field(
        default={}, description="Conditions, by table, that rows must pass to exist for the role, as in WHERE."
    )
    settings: dict[str, Annotated[str, BeforeValidator(_as_set)]] = Field(
        default={}, description="What sessions of the role begin with, such as hush.intervals: on."
    )
    admin: bool = Field(default=False, description="Sees the figures of the dataset account.")
    budget: AccountDocument | None = Field(default=None, description="Budget of each login that has none of its own.")
    shared_budget: AccountDocument | None = Field(
        default=None, description="All logins of this role together, in place of the policy's budgets.role."
    )


class UsersDocument(Document):
    """Logins and roles, and who else may log in."""

    users: Annotated[dict[str, LoginDocument], BeforeValidator(_empty_if_null)] = Field(
        default={}, description="Logins by name."
    )
    roles: Annotated[
        dict[str, Annotated[RoleDocument, BeforeValidator(_empty_if_null)]], BeforeValidator(_empty_if_null)
    ] = Field(default={}, description="Roles by name.")
    ldap: LdapDocument | None = Field(default=None, description="A directory whose people may log in too.")
    oauth: TokensDocument | None = Field(default=None, description="An issuer whose tokens let people in too.")


def users_schema() -> dict[str, object]:
    """JSON Schema of a users file, for editors and other checkers."""
    return {"$schema": SCHEMA_URL, **UsersDocument.model_json_schema(), "title": "hushql users file"}


def load_users(text: str, *, filename: str, tables: Collection[str]) -> Users:
    """Read and check a users file. A login's budget is its own, else its role's, else NoLimit: the policy's applies.

    tables: names that roles may list, or UNCHECKED. Raises FileProblems with every problem.
    """
    tree = read_tree(text, filename, {}, secret_keys=_SECRET_KEYS)
    report = tree.report
    shaped = read_shape(tree, UsersDocument)
    if not isinstance(shaped, Shaped):
        report.raise_if_any(filename)
        raise AssertionError("a document without shape has no problem")
    document = shaped.document
    roles = {name: _role(name, role, tables, report) for name, role in document.roles.items()}
    logins: dict[str, Login] = {}
    for name, login in document.users.items():
        path: Path = ("users", name)
        check_login_name(name, path, report)
        _check_verifier(login.scram, (*path, "scram"), report)
        if login.role not in document.roles and not any(cut[:2] == ("roles", login.role) for cut in shaped.cut):
            quoted = report.show((*path, "role"), login.role)
            known = f"{did_you_mean(login.role, roles)}; roles: {one_of(roles) or 'none'}"
            report.add((*path, "role"), f"there is no role {quoted}{known}")
        logins[name] = Login(name=name, scram=login.scram, role=login.role, budget=_budget(login, document, report))
    outside = _outside(shaped, posixpath.dirname(filename), report)
    report.raise_if_any(filename)
    return Users(MappingProxyType(logins), MappingProxyType(roles), outside)


def _outside(shaped: Shaped[UsersDocument], folder: str, report: ProblemReport) -> Outside:
    document = shaped.document

    def is_cut(role: str) -> bool:
        return any(cut[:2] == ("roles", role) for cut in shaped.cut)

    if document.ldap is not None and document.oauth is not None:
        report.add(("oauth",), "a users file has ldap or oauth: a client that is no login of it shows one of both")
    if document.ldap is not None:
        return read_ldap(document.ldap, folder, document.roles, is_cut, report)
    if document.oauth is not None:
        return read_tokens(document.oauth, folder, document.roles, is_cut, report)
    return NoOutside()


def check_login_name(name: str, path: Path, report: ProblemReport) -> None:
    """A login is a role of the front, so PostgreSQL's own names are taken."""
    check_identifier(name, path, report)
    if is_reserved(name):
        report.add(path, "the name is reserved; choose another")


def is_reserved(name: str) -> bool:
    """Whether no login can have the name, since PostgreSQL or the proxy has it."""
    return name.lower() in _RESERVED_NAMES or name.lower().startswith(RESERVED_PREFIXES)


def _role(name: str, document: RoleDocument, tables: Collection[str], report: ProblemReport) -> Role:
    path: Path = ("roles", name)
    check_identifier(name, path, report)
    for i, table in enumerate(document.tables or ()):
        _check_table(table, (*path, "tables", i), tables, report)
    for key, limited in (("columns", document.columns), ("rows", document.rows)):
        if limited and document.admin:
            report.add((*path, key), "an admin reads the whole policy; leave out 'admin' or this")
        for table in limited:
            _check_table(table, (*path, key, table), document.tables or tables, report)
    for table, condition in document.rows.items():
        if not condition.strip():
            report.add((*path, "rows", table), 'expected a condition, such as "store_id IN (1, 2)"')
    shared = document.shared_budget
    return Role(
        name=name,
        tables=tuple(document.tables or ()),
        is_admin=document.admin,
        shared=NoLimit() if shared is None else read_account(shared, (*path, "shared_budget"), report),
        columns=MappingProxyType({table: tuple(names) for table, names in document.columns.items()}),
        rows=MappingProxyType(document.rows),
        settings=MappingProxyType(document.settings),
        budget=NoLimit() if document.budget is None else read_account(document.budget, (*path, "budget"), report),
    )


def _check_table(table: str, here: Path, tables: Collection[str], report: ProblemReport) -> None:
    """Whether a role may name a table. tables: all that it may, UNCHECKED for any."""
    if tables and table not in tables:
        known = sorted(tables)
        report.add(
            here, f"there is no table {report.show(here, table)}{did_you_mean(table, known)}; tables: {one_of(known)}"
        )


def _budget(login: LoginDocument, document: UsersDocument, report: ProblemReport) -> AccountLimit:
    if login.budget is not None:
        name = next(n for n, one in document.users.items() if one is login)
        return read_account(login.budget, ("users", name, "budget"), report)
    role = document.roles.get(login.role)
    if role is None or role.budget is None:
        return NoLimit()
    return read_account(role.budget, ("roles", login.role, "budget"), report)


def _check_verifier(text: str, path: Path, report: ProblemReport) -> None:
    found = _VERIFIER.fullmatch(text)
    if found is None or int(found["iterations"]) < _LEAST_ITERATIONS or not _has_digests(found):
        report.add(path, "expected a SCRAM-SHA-256 verifier; write it with 'hushql user add'")


def _has_digests(found: re.Match[str]) -> bool:
    try:
        sizes = [len(base64.b64decode(found[part], validate=True)) for part in ("stored", "server")]
        return sizes == [_DIGEST_BYTES] * 2 and bool(base64.b64decode(found["salt"], validate=True))
    except binascii.Error:
        return False


# --- edits ------------------------------------------------------------------------------------------

NEW_FILE = """\
# Logins and roles. Written by `hushql user`; keep it readable for its owner alone (mode 0600).
roles: {}
users: {}
"""


def with_login(text: str, login: Login, *, filename: str) -> str:
    """The file with a login added or replaced. A text without roles gets the login's role, which sees everything.

    NoLimit as the login's budget leaves it to the role and the policy. Raises FileProblems if the text is
    wrong before or after.
    """
    document = _editable(text, filename)
    roles = _section(document, "roles")
    if not roles:
        roles[login.role] = CommentedMap()
    entry: dict[str, object] = {"scram": login.scram, "role": login.role}
    if isinstance(login.budget, EpsilonLimit):
        entry["budget"] = _written(login.budget)
    users = _section(document, "users")
    if login.name in users:
        for key in ("scram", "role", "budget"):
            users[login.name].pop(key, None)
        users[login.name].update(entry)
    else:
        users[login.name] = CommentedMap(entry)
    return _checked(document, filename)


def _written(limit: EpsilonLimit) -> dict[str, object]:
    if limit.refresh is Refresh.LIFETIME:
        return {"epsilon": limit.epsilon}
    return {"epsilon": limit.epsilon, "refresh": limit.refresh.value, "acknowledge_lifetime_loss": True}


def without_login(text: str, name: str, *, filename: str) -> str:
    """The file without that login. Raises ConfigError if there is none, FileProblems if the text is wrong."""
    document = _editable(text, filename)
    users = _section(document, "users")
    if name not in users:
        raise ConfigError(f"{filename}: there is no user '{name}'{did_you_mean(name, [str(n) for n in users])}")
    del users[name]
    if not users:
        _empty(document, "users")
    return _checked(document, filename)


def _yaml() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 4096
    return yaml


def _editable(text: str, filename: str) -> CommentedMap:
    """The document for editing; only a file that is right is edited. Raises FileProblems."""
    load_users(text, filename=filename, tables=UNCHECKED)
    found = _yaml().load(text)
    assert isinstance(found, CommentedMap)
    return found


def _section(document: CommentedMap, name: str) -> CommentedMap:
    return document[name] if document.get(name) else _empty(document, name)


def _empty(document: CommentedMap, name: str) -> CommentedMap:
    """A new section in place of an absent or empty one; a comment on its line is not kept."""
    document[name] = CommentedMap()
    document.ca.items.pop(name, None)
    section: CommentedMap = document[name]
    return section


def _checked(document: CommentedMap, filename: str) -> str:
    """The text, read back once, so that an edit never writes a file that cannot be loaded."""
    out = io.StringIO()
    _yaml().dump(document, out)
    text = out.getvalue()
    load_users(text, filename=filename, tables=UNCHECKED)
    return text
