"""Which errors are told to clients in their own words?"""

from __future__ import annotations

import pytest

from proxy import errors
from proxy.errors import HushError
from proxy.wire.responses import error_response

SECRETS = "/srv/state/head", "host=db.internal password", "t.uid: a unit has more than one row"
#: What speaks of the statement, the policy that is in force, or in fixed words.
IN_OWN_WORDS = {
    "AuthenticationFailed", "BadGroups", "BudgetSpent", "EngineFailed", "HushError", "IdleTooLong", "InvalidParameter",
    "InvalidSetting", "MissingBounds", "NoParameter", "NotAggregate", "NotConfirmed", "NotEncrypted", "NotReadable",
    "PolicyForbids", "ProtocolViolation", "QueryCanceled", "SessionLimit", "ShuttingDown", "ThinkerLost",
    "TokenRefused", "TooManyConnections", "TooMuch", "UndefinedName", "UnitNotJoined", "UnknownDatabase",
    "UnknownUnit", "Unsupported", "Untranslatable",
}  # fmt: skip


def made(kind: type[HushError]) -> HushError:
    if kind is errors.TooMuch:  # which says the same of all
        return errors.TooMuch()
    message, detail, hint = SECRETS
    return kind(message, detail=detail, hint=hint)


def kinds() -> list[type[HushError]]:
    return [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, HushError)]


def test_every_kind_of_error_is_for_clients_or_is_not() -> None:
    assert {k.__name__ for k in kinds() if made(k).told().text() == made(k).text()} == IN_OWN_WORDS


@pytest.mark.parametrize("kind", [errors.ConfigError, errors.PolicyError, errors.LedgerFailed])
def test_no_client_reads_what_is_for_the_operator(kind: type[HushError]) -> None:
    """Claim of `error_response`."""
    sent = error_response(made(kind))
    assert not any(secret.encode() in sent for secret in SECRETS)


def test_what_the_public_postgresql_says_of_itself_is_for_the_operator() -> None:
    sent = error_response(errors.FrontFailed("it is restarting", detail=SECRETS[0], hint="Try again."))
    assert SECRETS[0].encode() not in sent
    assert b"it is restarting" in sent
    assert b"Try again." in sent
