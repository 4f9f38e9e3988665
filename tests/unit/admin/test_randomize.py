"""Are true rows randomized as the policy says, and does nothing else of them reach the output?"""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from proxy.admin import randomize_rows as rows_module
from proxy.errors import ConfigError
from proxy.policy.response import LaplaceNoise
from tests.unit.admin.command_line import CommandLine

N = 20_000
HEADER = "answer,party,coin,age,income,region\n"
POLICY = """
version: 1
dataset: survey
source: {engine: duckdb, files: {answers: a.csv}, data_version: "1"}
privacy: {unit: person}
budgets: {dataset: {epsilon: 10}}
tables:
  answers:
    local: true
    columns:
      answer: {type: boolean, randomized: {truth: 0.5, yes: 0.5}}
      party: {type: text, values: [red, "o'green", blue, null], randomized: {keep: 0.5}}
      coin: {type: text, values: [ja, nein], randomized: {truth: 0.9, yes: 0.1}}
      age: {type: double precision, bounds: [0, 100], randomized: {laplace: 20}}
      income: {type: numeric, bounds: [0, 100], randomized: {gaussian: 20}}
      region: {type: text, values: [n, s], public: true}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(POLICY)
    with (tmp_path / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("name", "answer", "party", "coin", "age", "income", "region"))
        for i in range(N):
            party, coin, age = (
                ("red", "o'green", "", "RED")[i % 4],
                ("ja", "nein", "x", "")[i % 4],
                (50, "", "nan", "inf"),
            )
            writer.writerow((f"n{i}", "TRUE" if i < N // 2 else "f", party, coin, age[i % 4], -5, "ns"[i >= N // 2]))
    return tmp_path


def run(command: CommandLine, folder: Path, source: str, target: str, *options: str) -> int:
    return command(
        "randomize", str(folder / source), str(folder / target), "--policy", str(folder / "p.yaml"), *options
    )


def randomized(command: CommandLine, folder: Path, source: str, target: str, *options: str) -> str:
    assert run(command, folder, source, target, *options) == 0, command.err
    return command.out


def test_rows_are_randomized_and_nothing_else_is_written(command: CommandLine, folder: Path) -> None:
    """n = 20,000; each share is within seven standard deviations (a false alarm below 1e-11)."""
    said = randomized(command, folder, "in.csv", "out.parquet")
    assert "20,000 rows" in said
    assert "second release" in said
    assert "random order" in said
    out = str(folder / "out.parquet")
    kinds = {name: kind for name, kind, *_ in duckdb.execute(f"describe select * from '{out}'").fetchall()}
    assert [*kinds] == ["answer", "party", "coin", "age", "income", "region"]
    assert (kinds["answer"], kinds["age"]) == ("BOOLEAN", "DOUBLE")
    parties = dict(duckdb.execute(f"select party, count(*) from '{out}' group by 1").fetchall())
    shares = {"red": 0.375, "o'green": 0.25, None: 0.25, "blue": 0.125}  # what is not listed is the first
    assert parties.keys() == shares.keys()
    assert all(abs(parties[k] - N * share) < 7 * 71 for k, share in shares.items())
    yes, ages, incomes = duckdb.execute(
        f"select avg(case when coin = 'ja' then 1 else 0 end), avg(age), avg(income)::double from '{out}'"
    ).fetchall()[0]
    assert abs(yes - (0.9 * 0.25 + 0.1 * 0.1)) < 7 * 0.0031  # what is not listed is no
    assert abs(ages - (50 + 50 + 50 + 100) / 4) < 7 * 0.26  # what is no number is the middle
    assert abs(incomes) < 7 * 0.15  # what is below the bounds is the low end
    assert sorted(p.name for p in folder.iterdir()) == ["in.csv", "out.parquet", "p.yaml"]


def test_rows_are_in_random_order_unless_it_is_said_to_be_public(command: CommandLine, folder: Path) -> None:
    """n = 20,000: of the first half a quarter of all rows are of one region, within seven standard deviations."""
    randomized(command, folder, "in.csv", "out.csv")
    randomized(command, folder, "in.csv", "kept.csv", "--keep-order")

    def first_half(name: str) -> int:
        with (folder / name).open(newline="") as file:
            return sum(row["region"] == "n" for row in [*csv.DictReader(file)][: N // 2])

    assert first_half("kept.csv") == N // 2
    assert abs(first_half("out.csv") - N // 4) < 7 * 36


def test_parquet_is_read_as_well(command: CommandLine, folder: Path) -> None:
    duckdb.execute(f"copy (select * from '{folder}/in.csv') to '{folder}/in.parquet' (format parquet)")
    assert "20,000 rows" in randomized(command, folder, "in.parquet", "out.csv")


def test_files_of_other_programs_are_read(command: CommandLine, folder: Path) -> None:
    """A mark of UTF-8, lines that end in two characters, semicolons, quotes within quotes; no row at all."""
    row = 'yes;"o\'green";ja;1,5;2;"n ""s"""\r\n'
    (folder / "odd.csv").write_bytes(("\ufeff" + HEADER.replace(",", ";").replace("\n", "\r\n") + row * 3).encode())
    assert "3 rows" in randomized(command, folder, "odd.csv", "out.csv")
    assert (folder / "out.csv").read_text().count('"n ""s"""') == 3
    (folder / "none.csv").write_text(HEADER)
    assert "0 rows" in randomized(command, folder, "none.csv", "nothing.csv")
    assert (folder / "nothing.csv").read_text() == HEADER


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("none.csv", "out.csv", "does not exist"),
        ("in.csv", "out.txt", "neither .csv nor .parquet"),
        ("in.csv", "in.csv", "exists"),
        ("short.csv", "out.csv", "has no column answer, party"),
        ("odd.parquet", "out.csv", "cannot be read as parquet rows"),
        ("empty.csv", "out.csv", "has no column answer, party"),
        ("ragged.csv", "out.csv", "each line has as many values"),
        ("latin.csv", "out.csv", "A CSV file is UTF-8 text"),
    ],
)
def test_what_cannot_be_done_leaves_nothing(
    command: CommandLine, folder: Path, source: str, target: str, words: str
) -> None:
    (folder / "short.csv").write_text("name\nsecret\n")
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text(HEADER + "yes,secret,ja,1,2,n,secret\nno\n")
    (folder / "latin.csv").write_bytes(f"{HEADER}yes,secr\xe9t,ja,1,2,secret\n".encode("latin-1"))
    (folder / "odd.parquet").write_text("secret")
    before = {p.name for p in folder.iterdir()}
    assert run(command, folder, source, target) == 2
    assert words in command.err
    assert "secret" not in command.err
    assert {p.name for p in folder.iterdir()} == before


