"""What is shown where rows themselves are asked for and the policy answers with made-up ones?

Nothing is charged: what is shown is a function of the policy and of public rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from proxy.pipeline.statements import Understood
from proxy.policy.made_up import DrawnFrom, MadeColumn, made_up
from proxy.session.answering.spliced import spliced, without_schemas
from proxy.session.contract import Notice, Spliced
from proxy.session.dataset import Version
from proxy.sql.query.front.made_tables import DrawnKey, made_table
from proxy.sql.query.front.splice import InjectedColumn
from proxy.sql.query.probe import Probe

MADE_UP = Notice(
    severity="NOTICE", sqlstate="00000", message="these rows are made up from the policy: nothing in them is private",
    detail="Nothing is charged. Aggregates, such as count(*), are answered from the private rows, with noise.",
)  # fmt: skip


def made_up_rows(handle: Understood, query: Probe, version: Version, login: str, count: int) -> Spliced:
    """The statement over made-up rows. count: of the client's parameters.

    Claim: a function of the statement, the policy's text, its data version and the tables that the login may see.
    """
    visible, patches = version.visible_tables(login), []
    for place in query.tables:
        made = made_up(version.policy, visible, place.table.name)
        columns = [InjectedColumn(m.column.name, m.column.type, m.values) for m in made]
        patches.append(made_table(place, columns, tuple(_drawn(made))))
    return spliced(handle, (*patches, *without_schemas(query)), count, (MADE_UP,))


def _drawn(made: Sequence[MadeColumn]) -> list[DrawnKey]:
    return [
        DrawnKey(m.column.name, m.source.table, m.source.column, m.source.places)
        for m in made if isinstance(m.source, DrawnFrom)
    ]  # fmt: skip


def said_of_made_up(lines: Sequence[str], *, is_json: bool) -> list[str]:
    """The privacy plan of such a statement, which releases nothing."""
    if is_json:
        return [json.dumps([{"made_up": True, **plan} for plan in json.loads(line)], indent=2) for line in lines]
    return [f"Rows: {MADE_UP.message}", *lines]
