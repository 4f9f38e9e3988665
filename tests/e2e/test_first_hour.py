"""Are the first questions about a table answered usefully that has many rows for some people and few for most?

The table has the shape of a baseball archive: 20,000 players, some 100,000 rows of a player's season in a team, careers
from one season to 26, sums that few players make most of. An administrator wrote bounds without knowing the rows (100
for each player), had a profile made, and gives a login 100 questions for an epsilon of 10.

The rule, which was written down before the first run:

- one number is useful if it is within 10 % of the truth;
- groups are useful if four fifths of them, each weighing as much as its first true number (averages weigh alike), are
  there and within 20 %;
- a list of the largest is useful if four fifths of its names belong there;
- an answer is wrong in silence if it is not useful, no notice says more than what was charged, and the truth is further
  away than twice its stated 95 % interval reaches (in one number of 10,000 by chance).

At least 22 of 26 must be useful and none wrong in silence. Noise is drawn anew in each run: in 8 runs over 5 archives
24 to 26 were useful. Two are on the edge, so that 22 are missed only if three more fail together that have not failed
yet: by the rule of three each fails in less than 4 of 10 runs with 95 % confidence, and mostly far less.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.e2e.served import Client, Served, hushql, serving, write_users

SEED = int(os.environ.get("FIRST_HOUR_SEED", "1"))
USEFUL, ALL = 22, 26
_NEAR, _GROUP_NEAR, _MOST = 0.10, 0.20, 0.80
POLICY = """\
version: 1
dataset: baseball
source: {engine: duckdb, path: baseball.duckdb, data_version: "1"}
privacy: {unit: player}
access: {users_file: users.yaml}
budgets: {dataset: {epsilon: 30}, user: {epsilon: 10, questions: 100}}
tables:
  people:
    unit: player
    unit_unique: true
    columns:
      player: {type: integer, key: true}
      born: {type: integer, bounds: [1840, 2005]}
      country: {type: text}
      height: {type: integer, bounds: [50, 90]}
      weight: {type: integer, bounds: [60, 350]}
      bats: {type: text, values: [L, R, B]}
      debut: {type: date, bounds: [1871-01-01, 2023-12-31]}
  batting:
    unit: player
    joins: {player: people.player}
    max_rows_per_unit: 100
    max_rows_per_group: 100
    max_groups_per_unit: 100
    columns:
      player: {type: integer, key: true}
      year: {type: integer, bounds: [1871, 2023], nullable: false}
      team: {type: text}
      league: {type: text, values: [AL, NL, AA, FL, PL], nullable: false}
      games: {type: integer, bounds: [1, 165], nullable: false}
      ab: {type: integer, bounds: [0, 720], nullable: false}
      h: {type: integer, bounds: [0, 270], nullable: false}
      hr: {type: integer, bounds: [0, 80], nullable: false}
      rbi: {type: integer, bounds: [0, 200], nullable: false}
      sb: {type: integer, bounds: [0, 140], nullable: false}
