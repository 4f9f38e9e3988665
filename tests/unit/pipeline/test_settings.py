"""Values of the hush.* settings: the same rules at SET and where they take effect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.analysis.analyse import Lowered
from proxy.errors import InvalidSetting
from proxy.pipeline.settings import NAMES, check_setting, has_intervals, read_settings
from tests.unit.session.make import PRIVACY


def test_defaults_follow_the_policy() -> None:
    settings = read_settings({}, replace(PRIVACY, query_epsilon=0.7))
    assert settings.epsilon == 0.7
    assert settings.lowered == Lowered()
    assert (settings.shared_session, settings.max_charge) == ("", 0)
    assert (settings.is_fresh, settings.is_nonnegative) == (False, True)


def test_values_are_read_as_postgresql_spells_them() -> None:
    settings = read_settings(
        {
            "hush.epsilon": " 1e-1 ", "hush.max_rows_per_group": "3", "hush.max_groups": "7", "hush.session": "pool-1",
            "hush.intervals": "ON", "hush.fresh": "1", "hush.nonnegative": "no", "hush.max_charge": "2.5",
            "TimeZone": "UTC", "hush.target_error": " 2.5 % ", "hush.weights": "2, .5",
        },
        PRIVACY,
    )  # fmt: skip
    assert settings.epsilon == 0.1
    assert settings.lowered == Lowered(rows_per_group=3, groups=7)
    assert (settings.shared_session, settings.max_charge) == ("pool-1", 2.5)
    assert (settings.is_fresh, settings.is_nonnegative) == (True, False)
    assert (str(settings.target), settings.target.is_share, settings.shares) == ("2.5%", True, (2.0, 0.5))
    absolute = read_settings({"hush.target_error": "40"}, PRIVACY)
    assert (str(absolute.target), absolute.target.is_share, absolute.shares) == ("40", False, ())


@pytest.mark.parametrize(
    ("value", "expected"), [("", False), (" ON ", True), ("yes", True), ("off", False), ("?", False)]
)
def test_intervals_are_shown_if_switched_on(value: str, expected: bool) -> None:
    assert has_intervals({"hush.intervals": value}) is expected


@pytest.mark.parametrize("name", NAMES)
def test_empty_value_is_the_default(name: str) -> None:
    check_setting(name, "  ", PRIVACY)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("hush.epsilon", v) for v in ("0", "0.00009", "100.1", "nan", "inf", "-1", "x", "1_0", "\u0661")),
        *(("hush.epsilon", v) for v in ("1e99999", "0x1", "", "1e", ".", "--1", "1 2") if v),
        *(("hush.max_charge", v) for v in ("0", "101")),
        *(("hush.max_groups", v) for v in ("0", "-1", "1.0", "\u0661", "1" * 5000, "10000000000")),
        *(("hush.max_rows_per_group", v) for v in ("0", "x")),
        *(("hush.intervals", v) for v in ("2", "maybe")),
        *(("hush.session", v) for v in ("a/b", "a b", "x" * 61, "'")),
        *(("hush.target_error", v) for v in ("0", "-1", "0%", "101%", "%", "5 per cent", "inf")),
        *(("hush.weights", v) for v in ("0", "1,", "1;2", "0.001, 1", "101", "a")),
        ("hush.unheard_of", "1"), ("hush.unheard_of", ""),
    ],
)  # fmt: skip
def test_bad_value_is_refused_everywhere(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting):
        check_setting(name, value, PRIVACY)
    if name in NAMES:
        with pytest.raises(InvalidSetting):
            read_settings({name: value}, PRIVACY)


def test_highest_epsilon_is_the_policys() -> None:
    low = replace(PRIVACY, max_query_epsilon=1.0)
    check_setting("HUSH.EPSILON", "1", low)
    with pytest.raises(InvalidSetting, match=r"between 0.0001 and 1,"):
        check_setting("hush.epsilon", "1.01", low)


def test_message_never_repeats_a_long_value() -> None:
    with pytest.raises(InvalidSetting) as refused:
        check_setting("hush.fresh", "y" * 10_000, PRIVACY)
    assert len(refused.value.message) < 120
