"""Starting and stopping: one clear message for each thing that is wrong, and reloading while clients are connected."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from tests.e2e.served import START_S, Served, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop
from tests.farewell import farewell_of
from tests.faults.nursery import nursery

WAIT_S = 200.0
Complaint = Callable[..., str]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, logins and a policy, ready to be served."""
    folder = tmp_path_factory.mktemp("shop")
    write_shop(folder / "shop.duckdb")
    write_users(folder / "users.yaml", {"ann": "analyst", "boss": "boss"})
    write_yaml(folder / "shop.yaml", shop_policy())
    return folder


@pytest.fixture(scope="module")
def running(shop: Path) -> Iterator[Served]:
    with serving(shop, [shop / "shop.yaml"]) as served:
        yield served


@pytest.fixture
def complaint(tmp_path: Path) -> Complaint:
    """What a start that fails says: nothing on standard output, one message, no trace."""

    numbers = count()

    def told(policy: Path, state: Path, listen: str = "127.0.0.1:0", *more: str) -> str:
        number = next(numbers)
        log, output = tmp_path / f"log-{number}", tmp_path / f"output-{number}"
        arguments = ("serve", str(policy), "--listen", listen, "--state", str(state), *more)
        status, said = nursery().bear(arguments, tmp_path, log, output).wait(START_S), log.read_text()
        assert status in (1, 2), said
        assert output.read_text() == ""
        assert "Traceback" not in said
        lines = [line for line in said.splitlines() if line and " INFO " not in line]
        assert len(lines) == 1, said
        return lines[0]

    return told


def test_port_in_use(shop: Path, tmp_path: Path, complaint: Complaint) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = complaint(shop / "shop.yaml", tmp_path / "state", f"127.0.0.1:{port}")
    assert str(port) in said
    assert "in use" in said


def test_second_proxy_on_one_state(shop: Path, running: Served, complaint: Complaint) -> None:
    said = complaint(shop / "shop.yaml", running.folder / "state")
    assert "state" in said
    with running.connect("shop") as client:
        assert client.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": {"engine": "duckdb", "path": "nowhere.duckdb", "data_version": "1"}}, "nowhere.duckdb"),
        ({"source": {"engine": "duckdb", "path": "users.yaml", "data_version": "1"}}, "users.yaml"),
        ({"access": {"users_file": "nobody.yaml"}}, "nobody.yaml"),
        ({"privacy": {"unit": "customer", "delta": 2}}, "privacy.delta"),
        ({"nonsense": 1}, "nonsense"),
        ({"tables": {"ghosts": {"unit": "a", "unit_unique": True, "columns": {"a": {"type": "uuid"}}}}}, "ghosts"),
    ],
)  # fmt: skip
def test_wrong_policy(shop: Path, tmp_path: Path, change: dict[str, object], words: str, complaint: Complaint) -> None:
    policy = write_yaml(shop / f"wrong-{tmp_path.name}.yaml", shop_policy(**change))
    assert words in complaint(policy, tmp_path / "state")


def test_policy_that_is_no_yaml_or_is_not_there(shop: Path, tmp_path: Path, complaint: Complaint) -> None:
    (tmp_path / "broken.yaml").write_text("version: [1\n")
    assert "broken.yaml:" in complaint(tmp_path / "broken.yaml", tmp_path / "state")
    assert "missing.yaml" in complaint(tmp_path / "missing.yaml", tmp_path / "state")


def test_data_that_break_a_declared_fact(tmp_path: Path, shop: Path, complaint: Complaint) -> None:
    tables = dict(shop_policy()["tables"])  # type: ignore[call-overload]  # a mapping by the schema
    tables["orders"] = {**tables["orders"], "unit_unique": True}
    policy = write_yaml(shop / "false.yaml", shop_policy(tables=tables))
    assert "orders" in complaint(policy, tmp_path / "state")


def test_state_that_cannot_be_used(shop: Path, tmp_path: Path, complaint: Complaint) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in complaint(shop / "shop.yaml", tmp_path / "file")
    assert "file" in complaint(shop / "shop.yaml", tmp_path / "file" / "below")


