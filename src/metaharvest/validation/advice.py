"""Advice about values that the schema refuses: the right value or notation. Pure functions of values."""

from __future__ import annotations

import calendar
import difflib
import re
from collections.abc import Collection, Sequence

FORMS = {
    "date": "YYYY-MM-DD",
    "gYear": "YYYY",
    "time": "hh:mm:ss",
    "dateTime": "YYYY-MM-DDThh:mm:ss",
    "gYearMonth": "YYYY-MM",
}
"""The format of the values of these types of XML Schema."""

_WRITTEN = {kind: re.compile(re.sub("[YMDhms]", r"\\d", form)) for kind, form in FORMS.items()}
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T.*)?")
_PARTS = re.compile(r"(\d{4})[-/. ]?(\d{1,2})[-/. ]?(\d{1,2})|(\d{1,2})[-/. ](\d{1,2})[-/. ](\d{4})")
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_NAMED = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|\.)?[ -]([A-Za-z]{3,9})\.?,?[ -](\d{4})"
    r"|([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})"
)
_NUMBER = re.compile(r"([+-]?\d{1,20}(?:\.\d{1,20})?)\s?([^\d\s.,+-]{1,20})")
_TRUE, _FALSE = ("true", "yes", "y", "t", "wahr", "oui", "si"), ("false", "no", "n", "f", "falsch", "non")


def about_date(value: str, kinds: Collection[str]) -> tuple[str, str]:
    """The end of a sentence about a value that is no date or time of these types, and the remedy."""
    shown = value.strip()
    forms = [form for kind, form in FORMS.items() if kind in kinds]
    wanted = " or ".join(forms)
    if any(_WRITTEN[kind].fullmatch(shown) for kind in FORMS if kind in kinds):
        return _no_such(shown, kinds)
    if "date" in kinds and (month := re.fullmatch(r"([0-9]{4})-([0-9]{1,2})", shown)):
        or_year = f", or the year alone: {month[1]}" if "gYear" in kinds else ""
        example = f"{month[1]}-{month[2]:0>2}-01"
        return f"is a month, and not written as {wanted}.", f"Write the whole day, as in {example}{or_year}."
    day = _day_in(shown) if "date" in kinds else ""
    return f"is not written as {wanted}.", f"Write {day or f'it as {wanted}'}."


def _no_such(shown: str, kinds: Collection[str]) -> tuple[str, str]:
    """Message and remedy for a well-written date or time that does not exist."""
    day = _DAY.fullmatch(shown)
    if day is None:
        return "is written as it should be, but there is no such date or time.", "Correct the numbers."
    year, month, number = map(int, day.groups())
    or_year = f" If the day is not known, write the year alone: {day[1]}." if "gYear" in kinds else ""
    if not 1 <= month <= 12:
        swapped = f"{day[1]}-{day[3]}-{day[2]}"
        if _exists(year, number, month):
            return f"has the month {month}, which does not exist.", f"Did you mean {swapped}?{or_year}"
        return f"has the month {month}, which does not exist.", f"Correct the month.{or_year}"
    if not year or _exists(year, month, number):
        return "is written as it should be, but there is no such date or time.", "Correct the numbers."
    last = calendar.monthrange(year, month)[1]
    length = f"{calendar.month_name[month]} {year} has {last} days"
    return f"is a day that does not exist: {length}.", f"Correct the day.{or_year}"


def _day_in(text: str) -> str:
    """The day in another notation, as YYYY-MM-DD; empty if it is ambiguous, or no day."""
    if "T" in text and _DAY.fullmatch(text):
        text = text.partition("T")[0]
    if named := _NAMED.fullmatch(text):
        number, month, year = (named[1], named[2], named[3]) if named[1] else (named[5], named[4], named[6])
        names = [full for full in _MONTHS if full.startswith(month.lower())]
        return _written(int(year), _MONTHS[names[0]], int(number)) if len(names) == 1 else ""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return ""
    if parts[1]:
        return _written(int(parts[1]), int(parts[2]), int(parts[3]))
    first, second, year = int(parts[4]), int(parts[5]), int(parts[6])
    # 3/4/2020 is March or April; 30.1.2020 can be one day only.
    days = {_written(year, second, first), _written(year, first, second)} - {""}
    return days.pop() if len(days) == 1 else ""


def _exists(year: int, month: int, day: int) -> bool:
    return year > 0 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]


def _written(year: int, month: int, day: int) -> str:
    return f"{year:04}-{month:02}-{day:02}" if _exists(year, month, day) else ""


def about_number(value: str, *, is_whole: bool, is_degree: bool = True) -> str:
    """The remedy for a value that is no number. `is_degree`: it may be a longitude or latitude."""
    otherwise = "Write digits only." if is_whole else "Write digits, with a point for decimals, without a unit."
    text = value.strip().replace("\u2212", "-").replace("\u2013", "-").replace("\u00a0", " ")
    if text != value.strip() and re.fullmatch(r"[+-]?\d{1,20}(\.\d{1,20})?", text):
        return f"Write {text}, with an ordinary minus sign." if "-" in text else f"Write {text}."
    if re.fullmatch(r"[+-]?\d{1,3}([, ]\d{3})+", text) and (is_whole or text.count(",") != 1):
        return f"Write {re.sub('[, ]', '', text)}, without a sign between the digits."
    if is_whole and re.fullmatch(r"[+-]?\d{1,20}\.0+", text):
        return f"Write {text.partition('.')[0]}."
    if not is_whole and re.fullmatch(r"[+-]?\d{1,20},\d{1,20}", text):
        return f"Write {text.replace(',', '.')}, with a point."
    if number := _NUMBER.fullmatch(text):
        unit = number[2].strip("°").upper()
        if is_degree and unit in ("S", "W") and not number[1].startswith(("-", "+")):
            return f"Write -{number[1]}: south and west are negative."
        if not (is_whole and "." in number[1]) and (not unit or (is_degree and unit in ("N", "E", "S", "W"))):
            return f"Write {number[1]}."
        if not (is_whole and "." in number[1]):
            return f"Write {number[1]}, without '{number[2]}'."
    return otherwise


def about_boolean(value: str) -> str:
    """The remedy for a value that is neither true nor false."""
    text = value.strip().lower()
    return "Write true." if text in _TRUE else "Write false." if text in _FALSE else "Write true or false."


def similar_of(value: str, allowed: Sequence[str]) -> str:
    """The most similar of the allowed values; empty if none is similar."""
    by_lower = {each.lower(): each for each in allowed}
    close = difflib.get_close_matches(" ".join(value.split()).lower()[:100], by_lower, 1, 0.75)
    return by_lower[close[0]] if close else ""
