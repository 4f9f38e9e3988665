"""Does `hushql policy init` propose what keys and constraints say, and leave to people what they do not?"""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import duckdb
import pytest

from proxy.admin.proposing.guesses import Guess, NoGuess, guess_of
from proxy.engines.described import FoundColumn
from proxy.policy.load import load_policy
from proxy.policy.model import (
    Bounded,
    EpsilonLimit,
    Listed,
    Policy,
    PostgresSource,
    RowUnit,
    UnitColumns,
    UnitVia,
    Unknown,
)
from proxy.sqltypes import SqlType
from tests.e2e.strange_data import MUSIC, write_baseball, write_flights
from tests.postgres_server import private_server
from tests.unit.admin.command_line import CommandLine

_COMMON = """
create schema crm;
create type plan as enum ('free', 'it''s: pro');
create table crm."Customers" (id int primary key, age int check (age between 0 and 110), plan plan not null,
  "Odd Name" text, born date check (born >= date '1900-01-01' and born <= date '2029-12-31'), ok boolean, note text,
  height real, score int check (score > 0 and score < 10));
create table stores (store_id int primary key, region text check (region in ('north', 'south')));
create table orders (order_id bigint primary key, customer_id int not null references {customers},
  referrer int references {customers}, store_id int references stores, amount numeric(10, 2) check (amount >= 0),
  status varchar not null check (status in ('paid', 'refunded')), "at" timestamp);
create table items (order_id bigint references orders, line smallint check (line between 1 and 8), price float8,
  primary key (order_id, line));
create table profiles (customer_id int primary key references {customers}, bio text);
create table log ("at" timestamp, what text);
"""
# DuckDB's foreign keys stay in one schema
_DUCKDB = _COMMON.replace('crm."Customers"', '"Customers"').format(customers='"Customers"')
_POSTGRES = _COMMON.format(customers='crm."Customers"') + """
create extension if not exists citext;
create domain percent as numeric check (value >= 0);
create domain share as percent check (value <= 100);
create table crm.members (id int primary key references crm."Customers", share share, mail citext, tags text[],
  "A" int, a int);
create table "pg_table.of ours" (customer int references crm."Customers");
create table secret (id int primary key);
create table beside (id int references secret, ok boolean);
create table lots (lot int, batch int, order_id bigint references orders, primary key (lot, batch));
create table parts (part int primary key, lot int, batch int, foreign key (lot, batch) references lots);
create table pieces (part int references parts, weight float8);
create view crm.totals as select customer_id, sum(amount) as total from orders group by 1;
create materialized view of_views as select total from crm.totals, stores;
create role looker login;
grant usage on schema crm to looker;
grant select on all tables in schema public, crm to looker;
revoke select on secret from looker;
"""  # fmt: skip


def _made(command: CommandLine, out: Path, *arguments: str, environment: dict[str, str] | None = None) -> Policy:
    assert command("policy", "init", "--out", str(out), *arguments) == 0, command.err
    return load_policy(out.read_text(encoding="utf-8"), filename=str(out), environment=environment or {})


def _check_shop(policy: Policy) -> None:
    assert set(policy.tables) >= {"customers", "orders", "items", "profiles"}
    assert not {"stores", "log", "secret"} & set(policy.tables)
    customers = policy.tables["customers"]
    assert customers.ownership == UnitColumns(("id",))
    assert customers.unit_unique
    domains = {c.name: (c.domain, c.nullable) for c in customers.columns}
    assert domains["age"] == (Bounded(0, 110), True)
    assert domains["score"] == (Bounded(1, 9), True)
    assert domains["plan"] == (Listed(("free", "it's: pro")), False)
    assert isinstance(domains["born"][0], Bounded)
    assert domains["height"] == (Bounded(0.0, 300.0), True)  # guessed
    assert not {"Odd Name", "odd name", "note"} & set(domains)  # texts that nobody listed wait for a person
    orders = policy.tables["orders"]
    assert orders.ownership == UnitColumns(("customer_id",))
    assert not orders.unit_unique
    assert {(j.column, j.table) for j in orders.joins} == {("customer_id", "customers"), ("referrer", "customers")}
    assert {c.name for c in orders.columns if c.key} == {"order_id", "customer_id", "referrer"}
    items = policy.tables["items"]
    assert items.ownership == UnitVia("orders", "order_id", "order_id")
    assert {c.name: c.domain for c in items.columns if not c.key} == {"line": Bounded(1, 8), "price": Unknown()}
    assert policy.tables["profiles"].unit_unique


