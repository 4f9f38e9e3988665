"""Which hush.* settings did the client choose, and are they acceptable?

Values arrive as PostgreSQL's text. The same rules serve a SET statement and a setting that came in
another way, so a bad value never takes effect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from proxy.analysis.analyse import Lowered
from proxy.dp.accounting import usual_epsilon
from proxy.errors import InvalidSetting
from proxy.pipeline.target import NO_TARGET, Target
from proxy.policy.model import MIN_QUERY_EPSILON, Privacy
from proxy.sql.algebra.constants import STYLE_NAMES, InputStyle

PREFIX = "hush."
_LEAST_SHARE = 0.01
READ_FROM_FRONT = ("client_min_messages", "statement_timeout", *STYLE_NAMES)
_MUTED = {"warning": frozenset(("NOTICE",)), "error": frozenset(("NOTICE", "WARNING"))}
_SWITCH = {"on": True, "true": True, "1": True, "yes": True, "off": False, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one statement. epsilon: of the whole statement. max_charge: 0 means no cap.

    target: the accuracy that is wanted instead of an epsilon. shares: how much each aggregate matters, () for alike.
    shared_session: name of the session account that pooled connections of one login share, "" for none.
    must_confirm: what is expected to say nothing is refused once. is_rounded: numbers are shown with the digits that
    their noise leaves.
    muted: severities of notices that client_min_messages keeps from the client. time_zone: the session's.
    style: all settings by which PostgreSQL reads the session's texts.
    """

    epsilon: float
    lowered: Lowered
    shared_session: str
    is_fresh: bool
    is_nonnegative: bool
    is_consistent: bool
    is_rounded: bool
    must_confirm: bool
    max_charge: float
    target: Target
    shares: tuple[float, ...]
    muted: frozenset[str]
    time_zone: str
    style: InputStyle = InputStyle()  # noqa: RUF009 - an immutable value


def read_settings(values: Mapping[str, str], privacy: Privacy) -> Settings:
    """All settings of a statement. Raises InvalidSetting."""

    def get(name: str) -> str:
        return values.get(f"{PREFIX}{name}", "").strip()

    for name in NAMES:
        check_setting(name, values.get(name, ""), privacy)
    return Settings(
        epsilon=float(get("epsilon")) if get("epsilon") else usual_epsilon(privacy),
        lowered=Lowered(rows_per_group=int(get("max_rows_per_group") or 0), groups=int(get("max_groups") or 0)),
        shared_session=get("session"),
        is_fresh=_SWITCH[get("fresh").lower() or "off"],
        is_nonnegative=_SWITCH[get("nonnegative").lower() or "on"],
        is_consistent=_SWITCH[get("consistency").lower() or "on"],
        must_confirm=_SWITCH[get("confirm").lower() or ("on" if privacy.confirm else "off")],
        is_rounded=get("digits").lower() != "all",
        max_charge=float(get("max_charge") or 0),
        target=_read_target(get("target_error")),
        shares=tuple(float(part) for part in get("weights").split(",") if part),
        muted=_MUTED.get(values.get("client_min_messages", "").lower(), frozenset()),
        time_zone=values.get("TimeZone", ""),
        style=InputStyle(tuple((name, values[name]) for name in STYLE_NAMES if name in values)),
    )


def has_intervals(values: Mapping[str, str]) -> bool:
    """Whether intervals are to be shown, which decides about a statement's columns before it is released."""
    return _SWITCH.get(values.get("hush.intervals", "").strip().lower(), False)


def has_notes(values: Mapping[str, str]) -> bool:
    """Whether notices are wanted in a column, which decides about a statement's columns before it is released."""
    return _SWITCH.get(values.get("hush.notes", "").strip().lower(), False)


def check_setting(name: str, value: str, privacy: Privacy) -> None:
    """Accept or refuse one value; the empty text means the default. Raises InvalidSetting."""
    check = _CHECKS.get(name.lower())
    if check is None:
        raise InvalidSetting(f'there is no setting "{name}"', hint=f"Settings: {', '.join(NAMES)}.")
    if value.strip():
        check(name.lower(), value.strip(), privacy)


def _epsilon(name: str, value: str, privacy: Privacy) -> None:
    least, most = MIN_QUERY_EPSILON, privacy.max_query_epsilon
    if not least <= _number(name, value) <= most:
        raise InvalidSetting(f"{name} must be between {least:.4f} and {most:g}, not {value[:40]}")


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")


def _number(name: str, value: str) -> float:
    number = float(value) if _NUMBER.fullmatch(value) else math.nan
    if not math.isfinite(number):
        raise InvalidSetting(f"{name} must be a number, not '{value[:40]}'")
    return number


def _positive(name: str, value: str, _privacy: Privacy) -> None:
    if not (value.isascii() and value.isdigit() and len(value) <= 10 and 1 <= int(value) <= 10**9):
        raise InvalidSetting(f"{name} must be a whole number from 1, not '{value[:40]}'",
                             hint="It can only lower the policy's bound.")  # fmt: skip


def _switch(name: str, value: str, _privacy: Privacy) -> None:
    if value.lower() not in _SWITCH:
        raise InvalidSetting(f"{name} must be on or off, not '{value[:40]}'")


_DIGITS = ("noise", "all")


def _digits(name: str, value: str, _privacy: Privacy) -> None:
    if value.lower() not in _DIGITS:
        raise InvalidSetting(f"{name} must be noise or all, not '{value[:40]}'",
                             hint="noise: the digits that the noise of a number leaves.")  # fmt: skip


def _name(name: str, value: str, _privacy: Privacy) -> None:
    if len(value) > 60 or not all(c.isalnum() or c in "_-." for c in value):
        raise InvalidSetting(f"{name} must be at most 60 letters, digits, '_', '-' or '.'")


def _target(name: str, value: str, _privacy: Privacy) -> None:
    number = _number(name, value.removesuffix("%").strip())
    if not 0 < number <= (100 if value.endswith("%") else 1e100):
        raise InvalidSetting(f"{name} must be a positive number, or per cent such as '5%', not '{value[:40]}'")


def _read_target(value: str) -> Target:
    if value.endswith("%"):
        return Target(float(value.removesuffix("%")) / 100.0, is_share=True)
    return Target(float(value)) if value else NO_TARGET


def _shares(name: str, value: str, _privacy: Privacy) -> None:
    for part in value.split(","):
        if not _LEAST_SHARE <= _number(name, part.strip()) <= 1.0 / _LEAST_SHARE:
            raise InvalidSetting(
                f"{name} must be numbers from {_LEAST_SHARE:g} to {1 / _LEAST_SHARE:g}, such as '2, 1'"
            )


_CHECKS: dict[str, Callable[[str, str, Privacy], None]] = {
    "hush.epsilon": _epsilon,
    "hush.max_rows_per_group": _positive,
    "hush.max_groups": _positive,
    "hush.session": _name,
    "hush.intervals": _switch,
    "hush.fresh": _switch,
    "hush.nonnegative": _switch,
    "hush.consistency": _switch,
    "hush.digits": _digits,
    "hush.confirm": _switch,
    "hush.notes": _switch,
    "hush.max_charge": _epsilon,
    "hush.target_error": _target,
    "hush.weights": _shares,
}
NAMES = tuple(_CHECKS)


def choices(name: str) -> tuple[str, ...]:
    """The few values that a setting may have; none where any number or name will do."""
    if _CHECKS[name] is _switch:
        return "on", "off"
    return _DIGITS if _CHECKS[name] is _digits else ()
