"""Why is somebody not let in who is no login of the users file? For the log: the client is told one thing for all."""

from __future__ import annotations

import enum


class RefusalReason(enum.Enum):
    """The kinds of reasons, as the log has them."""

    EMPTY_PASSWORD = "empty_password"  # noqa: S105 - a name
    BAD_NAME = "bad_name"
    NAME_OF_FILE = "name_of_users_file"
    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"
    PASSWORD = "wrong_password"  # noqa: S105 - a name
    NO_GROUP = "no_group"
    NO_TOKEN = "no_token"  # noqa: S105 - a name
    NAME_OF_TOKEN = "token_of_another"  # noqa: S105 - a name
    TOKEN = "bad_token"  # noqa: S105 - a name
    UNREACHABLE = "unreachable"
    CHANGED = "changed"


class NotVouched(Exception):
    """Nobody vouches. reason: its kind. words: for the log; never a password, a token or a claim's value."""

    def __init__(self, reason: RefusalReason, words: str) -> None:
        super().__init__(words)
        self.reason = reason
        self.words = words


class Unreachable(NotVouched):
    """Whom the users file names to vouch cannot be asked, or gives no answer that can be used."""

    def __init__(self, words: str) -> None:
        super().__init__(RefusalReason.UNREACHABLE, words)
