"""A dataset unlike the shop, whose names are markup: a wide table, pure accounting, a local table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from tests.clients.console_site import ConsoleSite, console_port
from tests.e2e.served import Document, serving, write_users, write_yaml

#: Short enough for a name; whoever runs it changes the title of the page.
MARKUP = "<img src=x onerror=document.title='evil'>"
SCRIPT = "<script>document.title='evil'</script>"
WIDE = "Überweisungen & <b>Co</b>"
NUMBERS = ("Größe", "Blood Pressure", "重さ", MARKUP, 'quo"ted', "O'Clock", "a\\b", "{{ 7*7 }}", "=1+1", "SELECT")
GROUPS = ("Geschlecht", "ward", SCRIPT, "Δ Group", "per cent %")
VALUES = (MARKUP, "=cmd|' /C calc'!A0", "Zürich 'n' <i>", "-1+1", "名前", "")
DAYS = ("Aufnahme", "entlassen am")
PEOPLE = 400
_LOGINS = {"ann": "analyst", "boss": "boss", "nurse": "nurse"}
_EACH = 25 - len(GROUPS)


def _columns() -> dict[str, Document]:
    """Forty of them, the person's own included."""
    found: dict[str, Document] = {"Patient ID": {"type": "bigint", "key": True}}
    found |= {name: {"type": "double precision", "bounds": [0, 100]} for name in NUMBERS}
    found |= {name: {"type": "text", "values": list(VALUES)} for name in GROUPS}
    found |= {name: {"type": "date", "bounds": ["2024-01-01", "2024-12-31"]} for name in DAYS}
    found |= {f"Feld {i}": {"type": "integer", "bounds": [0, 10]} for i in range(_EACH)}
    return found | {"Notiz": {"type": "text"}, "is Ill?": {"type": "boolean"}}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def write_clinic(path: Path) -> None:
    """Rows by formula, within what the policy declares."""
    columns = _columns()
    kinds = {"double precision": "double", "text": "varchar"}
    made = ", ".join(f"{_quoted(n)} {kinds.get(str(c['type']), c['type'])}" for n, c in columns.items())
    rows = [tuple(_value(name, columns[name], i) for name in columns) for i in range(PEOPLE)]
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"create table wide ({made})")
        connection.executemany(f"insert into wide values ({', '.join('?' * len(columns))})", rows)
        connection.execute("create table coins (person integer, smokes boolean, region varchar)")
        connection.execute("insert into coins select i, i % 3 = 0, 'north' from range(500) t(i)")
        connection.execute("create table wards (name varchar, beds integer)")
        connection.executemany("insert into wards values (?, 3)", [(value,) for value in VALUES])


def _value(name: str, column: Document, i: int) -> object:
    match column["type"]:
        case "double precision":
            return float((i * 7 + len(name)) % 100)
        case "date":
            return f"2024-{1 + i % 12:02d}-11"
        case "boolean":
            return i % 2 == 0
        case "text":
            return VALUES[i % len(VALUES)]
        case "bigint":
            return i
        case _:
            return i % 11


def clinic_policy() -> Document:
    return {
        "version": 1,
        "dataset": "clinic",
        "source": {"engine": "duckdb", "path": "clinic.duckdb", "data_version": "1"},
        "privacy": {"unit": "Patient:in", "accounting": "pure", "neighbors": "replace_one", "query_epsilon": 1.0},
        "budgets": {"dataset": {"epsilon": 500}, "user": {"epsilon": 200}, "session": {"epsilon": 100}},
        "tables": {
            WIDE: {
                "relation": "wide", "unit": "Patient ID", "unit_unique": True, "comment": f"Wide {SCRIPT}",
                "columns": _columns(),
            },
            "Münzen": {
                "relation": "coins", "local": True,
                "columns": {
                    "smokes": {"type": "boolean", "nullable": False, "randomized": {"truth": 0.5, "yes": 0.5}},
                    "region": {"type": "text", "values": ["north", "south"], "nullable": False, "public": True},
                },
            },
            "wards": {"public": True, "columns": {"name": {"type": "text"}, "beds": {"type": "integer"}}},
        },
    }  # fmt: skip


@contextmanager
def clinic_site(folder: Path) -> Iterator[ConsoleSite]:
    """The clinic, served with a console; the role of `nurse` has few columns and rows."""
    write_clinic(folder / "clinic.duckdb")
    users = write_users(folder / "users.yaml", _LOGINS)
    role = (
        f"nurse: {{tables: ['{WIDE}'], columns: {{'{WIDE}': ['Größe', ward]}},"
        f" rows: {{'{WIDE}': '\"Größe\" > 10'}}}}, clerk: {{"
    )
    users.write_text(users.read_text().replace("clerk: {", role))
    policy = write_yaml(folder / "clinic.yaml", clinic_policy())
    with serving(folder, [policy], options=("--console", "127.0.0.1:0")) as running:
        yield ConsoleSite(running, policy, f"http://127.0.0.1:{console_port(running)}")
