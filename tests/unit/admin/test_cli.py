"""Do commands end with the right status, one line of error, and typed options?"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from proxy import __version__
from proxy.config import (
    AdultFile,
    BinariesIn,
    DemoConfig,
    DemoEngine,
    ExplainRequest,
    Listen,
    LogLevel,
    ServeConfig,
    TlsFiles,
    UsersAt,
)
from proxy.errors import EngineFailed
from proxy.policy.document import schema
from proxy.policy.users import users_schema
from tests.unit.admin.command_line import CommandLine
from tests.unit.policy.case_files import BASE

POLICIES = Path(__file__).parents[3] / "policies"
SHOP = str(POLICIES / "shop.yaml")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "p.yaml"
    path.write_text(BASE, encoding="utf-8")
    return path


def test_version(command: CommandLine) -> None:
    assert command("--version") == 0
    assert command.out == f"hushql {__version__}\n"


@pytest.mark.parametrize("group", [(), ("policy",), ("user",), ("ledger",)])
def test_no_arguments_print_help_and_are_a_misuse(command: CommandLine, group: tuple[str, ...]) -> None:
    assert command(*group) == 2
    assert "Usage: hushql" in command.out + command.err


COMMANDS = (
    *("serve", "demo", "explain", "demo-data", "policy check", "policy schema", "policy init", "policy diff"),
    *("user add", "user remove", "user list", "ledger show", "ledger verify"),
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(command: CommandLine, name: str) -> None:
    assert command(*name.split(), "--help") == 0
    assert f"Usage: hushql {name}" in command.out
    assert "bool" not in command.out


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["srve"], "hushql: No such command 'srve'. Did you mean 'serve'? Try 'hushql --help'.\n"),
        (["serve"], "hushql: Missing argument 'POLICY'. Try 'hushql serve --help'.\n"),
        (["serve", SHOP, "--lissten", "x"], "hushql: No such option: --lissten"),
        (["user", "remove"], "hushql: Missing argument 'NAME'. Try 'hushql user remove --help'.\n"),
        (["serve", SHOP, "--listen", "6432"], "hushql: cannot read the address '6432'. Write host:port"),
        (["serve", SHOP, "--listen", "a:70000"], "hushql: port 70000 is not a port."),
        (["serve", SHOP, "--noise-ahead", "0"], "hushql: 0 values of noise are out of range. Use 1 to 134217728."),
        (["serve", SHOP, "--tls-cert", "c.pem"], "hushql: --tls-cert and --tls-key belong together."),
        (["serve", SHOP, "--require-tls"], "hushql: --require-tls needs a certificate."),
        (["serve", SHOP, SHOP], "hushql: policy "),
        (["serve", "nowhere.yaml"], "hushql: policy nowhere.yaml does not exist"),
        (["serve", SHOP, "--log-level", "loud"], "hushql: Invalid value for '--log-level'"),
        (["demo", "--scale", "1000"], "hushql: scale 1000 is out of range."),
        (["demo", "--adult", "nowhere.csv"], "hushql: Adult data nowhere.csv do not exist"),
        (["demo", "--adult", SHOP], "hushql: Adult data "),
        (["user", "list", "--users", "nowhere.yaml"], "hushql: users file nowhere.yaml does not exist. Make it"),
        (["ledger", "verify", "--state", "nowhere"], "hushql: there is no ledger in nowhere."),
    ],
)
def test_misuse_is_one_line_and_status_2(command: CommandLine, arguments: list[str], expected: str) -> None:
    assert command(*arguments) == 2
    assert command.err.startswith(expected)
    assert command.err.count("\n") == 1
    assert command.out == ""


def test_serve_with_defaults(command: CommandLine, policy: Path) -> None:
    assert command("serve", str(policy)) == 0
    assert command.served == [ServeConfig(policies=(policy,), state=Path(".state"))]


def test_serve_with_every_option(command: CommandLine, policy: Path, tmp_path: Path) -> None:
    for name in ("cert", "key", "initdb", "postgres", "users"):
        (tmp_path / name).touch(mode=0o600)
    files = ("--tls-cert", "cert"), ("--tls-key", "key"), ("--front-bin", "."), ("--users", "users"), ("--state", "s")
    words = [word for option, name in files for word in (option, str(tmp_path / name))]
    plain = (
        "--listen",
        "[::1]:0",
        "--log-level",
        "error",
        "--require-tls",
        "--noise-ahead",
        "4096",
        "--console",
        "127.0.0.1:1",
    )
    assert command("serve", str(policy), *plain, *words) == 0
    assert command.served == [
        ServeConfig(
            policies=(policy,),
            state=tmp_path / "s",
            listen=Listen("::1", 0),
            tls=TlsFiles(tmp_path / "cert", tmp_path / "key", is_required=True),
            front=BinariesIn(tmp_path),
            users=UsersAt(tmp_path / "users"),
            console=Listen("127.0.0.1", 1),
            noise_ahead=4096,
            log_level=LogLevel.ERROR,
        )
    ]


def test_failure_of_the_server_is_status_1_and_one_line(command: CommandLine, policy: Path) -> None:
    command.failure = EngineFailed("the engine is gone", detail="It went\naway.", hint="Look \x1b[31mthere.")
    assert command("serve", str(policy)) == 1
    assert command.err == "hushql: the engine is gone. It went away. Look \\x1b[31mthere.\n"


def test_demo(command: CommandLine, tmp_path: Path) -> None:
    adult = tmp_path / "adult.csv"
    adult.touch()
    assert command("demo", "--engine", "postgres", "--scale", "0.5", "--adult", str(adult), "--state", "s") == 0
    console = Listen("127.0.0.1", 6480)
    assert command.demos == [
        DemoConfig(state=Path("s"), engine=DemoEngine.POSTGRES, scale=0.5, adult=AdultFile(adult), console=console)
    ]


def test_demo_without_a_console(command: CommandLine) -> None:
    assert command("demo", "--console", "") == 0
    assert command.demos == [DemoConfig(state=Path(".state"))]


def test_explain(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("explain", "--policy", SHOP, "--json", "select 1") == 0
    assert command.out == "the plan\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("select 2"))
    assert command("explain", "--policy", SHOP, "--state", "s", "-") == 0
    assert command.explained == [
        ExplainRequest(policy=Path(SHOP), sql="select 1", as_json=True),
        ExplainRequest(policy=Path(SHOP), sql="select 2", state=Path("s")),
    ]


def test_interrupt_at_a_prompt_is_status_130(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.prompt", interrupt)
    assert command("user", "add", "a", "--role", "r", "--users", str(tmp_path / "u.yaml")) == 130


def test_completion_can_be_shown(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")  # whatever runs the tests
    assert command("--show-completion") == 0
    assert "_HUSHQL_COMPLETE" in command.out


# --- policy -------------------------------------------------------------------------------------------


def test_policy_check_of_right_files(command: CommandLine, policy: Path) -> None:
    assert command("policy", "check", str(policy), SHOP) == 0
    first, priced, second, derived = command.out.splitlines()
    assert first.startswith("shop: 3 private and 1 public tables, epsilon 20 at delta 1e-06, digest ")
    held = "dataset of epsilon 20 holds 744, user of epsilon 10 holds 237"
    assert priced == f"a question without an epsilon of its own costs 0.5: {held}"
    assert second.startswith("shop: 4 private and 1 public tables")
    held = "dataset of epsilon 20 holds 314, user of epsilon 10 holds 100, session of epsilon 7 holds 54"
    assert derived == f"a question without an epsilon of its own costs 0.79: {held}"


def test_policy_check_tells_the_worst_case_of_a_budget_that_comes_back(command: CommandLine, policy: Path) -> None:
    refreshing = "{epsilon: 10, refresh: week, acknowledge_lifetime_loss: true}"
    policy.write_text(BASE.replace("user: {epsilon: 10}", f"user: {refreshing}"), encoding="utf-8")
    assert command("policy", "check", str(policy)) == 0
    _, _, worst = command.out.splitlines()
    assert worst.startswith("budgets.user: epsilon 10 comes back every week; worst case in a calendar year: epsilon 1")
    assert worst.endswith("over the lifetime of the data: epsilon 20 by budgets.dataset")


def test_policy_check_says_everything_and_is_status_1(command: CommandLine, policy: Path) -> None:
    policy.write_text(BASE.replace("version: 1", "version: 2").replace("[0, 110]", "[0]"), encoding="utf-8")
    assert command("policy", "check", str(policy), SHOP, "nowhere.yaml") == 1
    assert command.err.splitlines() == [
        f"{policy}:1: version: expected 1, found 2",
        f"{policy}:19: tables.users.columns.age.bounds: expected [low, high], found 1 value",
        "policy nowhere.yaml cannot be read: No such file or directory",
    ]
    assert command.out.startswith("shop: ")


def test_policy_check_as_json(command: CommandLine, policy: Path) -> None:
    policy.write_text(BASE.replace("version: 1", "version: 2"), encoding="utf-8")
    assert command("policy", "check", "--json", str(policy)) == 1
    message = "expected 1, found 2"
    problem = {"line": 1, "path": ["version"], "message": message, "text": f"{policy}:1: version: {message}"}
    assert json.loads(command.out) == [{"file": str(policy), "problems": [problem], "summary": ""}]


def test_policy_schema(command: CommandLine) -> None:
    assert command("policy", "schema") == 0
    assert json.loads(command.out) == schema()
    assert command("policy", "schema", "--users") == 0
    assert json.loads(command.out) == users_schema()
