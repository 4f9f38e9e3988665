"""The console on a dataset that is unlike the shop: wide, pure, with local answers, and with markup in every name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.clients.console_clinic import MARKUP, NUMBERS, SCRIPT, VALUES, WIDE, clinic_site
from tests.clients.console_site import ConsoleSite, Visitor, chromium

pytestmark = pytest.mark.clients
_PAGES = {"ann": ("/ask", "/tables", "/budget"), "nurse": ("/ask", "/tables", "/budget"),
          "boss": ("/ask", "/tables", "/budget", "/budget/charges", "/policy")}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleSite]:
    with clinic_site(tmp_path_factory.mktemp("clinic")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@contextmanager
def visiting(site: ConsoleSite, browser: Browser, login: str) -> Iterator[Visitor]:
    """A window of its own, in which nothing may have run, nor been stopped from running, at the end."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    visitor = Visitor(context.new_page(), site)
    visitor.log_in(login, database="clinic")
    yield visitor
    assert is_quiet(visitor.page)
    assert visitor.complaints == []
    context.close()


def is_quiet(page: Page) -> bool:
    """Whether no text became markup: neither ran nor is there as an element."""
    page.wait_for_load_state("networkidle")
    inside = page.locator("main img, main b, main i, main script, main [onerror]")
    return page.title() != "evil" and inside.count() == 0


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("login", _PAGES)
def test_each_page_shows_names_as_they_are_to_each_role(site: ConsoleSite, browser: Browser, login: str) -> None:
    with visiting(site, browser, login) as visitor:
        for path in _PAGES[login]:
            visitor.go(path)
            assert is_quiet(visitor.page), path
        visitor.go("/tables")
        text = visitor.page.locator("main").inner_text()
        assert WIDE in text
        names = [name for name in (*NUMBERS[1:], "Δ Group", "is Ill?", "Münzen", "wards") if name != MARKUP]
        assert [name for name in names if name in text] == ([] if login == "nurse" else names)
        for path in {*_PAGES["boss"]} - {*_PAGES[login]}:
            visitor.go(path)
            expect(visitor.page.locator("main")).to_contain_text("for administrators")


def test_every_example_question_works(site: ConsoleSite, browser: Browser) -> None:
    with visiting(site, browser, "ann") as visitor:
        visitor.go("/tables")
        count = visitor.page.locator("button.question").count()
        assert count >= 8
        for at in range(count):
            visitor.go("/tables")
            visitor.page.locator("button.question").nth(at).click()
            visitor.page.locator(".cm-content").press("Control+Enter")
            expect(visitor.page.locator("#answer table, #answer [role=alert]").first).to_be_visible()
            assert visitor.page.locator("#answer [role=alert]").all_inner_texts() == []
            assert is_quiet(visitor.page)


def test_markup_in_groups_is_text_in_the_table_the_chart_and_the_download(site: ConsoleSite, browser: Browser) -> None:
    with visiting(site, browser, "ann") as visitor:
        statement = f"SELECT {quoted(SCRIPT)}, count(*) AS {quoted(MARKUP)} FROM {quoted(WIDE)} GROUP BY 1"
        visitor.ask(statement)
        for kind in ("bars", "lines", "points"):
            visitor.page.get_by_label("Show as").select_option(kind)
            visitor.page.locator(".chart svg").wait_for()
            assert is_quiet(visitor.page)
        assert MARKUP in visitor.page.locator(".chart").inner_text()
        with visitor.page.expect_download() as saved:
            visitor.page.get_by_role("button", name="SVG").click()
        picture = saved.value.path().read_text()
        assert "<img" not in picture
        assert "&lt;img" in picture
        with visitor.page.expect_download() as saved:
            visitor.page.get_by_role("button", name="CSV").click()
        head, *rows = csv.reader(io.StringIO(saved.value.path().read_text()))
        assert head[:2] == [SCRIPT, MARKUP]
        assert {row[0] for row in rows} == {("'" if v[:1] in {"=", "-"} else "") + v for v in VALUES}
        visitor.ask(f"SELECT {quoted(SCRIPT + '!')} FROM {quoted(WIDE)}")
        expect(visitor.page.locator("#answer [role=alert]")).to_contain_text(SCRIPT)


