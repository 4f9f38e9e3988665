"""What do the 22 queries of TPC-H say, and under which limits are they asked?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
POLICY = HERE / "policy.yaml"
TABLES = ("customer", "orders", "lineitem", "part", "supplier", "partsupp", "nation", "region")
_QUERY = re.compile(r"^-- query (\d+): (.*)\n(?:-- with (.*)\n)?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One query. rows, groups: limits set for it, 0 for the policy's. keys: so many columns say which row it is.

    compared: what is compared with the truth, the query itself or a relation that it reads.
    """

    number: int
    name: str
    sql: str
    compared: str
    rows: int
    groups: int
    keys: int

    @property
    def limits(self) -> str:
        """In words."""
        named = ((self.rows, "row", "in a group"), (self.groups, "group", ""))
        return ", ".join(f"{n} {word}{'s' * (n > 1)} {where}".strip() for n, word, where in named if n)


def questions() -> list[Question]:
    """Those of queries.sql, in order."""
    _, *parts = _QUERY.split((HERE / "queries.sql").read_text())
    return [_question(*parts[i : i + 4]) for i in range(0, len(parts), 4)]


def _question(number: str, name: str, conditions: str | None, text: str) -> Question:
    told = dict(c.split(" ") for c in (conditions or "").split(", ") if c)
    sql = text.strip().removesuffix(";")
    compared = sql
    if "of" in told:
        compared = f"{sql[: sql.rindex(f'{chr(10)}SELECT ')]}\nSELECT * FROM {told['of']}"
    return Question(
        number=int(number), name=name, sql=sql, compared=compared, rows=int(told.get("rows", 0)),
        groups=int(told.get("groups", 0)), keys=int(told.get("keys", 0)),
    )  # fmt: skip
