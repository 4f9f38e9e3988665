"""Which questions are asked of rows that are spread unevenly?"""

from __future__ import annotations

from pathlib import Path

from benchmarks.queries import Question

POLICY = Path(__file__).resolve().parent / "policy.yaml"
_SUMS = "count(*), sum(amount) FROM events"

QUESTIONS = (
    Question("filtered count", "SELECT count(*) FROM events WHERE amount >= 800", 2.5),
    Question("distinct persons", "SELECT count(DISTINCT person) FROM events", 1.3),
    Question("by 50 listed keys", f"SELECT known, {_SUMS} GROUP BY known", 16),
    Question("by 10 unlisted keys", f"SELECT ten, {_SUMS} GROUP BY ten"),
    Question("by 500 unlisted keys", f"SELECT half_thousand, {_SUMS} GROUP BY half_thousand"),
    Question("by 1,000 unlisted keys", f"SELECT thousand, {_SUMS} GROUP BY thousand"),
    Question("by 100,000 unlisted keys", f"SELECT many, {_SUMS} GROUP BY many"),
    Question("by a public column", f"SELECT nation, {_SUMS} JOIN places USING (place) GROUP BY nation"),
    Question("median", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM events", 4),
)
