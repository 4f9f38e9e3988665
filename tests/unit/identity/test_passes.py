"""Do passes open one guest's login, for a time?"""

from __future__ import annotations

import os

from proxy.identity.passes import LIFE_S, Passes
from proxy.wire.scram import make_verifier


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_pass_is_its_guests_until_it_ends() -> None:
    clock = Clock()
    passes = Passes(os.urandom, clock)
    words = passes.give("alice")
    held = passes[words.user]
    assert held.login == "alice"
    assert make_verifier(words.secret, salt=held.verifier.salt) == held.verifier
    assert words.secret not in repr(words) + repr(held)
    assert passes.logins() == {"alice"}
    clock.now = LIFE_S + 1
    assert words.user not in passes
    assert len(passes) == 0


def test_passes_are_taken_back_one_by_one_or_all_of_a_guest() -> None:
    passes = Passes(os.urandom, Clock())
    first, second, other = (passes.give(login).user for login in ("alice", "alice", "bob"))
    passes.take_back(first)
    passes.take_back(first)
    assert list(passes) == [second, other]
    passes.take_all_of("alice")
    assert list(passes) == [other]


def test_there_are_not_too_many() -> None:
    passes = Passes(os.urandom, Clock())
    first = passes.give("alice").user
    given = [passes.give("bob").user for _ in range(1000)]
    assert first not in passes
    assert given[-1] in passes
    assert len(passes) == 1000
