"""Do programs on pgJDBC, psqlODBC and node-postgres get their answers, types, catalogues and refusals?"""

from __future__ import annotations

import pytest

from tests.clients.conftest import HERE, Server, near, run, told

pytestmark = pytest.mark.clients

PGJDBC = "/usr/share/java/postgresql.jar"
COLUMNS = (
    "age:int4,work_class:text,final_weight:int4,education:text,education_num:int4,marital_status:text,"
    "occupation:text,relationship:text,race:text,sex:text,capital_gain:int4,capital_loss:int4,"
    "hours_per_week:int4,native_country:text,class:text"
)
#: Numbers of PostgreSQL's types as node-postgres tells them: text, int8, numeric, int8.
NODE_TYPES = "sex:25,n:20,mean:1700,hours:20"
#: ODBC's: SQL_VARCHAR or SQL_LONGVARCHAR, SQL_BIGINT, SQL_NUMERIC.
ODBC_TYPES = "sex:-1,n:-5,mean:2"


@pytest.fixture(scope="session")
def pgjdbc(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the Java program told."""
    classes = tmp_path_factory.mktemp("classes")
    environment = {
        **server.libpq_environment,
        "HUSHQL_URL": f"jdbc:postgresql://{server.host}:{server.port}/{server.database}",
        "HUSHQL_USER": server.login,
        "HUSHQL_PASSWORD": server.password,
    }
    compiler = ["javac", "-Xlint:all,-try", "-Werror", "-cp", PGJDBC, "-d", str(classes)]
    run([*compiler, str(HERE / "java" / "Client.java")], environment, cwd=classes)
    return told(run(["java", "-cp", f"{classes}:{PGJDBC}", "Client"], environment, cwd=classes))


@pytest.fixture(scope="session")
def node(server: Server) -> dict[str, str]:
    """What the JavaScript program told."""
    return told(run(["node", "client.mjs"], server.libpq_environment, cwd=HERE / "node"))


@pytest.fixture(scope="session", params=["", "UseDeclareFetch=1;Fetch=5", "UseServerSidePrepare=0"])
def odbc(server: Server, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, str]:
    """What the C program told, for each way the driver has of sending a statement."""
    directory = tmp_path_factory.mktemp("odbc")
    login = (
        f"Server={server.host};Port={server.port};Database={server.database};Uid={server.login};Pwd={server.password}"
    )
    environment = {
        **server.libpq_environment,
        "HUSHQL_ODBC": f"Driver=PostgreSQL Unicode;Server={server.host};Port={server.port};{login};{request.param}",
    }
    compiler = ["cc", "-Wall", "-Wextra", "-Werror", "-o", "client", str(HERE / "odbc" / "client.c"), "-lodbc"]
    run(compiler, environment, cwd=directory)
    return told(run([str(directory / "client")], environment, cwd=directory))


@pytest.mark.parametrize("mode", ["extended", "simple"])
def test_pgjdbc_prepared_counts_repeat_one_paid_answer(pgjdbc: dict[str, str], mode: str) -> None:
    counts = pgjdbc[f"{mode}.counts"].split(",")
    assert len(counts) == 8
    assert len(set(counts)) == 1
    assert near(counts[0], 14237)


@pytest.mark.parametrize("mode", ["extended", "simple"])
def test_pgjdbc_sees_postgresql_types_and_noisy_groups(pgjdbc: dict[str, str], mode: str) -> None:
    assert pgjdbc[f"{mode}.types"] == "sex:text,n:int8,mean:numeric,hours:int8"
    assert near(pgjdbc[f"{mode}.count.Female"], 10771)
    assert float(pgjdbc[f"{mode}.mean.Male"]) == pytest.approx(39.43, abs=0.5)
    assert int(pgjdbc[f"{mode}.hours.Male"]) == pytest.approx(924508, abs=10_000)


def test_pgjdbc_reads_a_portal_in_slices(pgjdbc: dict[str, str]) -> None:
    assert pgjdbc["slices.rows"] == "16"


def test_pgjdbc_reads_the_catalogue(pgjdbc: dict[str, str]) -> None:
    assert pgjdbc["tables"] == "adult"
    assert pgjdbc["columns"] == COLUMNS


def test_pgjdbc_is_refused_with_a_sqlstate_and_goes_on(pgjdbc: dict[str, str]) -> None:
    refused = {name: pgjdbc[f"refused.{name}"] for name in ("rows", "table", "write")}
    assert refused == {"rows": "DP004", "table": "42P01", "write": "42501"}
    assert {pgjdbc[f"after.{name}"] for name in refused} == {"7"}


def test_node_named_statement_repeats_one_paid_answer(node: dict[str, str]) -> None:
    counts = node["counts"].split(",")
    assert len(counts) == 3
    assert len(set(counts)) == 1
    assert near(counts[0], 14237)


def test_node_sees_postgresql_types_and_noisy_groups(node: dict[str, str]) -> None:
    assert node["types"] == NODE_TYPES
    assert near(node["count.Male"], 21790)
    assert float(node["mean.Female"]) == pytest.approx(36.86, abs=0.5)


def test_node_cursor_reads_in_slices(node: dict[str, str]) -> None:
    assert node["slices.rows"] == "16"


def test_node_is_refused_with_a_sqlstate_and_goes_on(node: dict[str, str]) -> None:
    refused = {name: node[f"refused.{name}"] for name in ("rows", "table", "several")}
    assert refused == {"rows": "DP004", "table": "42P01", "several": "DP004"}
    assert {node[f"after.{name}"] for name in refused} == {"7"}


def test_node_pool_of_sessions_gets_each_its_answer(node: dict[str, str]) -> None:
    answers = [answer.split(":") for answer in node["pooled"].split(",")]
    assert [sex for sex, _ in answers] == ["Female", "Male"] * 3
    assert all(near(count, {"Female": 10771, "Male": 21790}[sex]) for sex, count in answers)


def test_odbc_bound_parameters_repeat_one_paid_answer(odbc: dict[str, str]) -> None:
    counts = odbc["counts"].split(",")
    assert len(counts) == 3
    assert len(set(counts)) == 1
    assert near(counts[0], 10028)


def test_odbc_sees_types_and_noisy_groups(odbc: dict[str, str]) -> None:
    assert odbc["types"] == ODBC_TYPES
    assert near(odbc["count.Female"], 10771)
    assert float(odbc["mean.Male"]) == pytest.approx(39.43, abs=0.5)
    assert odbc["groups.rows"] == "16"


def test_odbc_reads_the_catalogue(odbc: dict[str, str]) -> None:
    assert odbc["tables"] == "adult"
    assert odbc["columns"] == COLUMNS


def test_odbc_is_refused_and_goes_on(odbc: dict[str, str]) -> None:
    assert {name: odbc[f"refused.{name}"] for name in ("raw", "table")} == {"raw": "DP004", "table": "42P01"}
    assert {odbc[f"{name}.rows"] for name in ("raw", "table")} == {"1"}