def test_markup_is_text_in_labels_of_kept_questions_reasons_and_errors_of_forms(
    site: ConsoleSite, browser: Browser
) -> None:
    with visiting(site, browser, "boss") as visitor:
        visitor.write(f"SELECT '{SCRIPT.replace(chr(39), chr(39) * 2)}' AS kept")
        visitor.page.get_by_text("Kept questions").click()
        visitor.page.locator("#keep input").fill(MARKUP)
        visitor.page.locator("#keep button").click()
        expect(visitor.page.locator("#kept").get_by_label("Label")).to_have_value(MARKUP)
        assert is_quiet(visitor.page)
        visitor.page.locator("#kept").get_by_role("button", name="Run").click()
        expect(visitor.page.locator("#answer td")).to_have_text(SCRIPT)
        visitor.page.locator("#kept").get_by_role("button", name="Delete").click()
        for account, words in (("clinic/ann", "granted so far"), (f"clinic/{MARKUP}", MARKUP)):
            visitor.go("/budget")
            form = visitor.page.locator("form[action='/budget/top-up']")
            form.get_by_label("Kind").select_option("user")
            form.get_by_label("Account").fill(account)
            form.get_by_label("Epsilon").fill("1")
            form.get_by_label("Reason").fill(f"because {SCRIPT}")
            form.get_by_role("button").click()
            expect(visitor.page.locator("main > .card").first).to_contain_text(words)
            assert is_quiet(visitor.page)
        visitor.go("/budget/charges")
        expect(visitor.page.locator("main")).to_contain_text(f"because {SCRIPT}")


def test_markup_in_the_text_of_a_policy_is_text_in_what_is_said_of_it(site: ConsoleSite, browser: Browser) -> None:
    with visiting(site, browser, "boss") as visitor:
        visitor.go("/policy")
        text = site.policy.read_text()
        visitor.write(text + f'\n"{SCRIPT.replace(chr(34), "")}": 1\n')
        expect(visitor.page.locator("#judgement .faults")).to_contain_text(SCRIPT)
        assert is_quiet(visitor.page)
        visitor.write(text.replace("Patient:in", "<b>who</b>"))
        expect(visitor.page.locator("#judgement")).to_contain_text("<b>who</b>")
        assert is_quiet(visitor.page)
        visitor.page.get_by_role("button", name="Compare typical questions").click()
        expect(visitor.page.locator("#questions table, #questions .faults")).to_be_visible(timeout=120_000)


def test_a_login_that_is_markup_is_text(site: ConsoleSite, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{site.base}/login")
    for label, text in (("Login", MARKUP), ("Password", SCRIPT), ("Database", SCRIPT)):
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text(MARKUP)
    assert is_quiet(page)
    page.close()


def test_a_role_with_few_columns_and_rows_sees_no_other_in_completion(site: ConsoleSite, browser: Browser) -> None:
    with visiting(site, browser, "nurse") as visitor:
        known = visitor.page.locator("[data-completion]").get_attribute("data-completion") or ""
        assert "Größe" in known.encode().decode("unicode_escape") or "Größe" in known
        assert "Blood Pressure" not in known
        visitor.ask(f'SELECT avg("Größe") FROM {quoted(WIDE)}')
        expect(visitor.page.locator("#answer td").first).to_be_visible()
        visitor.ask(f'SELECT avg("Blood Pressure") FROM {quoted(WIDE)}')
        expect(visitor.page.locator("#answer [role=alert]")).to_contain_text("Blood Pressure")


def test_an_answer_of_a_local_table_is_free_and_has_its_interval(site: ConsoleSite, browser: Browser) -> None:
    with visiting(site, browser, "ann") as visitor:
        visitor.ask('SELECT region, count(*) FILTER (WHERE smokes) AS n FROM "Münzen" GROUP BY region')
        expect(visitor.page.locator("#answer td.interval").first).to_contain_text(" to ")
        visitor.go("/budget")
        expect(visitor.page.locator("main")).not_to_contain_text("little left")
