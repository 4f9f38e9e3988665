"""Do the values that programs bind mean what PostgreSQL reads in them, whatever their driver makes of them?

Each program binds the values of its language on a private dataset and on its public twin, where PostgreSQL answers the
same statements by itself: both must tell the same, but for the noise, which is next to none here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests import places
from tests.clients.conftest import HERE, run, told
from tests.e2e.conftest import LOGINS
from tests.e2e.served import PASSWORD, Served, public_twin, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop

pytestmark = pytest.mark.clients

PGJDBC = "/usr/share/java/postgresql.jar"
NOISE = 2
ZONE = "America/New_York"  # the programs' own, which is not the policy's
ODBC = ("", "UseServerSidePrepare=0", "UseServerSidePrepare=1;BoolsAsChar=0", "BoolsAsChar=1;UseDeclareFetch=1")


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The datasets shop, which is private, and truth, its public twin."""
    folder, shop = tmp_path_factory.mktemp("shops"), shop_policy()
    write_shop(folder / "shop.duckdb")
    write_users(folder / "users.yaml", LOGINS)
    documents = {"shop": shop, "truth": public_twin(shop)}
    policies = [write_yaml(folder / f"{name}.yaml", document) for name, document in documents.items()]
    with serving(folder, policies, places.UNCOUNTED, ("-m", "tests.e2e.tamed")) as running:
        yield running


def environment(shops: Served, dataset: str, **more: str) -> dict[str, str]:
    """What a program is told: nothing of anybody's own settings."""
    return {
        "PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "TZ": ZONE, "PGHOST": "127.0.0.1",
        "PGPORT": str(shops.port), "PGDATABASE": dataset, "PGUSER": "ann", "PGPASSWORD": PASSWORD, **more,
    }  # fmt: skip


def is_near(found: str, true: str) -> bool:
    """Whether an answer is the true count, but for its noise; errors are the same."""
    if not (found.isdigit() and true.isdigit()):
        return found == true
    return abs(int(found) - int(true)) <= NOISE


def check(shops: Served, command: list[str], cwd: Path, **more: str) -> None:
    """That a program is told the same of private tables as of public ones, statement by statement."""
    private, exact = (told(run(command, environment(shops, name, **more), cwd=cwd)) for name in ("shop", "truth"))
    assert private.keys() == exact.keys()
    wrong = {name: (private[name], exact[name]) for name in exact if not is_near(private[name], exact[name])}
    assert not wrong, "what was told, and what is so"
    assert_asked(exact)


def assert_asked(exact: Mapping[str, str]) -> None:
    """That the program has asked for something: its counts differ, and few of its statements are errors."""
    errors = [name for name, value in exact.items() if value.startswith("error")]
    assert len(set(exact.values())) > 8
    assert len(errors) < 6


@pytest.mark.parametrize("mode", ["extended", "extendedForPrepared", "extendedCacheEverything", "simple"])
def test_pgjdbc(shops: Served, tmp_path: Path, mode: str) -> None:
    compiler = ["javac", "-Xlint:all,-try", "-Werror", "-cp", PGJDBC, "-d", str(tmp_path)]
    run([*compiler, str(HERE / "java" / "Parameters.java")], environment(shops, "shop"), cwd=tmp_path)
    script = 'HUSHQL_URL="jdbc:postgresql://$PGHOST:$PGPORT/$PGDATABASE" exec java -cp "$0" Parameters'
    more = {"HUSHQL_USER": "ann", "HUSHQL_PASSWORD": PASSWORD, "HUSHQL_MODE": mode}
    check(shops, ["sh", "-c", script, f"{tmp_path}:{PGJDBC}"], tmp_path, **more)


def test_node_postgres(shops: Served) -> None:
    check(shops, ["node", "parameters.mjs"], HERE / "node")


@pytest.mark.parametrize("options", ODBC, ids=lambda o: o or "defaults")
def test_psqlodbc(shops: Served, tmp_path: Path, options: str) -> None:
    compiler = ["cc", "-Wall", "-Wextra", "-Werror", "-o", "parameters", str(HERE / "odbc" / "parameters.c"), "-lodbc"]
    run(compiler, environment(shops, "shop"), cwd=tmp_path)
    login = f"Driver=PostgreSQL Unicode;Server=127.0.0.1;Port={shops.port};Uid=ann;Pwd={PASSWORD};{options}"
    command = ["sh", "-c", 'HUSHQL_ODBC="$1;Database=$PGDATABASE" exec "$0"', str(tmp_path / "parameters"), login]
    check(shops, command, tmp_path)


@pytest.mark.parametrize("emulate", ["0", "1"])
def test_pdo(shops: Served, emulate: str) -> None:
    extensions = ("-d", "extension=pdo.so", "-d", "extension=pdo_pgsql.so")
    check(shops, ["php", "-n", *extensions, "parameters.php"], HERE / "php", HUSHQL_EMULATE=emulate)


@pytest.mark.parametrize("server_prepare", ["0", "1"])
def test_dbd_pg(shops: Served, server_prepare: str) -> None:
    check(shops, ["perl", "parameters.pl"], HERE / "perl", HUSHQL_SERVER_PREPARE=server_prepare)


def test_ruby_pg(shops: Served) -> None:
    check(shops, ["ruby", "parameters.rb"], HERE / "ruby")
