"""Text that is almost SQL: valid queries with their tokens, or the nodes of their trees, cut, doubled and mixed."""

from __future__ import annotations

import random

import sqlglot
from sqlglot.errors import SqlglotError

from tests.fuzz.grammar import make_query
from tests.fuzz.worlds import World

_WORDS = (
    "select", "from", "where", "group by", "having", "order by", "limit", "distinct", "union all", "join", "left join",
    "natural join", "using (code)", "lateral", "with recursive", "over ()", "filter (where true)", "within group",
    "tablesample system (5)", "for update", "is", "not", "null", "case", "end", "then", "*", "(", ")", ",", ";", "::",
    "::text", "::interval", "[1]", "array[1]", "row(1)", "t.*", "exists", "in (select 1)", "any", "all", "$1",
    "$2::int",
    "1_000", "'", '"', "--", "/*", "*/", "$$a$$", "E'\\x'", "U&'\\0041'", "1e999", "0x1F", "1_000",
    "interval '1 day'", "at time zone",
    "grouping sets", "rollup", "cube", "values (1)", "only", "collate \"C\"", "current_user", "pg_sleep(1)", "random()",
    "generate_series(1,3)", "string_agg(t.i, ',')", "median(t.i)", "now()", "u0", "t", "e", "p", "s",
    "hush.low(count(*))",
    "hush_r", "é", "\u202e", "\ud83d\ude00", "within", "exclude", "rows", "cast(", "as", "between", "and", "or", "like",
    "similar to", "escape", "~", "||", "->>", "@>", "count(distinct u0, u0)", "sum(distinct 1)", "count(all *)",
)  # fmt: skip


def make_soup(world: World, rng: random.Random) -> str:
    """One text of random damage."""
    return _mixed_trees(world, rng) if rng.random() < 0.5 else _mixed_tokens(world, rng)


def _mixed_trees(world: World, rng: random.Random) -> str:
    """A query that reads as SQL, with parts where they do not belong."""
    tree, other = (sqlglot.parse_one(make_query(world, rng), dialect="postgres") for _ in range(2))
    for _ in range(rng.choice((1, 1, 2))):
        target = rng.choice(list(tree.walk())[1:])
        alike = [n for n in tree.walk() if type(n).__mro__[1] is type(target).__mro__[1]]
        source = rng.choice(alike) if rng.random() < 0.7 else rng.choice(list(other.walk()))
        target.replace(source.copy())
    try:
        return tree.sql(dialect="postgres")
    except (SqlglotError, AttributeError, TypeError, ValueError):
        return other.sql(dialect="postgres")  # sqlglot cannot write this tree, so no client could either


def _mixed_tokens(world: World, rng: random.Random) -> str:
    pieces = make_query(world, rng).split(" ")
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        place = rng.randrange(len(pieces))
        match rng.randrange(6):
            case 0:
                pieces.insert(place, rng.choice(_WORDS))
            case 1:
                pieces[place] = rng.choice(_WORDS)
            case 2:
                pieces.insert(place, rng.choice(pieces))
            case 3 if len(pieces) > 1:
                pieces.pop(place)
            case 4:
                pieces[place] = _torn(pieces[place], rng)
            case _:
                other = make_query(world, rng).split(" ")
                pieces[place:place] = other[: rng.randrange(1, 6)]
    return " ".join(pieces)


def _torn(piece: str, rng: random.Random) -> str:
    if not piece:
        return "("
    cut = rng.randrange(len(piece))
    return rng.choice((piece[:cut], piece[cut:], piece[::-1], piece + piece, piece.upper(), f'"{piece}"', f"({piece})"))
