"""The console in a real browser: what people do on each page, what must not run, and at which sizes it can be used."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, expect

from tests.clients.console_site import EVIL, ConsoleSite, Visitor, chromium, console_site
from tests.e2e.console import ENDLESS

pytestmark = pytest.mark.clients
AXE = Path(__file__).parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
#: Names of the files of a page, and how many bytes of each came from the server for this visit.
_LOADED = "performance.getEntriesByType('resource').map((file) => [file.name.split('/').pop(), file.transferSize])"
GROUPED = "SELECT status, count(*) AS n FROM orders GROUP BY status"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleSite]:
    with console_site(tmp_path_factory.mktemp("console")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def visitor(site: ConsoleSite, browser: Browser) -> Iterator[Visitor]:
    """Nothing that a page does may break its own policy."""
    page = browser.new_page()
    found = Visitor(page, site)
    yield found
    page.close()
    assert found.complaints == []


@pytest.fixture
def ann(visitor: Visitor) -> Visitor:
    visitor.log_in("ann")
    return visitor


def test_an_answer_has_error_bars_that_are_those_of_the_wire(site: ConsoleSite, ann: Visitor) -> None:
    ann.ask(f"SELECT 1;\n{GROUPED}")
    with site.served.connect("shop", "ann") as client:
        rows = client.execute(
            "SELECT status, count(*), hush.low(count(*)), hush.high(count(*)) FROM orders GROUP BY status"
        ).fetchall()
    lines = ann.page.locator("#answer tbody tr").all()
    shown = [line.locator("td").all_inner_texts() for line in lines]
    assert [(s or "NULL", f"{n}", f"{low:g} to {high:g}") for s, n, low, high in rows] == [tuple(r) for r in shown]
    ann.page.get_by_label("Show as").select_option("bars")
    expect(ann.page.locator(".chart svg .interval line")).to_have_count(len(rows))
    expect(ann.page.locator(".chart svg [data-mark=bar] rect")).to_have_count(len(rows))
    for kind in ("lines", "points"):
        ann.page.get_by_label("Show as").select_option(kind)
        expect(ann.page.locator(".chart svg .interval line")).to_have_count(len(rows))


def test_an_answer_is_saved_as_csv_and_as_pictures(ann: Visitor) -> None:
    ann.ask("SELECT '=1+1' AS formula, count(*) AS n FROM orders")
    with ann.page.expect_download() as csv:
        ann.page.get_by_role("button", name="CSV").click()
    text = csv.value.path().read_text()
    assert text.startswith("formula,n,n_low,n_high\n'=1+1,")
    ann.page.get_by_label("Show as").select_option("bars")
    for name, beginning in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with ann.page.expect_download() as picture:
            ann.page.get_by_role("button", name=name).click()
        assert picture.value.path().read_bytes().startswith(beginning)


def test_cells_and_rows_are_chosen_and_copied_with_the_keyboard_as_text(ann: Visitor) -> None:
    ann.page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def clipboard() -> str:
        text: str = ann.page.evaluate("navigator.clipboard.readText()")
        return text

    rows = "(1, '=1+1', E'a\\tb', NULL), (2, E'two\\nlines', '<b>x</b>', 'NULL')"
    ann.ask(f"SELECT * FROM (VALUES {rows}) v (n, formula, tab, empty)")
    keyboard, copied = ann.page.keyboard, ann.page.locator("#answer .copied")
    ann.page.get_by_role("button", name="Copy").click()
    expect(copied).to_have_text("copied 2 rows with the names of their columns")
    first, second = '1\t\'=1+1\t"a\tb"\t\r\n', '2\t"two\nlines"\t<b>x</b>\tNULL\r\n'
    assert clipboard() == f"n\tformula\ttab\tempty\r\n{first}{second}"
    ann.page.locator("#answer .scroll").focus()
    keyboard.press("Tab")  # into the grid, where arrows move
    for _ in range(2):
        keyboard.press("ArrowRight")
    keyboard.press("Control+c")
    expect(copied).to_have_text("copied one cell")
    assert clipboard() == "a\tb"
    keyboard.press("ArrowLeft")
    keyboard.press("Control+c")
    expect(ann.page.locator("#answer td[aria-selected]")).to_have_text(["=1+1"])
    assert clipboard() == "=1+1"
    keyboard.press("ArrowDown")
    keyboard.press("Shift+ArrowRight")
    keyboard.press("Control+c")
    expect(copied).to_have_text("copied 1 by 2 cells")
    assert clipboard() == '"two\nlines"\t<b>x</b>\r\n'
    keyboard.press("Shift+Space")
    keyboard.press("Control+c")
    assert clipboard() == second
    keyboard.press("Control+a")
    keyboard.press("Control+c")
    assert clipboard() == first + second
    ann.page.locator("#answer td").first.click()
    ann.page.locator("#answer td").nth(2).click(modifiers=["Shift"])
    ann.page.get_by_role("button", name="Copy").click()
    expect(copied).to_have_text("copied 1 by 3 cells")
    assert clipboard() == '1\t\'=1+1\t"a\tb"\r\n'


def test_an_interval_is_copied_as_it_is_read_and_as_two_fields(ann: Visitor) -> None:
    ann.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ann.ask("SELECT count(*) AS n FROM orders")
    number, interval = ann.page.locator("#answer td").all_inner_texts()
    ann.page.locator("#answer td").nth(1).click()
    ann.page.keyboard.press("Control+c")
    assert ann.page.evaluate("navigator.clipboard.readText()") == interval
    ann.page.keyboard.press("Shift+Space")
    ann.page.keyboard.press("Control+c")
    low, high = interval.split(" to ")
    assert ann.page.evaluate("navigator.clipboard.readText()") == f"{number}\t{low}\t{high}\r\n"


def test_a_question_is_kept_under_a_label_and_run_again_on_another_day(ann: Visitor) -> None:
    ann.write("SELECT 1;\nSELECT count(*) AS kept FROM users")
    ann.page.get_by_text("Kept questions").click()
    kept = ann.page.locator("#kept")
    expect(kept).to_contain_text("None yet")
    ann.page.locator("#keep input").fill(EVIL[:90])
    ann.page.locator("#keep button").click()
    expect(kept.locator("code")).to_have_text("SELECT count(*) AS kept FROM users")
    kept.get_by_label("Label").fill("people")
    kept.get_by_role("button", name="Rename").click()
    expect(kept.get_by_label("Label")).to_have_value("people")
    ann.go("/ask")
    ann.page.get_by_text("Kept questions").click()
    kept.get_by_role("button", name="Run people").click()
    expect(ann.page.locator("#answer thead th").first).to_have_text("kept")
    kept.get_by_role("button", name="Delete people").click()
    expect(kept).to_contain_text("None yet")
    assert ann.page.locator("html").get_attribute("data-evil") is None


def test_a_statement_that_runs_is_cancelled(ann: Visitor) -> None:
    ann.write(ENDLESS)
    began = time.monotonic()
    ann.page.keyboard.press("Control+Enter")
    cancel = ann.page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_visible()
    with ann.page.expect_response(re.compile("/ask/run")):
        cancel.click()
    expect(ann.page.locator("#answer [role=alert]")).to_contain_text("due to user request")
    expect(cancel).to_be_hidden()
    assert time.monotonic() - began < 100
    ann.ask("SELECT 'still here' AS words")
    expect(ann.page.locator("#answer td")).to_have_text("still here")


@pytest.mark.parametrize("path", ["/ask", "/policy"])
def test_a_page_loads_its_scripts_once_and_waits_for_no_editor_nor_charts(visitor: Visitor, path: str) -> None:
    visitor.log_in("boss")
    seen = []
    for _ in range(2):
        visitor.go(path)
        visitor.page.locator(".cm-content").wait_for()
        seen.append(visitor.page.evaluate(_LOADED))
    assert all(name != "plot.js" for loaded in seen for name, _ in loaded)
    assert "codemirror.js" in dict(seen[1])
    assert {size for name, size in seen[1] if name.endswith((".js", ".css"))} == {0}


def test_a_forecast_comes_as_one_types_and_moves_with_the_slider(ann: Visitor) -> None:
    ann.write(GROUPED)
    expect(ann.page.locator("#forecast .cost")).to_contain_text("Would cost epsilon 1")
    ann.page.get_by_label("Epsilon, from 0.01 to 10").fill("0.7")
    expect(ann.page.locator("#forecast .cost")).to_contain_text("Would cost epsilon 5")
    expect(ann.page.locator("#epsilon")).to_have_value("5")


def test_names_are_completed(ann: Visitor) -> None:
    ann.page.locator(".cm-content").click()
    ann.page.keyboard.type("SELECT count(*) FROM ord")
    expect(ann.page.locator(".cm-tooltip-autocomplete")).to_contain_text("orders")
    ann.page.keyboard.press("Escape")


@pytest.mark.parametrize(
    "typed, proposed, written",
    [
        ("SELECT 1 FROM orders WHERE status = 'pa", "'paid'", "SELECT 1 FROM orders WHERE status = 'paid'"),
        ("SELECT 1 FROM orders WHERE status IN ('paid', 'ref", "'refunded'",
         "SELECT 1 FROM orders WHERE status IN ('paid', 'refunded')"),
        ("SET hush.intervals = o", "on", "SET hush.intervals = on"),
        ("SET hush.digits TO al", "'all'", "SET hush.digits TO 'all'"),
        ("SHOW hush.targ", "hush.target_error", "SHOW hush.target_error"),
    ],
)  # fmt: skip
def test_listed_values_and_values_of_settings_are_completed(
    ann: Visitor, typed: str, proposed: str, written: str
) -> None:
    ann.page.locator(".cm-content").click()
    ann.page.keyboard.type(typed)
    expect(ann.page.locator(".cm-tooltip-autocomplete")).to_contain_text(proposed)
    ann.page.wait_for_timeout(200)  # the editor takes no Enter for a choice that appeared this moment
    ann.page.keyboard.press("Enter")
    expect(ann.page.locator(".cm-content")).to_have_text(written)


def test_a_repeat_was_free_and_a_refusal_proposes_what_works(ann: Visitor) -> None:
    for _ in range(2):
        ann.ask("SELECT count(*) FROM users")
    expect(ann.page.locator("#answer")).to_contain_text("This was free")
    ann.ask("SELECT * FROM users")
    ann.page.locator("#answer").get_by_role("button", name="Write this into the editor").click()
    expect(ann.page.locator(".cm-content")).to_have_text("SELECT count(*) FROM users")


def test_nothing_that_people_or_data_name_is_run(site: ConsoleSite, visitor: Visitor) -> None:
    visitor.log_in("boss")
    name, text = EVIL.replace('"', '""'), EVIL.replace("'", "''")
    visitor.ask(f'SELECT \'{text}\' AS "{name[:50]}", count(*) AS "{name[-50:]}" FROM users')
    visitor.page.get_by_label("Show as").select_option("bars")
    visitor.page.locator(".chart svg").wait_for()
    seen = [visitor.page.locator("html").get_attribute("data-evil")]
    visitor.ask(f'SELECT "{name[:50]}" FROM users')
    seen.append(visitor.page.locator("html").get_attribute("data-evil"))
    for path in ("/tables", "/budget", "/policy"):
        visitor.go(path)
        if path == "/policy":
            visitor.page.locator("#judgement h3").first.wait_for()
        visitor.page.wait_for_load_state("networkidle")
        seen.append(visitor.page.locator("html").get_attribute("data-evil"))
    assert seen == [None] * 5
    visitor.go("/tables")
    assert "<script>" in visitor.page.locator("main").inner_text()


def test_a_policy_is_edited_refused_mended_applied_and_taken_back(site: ConsoleSite, visitor: Visitor) -> None:
    visitor.log_in("boss")
    visitor.go("/policy")
    before = site.policy.read_text()
    visitor.write(before.replace("epsilon: 1000", "epsilon: much"))
    expect(visitor.page.locator("#judgement .faults li")).to_contain_text("budgets.dataset.epsilon")
    visitor.page.locator(".cm-content").press("Control+Home")
    expect(visitor.page.locator(".cm-lint-marker-error")).to_have_count(1)
    expect(visitor.page.get_by_role("button", name="Apply")).to_be_disabled()
    visitor.write(before.replace("epsilon: 1000", "epsilon: 900"))
    expect(visitor.page.locator("#judgement li").first).to_contain_text("closes")
    expect(visitor.page.locator("#applying")).to_be_hidden()
    shown = "() => { sessionStorage.shown = document.querySelector('#applying').checkVisibility() }"
    visitor.page.evaluate(f"window.addEventListener('submit', {shown})")  # the page is gone before one can look
    visitor.page.get_by_role("button", name="Apply").click()
    expect(visitor.page.get_by_role("status").first).to_contain_text("in force")
    assert visitor.page.evaluate("sessionStorage.shown") == "true"
    assert "epsilon: 900" in site.policy.read_text()
    visitor.page.get_by_role("button", name="Back to this").first.click()
    expect(visitor.page.get_by_role("status").first).to_contain_text("in force")
    assert site.policy.read_text() == before


def test_keys_and_values_of_a_policy_are_completed(site: ConsoleSite, visitor: Visitor) -> None:
    visitor.log_in("boss")
    visitor.go("/policy")
    visitor.write("version: 1\n")
    visitor.page.keyboard.press("Control+End")
    for typed, proposed in (("priv", "privacy"), ("acc", "accounting"), ("p", "pure")):
        visitor.page.keyboard.type(typed)
        expect(visitor.page.locator(".cm-tooltip-autocomplete [aria-selected]")).to_contain_text(proposed)
        visitor.page.wait_for_timeout(200)  # the editor takes no Enter for a choice that appeared this moment
        visitor.page.keyboard.press("Enter")
        if proposed == "privacy":
            visitor.page.keyboard.press("Enter")
            visitor.page.keyboard.type("  ")
    lines = visitor.page.locator(".cm-line").all_inner_texts()
    assert [line.rstrip() for line in lines if line.strip()] == ["version: 1", "privacy:", "  accounting: pure"]


def test_a_comparison_shows_that_it_goes_on_and_is_cancelled(site: ConsoleSite, visitor: Visitor) -> None:
    visitor.log_in("boss")
    visitor.go("/policy")
    visitor.page.locator("#judgement h3").first.wait_for()
    asked: list[str] = []
    visitor.page.route("**/policy/questions", lambda route: asked.append(route.request.url))  # never answered
    visitor.page.get_by_role("button", name="Compare typical questions").click()
    progress = visitor.page.locator("#comparing")
    expect(progress).to_contain_text("planning each question twice")
    expect(progress).to_be_visible()
    progress.get_by_role("button", name="Cancel").click()
    expect(progress).to_be_hidden()
    expect(visitor.page.get_by_role("button", name="Compare typical questions")).to_be_enabled()
    assert len(asked) == 1
    assert all("htmx:" in words for words in visitor.complaints)  # which says that a request was ended
    visitor.complaints.clear()
    visitor.page.unroute("**/policy/questions")
    visitor.page.get_by_role("button", name="Compare typical questions").click()
    expect(visitor.page.locator("#questions table")).to_be_visible(timeout=120_000)


def test_a_statement_of_a_mebibyte_is_pasted_and_asked(ann: Visitor) -> None:
    ann.write(f"SELECT length('{'x' * 900_000}') AS letters")
    with ann.page.expect_response(re.compile("/ask/run"), timeout=120_000):
        ann.page.keyboard.press("Control+Enter")
    expect(ann.page.locator("#answer td")).to_have_text("900000")
    ann.write(f"SELECT length('{'x' * 1_100_000}') AS letters")
    with ann.page.expect_response(re.compile("/ask/run"), timeout=120_000):
        ann.page.keyboard.press("Control+Enter")
    expect(ann.page.locator("#answer [role=alert]")).to_contain_text("longer than this server allows", timeout=60_000)


def test_a_form_of_another_site_and_the_token_of_another_login_do_nothing(
    site: ConsoleSite, browser: Browser, ann: Visitor
) -> None:
    """A page elsewhere posts with the victim's browser; a login posts with another one's token."""
    before = site.policy.read_text()
    context = browser.new_context()
    boss = Visitor(context.new_page(), site)
    boss.log_in("boss")
    elsewhere = context.new_page()
    evil = (
        f'<form method="post" action="{site.base}/policy/apply"><input name="text" value="version: 1"></form>'
        f'<form method="post" action="{site.base}/logout"></form>'
    )
    elsewhere.route("http://elsewhere.test/", lambda route: route.fulfill(content_type="text/html", body=evil))
    for at in range(2):
        elsewhere.goto("http://elsewhere.test/")
        with elsewhere.expect_navigation(url=re.compile(f"^{site.base}")) as navigation:
            elsewhere.evaluate(f"document.forms[{at}].submit()")
        assert navigation.value.status in {303, 401, 403} or navigation.value.url.endswith("/login")
    assert site.policy.read_text() == before
    boss.go("/policy")
    token = boss.page.locator("meta[name=csrf]").get_attribute("content")
    asked = {"headers": {"x-csrf-token": token, "content-type": "application/x-www-form-urlencoded"}, "method": "POST"}
    status = "async (asked) => (await fetch('/ask/run', {...asked, body: 'statement=SELECT+1'})).status"
    assert ann.page.evaluate(status, asked) == 403
    context.close()


def test_two_browsers_at_once_do_not_see_each_other(site: ConsoleSite, browser: Browser, ann: Visitor) -> None:
    context = browser.new_context()
    bob = Visitor(context.new_page(), site)
    bob.log_in("bob")
    bob.ask("SELECT count(*) FROM users WHERE 3 = 3")
    ann.ask("SELECT count(*) FROM users WHERE 4 = 4")
    for one, own, others in ((ann, "4 = 4", "3 = 3"), (bob, "3 = 3", "4 = 4")):
        one.go("/budget")
        text = one.page.locator("main").inner_text()
        assert own in text
        assert others not in text
    context.close()


def test_everything_can_be_done_with_the_keyboard(visitor: Visitor) -> None:
    visitor.go("/login")
    keyboard = visitor.page.keyboard
    for word in ("ann", "a pass word", "shop"):
        keyboard.type(word)
        keyboard.press("Tab")
    keyboard.press("Enter")
    visitor.page.wait_for_url("**/ask")
    for _ in range(20):
        keyboard.press("Tab")
        if visitor.page.evaluate("document.activeElement.classList.contains('cm-content')"):
            break
    keyboard.insert_text("SELECT count(*) FROM users")
    keyboard.press("Control+Enter")
    expect(visitor.page.locator("#answer table")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1600])
def test_each_page_fits_and_has_no_serious_fault_for_screen_readers(
    site: ConsoleSite, browser: Browser, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light", bypass_csp=True
    )
    boss = Visitor(context.new_page(), site)
    boss.go("/login")
    found = {"/login": _faults(boss)}
    boss.log_in("boss")
    boss.ask(GROUPED)
    boss.page.get_by_label("Show as").select_option("bars")
    found["/ask"] = _faults(boss)
    boss.ask("SELECT * FROM users")
    boss.page.get_by_text("Kept questions").click()
    boss.page.locator("#kept").get_by_text("None yet").wait_for()
    found["/ask refused"] = _faults(boss)
    for path in ("/tables", "/budget", "/budget/charges", "/policy"):
        boss.go(path)
        boss.page.wait_for_load_state("networkidle")
        found[path] = _faults(boss)
    boss.write("version: much")
    boss.page.locator("#judgement .faults").wait_for()
    found["/policy wrong"] = _faults(boss)
    boss.go("/nothing")
    found["/nothing"] = _faults(boss)
    context.close()
    assert {path: faults for path, faults in found.items() if faults} == {}


def _faults(visitor: Visitor) -> list[str]:
    """Whether the page is wider than the window, and what axe calls serious or critical."""
    page = visitor.page
    wide = page.evaluate("document.scrollingElement.scrollWidth > innerWidth")
    page.add_script_tag(path=str(AXE))
    violations = page.evaluate("axe.run().then((found) => found.violations)")
    serious = [v for v in violations if v["impact"] in {"serious", "critical"}]
    words = [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in serious]
    return [*(["wider than the window"] if wide else []), *words]


def test_a_statement_is_sent_whole_however_far_the_editor_has_parsed(ann: Visitor) -> None:
    """Of a long text the editor parses the start alone at first, and what is cut there is another question."""
    ann.write("SELECT 1 AS first;\nSELECT " + "1 + " * 100_000 + "1 AS last_of_all")
    with ann.page.expect_request(re.compile("/ask/run")) as asked:
        ann.page.keyboard.press("Control+Enter")
    statement = parse_qs(asked.value.post_data or "")["statement"][0]
    assert statement.startswith("SELECT 1 +")
    assert statement.endswith("1 AS last_of_all")
