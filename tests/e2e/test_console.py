"""The console against a running proxy: who gets in, what a page shows, and that it is no more than the wire shows."""

from __future__ import annotations

import html
import re
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import psycopg
import pytest
from httpx2 import Response
from psycopg.pq import TransactionStatus

from proxy.admin.commands.report import ReportedBy, rows_of
from proxy.admin.ledger_place import InFiles
from proxy.console.browsers import IDLE_S
from proxy.console.scripts import Scripts
from proxy.console.served import Serving
from proxy.errors import FrontFailed
from proxy.events import fingerprint_of
from proxy.ledger import replay
from proxy.ledger.sqlite import schema
from tests.e2e.console import ENDLESS, Browser, Clock, browsing, data_of, served_policy, serving_of
from tests.e2e.served import Served


@pytest.fixture
def serving(served: Served) -> Serving:
    names = ("shop", "spend")
    datasets = {n: served_policy(served.folder / f"{n}.yaml", served.folder / "users.yaml") for n in names}
    return serving_of(served, datasets)


@pytest.fixture
def browser(serving: Serving) -> Iterator[Browser]:
    with browsing(serving) as found:
        yield found


@pytest.fixture
def ann(browser: Browser) -> Browser:
    assert browser.log_in("ann", "shop").status_code == 303
    return browser


# --- who gets in ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/ask", "/nothing"])
def test_strangers_see_nothing_but_the_login_page(browser: Browser, path: str) -> None:
    page = browser.get(path)
    assert page.status_code in {303, 404}
    assert "shop" not in page.text
    if path == "/ask":
        assert page.headers["location"] == "/login"


@pytest.mark.parametrize(
    "login, database, password",
    [("ann", "shop", "wrong"), ("nobody", "shop", "a pass word"), ("ann", "nowhere", "wrong"), ("", "shop", "x"),
     ("ann", "", "a pass word"), ("<b>", "shop", "x"), ("a\0b", "shop", "x"), ("ann", "shop", "a\0b")],
)  # fmt: skip
def test_a_wrong_login_says_the_same_whatever_is_wrong(
    browser: Browser, login: str, database: str, password: str
) -> None:
    answer = browser.log_in(login, database, password)
    assert answer.status_code == 401
    assert f'Password authentication failed for user "{login}".' in html.unescape(answer.text)
    assert "<b>" not in answer.text
    assert browser.get("/ask").status_code == 303


def test_a_login_form_without_its_cookie_is_refused(browser: Browser) -> None:
    page = browser.client.get("/login")
    token = re.search(r'name="token" value="(\w+)"', page.text)
    assert token is not None
    browser.client.cookies.clear()
    fields = {"login": "ann", "password": "a pass word", "database": "shop", "token": token[1]}
    assert browser.client.post("/login", data=fields).status_code == 403


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(browser: Browser) -> None:
    cookie = browser.log_in("ann", "shop").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie


def test_under_tls_the_cookie_is_secure_and_of_this_host(served: Served, serving: Serving) -> None:
    with browsing(serving_of(served, dict(serving.datasets), is_encrypted=True)) as browser:
        cookie = browser.log_in("ann", "shop").headers["set-cookie"]
        assert cookie.startswith("__Host-hushql=")
        assert "Secure" in cookie
        assert browser.get("/ask").status_code == 200


def test_every_answer_keeps_scripts_out(ann: Browser) -> None:
    for page in (ann.get("/ask"), ann.get("/login"), ann.get("/nothing"), ann.get(f"{Scripts().base}/ask.js")):
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
    assert ann.get("/ask").headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", ann.get("/ask").text)


def test_the_nonce_of_style_sheets_is_new_in_each_answer(ann: Browser) -> None:
    first, second = (ann.get("/ask").headers["content-security-policy"] for _ in range(2))
    assert first != second