def test_front_programs_that_are_none(shop: Path, tmp_path: Path, complaint: Complaint) -> None:
    said = complaint(shop / "shop.yaml", tmp_path / "state", "127.0.0.1:0", "--front-bin", str(tmp_path))
    assert "initdb" in said


def test_end_by_signal_is_clean(tmp_path: Path, shop: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with serving(folder, [shop / "shop.yaml"]) as served:
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(WAIT_S) == 0
    assert "Traceback" not in served.log.read_text()


# --- reloading -----------------------------------------------------------------------------------------


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.05)


def status(client: psycopg.Connection[tuple[object, ...]]) -> str:
    ((found,),) = client.execute("SELECT DISTINCT status FROM hush.policy").fetchall()
    return str(found)


def bound(client: psycopg.Connection[tuple[object, ...]]) -> str:
    ((found,),) = client.execute("SELECT bounds FROM hush.policy WHERE \"column\" = 'age'").fetchall()
    return str(found)


def edited(low: int, high: int) -> dict[str, object]:
    """The policy with other bounds of users.age."""
    tables = dict(shop_policy()["tables"])  # type: ignore[call-overload]  # a mapping by the schema
    users = dict(tables["users"])
    users["columns"] = {**users["columns"], "age": {"type": "integer", "bounds": [low, high]}}
    return shop_policy(tables={**tables, "users": users})


def test_edited_policy_is_used_by_the_next_query(shop: Path, running: Served) -> None:
    with running.connect("shop") as client:
        question, arguments = "SELECT sum(age) FROM users WHERE kids >= %s", (0,)
        before = [client.execute(question, arguments, prepare=True).fetchall()[0][0] for _ in range(2)]
        assert abs(int(str(before[0])) - 41_373) < 1000
        write_yaml(shop / "shop.yaml", edited(0, 20))
        until(lambda: bound(client) == "[0, 20]")
        after = client.execute(question, arguments, prepare=True).fetchall()[0][0]
        assert int(str(after)) < 20 * 900, "the prepared statement clamps to the new bounds"
        assert client.execute("SELECT max(bounds) FROM hush.policy WHERE \"column\" = 'age'").fetchall() == [
            ("[0, 20]",)
        ]
        write_yaml(shop / "shop.yaml", edited(0, 110))
        until(lambda: bound(client) == "[0, 110]")


def test_wrong_edit_changes_nothing_and_is_told(shop: Path, running: Served) -> None:
    good = (shop / "shop.yaml").read_text()
    with running.connect("shop") as client, running.connect("shop", "boss") as boss:
        answer = client.execute("SELECT count(*) FROM users").fetchall()
        (shop / "shop.yaml").write_text(good + "nonsense: true\n")
        until(lambda: "nonsense" in status(boss))
        assert client.execute("SELECT count(*) FROM users").fetchall() == answer
        write_yaml(shop / "shop.yaml", edited(200, 100))
        until(lambda: "bounds" in status(boss))
        (shop / "shop.yaml").write_text(good)
        until(lambda: status(boss) == "in force")


def test_hangup_reads_the_files_again(shop: Path, running: Served) -> None:
    running.process.send_signal(signal.SIGHUP)
    with running.connect("shop") as client:
        assert client.execute("SELECT 1").fetchall() == [(1,)]
        write_users(shop / "users.yaml", {"ann": "analyst", "new": "analyst"})
        running.process.send_signal(signal.SIGHUP)

        def is_let_in() -> bool:
            try:
                running.connect("shop", "new").close()
            except psycopg.OperationalError:
                return False
            return True

        until(is_let_in)
        with running.connect("shop", "new") as added:
            write_users(shop / "users.yaml", {"ann": "analyst"})
            running.process.send_signal(signal.SIGHUP)
            assert farewell_of(added).sqlstate == "57P01"
        assert client.execute("SELECT count(*) > 0 FROM users").fetchall() == [(True,)]
    assert "Traceback" not in running.log.read_text()
