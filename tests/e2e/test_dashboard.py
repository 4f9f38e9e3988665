"""A dashboard that three people keep open costs what its tiles cost once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

from tests.e2e.served import Served

REFRESHES = 50
#: An accuracy that no other test asks for, so that nobody has paid for the tiles.
OPTIONS = "-c hush.session=board -c hush.epsilon=0.317"
#: Two spellings of each kind of tile, as tools really send them, and what stands for {} in its tiles.
KINDS: tuple[tuple[str, str, tuple[object, ...]], ...] = (
    (
        "SELECT {0}, count(*) FROM users GROUP BY {0}",
        "select u.{0} as k, COUNT(*) n from users u group by 1 order by n desc",
        ("plan", "newsletter", "age", "kids"),
    ),
    (
        "SELECT count(*) FROM users WHERE age > {0} AND plan = 'pro'",
        "SELECT count(*) c FROM users WHERE plan='pro' AND {0} < age AND 1=1",
        (20, 30, 40, 50),
    ),
    (
        "SELECT {0}(age) FROM users WHERE plan IN ('free', 'pro')",
        "SELECT {0}(age) AS x FROM users WHERE plan IN ('pro', 'free')",
        ("sum", "avg", "stddev", "max"),
    ),
    (
        "SELECT status, {0} FROM orders GROUP BY status",
        "SELECT * FROM (SELECT status, {0} AS v FROM orders GROUP BY status) t ORDER BY v",
        ("count(*)", "sum(amount)", "avg(amount)", "count(DISTINCT user_id)"),
    ),
    (
        "SELECT count(*) FROM users WHERE joined >= '{0}-01-01'",
        "SELECT count(*) FROM users WHERE NOT joined < date '{0}-01-01'",
        (2020, 2021, 2022, 2023),
    ),
)
TILES = [(one.format(of), other.format(of)) for one, other, varied in KINDS for of in varied]


def spent(served: Served, login: str, kind: str) -> Decimal:
    """rho of an account, exactly."""
    with served.connect("shop", login) as client:
        row = client.execute("SELECT rho_spent FROM hush.budget WHERE kind = %s", (kind,)).fetchone()
        assert row is not None
        return Decimal(row[0])


def watched(served: Served, login: str) -> list[list[object]]:
    """What a login sees of each tile, in all its refreshes."""
    seen: list[list[object]] = [[] for _ in TILES]
    with served.connect("shop", login, options=OPTIONS) as client:
        for refresh in range(REFRESHES):
            for place, spellings in enumerate(TILES):
                rows = client.execute(spellings[refresh % len(spellings)].encode()).fetchall()
                seen[place].append(sorted(map(str, rows)))
    return seen


def test_tiles_are_paid_once_however_often_they_are_refreshed(served: Served) -> None:
    logins = ("u41", "u42", "u43")
    before = spent(served, "boss", "dataset")
    with served.connect("shop", "u44", options=OPTIONS) as client:
        told = client.execute("SELECT rho FROM hush.estimate(%s) WHERE account = 'user' AND statement IS NULL",
                              ("; ".join(tile[0] for tile in TILES),)).fetchone()  # fmt: skip
        assert told is not None
    with ThreadPoolExecutor(len(logins)) as pool:
        seen = list(pool.map(lambda login: watched(served, login), logins))
    assert len(TILES) == 20
    assert all(len({str(answer) for answer in tile}) == 1 for board in seen for tile in board), "nothing flickers"
    assert seen[0] == seen[1] == seen[2]
    assert spent(served, "boss", "dataset") - before == told[0]
    assert [spent(served, login, "user") for login in logins] == [told[0]] * 3
