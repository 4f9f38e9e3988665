"""How does an administrator add to an account's limit, also while a proxy charges to the same files?

The grant is one more entry of the chain, appended in one transaction of SQLite. The marker is left alone: it belongs
to the proxy, which takes the grant over when it matters, and a file that is ahead of its marker is right.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from proxy.errors import LedgerFailed
from proxy.ledger import replay
from proxy.ledger.base import AccountTotal, Gift
from proxy.ledger.books import Books
from proxy.ledger.chain import encode
from proxy.ledger.sqlite import schema
from proxy.ledger.sqlite.head import MARKER_NAME, RESTORE_HINT, read_mark


def grant_in_files(directory: Path, gift: Gift) -> AccountTotal:
    """Append the grant; the account's figures afterwards. Raises ConfigError if there is no ledger, LedgerFailed."""
    replay.check_present(directory)
    mark = read_mark(directory / MARKER_NAME)
    books = Books()
    try:
        with closing(schema.open_durable(directory / schema.FILE_NAME)) as connection:
            replay.catch_up(books, connection, mark)  # the long part, while the proxy goes on charging
            connection.execute("begin immediate")
            replay.catch_up(books, connection, mark)
            grant = books.draft_grant(gift)
            body = encode(grant)
            books.book(grant, body)
            connection.execute("insert into entry values (?, ?)", (grant.seq, body))
            connection.execute("commit")
    except sqlite3.Error as error:
        raise LedgerFailed("the grant could not be written", hint=RESTORE_HINT) from error
    return next(t for t in books.totals() if (t.kind, t.name) == (gift.kind, gift.name))
