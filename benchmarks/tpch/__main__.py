"""`python -m benchmarks.tpch`: ask all queries of TPC-H, compare the answers with the truth, write the page."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from benchmarks.serving import LOGIN, PASSWORD, ROOT, connect, serving
from benchmarks.tpch.compare import ANSWERS, nearness
from benchmarks.tpch.data import Row, Truth, made
from benchmarks.tpch.page import Exact, Noisy, Outcome, Refused, page
from benchmarks.tpch.questions import POLICY, TABLES, Question, questions

_PRIVATE = TABLES[:3]


def main() -> int:
    options = _options()
    data = made(options.data, options.scale, options.generator)
    truth = Truth(data)
    with (
        tempfile.TemporaryDirectory(prefix="tpch") as folder,
        serving(Path(folder), POLICY, {"TPCH_DATA": str(data)}) as served,
        connect(f"host=127.0.0.1 port={served.port} dbname=tpch user={LOGIN} password={PASSWORD}") as client,
    ):
        for name, value in (("epsilon", options.epsilon), ("fresh", "on"), ("nonnegative", "off")):
            client.execute(f"SET hush.{name} = {value}".encode())
        found = list(_asked(client, truth))
    options.page.write_text(page(found, options.scale, options.epsilon))
    print(f"written to {options.page}")
    wrong = [w for question, outcome in found for w in _faults(question, outcome)]
    print("\n".join(wrong) or "all answers are right")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=__doc__)
    default = Path(os.environ.get("HUSHQL_BENCH_DATA", ROOT / ".state" / "bench")) / "tpch"
    parser.add_argument("--scale", type=float, default=0.1, help="1 is six million lines; the policy is for 0.1")
    parser.add_argument("--epsilon", type=float, default=100, help="of each query")
    parser.add_argument("--data", type=Path, default=default, help="where the generated files are kept")
    parser.add_argument("--generator", type=Path, default=Path(sys.executable).parent / "tpchgen-cli")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "guide" / "tpch.md", help="what is written")
    return parser.parse_args()


def _asked(client: psycopg.Connection, truth: Truth) -> Iterator[tuple[Question, Outcome]]:
    for question in questions():
        outcome = _outcome(client, truth, question)
        print(f"{question.number} {question.name}: {outcome}"[:200])
        yield question, outcome


def _outcome(client: psycopg.Connection, truth: Truth, question: Question) -> Outcome:
    for name, limit in (("max_rows_per_group", question.rows), ("max_groups", question.groups)):
        client.execute(f"SET hush.{name} = {limit or 'DEFAULT'}".encode())
    try:
        start = time.perf_counter()
        rows = _rows(client, question.sql)
        seconds = time.perf_counter() - start
        if not any(table in question.sql for table in _PRIVATE):
            return Exact(rows == truth.rows(question.sql))
        answers = [_rows(client, question.compared) for _ in range(ANSWERS)]
    except psycopg.Error as error:
        return Refused(str(error.sqlstate), str(error.diag.message_primary))
    return Noisy(nearness(answers, truth.rows(question.compared), question.keys), seconds)


def _rows(client: psycopg.Connection, sql: str) -> list[Row]:
    return client.execute(sql.encode()).fetchall()


def _faults(question: Question, outcome: Outcome) -> Iterator[str]:
    if outcome == Exact(False):
        yield f"{question.number}: the rows of public tables are not the true ones"
    if isinstance(outcome, Noisy):
        yield from (f"{question.number}: biased at {cell}" for cell in outcome.near.biased)


if __name__ == "__main__":
    raise SystemExit(main())
