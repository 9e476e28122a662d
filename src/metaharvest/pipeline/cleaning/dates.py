"""Dates as EDTF, level 0 and 1 (https://www.loc.gov/standards/datetime/): from ISO 8601 and from words. Pure.

What can be read in two ways, such as 03/04/2020, keeps the year alone. A text without a date gives None.
"""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable
from functools import lru_cache

_LONGEST = 100
_FIRST, _LAST = 1000, 2100
"""The years that records have; other numbers of four digits are mostly something else."""

_MONTHS = (
    "янв sty stycz january jan januar jänner janvier janv enero ene janeiro gennaio gen januari января styczeń "
    "stycznia",
    "февр фев lut luty february feb febr februar feber février fevrier févr fevr febrero fevereiro fev febbraio "
    "februari февраля lutego",
    "мар march mar mär märz maerz mars marzo março marco maart mrt марта marca",
    "апр kwi april apr avril avr abril abr aprile апреля kwietnia",
    "may mai mayo maio mag maggio mei maj мая maja",
    "июн cze czerwiec june jun juni juin junio junho giugno giu июня czerwca",
    "июл lip july jul juli juillet juil julio julho luglio lug июля lipca",
    "авг sie august aug août aout agosto ago augustus augusti августа sierpnia",
    "сент сен wrz september sept sep septembre septiembre setiembre setembro set settembre сентября września",
    "окт paź october oct oktober okt octobre octubre outubro out ottobre ott октября października",
    "нояб ноя lis november nov novembre noviembre novembro ноября listopada",
    "дек gru december dec dezember dez décembre decembre déc diciembre dic dezembro dicembre декабря grudnia",
)
"""The names of the months, January first."""
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_SEASONS = {
    21: "spring frühling fruehling frühjahr fruehjahr printemps primavera lente voorjaar vår",
    22: "summer sommer été ete verano verão verao estate zomer sommar",
    23: "autumn fall herbst automne otoño otono outono autunno herfst höst",
    24: "winter hiver invierno inverno vinter",
}
_WEEKDAYS = """
monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun
montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag lundi mardi mercredi jeudi vendredi samedi
dimanche lunes martes miércoles jueves viernes sábado domingo segunda terça quarta quinta sexta feira sábado
lunedì martedì mercoledì giovedì venerdì sabato domenica maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
måndag tisdag onsdag torsdag fredag lördag söndag poniedziałek wtorek środa czwartek piątek sobota niedziela
понедельник вторник среда четверг пятница суббота воскресенье
"""
_ASIDE = frozenset((*_WEEKDAYS.split(), "de", "del", "of", "the", "do", "di", "den", "г", "года", "roku", "r"))
"""Words of a date that say nothing more."""

_SEASON = {name: number for number, names in _SEASONS.items() for name in names.split()}

_ABOUT = re.compile(
    r"(?:circa|approximately|approx\.?|about|around|ca\.?|c\.|um|etwa|env\.?|environ|vers|hacia|cerca de|~|±)"
    r"\s{0,3}(?=\[?\d)",
    re.IGNORECASE,
)
_IN_FRONT = re.compile(
    r"(?:\[|\(|©|\(c\)|cop(?:yright)?\.?\s|c(?=\d{4}\b)|p(?=\d{4}\b)|℗|published(?:\son)?:?\s|publ\.\s|issued:?\s|"
    r"date:?\s|year:?\s|printed\s|impr\.\s|d\.l\.\s|depósito legal\s|am\s|im\s|den\s|le\s|el\s|il\s|op\s|de\s|"
    r"on\s|in\s|anno\s|an\s(?=\d{4})|"
    r"first\spublished:?\s|available(?:\sonline)?:?\s)\s{0,3}",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"\s{0,3}(?:\(?[月火水木金土日](?:曜日?|\))|(?:星期|周|週|礼拜)[一二三四五六日天]|\(?[월화수목금토일](?:요일|\))|"
    r"(?<=\d{4}),?\s?\[?(?:©|c|cop\.)\s?\d{4}|\]|\)|\.|,|;|:|\(?print\)?|\(?online\)?|年|a\.?d\.?|c\.?e\.?)$",
    re.IGNORECASE,
)

_UNKNOWN_PARTS = re.compile(r"(?<=\d)(?:-(?:xx|uu|\?\?)){1,2}$", re.IGNORECASE)
"""The places of a month and a day that nobody knows, as in `1990-??-??`."""

