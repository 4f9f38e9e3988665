"""The console as `hushql serve --console` runs it: tables, budgets and the policy, for analysts and administrators."""

from __future__ import annotations

import html
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from httpx2 import Client

from proxy.admin.files import read_policy
from proxy.admin.kept_policies import kept_policies
from proxy.admin.ledger_place import InFiles, inspect
from proxy.dp.attacker import right_guess_of_secret_up
from proxy.plan.charge import AccountKind
from proxy.wire.scram import make_verifier
from tests.e2e.console import Browser, data_of
from tests.e2e.served import PASSWORD, Served, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop

EVIL = "<script>alert(1)</script>"
LOGINS = {"ann": "analyst", "bob": "analyst", "dan": "analyst", "boss": "boss", "chef": "boss", "clerk": "clerk"}
_PATIENCE_S = 60.0
LITTLE = {"dataset": {"epsilon": 20}, "user": {"epsilon": 3}, "session": {"epsilon": 2}}


@dataclass(frozen=True, slots=True)
class Site:
    """A served shop with a console. policy: its file."""

    served: Served
    policy: Path
    base: str

    @contextmanager
    def browser(self, login: str) -> Iterator[Browser]:
        with Client(base_url=self.base, follow_redirects=False, timeout=60) as client:
            browser = Browser(client)
            assert browser.log_in(login, "shop").status_code == 303
            yield browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("console")
    write_shop(folder / "shop.duckdb")
    write_users(folder / "users.yaml", LOGINS, "tables: [stores, orders]")
    shop = shop_policy()
    privacy = {**shop["privacy"], "query_epsilon": 0.5}  # type: ignore[dict-item]  # a mapping by the schema
    document = shop_policy(budgets=LITTLE, privacy=privacy)
    tables: dict[str, dict[str, object]] = document["tables"]  # type: ignore[assignment]  # a mapping by the schema
    tables["users"]["comment"] = f"People {EVIL}"
    policy = write_yaml(folder / "shop.yaml", document)
    secret = {**os.environ, "A_SECRET": "swordfish"}
    with serving(folder, [policy], secret, options=("--console", "127.0.0.1:0")) as running:
        port = re.search(r"the console is at .* port (\d+)", running.log.read_text())
        assert port is not None
        yield Site(running, policy, f"http://127.0.0.1:{port[1]}")


@pytest.fixture
def ann(site: Site) -> Iterator[Browser]:
    with site.browser("ann") as browser:
        yield browser


@pytest.fixture
def boss(site: Site) -> Iterator[Browser]:
    with site.browser("boss") as browser:
        yield browser


def mark_of(page: str) -> str:
    found = re.search(r'name="based_on" value="(\w+)"', page)
    assert found is not None
    return found[1]


