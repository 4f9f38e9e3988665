"""`hushql demo`: the first thing that a newcomer sees, as a script and at a terminal."""

from __future__ import annotations

import html
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from httpx2 import Client

from proxy import demo
from proxy.config import DemoConfig, Listen
from proxy.errors import ConfigError
from tests.e2e.console import Browser
from tests.e2e.served import ROOT
from tests.ports import reserved_port

PATIENCE_S = 200.0
TOLD = (
    "Making up a shop at scale 0.001",
    "500 customers",
    "1. A count.",
    "Counting how much people have in shop",
    "Counting how much people have in adult",
    "charged to the dataset, once: epsilon 1",
    "NOTICE: charged epsilon 0.79",
    "2. Sums with the 95 % interval",
    "Privacy plan: ",
    "more lines",
    "NOTICE: charged nothing",
    "ERROR DP004: rows of a private table cannot be shown",
    "HINT: Ask for aggregates",
    "queries_left",
    "8. How far off were we?",
    "demo          user                10              9.823            97",  # README says so
    "9. Another database: 20,000 people told, after two coins",
    "yes in the stored rows, after coins   32.3%",
    "true, which only the generator knows  14.4%",
    "Nobody is at a terminal, so the demo ends here",
    "Then connect with any PostgreSQL client:",
    "dbname=shop",
    "dbname=survey",
    "dbname=adult",
)


def command(state: Path, *more: str) -> list[str]:
    fixed = ["demo", "--scale", "0.001", "--listen", "127.0.0.1:0", "--console", "", "--state", str(state)]
    return [sys.executable, "-m", "proxy", *fixed, *more]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def told(state: Path, adult_csv: Path) -> str:
    """What a first demo prints that nobody watches."""
    done = subprocess.run(
        command(state, "--adult", str(adult_csv)), env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("part", TOLD)
def test_the_tour_shows_the_product_and_ends_by_itself(part: str, told: str) -> None:
    assert part in told
    assert "Serving until" not in told


def test_the_survey_is_estimated_with_an_interval_that_holds_the_truth(told: str) -> None:
    """The coins fell once for all; the noise of the release moves the share by 0.06 % (one standard deviation)."""
    found = re.search(r"^estimated +([\d.]+)% +([\d.]+)% +([\d.]+)%$", told, re.MULTILINE)
    assert found is not None
    share, low, high = map(float, found.groups())
    assert abs(share - 14.7) < 0.6
    assert low < 14.4 < high
    assert 2.0 < high - low < 3.5, "the coins make most of it"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGHUP], ids=["interrupted", "terminal gone"])
def test_at_a_terminal_it_serves_until_the_end(state: Path, told: str, end: signal.Signals) -> None:
    """The data of the first time are served again."""
    screen, terminal = pty.openpty()
    with subprocess.Popen(
        command(state), env=environment(), stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL
    ) as shown:
        os.close(terminal)
        try:
            text = read_until(screen, "Serving until Ctrl-C.")
            assert "Making up" not in text
            assert "Counting" not in text, "the profile of the first time is kept"
            assert "The shop of an earlier run" in text
            assert "Connect with any PostgreSQL client:" in text
            found = re.search(r'psql "(host=127.0.0.1 port=\d+ user=demo password=demo dbname=shop)"', text)
            assert found is not None
            with psycopg.connect(found[1]) as client:
                assert client.execute("SELECT count(*) FROM stores").rowcount == 1
            shown.send_signal(end)
            assert shown.wait(PATIENCE_S) == 0
        finally:
            shown.kill()
            os.close(screen)


def test_at_a_terminal_a_browser_finds_the_tour_and_each_step_does_something(state: Path, told: str) -> None:
    screen, terminal = pty.openpty()
    with reserved_port() as port, subprocess.Popen(
        command(state, "--console", f"127.0.0.1:{port}"), env=environment(), stdin=terminal, stdout=terminal,
        stderr=subprocess.DEVNULL,
    ) as shown:  # fmt: skip
        os.close(terminal)
        try:
            text = read_until(screen, "Serving until Ctrl-C.")
            assert f"Or open http://127.0.0.1:{port} in a browser" in text
            with Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                browser = Browser(client)
                assert browser.log_in("demo", "shop", "demo").headers["location"] == "/tour"
                steps = re.findall(r'name="statement" value="([^"]*)"', browser.get("/tour").text)
                answers = [browser.post("/ask/run", statement=html.unescape(step)).text for step in steps]
            assert len(answers) == 5
            assert "95 % interval" in answers[0]
            assert "This was free" in answers[1]
            assert all("data-answer" in answer for answer in answers[:4])
            assert "rows of a private table cannot be shown" in answers[4]
        finally:
            shown.kill()
            os.close(screen)


