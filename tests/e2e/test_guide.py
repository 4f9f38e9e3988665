"""Does everything that the guide shows work as it stands there?

Blocks marked ```sql run on the demo's shop, one session for each block and one login for each page. The last statement
of a block marked ```sql refused <SQLSTATE> must fail with that code, what stands before it must not.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from proxy.admin.demo.data import generate
from proxy.sql.syntax.parse import split_statements
from tests.e2e.served import PASSWORD, ROOT, Client, Served, hushql, read_yaml, serving, write_users, write_yaml

PAGES = ("README.md", *(f"docs/guide/{path.name}" for path in sorted((ROOT / "docs" / "guide").glob("*.md"))))
BUDGETS = {"dataset": {"epsilon": 100_000}, "user": {"epsilon": 1000}, "session": {"epsilon": 5}}
_BLOCK = re.compile(r"^( *)```([^\n`]+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. info: what stands behind the fence, its words."""

    page: str
    line: int
    info: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def login(self) -> str:
        return Path(self.page).stem.lower()

    @property
    def refused(self) -> str:
        """The SQLSTATE of its last statement, "" when it is answered."""
        return self.info[2] if self.info[1:2] == ("refused",) else ""


def blocks(language: str) -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page) if block.info[0] == language]


def blocks_of(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(page, text.count("\n", 0, found.start()) + 1, tuple(found[2].split()), textwrap.dedent(found[3]))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The demo's policy and data, with more budget and fewer customers."""
    folder = tmp_path_factory.mktemp("shop")
    generate(folder / "shop.duckdb", 0.1, lambda _table, _done, _whole: None)
    write_users(folder / "users.yaml", {Path(page).stem.lower(): "analyst" for page in PAGES})
    policy = {**read_yaml(ROOT / "policies" / "shop.yaml"), "budgets": BUDGETS}
    path = write_yaml(folder / "shop.yaml", policy)
    with serving(folder, [path], {"SHOP_DUCKDB": str(folder / "shop.duckdb")}) as running:
        yield running


def run(client: Client, statement: str) -> None:
    with client.cursor() as cursor:
        if not statement.upper().startswith("COPY"):
            cursor.execute(statement.encode())
            return
        with cursor.copy(statement.encode()) as copy:
            assert b"".join(bytes(part) for part in copy)


def test_the_guide_has_examples_of_every_kind() -> None:
    pages = {block.page for block in blocks("sql")}
    assert {"README.md", "docs/guide/client.md", "docs/guide/sql.md"} <= pages
    refused = {block.refused for block in blocks("sql")}
    assert refused >= {"", *(f"DP00{n}" for n in range(1, 8))}, "each error has its example"
    assert all(block.info[0] == "sql" for page in PAGES for block in blocks_of(page) if "SELECT" in block.text
               and block.info[0] not in ("python", "sh"))  # fmt: skip


@pytest.mark.parametrize("block", blocks("sql"), ids=str)
def test_sql(shop: Served, block: Block) -> None:
    *before, last = [statement.text for statement in split_statements(block.text)]
    with shop.connect("shop", block.login) as client:
        for statement in before:
            run(client, statement)
        if not block.refused:
            run(client, last)
            return
        with pytest.raises(psycopg.Error) as refused:
            run(client, last)
    assert refused.value.sqlstate == block.refused
    assert refused.value.diag.message_primary


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python(shop: Served, block: Block) -> None:
    assert "6432" in block.text, "it connects to the demo"
    text = block.text.replace("user=demo password=demo", f"user={block.login} password='{PASSWORD}'")
    text = text.replace("demo:demo@", f"{block.login}:{PASSWORD}@".replace(" ", "%20"))
    exec(compile(text.replace("6432", str(shop.port)), str(block), "exec"), {})


def test_first_policy_works_as_pasted(tmp_path: Path) -> None:
    """The files that the page names behind their fences."""
    for block in blocks_of("docs/guide/policy.md"):
        if len(block.info) == 2 and block.info[0] in ("csv", "yaml"):
            (tmp_path / block.info[1]).write_text(block.text)
    policy, users = tmp_path / "clinic.yaml", tmp_path / "users.yaml"
    checked = hushql("policy", "check", str(policy))
    assert (checked.returncode, checked.stderr) == (0, "")
    added = hushql("user", "add", "alice", "--role", "analyst", "--users", str(users))
    assert added.returncode == 0, added.stderr
    with serving(tmp_path, [policy]) as running, running.connect("clinic", "alice") as client:
        answer = client.execute("SELECT ward, count(*), avg(minutes) FROM visits GROUP BY ward").fetchall()
    assert [ward for ward, _, _ in answer] == ["A", "B", "C", None]


def test_policy_check_opens_no_data(tmp_path: Path) -> None:
    (yaml,) = (block for block in blocks_of("docs/guide/policy.md") if block.info[1:] == ("clinic.yaml",))
    (tmp_path / "clinic.yaml").write_text(yaml.text)
    assert not (tmp_path / "visits.csv").exists()
    assert hushql("policy", "check", str(tmp_path / "clinic.yaml")).returncode == 0