def text_of(page: str) -> str:
    found = re.search(r'<textarea id="text"[^>]*>(.*?)</textarea>', page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


# --- tables ---------------------------------------------------------------------------------------------


def test_every_example_question_can_be_asked(ann: Browser) -> None:
    page = ann.get("/tables").text
    statements = [html.unescape(s) for s in re.findall(r'name="statement" value="([^"]*)"', page)]
    assert len(statements) > 10
    assert any("avg(" in s for s in statements)
    for statement in statements:
        forecast = ann.post("/ask/forecast", statement=statement).text
        assert 'role="alert"' not in forecast, (statement, forecast)


def test_an_example_is_opened_without_standing_in_an_address(ann: Browser) -> None:
    page = ann.post("/ask", statement="SELECT count(*) FROM users").text
    assert ">SELECT count(*) FROM users</textarea>" in page


def test_tables_and_columns_that_a_role_may_not_see_are_nowhere(site: Site) -> None:
    with site.browser("clerk") as clerk:
        page = clerk.get("/tables").text
    assert "orders" in page
    assert "items" not in page
    assert "People" not in page


def test_scripts_in_comments_are_text(ann: Browser) -> None:
    page = ann.get("/tables").text
    assert "People &lt;script&gt;" in page
    assert "<script>alert" not in page


# --- budgets --------------------------------------------------------------------------------------------


def test_a_login_sees_its_own_accounts_and_questions_and_nobody_elses(site: Site, ann: Browser) -> None:
    with site.browser("bob") as bob:
        bob.post("/ask/run", statement="SELECT count(*) FROM items WHERE 2 = 2")
        assert "2 = 2" in bob.get("/budget").text
    page = ann.get("/budget").text
    assert "2 = 2" not in page
    assert "Everybody" not in page
    assert "dataset" not in page
    assert "shop/bob" not in page


def test_an_administrator_sees_everybodys_accounts_and_tops_up_in_their_own_name(site: Site, boss: Browser) -> None:
    with site.browser("bob") as bob:
        bob.post("/ask/run", statement="SELECT count(*) FROM items")
    assert "shop/bob" in boss.get("/budget").text
    fields = {"kind": "user", "account": "shop/bob", "epsilon": "1", "reason": "a deadline"}
    assert "granted so far epsilon 1" in boss.post("/budget/top-up", **fields).text
    for wrong in ({"reason": ""}, {"account": "elsewhere/bob"}, {"kind": "session"}, {"epsilon": "much"}):
        page = boss.post("/budget/top-up", **{**fields, **wrong}).text
        assert "granted so far" not in page
        assert 'role="alert"' in page
    with site.browser("bob") as bob:
        limit = bob.post("/ask/run", statement="SELECT epsilon_limit FROM hush.budget WHERE kind = 'user'")
        assert float(data_of(limit)["rows"][0][0]) > 3
    boss.post("/budget/top-up", **{**fields, "reason": f"another {EVIL}"})
    given = html.unescape(re.sub(r"<[^>]*>", " ", boss.get("/budget/charges").text))
    for words in ("user shop/bob", "a deadline", f"another {EVIL}", "boss"):
        assert words in given


def test_administrators_see_what_the_present_spending_lets_an_attacker_guess(site: Site, boss: Browser) -> None:
    """Of everybody, and of the one role, login and session that spent most; to the last digit as the claim has it."""
    with site.browser("bob") as bob:
        bob.post("/ask/run", statement="SELECT count(*) FROM items WHERE 5 = 5")
    page = boss.post("/policy/check", text=text_of(boss.get("/policy").text)).text
    policy, totals = read_policy(site.policy, os.environ), inspect(InFiles(site.served.folder / "state")).totals
    for kind, words in ((AccountKind.DATASET, "everybody"), (AccountKind.USER, "the user that spent most")):
        most = max((t.spent for t in totals if t.kind is kind), key=lambda cost: cost.pico)
        (row,) = re.findall(rf"<tr><th scope=\"row\">spent so far: by {words}(.*?)\n", page)
        share = right_guess_of_secret_up(policy.privacy, most.pico, most.atto)
        assert f"<td>{math.ceil(share * 1000) / 10:.1f} %" in row


def test_an_account_with_little_left_is_told_first(site: Site) -> None:
    """Also that of the session in which the browser asks, rather than of another one of it."""
    with site.browser("dan") as dan:
        assert "Little left" not in dan.get("/budget").text
        dan.post("/ask/run", statement="SELECT count(*) FROM users WHERE 6 = 6", epsilon="1.99")
        assert re.search(r"session <code>[^<]*</code>\s*<td class=\"number\">1.99<td", dan.get("/budget").text)
        assert re.search(r"Little left:</strong> less than 20 % of session [^.]*\.</p>", dan.get("/budget").text)


@pytest.mark.parametrize(
    "path",
    [
        "/policy",
        "/policy/check",
        "/policy/questions",
        "/policy/apply",
        "/policy/back",
        "/budget/top-up",
        "/budget/charges",
    ],
)
def test_an_analyst_reaches_no_page_of_administrators(ann: Browser, path: str) -> None:
    answer = ann.get(path) if path in {"/policy", "/budget/charges"} else ann.post(path, text="x", version="x")
    assert answer.status_code == 403
    assert "for administrators" in answer.text
    assert "Policy" not in ann.get("/ask").text


# --- the policy -----------------------------------------------------------------------------------------


def test_an_edit_is_refused_mended_applied_and_taken_back(site: Site, boss: Browser) -> None:
    page = boss.get("/policy").text
    before, mark = text_of(page), mark_of(page)
    assert before == site.policy.read_text()
    wrong = before.replace("epsilon: 20", "epsilon: much")
    assert wrong != before
    line = next(n for n, words in enumerate(wrong.splitlines(), 1) if "much" in words)
    assert f'data-line="{line}"' in boss.post("/policy/check", text=wrong).text
    assert boss.post("/policy/apply", text=wrong, based_on=mark).status_code == 409
    right = before.replace("epsilon: 20", "epsilon: 19")
    judged = boss.post("/policy/check", text=right).text
    assert "<strong>closes</strong> <code>budgets.dataset</code>" in judged
    assert "What an attacker gains at most" in judged
    applied = boss.post("/policy/apply", text=right, based_on=mark)
    assert "The policy is in force" in applied.text
    assert site.policy.read_text() == right
    limit = boss.post("/ask/run", statement="SELECT epsilon_limit FROM hush.budget WHERE kind = 'dataset'")
    assert [round(float(v)) for v in data_of(limit)["rows"][0]] == [19]
    version = re.search(r'name="version" value="([^"]+)"', applied.text)
    assert version is not None
    back = boss.post("/policy/back", version=version[1], based_on=mark_of(applied.text))
    assert "The policy is in force" in back.text
    assert site.policy.read_text() == before
    kept = kept_policies(site.served.folder / "state")
    assert [one.path.read_text() for one in kept[-3:]] == [before, right, before]
    assert version[1] == kept[-3].digest
    assert "shop: boss has put a policy in force from the console" in site.served.log.read_text()


def test_of_two_administrators_the_second_is_told_and_overwrites_nothing(site: Site, boss: Browser) -> None:
    with site.browser("chef") as chef:
        page = chef.get("/policy").text
        mark, before = mark_of(page), text_of(page)
        first = before + "# chef was here\n"
        assert "in force" in boss.post("/policy/apply", text=first, based_on=mark_of(boss.get("/policy").text)).text
        for _ in range(2):  # pressing the button again does not help
            second = chef.post("/policy/apply", text=before + "# and so was I\n", based_on=mark)
            assert second.status_code == 409
            assert "somebody else has changed the policy" in second.text
            mark = mark_of(second.text)
    assert site.policy.read_text() == first


def test_an_edit_that_the_data_contradict_is_put_back(site: Site, boss: Browser) -> None:
    page = boss.get("/policy").text
    before = text_of(page)
    wrong = before.replace("tables:\n", "tables:\n  nowhere: {unit: a, columns: {a: {type: integer, key: true}}}\n", 1)
    answer = boss.post("/policy/apply", text=wrong, based_on=mark_of(page))
    assert answer.status_code == 409
    assert "the edited file was not taken" in answer.text
    assert site.policy.read_text() == before


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("dataset: shop\n", "dataset: other\n", "dataset: is changed in the file on the server"),
        ("shop.duckdb", "other.duckdb", "source: is changed in the file on the server"),
        ("users.yaml", "others.yaml", "access.users_file: is changed in the file on the server"),
        *(
            ("comment: People <script>alert(1)</script>", f"comment: {words}", "tables.users.comment: variables of")
            for words in (
                "${A_SECRET}",
                "${HOME:-x}",
                r'"\x24{A_SECRET}"',
                r'"$\u007bA_SECRET}"',
                '"$\\\n      {A_SECRET}"',
            )
        ),
    ],
)
def test_where_data_and_logins_are_and_the_environment_are_out_of_reach(
    boss: Browser, old: str, new: str, words: str
) -> None:
    page = boss.get("/policy").text
    edited = text_of(page).replace(old, new)
    assert edited != text_of(page)
    for path in ("/policy/check", "/policy/apply"):
        answer = boss.post(path, text=edited, based_on=mark_of(page)).text
        assert words in html.unescape(answer)
        assert "swordfish" not in answer


