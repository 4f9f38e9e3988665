"""Which questions are timed, as an analyst would write them?

The private statement is planned from the very same text, and run beside it. Limits are ratios.
"""

from __future__ import annotations

from dataclasses import dataclass

NO_LIMIT = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """One query. most: the highest ratio of private to plain time that is accepted; 0 for any."""

    name: str
    sql: str
    most: float = NO_LIMIT


_JOIN = "FROM orders o JOIN stores s ON o.store_id = s.store_id"

LIMITED = (
    Question("filtered count", "SELECT count(*) FROM orders WHERE amount >= 500", 2.0),
    Question("distinct users", "SELECT count(DISTINCT user_id) FROM orders WHERE amount >= 100", 1.3),
    Question("sum by a known key", "SELECT status, sum(amount) FROM orders GROUP BY status", 13.0),
    Question("join with a public table", f"SELECT s.region, count(DISTINCT o.user_id) {_JOIN} GROUP BY s.region", 1.5),
)

# What is asked of a PostgreSQL, whose plain query is another one to be compared with.
POSTGRES = (
    Question("sum of all", "SELECT sum(amount) FROM orders", 4.0),
    Question("sum by a known key", "SELECT status, sum(amount) FROM orders GROUP BY status", 9.0),
    Question("distinct users by key", "SELECT status, count(DISTINCT user_id) FROM orders GROUP BY status", 1.0),
    Question("join with a public table", f"SELECT s.region, count(DISTINCT o.user_id) {_JOIN} GROUP BY s.region", 2.0),
    Question("sum by a public column", f"SELECT s.region, sum(o.amount) {_JOIN} GROUP BY s.region"),
    Question("filtered count", "SELECT count(*) FROM orders WHERE amount >= 500"),
    Question("average by key", "SELECT status, avg(amount) FROM orders GROUP BY status"),
)

OTHERS = (
    Question("count of half the rows", "SELECT count(*) FROM orders WHERE amount >= 30"),
    Question("count by equality", "SELECT count(*) FROM orders WHERE status = 'refunded'"),
    Question("count of a month", "SELECT count(*) FROM orders WHERE \"at\" >= '2025-06-01' AND \"at\" < '2025-07-01'"),
    Question("count of users' rows", "SELECT count(*) FROM users WHERE age >= 40"),
    Question("private groups of users", "SELECT city, count(*) FROM users GROUP BY city"),
    Question("all distinct users", "SELECT count(DISTINCT user_id) FROM orders"),
    Question("distinct users by key", "SELECT status, count(DISTINCT user_id) FROM orders GROUP BY status"),
    Question("sum of all", "SELECT sum(amount) FROM orders"),
    Question("sum by store", "SELECT store_id, sum(amount) FROM orders GROUP BY store_id"),
    Question("average by key", "SELECT status, avg(amount) FROM orders GROUP BY status"),
    Question("count by month", "SELECT date_trunc('month', \"at\"), count(*) FROM orders GROUP BY 1"),
    Question("filter on a public table", f"SELECT count(*) {_JOIN} WHERE s.region = 'east'"),
    Question("distinct users, public filter", f"SELECT count(DISTINCT o.user_id) {_JOIN} WHERE s.region = 'north'"),
    Question("count by a public column", f"SELECT s.region, count(*) {_JOIN} GROUP BY s.region"),
    Question("sum by a public column", f"SELECT s.region, sum(o.amount) {_JOIN} GROUP BY s.region"),
    Question("sum by a users' column",
             "SELECT u.plan, sum(o.amount) FROM orders o JOIN users u ON o.user_id = u.user_id GROUP BY u.plan"),
)  # fmt: skip