_ISO = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
    r"\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})?|T|Z|[+-]\d\d:\d\d)?([?~%]?)"
)
_SLASHED = re.compile(r"(\d{4})[/.]\s?(\d{1,2})(?:[/.]\s?(\d{1,2}))?\.?")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T?\d{4,6}Z?)?")
_COMPACT_MONTH = re.compile(r"(1[5-9]\d\d|20\d\d)(0[1-9]|1[0-2])")
_DAY_FIRST = re.compile(r"(\d{1,2})\s?[./-]\s?(\d{1,2})\s?[./-]\s?(\d{4})(?:[ T]\d{1,2}:\d{2}(?::\d{2})?)?")
_MONTH_YEAR = re.compile(r"(\d{1,2})[./-](\d{4})")
_EAST_ASIAN = re.compile(r"(?:西暦)?(\d{4})\s?[年년]\s?(?:(\d{1,2})\s?[月월]\s?(?:(\d{1,2})\s?[日일号])?)?")
_ERA = re.compile(r"(明治|大正|昭和|平成|令和)\s?(\d{1,2}|元)年\s?(?:(\d{1,2})月\s?(?:(\d{1,2})日)?)?")
_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018}
_TIME = re.compile(
    r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m\b)?"
    r"(?:\s(?!(?:oct|okt|out|sept?|set)\b)(?:[A-Z]{1,3}[CS]?T|UTC|Z)\b)?(?:\s?[+-]\d{2}:?\d{2}\b)?",
    re.IGNORECASE,
)
"""A time of day beside the words of a date, with its zone. A month such as Oct is no zone."""

_WORDS = re.compile(r"[^\W\d_]{2,12}|\d{1,4}")
_DECADE = re.compile(r"(?:the\s)?(\d{3})(?:0['’]?s|0er(?: jahre)?|[xX?\-u_*]\??|0-[xX?])\.?", re.IGNORECASE)
_CENTURY = re.compile(r"(\d\d)(?:[xX?\-u_*]{2})")
_CENTURY_WORD = re.compile(r"(?:the\s)?(\d\d)(?:th|st|nd|rd)\scentury", re.IGNORECASE)
_YEAR_IN_TEXT = re.compile(r"(?<![\d.,])(1[5-9]\d\d|20\d\d)(?![\d]|[.,]\d)")
_BEFORE = re.compile(r"(?:before|vor|avant|antes de|prima del|by|until|bis)\s(\d{4})", re.IGNORECASE)
_SINCE = re.compile(r"(?:after|since|from|nach|seit|ab|après|depuis|desde|dal|vanaf)\s(\d{4})", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th|er|º|ª|\.º|\.)(?=\s|,|$)", re.IGNORECASE)
_RANGE = re.compile(r"\s{0,3}(?:/|–|—|−|\s-\s|\bto\b|\bbis\b|\bà\b|\bau\b|\buntil\b|\bthrough\b|~|～|\bal\b)\s{0,3}")
_HYPHEN = re.compile(r"(?<=[\s.]\d{4})--?(?=[^\W\d_]{3}|\d{1,2}\.\s?\d)")
"""A range without another sign of one: `Dec 1998-Jan 1999`."""

_FROM = re.compile(r"^(?:from|von|vom|desde|du|dal)\s", re.IGNORECASE)
_BETWEEN = re.compile(r"between\s(.{4,20})\sand\s(.{4,20})", re.IGNORECASE)
_ONE_OF = re.compile(r"(\d{4})\sor\s\d{4}", re.IGNORECASE)
_CORRECTED = re.compile(r"\d{4},?\s\[?i\.?\s?e\.?,?\s(\d{4})", re.IGNORECASE)
"""Dates of catalogues of libraries: `[between 1679 and 1722]`, `[1990 or 1991]`, `1957 [i.e. 1958]`.

Seen at https://github.com/ntra00/marc2bibframe/issues/82 and https://github.com/ualbertalib/discovery/issues/1367.
"""

_YEARS = re.compile(r"(\d{4})\s?[-–—−/]\s?(\d{4}|\d\d)")
_OPEN = re.compile(r"(\d{4}(?:-\d\d){0,2})\s?(?:/|/\.\.|-|–)\s?(?:\.\.|present|open|ongoing|heute|now)?", re.IGNORECASE)
_W3C_PERIOD = re.compile(r"(start|end)\s?=\s?([^;]{4,40})", re.IGNORECASE)