@pytest.mark.parametrize("name", ["../../../etc/passwd", "x.yaml", "", "0" * 64])
def test_no_other_file_is_a_version(boss: Browser, name: str) -> None:
    answer = boss.post("/policy/back", version=name, based_on=mark_of(boss.get("/policy").text))
    assert answer.status_code == 409
    assert "0 versions begin with" in answer.text or "is too short" in answer.text


def test_typical_questions_are_compared(boss: Browser) -> None:
    text = text_of(boss.get("/policy").text)
    page = boss.post("/policy/questions", text=text).text
    assert "SELECT count(*) FROM users" in page
    assert "off by" in page
    assert page.count("the same") >= 10


def test_another_password_ends_what_browsers_of_the_login_may_do(site: Site) -> None:
    """Also on pages that ask nothing of the listener: whoever took a cookie changes no policy and grants nothing."""
    users, text = site.policy.parent / "users.yaml", site.policy.read_text()
    before, other = users.read_text(), make_verifier("another password", salt=b"sixteen bytes ..").text()
    gift = {"kind": "user", "account": "shop/ann", "epsilon": "1", "reason": "mine"}
    with site.browser("chef") as chef, site.browser("chef") as again:
        edit = {"text": f"{text}# chef was here\n", "based_on": mark_of(chef.get("/policy").text)}
        lines = (f"  chef: {{scram: '{other}', role: boss}}" if "chef" in w else w for w in before.splitlines())
        users.write_text("\n".join(lines))
        try:
            _log_in_at_last(site, "another password")
            assert chef.post("/policy/apply", **edit).status_code == 401
            assert again.post("/budget/top-up", **gift).status_code == 401
            assert chef.get("/policy").status_code == 303
            assert site.policy.read_text() == text
        finally:
            users.write_text(before)
            _log_in_at_last(site, PASSWORD)


def _log_in_at_last(site: Site, password: str) -> None:
    """Wait until a password of chef's is taken."""
    with Client(base_url=site.base, follow_redirects=False, timeout=60) as client:
        browser = Browser(client)
        _wait_until(lambda: browser.log_in("chef", "shop", password).status_code == 303)


def _wait_until(is_so: Callable[[], bool]) -> None:
    """Until the users file is read again, however soon requests are answered."""
    end = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_a_removed_login_is_a_stranger_at_once(site: Site) -> None:
    users = site.policy.parent / "users.yaml"
    before = users.read_text()
    with site.browser("chef") as chef:
        users.write_text("\n".join(line for line in before.splitlines() if "chef" not in line))
        try:
            _wait_until(lambda: chef.get("/budget").status_code == 303)
            assert chef.get("/ask").status_code == 303
        finally:
            users.write_text(before)