def test_a_request_without_the_pages_token_is_refused_and_charges_nothing(browser: Browser) -> None:
    browser.log_in("u41", "spend")
    fields = {"statement": "SELECT count(*) FROM users"}
    for headers in ({}, {"x-csrf-token": "0" * 64}):
        assert browser.client.post("/ask/run", data=fields, headers=headers).status_code == 403
    answer = browser.post("/ask/run", statement="SELECT epsilon_spent FROM hush.budget WHERE kind = 'user'")
    assert data_of(answer)["rows"] == [["0"]]


@pytest.mark.parametrize(
    "headers", [{"origin": "http://elsewhere.test"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}]
)
def test_a_request_of_another_site_is_refused_even_with_the_token(ann: Browser, headers: dict[str, str]) -> None:
    sent = {"x-csrf-token": ann.csrf, **headers}
    assert ann.client.post("/ask/run", data={"statement": "SELECT 1"}, headers=sent).status_code == 403
    assert ann.client.post("/login", data={"token": "x"}, headers=headers).status_code == 403


def test_one_browser_cannot_use_the_token_of_another(serving: Serving, ann: Browser) -> None:
    with browsing(serving) as other:
        other.log_in("bob", "shop")
        other.csrf = ann.csrf
        assert other.post("/ask/run", statement="SELECT 1").status_code == 403


def test_a_browser_that_logged_out_or_waited_too_long_is_a_stranger(serving: Serving, ann: Browser) -> None:
    clock = serving.clock
    assert isinstance(clock, Clock)
    clock.now += IDLE_S + 1
    assert ann.get("/ask").status_code == 303
    ann.log_in("ann", "shop")
    cookies = dict(ann.client.cookies)
    assert ann.post("/logout").headers["location"] == "/login"
    ann.client.cookies.update(cookies)
    assert ann.get("/ask").status_code == 303


def test_a_form_that_is_too_large_is_refused(ann: Browser) -> None:
    assert ann.post("/ask/run", statement="x" * (8 * 1024 * 1024)).status_code == 413


def test_a_stranger_sends_no_more_than_a_login_needs(browser: Browser) -> None:
    """Strangers are many, and what each sends is in memory before anything is known of them."""
    assert browser.post("/login", login="ann", password="x" * 20_000).status_code == 413


