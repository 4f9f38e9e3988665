"""Who is remembered, for how long, and what proves that a request is theirs."""

from __future__ import annotations

import os

import pytest

from proxy.console.browsers import IDLE_S, LONGEST_S, Browsers
from proxy.console.wire import Address, Credential, LoginPlace, credential
from proxy.errors import AuthenticationFailed
from proxy.wire.scram import make_verifier

ADDRESS = Address("127.0.0.1", 1)


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def known(login: str = "ann") -> Credential:
    return Credential(
        address=ADDRESS, place=LoginPlace(login, "shop"), user=login, client_key="client", server_key="server"
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def browsers(clock: Clock) -> Browsers:
    return Browsers(clock, os.urandom, lambda _ended: None)


def test_a_browser_is_found_by_its_cookie_and_by_no_other(browsers: Browsers) -> None:
    cookie = browsers.begin(known())
    found = browsers.find(cookie)
    assert found is not None
    assert found.credential.place == LoginPlace("ann", "shop")
    assert browsers.find(cookie[:-1]) is browsers.find("") is None


def test_a_browser_is_forgotten_after_half_an_hour_without_a_request(browsers: Browsers, clock: Clock) -> None:
    cookie = browsers.begin(known())
    for _ in range(3):
        clock.now += IDLE_S - 1
        assert browsers.find(cookie) is not None
    clock.now += IDLE_S + 1
    assert browsers.find(cookie) is None


def test_a_browser_is_forgotten_after_twelve_hours_whatever_it_does(browsers: Browsers, clock: Clock) -> None:
    cookie = browsers.begin(known())
    while clock.now < LONGEST_S - IDLE_S:
        clock.now += IDLE_S / 2
        assert browsers.find(cookie) is not None
    clock.now = LONGEST_S + 1
    assert browsers.find(cookie) is None


def test_a_token_is_good_for_one_browser(browsers: Browsers) -> None:
    ann, bob = (browsers.find(browsers.begin(known(login))) for login in ("ann", "bob"))
    assert ann is not None
    assert bob is not None
    assert ann.may(ann.csrf)
    assert not ann.may(bob.csrf)
    assert not ann.may("")


def test_a_login_form_is_good_with_its_own_cookie(browsers: Browsers) -> None:
    assert browsers.form_token("a") == browsers.form_token("a") != browsers.form_token("b")


def test_the_oldest_of_too_many_browsers_of_a_login_is_forgotten_and_others_are_not(browsers: Browsers) -> None:
    other = browsers.begin(known("bob"))
    cookies = [browsers.begin(known()) for _ in range(21)]
    assert browsers.find(cookies[0]) is None
    assert all(browsers.find(cookie) for cookie in (*cookies[1:], other))


def test_there_are_never_more_browsers_than_may_be(browsers: Browsers) -> None:
    cookies = [browsers.begin(known(f"login{n}")) for n in range(501)]
    assert browsers.find(cookies[0]) is None
    assert browsers.find(cookies[-1]) is not None


def test_a_logged_out_browser_is_forgotten(browsers: Browsers) -> None:
    first, second = browsers.begin(known()), browsers.begin(known())
    browsers.end(first)
    assert browsers.find(first) is None
    browsers.end_all()
    assert browsers.find(second) is None


def test_what_is_kept_of_a_password_does_not_hold_it() -> None:
    verifier = make_verifier("a pass word", salt=b"sixteen bytes ..")
    kept = credential(ADDRESS, LoginPlace("ann", "shop"), "ann", "a pass word", verifier)
    assert "a pass word" not in (kept.client_key, kept.server_key)
    assert kept.client_key not in repr(kept)
    with pytest.raises(AuthenticationFailed):
        credential(ADDRESS, LoginPlace("ann", "shop"), "ann", "a pass wore", verifier)