@lru_cache(10_000)
def edtf_of(text: str) -> str | None:
    """The date in a text as EDTF, such as `2020-05-01`, `2020-21` (spring), `2001/2003`, `1998~`; None without one."""
    text = " ".join(unicodedata.normalize("NFKC", text[: 2 * _LONGEST]).split())
    if not 2 < len(text) <= _LONGEST or not any(map(str.isdigit, text)):
        return None
    if "=" in text:
        return _period(text)
    plain, doubt = _plain(text)
    for read in _READERS:
        if found := read(plain):
            return found + doubt if doubt and "/" not in found and not found.endswith(("~", "?", "%")) else found
    return None


def year_of(edtf: str) -> int | None:
    """The year of a date in EDTF; of a range, the year of its beginning. None for a decade or a century."""
    year = edtf.removeprefix("../").removeprefix("/")[:4]
    return int(year) if year.isdigit() else None


def _plain(text: str) -> tuple[str, str]:
    """The text without words and signs around the date, and the sign of EDTF for what they say of it."""
    text, doubt = _UNKNOWN_PARTS.sub("", text), ""
    for _ in range(4):
        before = text
        if found := _ABOUT.match(text):
            text, doubt = text[found.end() :], "~"
        elif (found := _IN_FRONT.match(text)) and any(map(str.isdigit, text[found.end() :])):
            text = text[found.end() :]
        if found := _BEHIND.search(text):
            text = text[: found.start()]
        if text.endswith("?") and text[:-1].isdigit() and len(text) == 5:
            text, doubt = text[:-1], "?"
        if text == before:
            break
    return text.strip(), doubt


def _date(year: str | int, month: str | int | None = None, day: str | int | None = None) -> str | None:
    """The date of these numbers, without the numbers that no calendar has; None for a year that no record has."""
    number = int(year)
    if not _FIRST <= number <= _LAST:
        return None
    if not month or not 1 <= int(month) <= 12:
        return f"{number:04}"
    if not day or not 1 <= int(day) <= monthrange(number, int(month))[1]:
        return f"{number:04}-{int(month):02}"
    return f"{number:04}-{int(month):02}-{int(day):02}"


def _iso(text: str) -> str | None:
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    year, month, day, doubt = found.groups()
    if month and not day and 21 <= int(month) <= 24:
        return f"{year}-{month}"
    if month and not day and len(month) == 2 and int(month) > 12:
        return _years(text) or _date(year)
    return (date + doubt) if (date := _date(year, month, day)) else None


def _compact(text: str) -> str | None:
    found = _COMPACT.fullmatch(text)
    if found and 1 <= int(found[2]) <= 12 and 0 <= int(found[3]) <= 31:
        return _date(*found.groups())
    found = _COMPACT_MONTH.fullmatch(text)
    return _date(*found.groups()) if found else None


def _slashed(text: str) -> str | None:
    """2020/05/01, 2020.5.1; 2020/05 is a month, 1998/99 two years."""
    found = _SLASHED.fullmatch(text)
    if found is None:
        return None
    year, month, day = found.groups()
    if int(month) > 12 or (day and int(day) > 31):
        return _years(text)
    return _date(year, month, day)


def _day_first(text: str) -> str | None:
    """01.05.2020 with dots has the day first; with slashes, the day is known if it is above 12, or equals the month."""
    if found := _DAY_FIRST.fullmatch(text):
        first, second, year = int(found[1]), int(found[2]), found[3]
        if "." in text or first > 12 or first == second:
            return _date(year, second, first)
        return _date(year, first, second) if second > 12 else _date(year)
    found = _MONTH_YEAR.fullmatch(text)
    return _date(found[2], found[1]) if found and 1 <= int(found[1]) <= 12 else None


def _east_asian(text: str) -> str | None:
    if found := _EAST_ASIAN.fullmatch(text) or _EAST_ASIAN.fullmatch(text + "年"):
        return _date(*found.groups())
    found = _ERA.fullmatch(text) or _ERA.fullmatch(text + "年")
    if found is None:
        return None
    year = _ERAS[found[1]] + (1 if found[2] == "元" else int(found[2]))
    return _date(year, found[3], found[4])


def _years(text: str) -> str | None:
    """1998-2001, 1998-99."""
    found = _YEARS.fullmatch(text)
    if found is None:
        return None
    first, last = found.groups()
    if len(last) == 2:
        last = f"{int(first[:2]) + (last < first[2:]):02}{last}"
    return f"{first}/{last}" if _date(first) and _date(last) and int(first) < int(last) else None


