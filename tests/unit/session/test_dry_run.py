"""EXPLAIN without a server."""

from __future__ import annotations

import json

import pytest

from proxy.errors import HushError, UndefinedName, Unsupported
from proxy.session.pricing.dry_run import dry_run
from tests.unit.sql.corpus import Case, cases, plan, policy


def test_plan_as_text() -> None:
    text = dry_run(policy(), "SELECT city, count(*), sum(age) FROM users GROUP BY city;", as_json=False)
    for part in ("epsilon 100", "Key city: private", "Threshold", "clamped", "Private SQL"):
        assert part in text


def test_plan_as_json() -> None:
    told = json.loads(dry_run(policy(), "SELECT plan, count(*) FROM users GROUP BY 1", as_json=True))
    assert told["epsilon"] == 100
    assert [k["values"] for k in told["releases"][0]["keys"]] == [4]


def test_two_blocks_are_two_releases() -> None:
    told = json.loads(
        dry_run(policy(), "SELECT (SELECT count(*) FROM users), (SELECT sum(amount) FROM orders)", as_json=True)
    )
    one = json.loads(dry_run(policy(), "SELECT count(*) FROM users", as_json=True))
    rho = [r["charge"]["rho"] for r in told["releases"]]
    assert rho[0] == rho[1] == pytest.approx(one["releases"][0]["charge"]["rho"] / 2)


@pytest.mark.parametrize(
    "text", ["", "SELECT 1", "SELECT * FROM stores", "SELECT * FROM users", "TABLE orders; TABLE hush.budget",
             "SELECT count(*) FROM users WHERE " + "NOT " * 5000 + "newsletter", "DELETE FROM users", "TABLE orders"],
)  # fmt: skip
def test_what_has_no_plan_is_an_error_with_advice(text: str) -> None:
    with pytest.raises(HushError) as refused:
        dry_run(policy(), text, as_json=False)
    assert refused.value.hint


ALONE = [c for c in cases() if not c.parameters]


@pytest.mark.parametrize("case", [c for c in ALONE if c.reads], ids=lambda c: c.place)
def test_a_text_that_only_postgresql_reads_is_refused_without_one(case: Case) -> None:
    with pytest.raises(Unsupported, match=r"not understood as .* without a server") as refused:
        dry_run(policy(), case.sql, as_json=True)
    assert refused.value.hint


@pytest.mark.parametrize("case", [c for c in ALONE if not (c.is_refused or c.reads)], ids=lambda c: c.place)
def test_whatever_a_served_proxy_answers_is_explained(case: Case) -> None:
    told = json.loads(dry_run(policy(), case.sql, as_json=True))
    assert len(told["releases"]) == len({p.fingerprint for p in plan(case, policy())}) or told["later"] or case.told
    assert dry_run(policy(), case.sql, as_json=False).startswith("Privacy plan: epsilon ")


def test_stages_are_explained_with_what_comes_later() -> None:
    text = "SELECT count(*) FROM users WHERE age > (SELECT avg(age) FROM users)"
    told = json.loads(dry_run(policy(), text, as_json=True))
    whole = json.loads(dry_run(policy(), "SELECT count(*) FROM users", as_json=True))["releases"][0]["charge"]["rho"]
    (first,), (later,) = told["releases"], told["later"]
    assert first["charge"]["rho"] + later["charge"]["rho"] == pytest.approx(whole)
    assert "Later: 1 release" in dry_run(policy(), text, as_json=False)


@pytest.mark.parametrize("text", ["SELECT * FROM users LIMIT 0", "SELECT count(*) FROM users WHERE false",
                                  "SELECT * FROM hush.budget"])  # fmt: skip
def test_what_releases_nothing_is_said_to_be_free(text: str) -> None:
    assert json.loads(dry_run(policy(), text, as_json=True))["releases"] == []
    assert dry_run(policy(), text, as_json=False).endswith("Nothing is released, it is free.")


@pytest.mark.parametrize("text", ["SELECT count(*) FROM users; SELECT 1", "EXPLAIN SELECT count(*) FROM users",
                                  "BEGIN; SELECT count(*) FROM users; COMMIT",
                                  "COPY (SELECT count(*) FROM users) TO STDOUT",
                                  "DECLARE c CURSOR FOR SELECT count(*) FROM users"])  # fmt: skip
def test_what_stands_around_a_statement_changes_nothing(text: str) -> None:
    assert dry_run(policy(), text, as_json=False) == dry_run(policy(), "SELECT count(*) FROM users", as_json=False)


@pytest.mark.parametrize("text", ["SELEC 1", "SELECT count(*) FROM nowhere", "SELECT 1", "SELECT * FROM stores"])
def test_what_names_nothing_private_is_told_what_is(text: str) -> None:
    with pytest.raises(HushError, match="reads no private table of this policy") as refused:
        dry_run(policy(), text, as_json=False)
    assert "users, orders" in refused.value.hint
    assert "stores" not in refused.value.hint


@pytest.mark.parametrize(
    ("text", "message", "hint", "at"),
    [
        (" SELECT count(*) FROM users WHERE agee > 3", 'column "agee" does not exist', '"users.age"', "agee"),
        ("SELECT count(*) FROM usres", 'relation "usres" does not exist', '"users"', "usres"),
        ("TABLE public.sotres", 'relation "sotres" does not exist', '"stores"', "public"),
        ("SELECT sum(u.agee) FROM users u", "column u.agee does not exist", '"u.age"', "u.agee"),
        ("WITH w AS (TABLE users) SELECT count(*) FROM w WHERE zzz = 1", 'column "zzz" does not exist', "w.age", "zzz"),
        ("SELECT plan, count(*) FROM users GROUP BY plan ORDER BY plam", 'column "plam" does not exist', "plan",
         "plam"),
        ("SELECT count(*) FROM users u WHERE x.age > 3", 'missing FROM-clause entry for table "x"', "u", "x.age"),
    ],
)  # fmt: skip
def test_wrong_name_is_told_as_postgresql_tells_it(text: str, message: str, hint: str, at: str) -> None:
    with pytest.raises(UndefinedName) as refused:
        dry_run(policy(), text, as_json=False)
    error = refused.value
    assert (error.message, error.sqlstate) == (message, "42703")
    assert hint in error.hint
    assert text[error.position - 1 :].startswith(at)
    assert f"at character {error.position}" in error.text()