def test_a_listener_that_does_not_answer_is_told_in_words(ann: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(*_: object) -> object:
        raise FrontFailed("the proxy does not answer", hint="Try again in a moment.")

    ann.client.portal.call(_hung_up, ann)  # type: ignore[attr-defined]  # of the test client
    monkeypatch.setattr("proxy.console.wire._connected", gone)
    for path in ("/ask", "/tables", "/budget"):
        page = ann.get(path)
        assert page.status_code == 503
        assert "the proxy does not answer" in page.text
    assert "the proxy does not answer" in ann.post("/ask/run", statement="SELECT 1").text


def test_a_login_with_too_many_sessions_is_told_so_and_stays_logged_in(served: Served, ann: Browser) -> None:
    """Whether a browser is logged out is decided by the logins, whatever words the listener refuses with."""
    ann.client.portal.call(_hung_up, ann)  # type: ignore[attr-defined]  # of the test client
    with ExitStack() as held:
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            for _ in range(1000):
                held.enter_context(served.connect("shop", "ann"))
        page = ann.get("/ask")
        assert page.status_code == 503
        assert "too many connections for role" in page.text
    assert ann.get("/policy").status_code == 403


async def _hung_up(browser: Browser) -> None:
    for known in browser.client.app.state.console.browsers._known.values():  # type: ignore[attr-defined]
        known.wires.close()


def test_a_large_answer_is_cancelled_before_it_fills_memory(ann: Browser) -> None:
    """All clients share this process, and the next statement of the browser runs as any."""
    for rows in (200_000, 12_000):
        answer = ann.post("/ask/run", statement=f"SELECT repeat('x', 1000) FROM generate_series(1, {rows})")
        assert "the answer has more than the 8 MiB that a page takes" in answer.text
        assert data_of(ann.post("/ask/run", statement="SELECT 1"))["rows"] == [["1"]]
    fewer = data_of(ann.post("/ask/run", statement="SELECT repeat('x', 1000) FROM generate_series(1, 5000)"))
    assert len(fewer["rows"]) == 5000


def test_a_running_statement_is_cancelled_by_its_own_browser_and_by_no_other(serving: Serving, ann: Browser) -> None:
    assert ann.post("/ask/cancel").status_code == 200  # nothing runs, nothing happens
    with browsing(serving) as bob, ThreadPoolExecutor(1) as pool:
        assert bob.log_in("bob", "shop").status_code == 303
        running = pool.submit(ann.post, "/ask/run", statement=ENDLESS)
        assert ann.post("/ask/forecast", statement="SELECT 1").status_code == 200  # one looks while it runs
        while not _is_running(ann):
            time.sleep(0.05)
        for _ in range(3):
            bob.post("/ask/cancel")
        assert _is_running(ann)
        while not running.done():
            ann.post("/ask/cancel")
    assert "canceling statement due to user request" in running.result().text
    assert data_of(ann.post("/ask/run", statement="SELECT 1"))["rows"] == [["1"]]


def _is_running(browser: Browser) -> bool:
    (known,) = browser.client.app.state.console.browsers._known.values()  # type: ignore[attr-defined] # Starlette's
    connection = known.wires.running._connection
    return connection is not None and connection.info.transaction_status is TransactionStatus.ACTIVE


@pytest.mark.parametrize(
    "statement, words",
    [("COPY stores TO STDOUT", "the console does not COPY"), ("COPY t FROM STDIN", "the console does not COPY"),
     ("", 'class="card answer"'), ("SELECT 1; SELECT 2", "multiple commands"), ("SELECT 'a\0b'", "unterminated")],
)  # fmt: skip
def test_a_statement_that_has_no_rows_leaves_the_browser_able_to_ask(ann: Browser, statement: str, words: str) -> None:
    ann.post("/ask/run", statement="CREATE TEMPORARY TABLE t (n integer)")
    assert words in ann.post("/ask/run", statement=statement).text
    assert data_of(ann.post("/ask/run", statement="SELECT 1 AS n"))["rows"] == [["1"]]


def test_a_session_in_another_encoding_is_shown_with_marks(ann: Browser) -> None:
    ann.post("/ask/run", statement="SET client_encoding = 'LATIN1'")
    assert data_of(ann.post("/ask/run", statement="SELECT chr(233) AS n"))["rows"] == [["\ufffd"]]


# --- asking ---------------------------------------------------------------------------------------------


def test_an_answer_has_the_intervals_that_the_wire_gives(served: Served, ann: Browser) -> None:
    statement = "SELECT count(*) AS n FROM users"
    data = data_of(ann.post("/ask/run", statement=statement))
    with served.connect("shop", "ann") as client:
        told = client.execute("SELECT count(*), hush.low(count(*)), hush.high(count(*)) FROM users").fetchone()
    assert told is not None
    assert [float(v) for v in data["rows"][0]] == [float(v) for v in told]
    assert data["columns"] == [{"name": "n", "at": 0, "number": True, "interval": [1, 2]}]


def test_a_repeat_says_that_it_was_free(browser: Browser) -> None:
    browser.log_in("u42", "spend")
    statement = "SELECT count(*) FROM users"
    assert "This was free" not in browser.post("/ask/run", statement=statement).text
    assert "This was free" in browser.post("/ask/run", statement=statement).text


def test_a_forecast_is_free_and_moves_with_epsilon(browser: Browser) -> None:
    browser.log_in("u43", "spend")
    errors = []
    for epsilon in ("0.1", "1"):
        page = browser.post("/ask/forecast", statement="SELECT count(*) FROM users", epsilon=epsilon)
        found = re.search(r"± ([\d.,]+)", page.text)
        assert found is not None, page.text
        errors.append(float(found[1].replace(",", "")))
    assert errors[0] > 5 * errors[1]
    spent = browser.post("/ask/run", statement="SELECT epsilon_spent FROM hush.budget WHERE kind = 'user'")
    assert data_of(spent)["rows"] == [["0"]]


@pytest.mark.parametrize("path", ["/ask/forecast", "/ask/run"])
def test_two_statements_in_one_are_refused_and_charge_nothing(browser: Browser, path: str) -> None:
    browser.log_in("u44", "spend")
    page = browser.post(path, statement="SELECT 1; SELECT count(*) FROM users")
    assert "cannot insert multiple commands" in page.text
    spent = browser.post("/ask/run", statement="SELECT epsilon_spent FROM hush.budget WHERE kind = 'user'")
    assert data_of(spent)["rows"] == [["0"]]


def test_a_refusal_offers_the_statement_that_its_hint_names(ann: Browser) -> None:
    page = ann.post("/ask/run", statement="SELECT * FROM users")
    assert "rows of a private table cannot be shown" in page.text
    assert 'data-statement="SELECT count(*) FROM users"' in page.text


def test_the_console_asks_as_its_login_and_shows_no_more(browser: Browser) -> None:
    browser.log_in("clerk", "shop")
    assert "items" not in browser.get("/ask").text
    page = browser.post("/ask/run", statement="SELECT count(*) FROM items")
    assert "does not exist" in page.text


def test_a_failed_transaction_can_be_left(ann: Browser) -> None:
    for statement in ("BEGIN", "SELECT 1/0"):
        ann.post("/ask/run", statement=statement, epsilon="0.5")
    assert "aborted" in ann.post("/ask/run", statement="SELECT 1", epsilon="0.5").text
    ann.post("/ask/run", statement="ROLLBACK", epsilon="0.5")
    assert data_of(ann.post("/ask/run", statement="SELECT 1", epsilon="0.5"))["rows"] == [["1"]]


def test_a_statement_of_a_mebibyte_is_answered_or_refused_in_words(ann: Browser) -> None:
    def asked(size: int) -> Response:
        return ann.post("/ask/run", statement="SELECT " + " + ".join(["1"] * 250) + f" /* {'x' * size} */")

    assert data_of(asked(900_000))["rows"] == [["250"]]
    assert "the message is longer than this server allows" in asked(1_100_000).text


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}", "'"])
def test_nothing_in_names_values_and_errors_is_taken_for_markup(ann: Browser, evil: str) -> None:
    name, text = evil.replace('"', '""'), evil.replace("'", "''")
    shown = ann.post("/ask/run", statement=f"SELECT '{text}' AS \"{name}\"")
    assert data_of(shown)["rows"] == [[evil]]
    refused = ann.post("/ask/run", statement=f'SELECT "{name}" FROM users')
    for page in (shown, refused):
        assert "<script" not in page.text
        assert "<img" not in page.text
        assert "49" not in page.text