def test_noise_that_no_grid_holds_is_refused() -> None:
    with pytest.raises(ConfigError, match="too different sizes"):
        rows_module.grid_of(LaplaceNoise(Fraction(1, 10**9), Fraction(0), Fraction(10**9)))
    grid = rows_module.grid_of(LaplaceNoise(Fraction(1), Fraction(1, 3), Fraction(5)))
    assert (grid.digits, grid.lo, grid.hi) == (3, 334, 5000)  # never beyond the declared bounds


def test_values_that_are_not_declared_are_counted_for_whoever_holds_the_rows(
    command: CommandLine, folder: Path
) -> None:
    (folder / "few.csv").write_text(HEADER + "true,red,ja,5,1,n\nmaybe,green,,x,1,n\nfalse,,nein,nan,,s\n")
    randomized(command, folder, "few.csv", "few_out.csv")
    assert command.err.splitlines() == [
        "answer: 1 not declared in the policy, counted as no",
        "party: 1 not declared in the policy, counted as the first listed value",
        "coin: 1 not declared in the policy, counted as no",
        "age: 2 not declared in the policy, counted as the middle between the bounds",
        "income: 1 not declared in the policy, counted as the middle between the bounds",
    ]


def test_two_columns_of_one_name_are_refused(command: CommandLine, folder: Path) -> None:
    (folder / "two.csv").write_text("answer,party,coin,age,income,region,Party\ntrue,red,ja,5,1,n,blue\n")
    assert run(command, folder, "two.csv", "two_out.csv") != 0
    assert "has two columns party" in command.err
    assert not (folder / "two_out.csv").exists()