def test_a_duckdb_file_is_proposed_by_its_keys(command: CommandLine, tmp_path: Path) -> None:
    data, out = tmp_path / "my shop.duckdb", tmp_path / "made" / "shop.yaml"
    out.parent.mkdir()
    with duckdb.connect(str(data)) as connection:
        connection.execute(_DUCKDB)
        connection.execute("insert into stores values (7, 'north')")
    policy = _made(command, out, "--from", str(data))
    _check_shop(policy)
    assert policy.dataset == "my_shop"
    assert policy.privacy.unit == "customer"
    text = out.read_text(encoding="utf-8")
    decisions = text.count("# DECIDE: ")
    assert decisions <= 10
    assert decisions == int(command.err.split(" decisions")[0].rpartition(" ")[2])
    assert "one of them can be protected" in text  # orders.referrer
    assert "a CHECK says at least 0" in text
    assert '#   store_id: "stores.store_id" # when that table is opened below' in text
    assert "unit: customers.id: customer is a word for people, 3 other tables lead to it" in command.err
    assert "line 11: who is protected?" in command.err
    assert command("policy", "check", str(out)) == 0
    assert f"{decisions} decisions are still yours: look for DECIDE, first in line 11\n" in command.out
    assert command("policy", "init", "--from", str(data), "--out", str(out)) == 2
    assert "exists" in command.err
    other = _made(command, out, "--force", "--from", str(data), "--unit", "stores", "--dataset", "shops")
    assert (other.dataset, set(other.tables)) == ("shops", {"stores", "orders", "items"})


