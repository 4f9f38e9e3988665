"""Is a profile kept with what was paid for it, and does it serve nobody else?"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from proxy import app
from proxy.admin.profiles.file import keep_profiles, path_of, read_profiles
from proxy.config import EveryFilter
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.plan.charge import Cost, ReleaseKey, Request
from proxy.plan.profile.profile import PaidPart, ProfilePart, TableProfile
from tests.unit.admin.command_line import CommandLine
from tests.unit.admin.profile_shop import POLICY, config, made, opener_of, policy_of, spent


def paid(part: ProfilePart, column: str, number: int) -> PaidPart:
    key = ReleaseKey(fingerprint=f"f{number}", policy_digest="d", data_version="1")
    return PaidPart(part, column, Request(key=key, cost=Cost(number, 0)))


def test_what_was_paid_for_a_profile_is_kept_with_it_and_what_it_replaced(tmp_path: Path, folder: Path) -> None:
    path, policy = tmp_path / "b.json", policy_of(folder)
    first = TableProfile(
        table="orders", allowed=1000, rows=made(5.0), sums=(), data_version="1",
        paid=(paid(ProfilePart.ROWS, "", 1), paid(ProfilePart.SUM, "amount", 2)),
    )  # fmt: skip
    keep_profiles(path, policy, [first])
    keep_profiles(
        path, policy, [replace(first, paid=(paid(ProfilePart.ROWS, "", 1), paid(ProfilePart.SUM, "amount", 20)))]
    )
    keep_profiles(
        path, policy, [replace(first, paid=(paid(ProfilePart.ROWS, "", 10), paid(ProfilePart.SHARES, "kind", 40)))]
    )
    ((found,), _) = read_profiles(path, policy)
    assert {(p.part, p.column): p.request.cost.pico for p in found.paid} == {
        (ProfilePart.ROWS, ""): 10, (ProfilePart.SUM, "amount"): 20, (ProfilePart.SHARES, "kind"): 40,
    }  # fmt: skip
    assert (found.earlier_pico, found.all_pico) == (1 + 2, 73)


def test_all_that_was_charged_for_a_profile_is_kept_with_it(filled: Path) -> None:
    asked = config(filled, columns=(("users", "age"),), filters=EveryFilter())
    findings = app.profile(asked).findings
    (largest,) = {p.request.cost.pico for f in findings.profiles for p in f.paid if p.part is ProfilePart.ROWS}
    assert sum(f.all_pico for f in findings.profiles) + largest == findings.pico == spent(filled), (
        "but for what administrators alone are told of the largest ages"
    )


@pytest.mark.parametrize("moves", ["the file", "its dataset too"])
def test_a_profile_serves_the_dataset_that_has_paid_for_it(filled: Path, moves: str) -> None:
    """Two datasets over one source have an account each: see docs/claims/profile.md."""
    findings = app.profile(config(filled, epsilon=1.0)).findings
    (filled / "p.yaml").write_text(POLICY.replace("dataset: shop", "dataset: other"), encoding="utf-8")
    text = path_of(filled / "state", "shop").read_text(encoding="utf-8")
    other = policy_of(filled)
    if moves == "its dataset too":
        text = text.replace('"dataset":"shop"', '"dataset":"other"')
    path_of(filled / "state", "other").write_text(text, encoding="utf-8")

    def served() -> tuple[tuple[TableProfile, ...], tuple[str, ...]]:
        with closing(SqliteLedger(filled / "state")) as ledger:
            return opener_of(filled, ledger).profiles(other)

    found, said = served()
    assert found == ()
    words = 'of dataset "shop"' if moves == "the file" else "not paid for by the account of other"
    assert any(words in line for line in said)
    before = spent(filled)
    own = app.profile(config(filled, epsilon=1.0)).findings
    assert own.reused == 0
    assert spent(filled) == before + findings.pico, "charged to both"
    found, said = served()
    assert (tuple(replace(p, earlier_pico=0) for p in found), said) == (own.profiles, ())


def test_a_profile_of_another_promise_is_made_again(filled: Path) -> None:
    app.profile(config(filled, epsilon=1.0))
    (filled / "p.yaml").write_text(POLICY.replace("{unit: customer}", "{unit: customer, group_size: 2}"), "utf-8")
    found, said = read_profiles(path_of(filled / "state", "shop"), policy_of(filled))
    assert found == ()
    assert all("was made under another policy" in line for line in said)


def test_a_profile_that_is_not_told_who_paid_for_is_not_used(tmp_path: Path, folder: Path) -> None:
    path, policy = tmp_path / "b.json", policy_of(folder)
    keep_profiles(path, policy, [TableProfile(table="orders", allowed=1000, rows=made(5.0), sums=(), data_version="1")])
    path.write_text(path.read_text("utf-8").replace('"dataset":"shop",', ""), "utf-8")
    assert read_profiles(path, policy)[0] == ()
    assert "not told whose account has paid for" in read_profiles(path, policy)[1][0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("known", "profiles of orders, users: what a login learns is its own account plus epsilon"),
        ("charged", "profiles are charged to each login, session and role that asks: epsilon of orders 0."),
    ],
)
def test_policy_check_says_what_profiles_tell(filled: Path, command: CommandLine, words: str, told: str) -> None:
    app.profile(config(filled, epsilon=1.0, tables=("orders", "users")))
    (filled / "p.yaml").write_text(POLICY.replace("{unit: customer}", f"{{unit: customer, profile: {words}}}"), "utf-8")
    assert command("policy", "check", str(filled / "p.yaml"), "--state", str(filled / "state")) == 0
    assert told in command.out