"""


@dataclass(frozen=True, slots=True)
class Question:
    """sql: as it is asked. exact: as DuckDB spells it, if otherwise. keys: columns that name a row. is_top: names do.

    weighs_alike: groups do, whatever their number is.
    """

    sql: str
    keys: int = 0
    exact: str = ""
    weighs_alike: bool = False
    is_top: bool = False


HOUR = (
    Question("SELECT count(*) FROM people"),
    Question("SELECT count(*) FROM batting"),
    Question("SELECT count(DISTINCT player) FROM batting WHERE year >= 2000"),
    Question("SELECT sum(hr) FROM batting"),
    Question("SELECT avg(height) FROM people"),
    Question("SELECT avg(hr) FROM batting WHERE ab > 300"),
    Question("SELECT sum(h)::float8 / sum(ab) FROM batting"),
    Question("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY weight) FROM people",
             exact="SELECT quantile_cont(weight, 0.5) FROM people"),
    Question("SELECT league, count(*) FROM batting GROUP BY league", 1),
    Question("SELECT bats, count(*) FROM people GROUP BY bats", 1),
    Question("SELECT bats, avg(weight) FROM people GROUP BY bats", 1, weighs_alike=True),
    Question("SELECT league, sum(hr), sum(rbi) FROM batting WHERE year BETWEEN 1990 AND 2009 GROUP BY league", 1),
    Question("SELECT (year / 10) * 10 AS decade, sum(hr) FROM batting GROUP BY 1 ORDER BY 1", 1,
             exact="SELECT (year // 10) * 10, sum(hr) FROM batting GROUP BY 1"),
    Question("SELECT year, count(*) FROM batting WHERE year >= 1950 GROUP BY year ORDER BY year", 1),
    Question("SELECT year, sum(hr) FROM batting WHERE year >= 1950 GROUP BY year ORDER BY year", 1),
    Question("SELECT year, avg(games) FROM batting WHERE year >= 1990 GROUP BY year", 1, weighs_alike=True),
    Question("SELECT team, count(*) FROM batting GROUP BY team", 1),
    Question("SELECT team, sum(h) FROM batting WHERE year > 1979 GROUP BY 1 ORDER BY 2 DESC LIMIT 5", 1,
             is_top=True),
    Question("SELECT country, count(*) FROM people GROUP BY country", 1),
    Question("SELECT CASE WHEN games < 20 THEN 'few' WHEN games < 100 THEN 'some' ELSE 'many' END AS how, count(*)"
             " FROM batting GROUP BY 1", 1),
    Question("SELECT p.bats, sum(b.hr) FROM batting b JOIN people p USING (player) GROUP BY p.bats", 1),
    Question("SELECT count(*) FROM (SELECT player, sum(hr) AS n FROM batting GROUP BY player) z WHERE n >= 100"),
    Question("SELECT avg(n) FROM (SELECT player, count(*) AS n FROM batting GROUP BY player) z"),
    Question("SELECT extract(year FROM debut) AS y, count(*) FROM people WHERE debut >= '1980-01-01' GROUP BY 1", 1),
    Question("SELECT league, count(*) FROM batting GROUP BY league HAVING count(*) > 5000 ORDER BY 2 DESC", 1),
    Question("SELECT count(*) FILTER (WHERE sb >= 20), count(*) FILTER (WHERE hr >= 20) FROM batting"),
)  # fmt: skip


def write_archive(path: Path, seed: int) -> None:
    """Players and their seasons."""
    rng = np.random.default_rng(seed)
    players = 20_000
    first = 1871 + np.minimum(151, (152 * rng.beta(1.6, 1.0, players)).astype(int))
    skill = rng.lognormal(0.0, 0.8, players)
    career = np.clip(np.round(rng.lognormal(0.9, 1.0, players) * skill**0.5), 1, 26).astype(int)
    career = np.minimum(career, 2024 - first)
    born = np.clip(first - rng.integers(19, 29, players), 1840, 2005)
    countries = np.array(["USA", "D.R.", "Venezuela", "CAN", "P.R.", "Cuba", "Japan", "Mexico"])
    country = rng.choice(countries, players, p=[0.83, 0.05, 0.03, 0.02, 0.02, 0.02, 0.01, 0.02])
    height = np.clip(rng.normal(72.3, 2.6, players), 60, 83).astype(int)
    weight = np.clip(rng.normal(187, 22, players), 110, 320).astype(int)
    bats = rng.choice(["R", "L", "B"], players, p=[0.64, 0.28, 0.08])
    days = rng.integers(0, 180, players)
    who = np.repeat(np.arange(players), career)
    season = np.concatenate([np.arange(n) for n in career])
    year = first[who] + season
    stints = rng.random(len(who)) < 0.07  # a second team in one season
    who, year = np.concatenate((who, who[stints])), np.concatenate((year, year[stints]))
    games = np.clip(rng.lognormal(3.3, 1.0, len(who)) * skill[who] ** 0.7, 1, 162).astype(int)
    ab = np.clip(games * rng.beta(2.0, 2.5, len(who)) * 4.3, 0, 710).astype(int)
    h = rng.binomial(ab, 0.255)
    hr = np.clip(rng.binomial(ab, np.clip(0.006 + 0.0002 * (year - 1871), 0, 0.05)) * skill[who] ** 0.4, 0, 75).astype(
        int
    )
    rbi = np.clip(h * 0.4 + 1.4 * hr, 0, 190).astype(int)
    sb = np.clip(rng.poisson(ab * 0.02 * skill[who] ** 0.5), 0, 130)
    teams = np.array([f"T{n:02d}" for n in range(60)])
    team = rng.choice(teams, len(who), p=(w := 1.0 / np.arange(1, 61) ** 0.7) / w.sum())
    late = rng.choice(["AL", "NL"], len(who))
    early = rng.choice(["NL", "AA", "PL", "FL"], len(who), p=[0.7, 0.2, 0.06, 0.04])
    league = np.where(year >= 1901, late, early)
    with duckdb.connect(str(path)) as database:
        people = {"player": np.arange(players), "born": born, "country": country, "height": height, "weight": weight,
                  "bats": bats, "first": first, "days": days}  # fmt: skip
        batting = {"player": who, "year": year, "team": team, "league": league, "games": games, "ab": ab, "h": h,
                   "hr": hr, "rbi": rbi, "sb": sb}  # fmt: skip
        for name, columns in (("p", people), ("b", batting)):
            kinds = ", ".join(f"{c} {'INTEGER' if v.dtype.kind == 'i' else 'VARCHAR'}" for c, v in columns.items())
            database.execute(f"CREATE TEMP TABLE {name} ({kinds})")
            database.register(
                "made", {c: v.astype(np.int32 if v.dtype.kind == "i" else object) for c, v in columns.items()}
            )
            database.execute(f"INSERT INTO {name} SELECT * FROM made")
            database.unregister("made")
        database.execute(
            "CREATE TABLE people AS SELECT player, born, country, height, weight, bats,"
            " make_date(first, 4, 1) + days AS debut FROM p"
        )
        database.execute("CREATE TABLE batting AS SELECT * FROM b")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("baseball")
    write_archive(folder / "baseball.duckdb", SEED)
    write_users(folder / "users.yaml", {"ann": "analyst"})
    (folder / "baseball.yaml").write_text(POLICY)
    told = hushql("profile", str(folder / "baseball.yaml"), "--state", str(folder / "state"), "--epsilon", "1")
    assert told.returncode == 0, told.stderr + told.stdout
    with serving(folder, [folder / "baseball.yaml"]) as served:
        yield served


Row = Sequence[object]


def test_most_questions_of_the_first_hour_are_answered_usefully_and_none_wrong_in_silence(archive: Served) -> None:
    assert len(HOUR) == ALL
    useless, silent = [], []
    with archive.connect("baseball") as client, _exact(archive.folder) as exact:
        for question in HOUR:
            truth = exact.execute(question.exact or question.sql.replace("float8", "DOUBLE")).fetchall()
            answer = client.execute(question.sql.encode()).fetchall()
            if not _is_useful(question, answer, truth):
                told = _notices(client)
                useless.append((question.sql, answer[:6], truth[:6], told))
                if all("charged" in n for n in told) and _is_far(question, client, truth):
                    silent.append(question.sql)
    print(f"useful: {ALL - len(useless)}", [u[0] for u in useless])
    assert silent == [], useless
    assert ALL - len(useless) >= USEFUL, useless


def _exact(folder: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(folder / "baseball.duckdb"), read_only=True)


def _is_far(question: Question, client: Client, truth: Sequence[Row]) -> bool:
    """Whether the truth is outside of intervals twice as wide as stated. The same numbers, free."""
    client.execute("SET hush.intervals = on")
    exact = {_key(row, question): row[question.keys :] for row in truth}
    far = False
    for row in client.execute(question.sql.encode()).fetchall():
        true = exact.get(_key(row, question), ())
        ends = row[question.keys + len(true) :]
        for value, low, high in zip(true, ends[::2], ends[1::2], strict=True):
            reach = (_number(high) - _number(low)) / 2.0
            far = far or not _number(low) - reach <= _number(value) <= _number(high) + reach
    client.execute("RESET hush.intervals")
    return far


def _notices(client: Client) -> list[str]:
    return [str(m) for (m,) in client.execute("SELECT message FROM hush.messages").fetchall()]


def _is_useful(question: Question, answer: Sequence[Row], truth: Sequence[Row]) -> bool:
    if question.is_top:
        wanted = {row[0] for row in truth}
        return len(wanted & {row[0] for row in answer}) >= _MOST * len(wanted)
    if not question.keys:
        return len(answer) == 1 and all(_near(a, t, _NEAR) for a, t in zip(answer[0], truth[0], strict=True))
    found = {_key(row, question): row[question.keys :] for row in answer}
    weighed = [(1.0 if question.weighs_alike else abs(_number(row[question.keys])), row) for row in truth]
    good = [
        weight
        for weight, row in weighed
        if (there := found.get(_key(row, question))) is not None
        and all(_near(a, t, _GROUP_NEAR) for a, t in zip(there, row[question.keys :], strict=True))
    ]
    return math.fsum(good) >= _MOST * math.fsum(weight for weight, _ in weighed)


def _key(row: Row, question: Question) -> tuple[str, ...]:
    return tuple(str(int(v) if isinstance(v, float) or hasattr(v, "as_tuple") else v) for v in row[: question.keys])  # type: ignore[call-overload]


def _number(value: object) -> float:
    return float(str(value))


def _near(answer: object, truth: object, share: float) -> bool:
    return answer is not None and abs(_number(answer) - _number(truth)) <= share * abs(_number(truth))