def test_a_postgres_server_is_proposed_as_its_login_sees_it(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = private_server()
    server.create("init shop", _POSTGRES)
    dsn = server.dsn("init shop", "looker")
    monkeypatch.setenv("HERE", dsn)
    out = tmp_path / "p.yaml"
    policy = _made(command, out, "--from", "${HERE}", environment={"HERE": dsn})
    _check_shop(policy)
    assert policy.source == PostgresSource(dsn)
    assert policy.tables["customers"].relation == ("crm", "Customers")
    assert policy.tables["t_pg_table_of ours"].ownership == UnitColumns(("customer",))
    members = {c.name: c.domain for c in policy.tables["members"].columns}
    assert members == {"id": Unknown(), "share": Bounded(0, 100), "A": Unknown()}
    text = out.read_text(encoding="utf-8")
    for words in ("mail: citext cannot be served", "tags: text[] cannot be served", "a: another column has this name"):
        assert words in text
    assert not {"beside", "parts", "pieces", "totals", "of_views"} & set(policy.tables)
    for words in (
        "# totals: a view of orders, and no key says", '#   relation: "crm.totals"\n  #   unit: customer_id',
        "# of_views: a view of orders, stores, and", "# But only if each row is made of that unit's rows alone",
        "# parts: it refers to lots by lot and batch, a way that no policy can take",
        "# pieces: it refers to parts, of which it is not known whose rows they are",
        "# beside: it refers to public.secret, which this login may not read", '# pieces:\n  #   unit: "?"',
        "# stores:\n  #   public: true",
    ):  # fmt: skip
        assert words in text
    assert text.count("public: true") == 2  # stores and the log, to which nobody's rows are tied
    assert "host=" not in text
    for name in ("crm.Customers", "crm.Customers.id"):  # as PostgreSQL calls it, beside the policy's own name
        assert command("policy", "init", "--from", dsn, "--unit", name) == 0
        assert "# customers are, and" in command.out
    assert command("policy", "init", "--from", f"{dsn} password=hunter2") == 0
    assert 'dsn: "${INIT_SHOP_DSN}" # DECIDE' in command.out
    assert "hunter2" not in command.out + command.err


def test_files_say_names_and_a_person_says_whose_rows_they_are(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("patient,ward\nsecret-1,A\n", encoding="utf-8")
    stays = tmp_path / "stays.parquet"
    duckdb.execute(f"copy (select 1 as patient, true as ok, 1.5::double as weight) to '{stays}'")
    files = ["--from", str(tmp_path / "visits.csv"), "--from", str(stays)]
    assert command("policy", "init", *files) == 2
    assert "no table can be told" in command.err
    policy = _made(command, tmp_path / "p.yaml", *files[2:], "--unit", "stays.patient")
    assert policy.privacy.unit == "patient", "stays of one patient are those of one unit, which has that name"
    assert "all rows with the same value are of one." in (tmp_path / "p.yaml").read_text()
    assert policy.tables["stays"].ownership == UnitColumns(("patient",))
    # of CSV the rows alone know the types, and they are not read: texts that are no unit of the other's kind
    assert command("policy", "init", *files, "--unit", "visits.patient") == 0
    assert "# stays: it has patient as the unit is called, of another type" in command.out
    assert "public: true" not in command.out
    assert "    # stays: " in command.out
    assert "1 table of visits" in command.err
    assert "still to be decided" not in command.err
    assert "secret-1" not in command.out + command.err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--from", "nowhere.duckdb"], "is no file, and no connection string either"),
        (["--from", "a.csv", "--from", "b.duckdb"], "several sources can only be CSV and Parquet files"),
        (["--from", "a.csv", "--from", "x/A.csv"], "a.csv is no file"),
        (["--from", "some.parquet"], "cannot be read as Parquet"),
        (["--from", "${NOT_THERE}"], "environment variable NOT_THERE is not set"),
        (["--from", "postgres://u:secret@[x"], "the connection string cannot be read"),
        (["--from", "host=127.0.0.1 port=1 password=secret dbname=x"], "cannot be read: Connection refused"),
        (["--from", "no.duckdb"], "cannot be opened as a DuckDB database"),
        (["--from", "empty.duckdb"], "no table is there"),
        (["--from", "some.duckdb", "--unit", "b"], "there is no table b"),
        (["--from", "some.duckdb", "--unit", "c.b.x"], "there is no table c.b.x, and no table c.b with a column x"),
        (["--from", "some.duckdb", "--unit", "a"], "table a has no primary key"),
        (["--from", "some.duckdb", "--unit", "a.z"], "table a has no column z"),
        (["--from", "one.csv", "--from", "x/one.csv"], "two files have one name"),
    ],
)
def test_what_cannot_be_proposed_is_said(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("no.duckdb", "some.parquet"):
        (tmp_path / name).write_text("no database", encoding="utf-8")
    (tmp_path / "x").mkdir()
    for name in ("one.csv", "x/one.csv"):
        (tmp_path / name).write_text("a\n1\n", encoding="utf-8")
    for name, script in (("empty", "select 1"), ("some", "create table a (x int)")):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as connection:
            connection.execute(script)
    assert command("policy", "init", *arguments) == 2
    assert words in command.err
    assert "secret" not in command.err


def test_a_difference_is_shown_in_words(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    old, new = tmp_path / "kept" / "old.yaml", tmp_path / "new.yaml"
    text = (Path(__file__).parents[3] / "policies" / "shop.yaml").read_text(encoding="utf-8")
    old.write_text(text, encoding="utf-8")
    new.write_text(text, encoding="utf-8")
    assert command("policy", "diff", str(old), str(new)) == 0
    assert command.out == "The two mean the same.\n"
    new.write_text(text.replace("epsilon: 20", "epsilon: 5"), encoding="utf-8")
    assert command("policy", "diff", str(old), str(new)) == 0
    assert "closes   budgets.dataset  epsilon 20 becomes epsilon 5" in command.out
    assert command("policy", "diff", "--json", str(new), str(old)) == 1
    assert '"effect": "opens"' in command.out
    new.write_text(text.replace("epsilon: 20", "epsilon: many"), encoding="utf-8")
    assert command("policy", "diff", str(old), str(new)) == 2  # neither opens nor closes
    assert "new.yaml:" in command.err


def test_a_database_without_keys_is_proposed_in_few_decisions(command: CommandLine, tmp_path: Path) -> None:
    write_baseball(tmp_path / "baseball.duckdb")
    policy = _made(command, tmp_path / "p.yaml", "--from", str(tmp_path / "baseball.duckdb"))
    assert int(command.err.split(" decisions")[0].rpartition(" ")[2]) <= 10
    assert "taken as the unit: people.playerid: people is a word for people, 2 other tables lead to it" in command.err
    assert "does playerid say whose rows of batting they are?" in command.err
    assert {n: t.ownership for n, t in policy.tables.items()} == dict.fromkeys(
        ("batting", "people", "salaries"), UnitColumns(("playerid",))
    )
    assert policy.tables["people"].relation == ("main", "People")
    assert [n for n, t in policy.tables.items() if t.unit_unique] == ["people"]
    people = {c.name: c.domain for c in policy.tables["people"].columns}
    assert people["birthyear"] == Bounded(1850, 2050)
    assert people["birthmonth"] == Bounded(1, 12)
    assert people["birthcountry"] == Unknown()
    assert not {"namefirst", "namelast"} & set(people), "texts that may name somebody wait for a person"
    text = (tmp_path / "p.yaml").read_text()
    assert "birthyear: {type: bigint, bounds: [1850, 2050]} # guessed: a year" in text
    assert "# later: bounds: [low, high], from what is known, for sums of stint, g, ab, r, h, 2b, hr, rbi\n" in text
    assert policy.tables["batting"].column("2b") is not None


def test_a_shop_has_its_customers_protected_and_not_its_employees(command: CommandLine, tmp_path: Path) -> None:
    server = private_server()
    server.create("init music", MUSIC)
    policy = _made(command, tmp_path / "p.yaml", "--from", server.dsn("init music"))
    assert set(policy.tables) == {"customer", "invoice", "invoiceline"}
    assert policy.tables["customer"].relation == ("public", "Customer")
    assert "could be the unit: employee.EmployeeId: employee is a word for staff" in command.err
    text = (tmp_path / "p.yaml").read_text()
    assert '#   TrackId: "track.TrackId" # when that table is opened below' in text
    assert "# employee:\n" not in text, "rows of people are not proposed as public"
    assert int(command.err.split(" decisions")[0].rpartition(" ")[2]) <= 10
    opened = text.replace("  # track:\n", "  track:\n").replace("    #   TrackId:", "      TrackId:")
    head, _, tail = opened.partition("  track:\n")
    block, gap, rest = tail.partition("\n\n")
    opened = f"{head}  track:\n{block.replace('  #   ', '    ')}{gap}{rest}"
    assert load_policy(opened, filename="p.yaml", environment={}).tables["track"].is_public


def test_each_row_can_be_a_person(command: CommandLine, tmp_path: Path) -> None:
    write_flights(tmp_path / "flights.parquet")
    files = ["--from", str(tmp_path / "flights.parquet")]
    assert command("policy", "init", *files) == 2
    assert "or --unit row, if each row is a person. Tables: flights." in command.err
    policy = _made(command, tmp_path / "p.yaml", *files, "--unit", "row")
    assert policy.privacy.unit == "row"
    assert policy.tables["flights"].ownership == RowUnit()
    named = _made(command, tmp_path / "p.yaml", "--force", *files, "--unit", "flights.tailnum")
    assert named.tables["flights"].ownership == UnitColumns(("tailnum",))
    hour = named.tables["flights"].column("hour")
    assert hour is not None
    assert hour.domain == Bounded(0, 24)


def test_a_view_is_left_out_where_each_row_is_a_person(command: CommandLine, tmp_path: Path) -> None:
    server = private_server()
    server.create("init rows", "create table answers (age int, yes boolean); create view v as select * from answers")
    policy = _made(command, tmp_path / "p.yaml", "--from", server.dsn("init rows"), "--unit", "row")
    assert set(policy.tables) == {"answers"}
    assert (
        "# v: a view, of which one row may tell of many rows, so it is left out." in (tmp_path / "p.yaml").read_text()
    )


def test_at_a_terminal_the_first_decisions_are_asked(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_baseball(tmp_path / "b.duckdb")
    monkeypatch.setattr("sys.stdin", _Typed("batting.playerid\n30\n-1\n5\n\n"))
    policy = _made(command, tmp_path / "p.yaml", "--from", str(tmp_path / "b.duckdb"))
    assert "Give a number above zero." in command.err
    assert (policy.budgets.dataset, policy.budgets.user) == (EpsilonLimit(30.0), EpsilonLimit(5.0))
    monkeypatch.setattr("sys.stdin", _Typed(""))
    assert command("policy", "init", "--from", str(tmp_path / "b.duckdb"), "--out", str(tmp_path / "q.yaml")) == 130
    assert not (tmp_path / "q.yaml").exists()
    _made(command, tmp_path / "q.yaml", "--from", str(tmp_path / "b.duckdb"), "--yes")


class _Typed(StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "name, kind, low, high",
    [
        ("age", SqlType.INT4, "0", "120"), ("birthYear", SqlType.INT2, "1850", "2050"),
        ("yearID", SqlType.INT8, "1850", "2050"),
        ("Lat", SqlType.FLOAT8, "-90", "90"), ("tax_pct", SqlType.NUMERIC, "0", "100"),
        ("date_of_birth", SqlType.DATE, "1900-01-01", "2035-12-31"),
    ],
)  # fmt: skip
def test_a_name_that_everybody_knows_gives_bounds(name: str, kind: SqlType, low: str, high: str) -> None:
    guess = guess_of(FoundColumn(name=name.lower(), called=name, stated_type="", type=kind))
    assert isinstance(guess, Guess)
    assert (guess.low, guess.high, guess.type) == (low, high, kind)


@pytest.mark.parametrize(
    "name, kind",
    [
        ("mileage", SqlType.INT4),
        ("usage", SqlType.INT4),
        ("age", SqlType.TEXT),
        ("shipped", SqlType.DATE),
        ("", SqlType.INT4),
    ],
)
def test_other_names_give_none(name: str, kind: SqlType) -> None:
    assert guess_of(FoundColumn(name=name, stated_type="", type=kind)) == NoGuess()


def test_a_spark_server_is_no_source(command: CommandLine) -> None:
    assert command("policy", "init", "--from", "sc://lake:15002") == 2
    assert "policy init reads no Spark server" in command.err
