"""Can the rights of each role be kept? Asked before a role is served.

Reads the policy and the users file, no data. A condition that cannot be planned would refuse every statement about its
table, in words that may name what the role must not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from proxy.dp.accounting import usual_epsilon
from proxy.errors import ConfigError, HushError
from proxy.front.relations import RELATIONS
from proxy.pipeline.alone import read_alone
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.plans import Task, plan_statement
from proxy.pipeline.premises import Premises, Terms, as_declared
from proxy.pipeline.settings import check_setting
from proxy.pipeline.statements import Understood
from proxy.plan.profile.learned import without_limit
from proxy.policy.model import Policy, Role, Users
from proxy.policy.rights import column_problems, tables_of
from proxy.sql.algebra.constants import Constants, Unread, not_understood
from proxy.sql.render.dialect import quote


def check_roles(policy: Policy, users: Users) -> None:
    """Whether the columns, conditions and settings of roles fit a policy. Raises ConfigError with all that is wrong."""
    found = [problem for role in users.roles.values() for problem in _problems(role, policy)]
    if found:
        raise ConfigError("\n".join(found), hint="Correct the users file.")


def _problems(role: Role, policy: Policy) -> Iterator[str]:
    yield from column_problems(role, policy.tables)
    for name, value in role.settings.items():
        try:
            check_setting(name, value, policy.privacy)
        except HushError as error:
            yield f"roles.{role.name}.settings: {error.text()}"
    for table in policy.tables.values():
        if table.name not in role.rows:
            continue
        where = f"roles.{role.name}.rows.{table.name}"
        if table.shows_rows:
            yield f"{where}: rows of this table are shown as they are; leave it out of the role's tables"
        elif without_limit({table.name: table}):
            yield f"{where}: write max_rows_per_unit at the table; a profile tells of all its rows and is not used"
        else:
            yield from _of_condition(table.name, where, role, policy)


def _of_condition(name: str, where: str, role: Role, policy: Policy) -> Iterator[str]:
    """Why not even all rows could be counted; nothing if they could."""
    premises = as_declared(policy, RELATIONS)
    premises = replace(premises, named=tables_of(replace(role, tables=()), premises.tables))
    try:
        _count_rows(name, premises)
    except Unread as unread:
        yield f"{where}: {not_understood(unread).text()}"
    except HushError as error:
        error.position = 0
        yield f"{where}: {error.text()}"


def _count_rows(name: str, premises: Premises) -> None:
    cuts, privacy = Cuts(), premises.privacy
    handle = read_alone(cuts, f"SELECT count(*) FROM {quote(name)}", premises).handle
    assert isinstance(handle, Understood)
    assert isinstance(handle.query, Outline)
    constants = Constants({}, datetime.now(ZoneInfo(privacy.time_zone)))
    terms = Terms(epsilon=usual_epsilon(privacy))
    plan_statement(cuts, Task(query=handle.query, premises=premises, terms=terms, constants=constants))