# --- everybody's charges --------------------------------------------------------------------------------


def test_administrators_see_charges_one_by_one_and_statements_where_the_log_has_them(
    served: Served, serving: Serving, ann: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = "SELECT count(*) FROM users WHERE age < 77"
    for asked in (statement.replace("77", "76"), statement, statement):  # the last one is free
        ann.post("/ask/run", statement=asked)
    with browsing(serving) as boss:
        assert boss.log_in("boss", "shop").status_code == 303
        assert 'href="/budget/charges"' in boss.get("/budget").text
        page = boss.get("/budget/charges").text
    assert fingerprint_of(statement) in page
    assert "WHERE age" not in page
    monkeypatch.setattr("proxy.console.charges.PAGE", 1)
    with browsing(serving_of(served, dict(serving.datasets), shows_statements=True)) as boss:
        assert boss.log_in("boss", "shop").status_code == 303
        page = boss.get("/budget/charges").text
        assert page.count("WHERE age &lt; 77") == 1
        reported = rows_of(serving.books, serving.datasets["shop"].policy(), ReportedBy.TABLE)
        assert all(f'<th scope="row">{row.name}' in page for row in reported)
        first = _numbers(page)
        older = boss.get(f"/budget/charges?before={first[0]}").text
        second = _numbers(older)
        assert len(first) == len(second) == 1
        assert first[0] > second[0]
        assert "There is none" in boss.get("/budget/charges?before=1").text
        for wrong in ("-1", "1.5", "x", "9" * 30, "\u0663"):
            assert boss.get(f"/budget/charges?before={wrong}").status_code == 404


def test_a_view_of_charges_reads_the_books_once(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was charged and what that adds up to are of one moment, while others go on to ask."""
    read: list[Path] = []
    opened = schema.reading

    def counted(path: Path) -> AbstractContextManager[sqlite3.Connection]:
        read.append(path)
        return opened(path)

    monkeypatch.setattr(schema, "reading", counted)
    monkeypatch.setattr(replay, "reading", counted)
    with browsing(serving) as boss:
        assert boss.log_in("boss", "shop").status_code == 303
        read.clear()
        assert "One by one" in boss.get("/budget/charges").text
    assert len(read) == 1


def _numbers(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'<tr><th scope="row" class="number">(\d+)', page)]


def test_books_that_cannot_be_read_are_told_to_administrators_in_words(
    tmp_path: Path, served: Served, serving: Serving
) -> None:
    with browsing(serving_of(served, dict(serving.datasets), books=InFiles(tmp_path / "none"))) as boss:
        assert boss.log_in("boss", "shop").status_code == 303
        page = boss.get("/budget/charges")
    assert page.status_code == 200
    assert 'role="alert"' in page.text
    assert str(tmp_path) not in page.text


# --- questions that are kept ----------------------------------------------------------------------------


def test_a_question_is_kept_renamed_and_deleted(ann: Browser) -> None:
    evil = "<script>alert(1)</script>"
    assert "None yet" in ann.get("/ask/kept").text
    kept = ann.post("/ask/keep", label=evil, statement="SELECT 1 < 2").text
    assert "SELECT 1 &lt; 2" in kept
    assert evil not in kept
    assert ann.post("/ask/keep", label=evil, statement="SELECT 3").status_code == 409
    renamed = ann.post("/ask/rename", label=evil, new="plain").text
    assert 'value="plain"' in renamed
    assert "&lt;script" not in renamed
    assert "None yet" in ann.post("/ask/delete", label="plain").text


def test_no_login_reads_or_changes_the_questions_that_another_has_kept(serving: Serving, ann: Browser) -> None:
    ann.post("/ask/keep", label="mine", statement="SELECT 1234567")
    with browsing(serving) as bob:
        assert bob.log_in("bob", "shop").status_code == 303
        pages = [bob.get("/ask/kept"), bob.post("/ask/rename", label="mine", new="yours")]
        pages += [bob.post("/ask/delete", label="mine"), bob.get("/ask")]
    assert all("1234567" not in page.text for page in pages)
    assert "1234567" in ann.get("/ask/kept").text
    ann.post("/ask/delete", label="mine")


def test_files_that_cannot_be_used_are_not_named_to_analysts(tmp_path: Path, served: Served, serving: Serving) -> None:
    (tmp_path / "questions").write_text("in the way")
    with browsing(serving_of(served, dict(serving.datasets), state=tmp_path)) as ann:
        assert ann.log_in("ann", "shop").status_code == 303
        answer = ann.post("/ask/keep", label="mine", statement="SELECT 1")
    assert answer.status_code == 409
    assert "internal error" in answer.text
    assert str(tmp_path) not in answer.text