def _words(text: str) -> str | None:
    """5 May 2020, May 5, 2020, mai 2020, Spring 2020, 2020 Mar 5, January-February 2020: months of nine languages."""
    words = [each.lower() for each in _WORDS.findall(_ORDINAL.sub("", _TIME.sub("", text)))]
    words = [each for each in words if each not in _ASIDE]
    years = [each for each in words if len(each) == 4 and each.isdigit()]
    months = [_MONTH[each] for each in words if each in _MONTH]
    seasons = [_SEASON[each] for each in words if each in _SEASON]
    days = [int(each) for each in words if each.isdigit() and len(each) <= 2]
    known = len(years) + len(months) + len(seasons) + len(days)
    if len(years) != 1 or known != len(words) or len(months) > 2 or len(months) + len(seasons) == 0:
        return None
    year = _date(years[0])
    if year is None:
        return None
    if seasons:
        return f"{year}-{seasons[0]}" if len(seasons) == 1 and not months and not days else year
    if len(months) == 2:
        return f"{_date(year, months[0])}/{_date(year, months[1])}" if months[0] < months[1] and not days else year
    if len(days) == 1:
        return _date(year, months[0], days[0])
    return _date(year, months[0])


def _range(text: str) -> str | None:
    text = _FROM.sub("", text, count=1)
    parts = _RANGE.split(text)
    if len(parts) == 1:
        parts = _HYPHEN.split(text)
    if len(parts) != 2:
        return None
    begin, end = (edtf_of(part) for part in parts)
    if begin and not end and parts[1].strip() in ("", ".."):
        return f"{begin}/.."
    if end and not begin:
        # May to July 2020, 3-5 May 2020: the year, and the month, are in the second part.
        begin = edtf_of(f"{parts[0]} {end[:4]}")
    if not begin or not end or "/" in begin or "/" in end:
        return None
    return f"{begin}/{end}" if begin[:4] <= end[:4] and begin != end else begin if begin == end else None


def _of_catalogue(text: str) -> str | None:
    """between 1679 and 1722: a range; 1957 [i.e. 1958]: the second year; 1990 or 1991: about the first year."""
    if found := _BETWEEN.fullmatch(text):
        return _range(f"{found[1]} to {found[2].rstrip('?')}")
    if found := _CORRECTED.fullmatch(text):
        return _date(found[1])
    if (found := _ONE_OF.fullmatch(text.rstrip("?"))) and (year := _date(found[1])):
        return f"{year}~"
    return None


def _open(text: str) -> str | None:
    found = _OPEN.fullmatch(text)
    if found and (date := edtf_of(found[1])):
        return f"{date}/.."
    return None


def _unspecified(text: str) -> str | None:
    """199X, 1990s, 19XX, 20th century, before 1950, since 1950."""
    if found := _BEFORE.fullmatch(text):
        return f"../{found[1]}" if _date(found[1]) else None
    if found := _SINCE.fullmatch(text):
        return f"{found[1]}/.." if _date(found[1]) else None
    if found := _DECADE.fullmatch(text):
        return f"{found[1]}X" if 100 <= int(found[1]) <= 210 else None
    if found := _CENTURY.fullmatch(text):
        return f"{found[1]}XX" if 10 <= int(found[1]) <= 20 else None
    if found := _CENTURY_WORD.fullmatch(text):
        return f"{int(found[1]) - 1}XX" if 11 <= int(found[1]) <= 21 else None
    return None


def _only_year(text: str) -> str | None:
    """The only year in a short text, such as `Lima : Editorial, 1998`."""
    found = set(_YEAR_IN_TEXT.findall(text))
    return next(iter(found)) if len(found) == 1 else None


def _period(text: str) -> str | None:
    """A period of DCMI: `start=2001; end=2003; scheme=W3C-DTF`."""
    ends = {found[1].lower(): edtf_of(found[2]) for found in _W3C_PERIOD.finditer(text)}
    begin, end = ends.get("start"), ends.get("end")
    return f"{begin}/{end}" if begin and end else begin or end


_READERS: tuple[Callable[[str], str | None], ...] = (
    *(_iso, _compact, _slashed, _day_first, _east_asian, _years, _unspecified, _open, _words, _of_catalogue, _range),
    _only_year,
)
