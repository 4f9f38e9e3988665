"""Calendar arithmetic on plain integers: microseconds since 1970 for every date and timestamp.

Written for the oracle alone: no function of the product, of Python's datetime or of an engine is used
to compute, so that a year before 1 or after 9999 is nothing special. Infinities are floats.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

Moment = int | float  # microseconds, or plus or minus infinity
DAY = 86_400_000_000
_TEXT = re.compile(r"(\d+)-(\d+)-(\d+)(?: (\d+):(\d+):(\d+))?( \(BC\))?")


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def moment_of(value: date | str, zone: str = "UTC") -> Moment:
    """A stored date, timestamp or text of one, as a local time of `zone` (stored times are UTC)."""
    if isinstance(value, str):
        if value in ("infinity", "-infinity"):
            return math.copysign(math.inf, -1 if value.startswith("-") else 1)
        return _shifted(_parsed(value), zone)
    if isinstance(value, datetime):
        whole = days_of(value.year, value.month, value.day) * DAY
        clock = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return _shifted(whole + clock, zone)
    return days_of(value.year, value.month, value.day) * DAY


def _parsed(text: str) -> int:
    match = _TEXT.fullmatch(text)
    assert match, f"not a time: {text}"
    year, month, day, hour, minute, second = (int(g or 0) for g in match.groups()[:6])
    year = 1 - year if match[7] else year
    return days_of(year, month, day) * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000


def _shifted(utc: int, zone: str) -> int:
    if zone == "UTC":
        return utc
    inside = min(max(utc, days_of(2, 1, 1) * DAY), days_of(9998, 1, 1) * DAY)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=inside)
    offset = ZoneInfo(zone).utcoffset(moment.astimezone(ZoneInfo(zone)))
    assert offset is not None
    return utc + offset // timedelta(microseconds=1)


def field_of(field: str, moment: Moment) -> float | None:
    """EXTRACT(field FROM moment); NULL for an infinity."""
    if not isinstance(moment, int):
        return None
    days, clock = divmod(moment, DAY)
    year, month, day = civil_of(days)
    of_minute = clock % 60_000_000
    of_day = {"hour": clock // 3_600_000_000, "minute": clock // 60_000_000 % 60, "second": of_minute / 1e6,
              "milliseconds": of_minute / 1e3, "microseconds": of_minute}  # fmt: skip
    if field in of_day:
        return of_day[field]
    if field == "epoch":
        return moment / 1e6
    thursday = days - (days + 3) % 7 + 3  # of the same ISO week
    iso_year = civil_of(thursday)[0]
    return {
        "year": year,
        "decade": year // 10 if year >= 1 else None,
        "century": (year + 99) // 100 if year >= 1 else None,
        "millennium": (year + 999) // 1000 if year >= 1 else None,
        "month": month,
        "day": day,
        "quarter": (month + 2) // 3,
        "dow": (days + 4) % 7,
        "isodow": (days + 3) % 7 + 1,
        "doy": days - days_of(year, 1, 1) + 1,
        "isoyear": iso_year,
        "week": (thursday - days_of(iso_year, 1, 1)) // 7 + 1,
    }[field]


def truncated(unit: str, moment: Moment) -> Moment | None:
    """date_trunc(unit, moment); NULL for the longest units before the year 1, and without end."""
    if not isinstance(moment, int):
        return None if unit in ("decade", "century", "millennium") else moment
    lengths = {
        "microseconds": 1,
        "milliseconds": 1000,
        "second": 1_000_000,
        "minute": 60_000_000,
        "hour": 3_600_000_000,
        "day": DAY,
    }
    if unit in lengths:
        return moment - moment % lengths[unit]
    days = moment // DAY
    if unit == "week":
        return (days - (days + 3) % 7) * DAY
    year, month, _ = civil_of(days)
    years = {"decade": year - year % 10, "century": year - (year - 1) % 100, "millennium": year - (year - 1) % 1000}
    if unit in years:
        return days_of(years[unit], 1, 1) * DAY if year >= 1 else None
    first = {"year": 1, "quarter": (month - 1) // 3 * 3 + 1, "month": month}[unit]
    return days_of(year, first, 1) * DAY


def shifted(moment: Moment, months: int, days: int, microseconds: int) -> Moment:
    """moment + interval: months first, keeping to the month's last day, then days, then time."""
    if not isinstance(moment, int):
        return moment
    whole, clock = divmod(moment, DAY)
    year, month, day = civil_of(whole)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    last = days_of(year + month // 12, month % 12 + 1, 1) - days_of(year, month, 1)
    return (days_of(year, month, min(day, last)) + days) * DAY + clock + microseconds


def date_text(moment: Moment) -> str:
    """A date as PostgreSQL casts it to text."""
    if not isinstance(moment, int):
        return "infinity" if moment > 0 else "-infinity"
    year, month, day = civil_of(moment // DAY)
    return f"{year:04}-{month:02}-{day:02}" if year > 0 else f"{1 - year:04}-{month:02}-{day:02} BC"


def time_text(moment: Moment) -> str:
    """A timestamp as PostgreSQL casts it to text."""
    if not isinstance(moment, int):
        return date_text(moment)
    clock = moment % DAY
    seconds, micros = divmod(clock, 1_000_000)
    text = f" {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    fraction = f".{micros:06}".rstrip("0") if micros else ""
    date_part = date_text(moment)
    return date_part.removesuffix(" BC") + text + fraction + (" BC" if date_part.endswith(" BC") else "")


_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def spelled(moment: Moment, directives: str) -> str | None:
    """A time in strftime's directives; NULL outside of the years 1 to 9999."""
    if not isinstance(moment, int) or not 1 <= civil_of(moment // DAY)[0] <= 9999:
        return None
    of = {field: int(field_of(field, moment) or 0) for field in
          ("year", "month", "day", "hour", "minute", "second", "isoyear", "week", "dow", "isodow", "doy")}  # fmt: skip
    half, micros = (of["hour"] + 11) % 12 + 1, moment % 1_000_000
    texts = {
        "%": "%", "Y": f"{of['year']:04}", "y": f"{of['year']:04}"[-2:], "G": f"{of['isoyear']:04}",
        "m": f"{of['month']:02}", "-m": f"{of['month']}", "d": f"{of['day']:02}", "-d": f"{of['day']}",
        "j": f"{of['doy']:03}", "u": f"{of['isodow']}", "V": f"{of['week']:02}", "H": f"{of['hour']:02}",
        "-H": f"{of['hour']}", "I": f"{half:02}", "-I": f"{half}", "M": f"{of['minute']:02}", "-M": f"{of['minute']}",
        "S": f"{of['second']:02}", "-S": f"{of['second']}", "g": f"{micros // 1000:03}", "f": f"{micros:06}",
        "B": _MONTHS[of["month"] - 1], "b": _MONTHS[of["month"] - 1][:3], "A": _DAYS[of["dow"]],
        "a": _DAYS[of["dow"]][:3], "p": "AM" if of["hour"] < 12 else "PM",
    }  # fmt: skip
    return re.sub(r"%(-?.)", lambda found: texts[found[1]], directives)


def made(year: int, month: int, day: int) -> Moment | None:
    """A day of the years 1 to 9999; NULL if there is no such day."""
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    found = days_of(year, month, day)
    return found * DAY if civil_of(found) == (year, month, day) else None


def on_clocks(moment: Moment, here: str, there: str) -> Moment:
    """What clocks show there when they show this here: the later of two instants, before a leap the earlier clock."""
    if not isinstance(moment, int):
        return moment
    candidates = [moment - offset for offset in (_shifted(moment, here) - moment, *_around(moment, here))]
    fitting = [c for c in candidates if _shifted(c, here) == moment]
    instant = max(fitting) if fitting else moment - min(_around(moment, here))
    return _shifted(instant, there)


def _around(moment: int, zone: str) -> tuple[int, int]:
    """The clocks' distances from UTC a day before and a day after."""
    before, after = moment - DAY, moment + DAY
    return _shifted(before, zone) - before, _shifted(after, zone) - after


def age_of(end: Moment, start: Moment) -> tuple[int, int] | None:
    """Whole months of age(end, start), and the microseconds beyond; a month is as long as that of the earlier time."""
    if not (isinstance(end, int) and isinstance(start, int)):
        return None
    if end < start:
        back = age_of(start, end)
        return back and (-back[0], -back[1])
    months, passed = zip(*(_month_of(moment) for moment in (end, start)), strict=True)
    whole, rest = months[0] - months[1], passed[0] - passed[1]
    if rest < 0:
        first, last = (days_of(m // 12, m % 12 + 1, 1) for m in (months[1], months[1] + 1))
        return whole - 1, rest + (last - first) * DAY
    return whole, rest


def _month_of(moment: int) -> tuple[int, int]:
    """The month, counted from the year 0, and how much of it is over."""
    year, month, _ = civil_of(moment // DAY)
    return year * 12 + month - 1, moment - days_of(year, month, 1) * DAY


_ISO = re.compile(r"\s*(\d{1,6})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?\s*")


def read(text: str) -> int | None:
    """A date or timestamp in ISO's form; NULL for all else."""
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    day = made(*(int(g) for g in match.groups()[:3]))
    hour, minute, second = (int(g or 0) for g in match.groups()[3:6])
    if not isinstance(day, int) or hour > 23 or minute > 59 or second > 59:
        return None
    return day + ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((match[7] or "").ljust(6, "0"))