def test_the_first_sum_is_nearly_right_and_its_interval_says_so(tmp_path: Path) -> None:
    """Half of the interval is some 0.6 % of the truth: what depends on the profile's noise too.

    In 17,500 draws of the profile the widest was 1.3 %: the limit of 2 % fails less than once in 10,000 times, and
    five standard deviations once in a million.
    """
    done = subprocess.run(
        [sys.executable, "-m", "proxy", "demo", "--listen", "127.0.0.1:0", "--state", str(tmp_path)],
        env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(paid|refunded|Zurich|customers of 40 or more) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) ",
                       done.stdout, re.MULTILINE)  # fmt: skip
    assert len(found) == 4, done.stdout
    for name, *numbers in found:
        answer, low, high, truth = (float(n.replace(",", "")) for n in numbers)
        sd = (high - low) / 2 / 1.96
        assert abs(answer - truth) <= 5 * sd, done.stdout
        if name == "paid":
            assert truth == 25_684_285
            assert answer - low < 0.02 * truth, f"of the noise:\n{done.stdout}"
            assert high - low < 0.06 * truth, f"with what bounds are expected to leave out:\n{done.stdout}"


def read_until(screen: int, wanted: str) -> str:
    seen, deadline = "", time.monotonic() + PATIENCE_S
    while wanted not in seen:
        assert select.select([screen], [], [], max(0.0, deadline - time.monotonic()))[0], seen
        seen += os.read(screen, 65536).decode()
    return seen


def test_where_no_psql_is_on_path_the_installed_one_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "wheel_directory", lambda: (tmp_path,))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert demo._psql() == "psql"
    (tmp_path / "psql").touch()
    assert Path(demo._psql()).resolve() == tmp_path.resolve() / "psql"


def test_values_are_shown_with_the_digits_that_one_can_use() -> None:
    assert [demo._cell(v) for v in (9.9255731, 10.0, 14716135.934602853, None, 7)] == [
        "9.926", "10", "14716135.935", "NULL", "7"]  # fmt: skip


def test_the_rows_can_be_in_a_postgresql_that_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, "--engine", "postgres"), env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # the demo's own login may do nothing that a proxy does not need
    parts = ("Copying it into a PostgreSQL", "once: epsilon 1", "NOTICE: charged epsilon 0.79", "How far off were we?")
    for part in (*parts, "the demo ends here"):
        assert part in done.stdout
    left = {path.name for path in (tmp_path / "demo" / "postgres").iterdir()}
    assert left == {"shop.yaml"}
    again = subprocess.run(
        command(tmp_path, "--engine", "postgres"), env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert "Counting" not in again.stdout
    assert again.stdout.count("to the session (paid before: user); left: user 9.823 of 10") == 3


def test_a_demo_that_nobody_reads_ends_quietly(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        done = subprocess.run(
            command(tmp_path / "s"), env=environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
            text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert [(tmp_path / folder).stat().st_mode & 0o777 for folder in ("s", "s/demo")] == [0o700, 0o700]


def test_address_in_use_is_noticed_before_data_are_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = Listen("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ConfigError, match="Address already in use") as refused:
            demo.demo(DemoConfig(state=tmp_path, listen=listen))
    assert "make demo LISTEN=" in refused.value.hint
    assert list(tmp_path.iterdir()) == []


def test_an_installation_without_the_policy_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert demo._policy("shop.yaml").is_file()
    monkeypatch.setattr(demo, "__file__", str(tmp_path / "proxy" / "demo.py"))
    with pytest.raises(ConfigError, match=r"shop\.yaml is missing from this installation"):
        demo._policy("shop.yaml")
    shipped = tmp_path / "proxy" / "policies" / "shop.yaml"
    shipped.parent.mkdir(parents=True)
    shipped.touch()
    assert demo._policy("shop.yaml") == shipped
